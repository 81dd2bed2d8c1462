//! `tantalum serve --device DEVICE --nbd ADDRESS`.
use crate::commands::device_size::one_device;
use clap::ArgGroup;
use std::rc::Rc;
use tantalum_base::{PageBuf, PageDevice, Result};
use tantalum_console::Verdict;
use tantalum_models::DeviceSpec;
use tantalum_nbd::{Server, ServerOptions};
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::live::signal::Endings;
use tantalum_serving::{
    About, Ending, Listening, Logging, Outside, serve_until, tell, told_of_tls,
};

/// Serve a simulated device in real time, until Ctrl-C, SIGTERM, SIGHUP or SIGQUIT
#[derive(clap::Args, Debug)]
#[command(group(ArgGroup::new("clients").args(["nbd"]).required(true)))]
pub struct Args {
    /// The device, such as durassd:capacity=1GiB (docs/devices/README.md)
    #[arg(long, value_name = "DEVICE")]
    device: String,
    /// Seed of the random behaviour of the device
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    device_seed: u64,
    #[command(flatten)]
    listening: Listening,
    #[command(flatten)]
    logs: Logging,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let outside = args.listening.outside()?;
    let options = args.listening.options(&outside)?;
    let _log = args.logs.start()?;
    let spec = one_device("--device", &args.device)?;
    let socket_group = args.listening.socket_group(None)?;
    let live = Live::new(LiveOptions { socket_group, ..LiveOptions::default() })?;
    let (handle, seed, logs) = (live.clone(), args.device_seed, args.logs.clone());
    live.run(async move { serve(handle, spec, seed, (outside, logs), options).await })?;
    Ok(Verdict::Good)
}

/// Serves a device that is simulated at its own speed. Nothing has to be closed: its content is only in memory.
async fn serve(
    live: Live,
    spec: DeviceSpec,
    seed: u64,
    (outside, logs): (Outside, Logging),
    mut options: ServerOptions,
) -> Result<()> {
    let endings = Endings::watch(&live)?;
    options.description = format!("Simulated {}, in memory only", spec.name());
    let listeners = outside.listen(&live, &options)?;
    let device = spec.build_with::<_, PageBuf>(&live, seed).await?.device;
    tell(&format!(
        "{}: {} at {}{} ({}, simulated in memory: all content is lost when the server ends)",
        spec.name(),
        device.limits().durability.name(),
        listeners.nbd.as_ref().map(|nbd| nbd.local_address().to_string()).unwrap_or_default(),
        told_of_tls(options.tls.as_ref()),
        live.engine_name(),
    ));
    if spec.drops_flushes() {
        tell(&format!(
            "{}: barrier=off and a volatile cache: FLUSH and FUA are answered without effect, and \
             promise nothing",
            spec.name()
        ));
    }
    let about = About {
        device: spec.name().to_owned(),
        kind: "simulated",
        durability: device.limits().durability.name(),
        local: None,
    };
    let server = Server::new(Rc::clone(&device), options)?;
    let _ready = logs.ready()?;
    let ending = Ending { begin: || (), hasten: || (), rest: async { Ok(()) } };
    serve_until(&live, endings, about, (device, server), listeners, ending).await
}
