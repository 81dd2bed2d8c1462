//! `tantalum serve VOLUME.toml --nbd ADDRESS`.
use crate::Verdict;
use crate::common::print_line;
use std::path::PathBuf;
use std::rc::Rc;
use tantalum_base::PageDevice;
use tantalum_nbd::{Server, ServerOptions};
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::live::net::Address;
use tantalum_runtime::live::signal::terminated;
use tantalum_volume::{VolumeConfig, open_volume};

/// Serve a volume until SIGINT or SIGTERM
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The volume's configuration
    volume: PathBuf,
    /// Where NBD clients connect: unix:/path, 127.0.0.1:10809 or [::1]:10809
    #[arg(long, value_name = "ADDRESS")]
    nbd: String,
    /// Refuse everything that would change the volume
    #[arg(long)]
    read_only: bool,
    /// Listen also on addresses that other machines reach: there is no authentication
    #[arg(long)]
    allow_remote: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let config = VolumeConfig::read(&args.volume)?;
    let address: Address = args.nbd.parse()?;
    let options = ServerOptions {
        read_only: args.read_only,
        allow_remote: args.allow_remote,
        ..ServerOptions::default()
    };
    let live = Live::new(LiveOptions::default())?;
    let handle = live.clone();
    live.run(async move { serve(handle, config, address, options).await })?;
    Ok(Verdict::Good)
}

async fn serve(
    live: Live,
    config: VolumeConfig,
    address: Address,
    options: ServerOptions,
) -> tantalum_base::Result<()> {
    let stop = terminated(&live)?;
    let (volume, report) = open_volume(&live, &config).await?;
    let listener = match options.listen(&live, &address) {
        Ok(listener) => listener,
        Err(error) => {
            volume.close().await?;
            return Err(error);
        }
    };
    let told = print_line(&format!(
        "{}: {} at {} ({}, {} changes replayed, {} dropped)",
        config.path.display(),
        volume.device().limits().durability.name(),
        listener.local_address(),
        live.engine_name(),
        report.recovery.replayed,
        report.recovery.dropped,
    ));
    if let Err(error) = told {
        // A server that nobody listens to on its standard output still has clients.
        eprintln!("tantalum: the standard output cannot be written: {error}");
    }
    let server = Server::new(Rc::clone(volume.device()), options)?;
    let served = server.serve(&live, listener, stop).await;
    // Also where serving failed: what was acknowledged is safe, this makes the next opening quick.
    let closed = volume.close().await;
    served.and(closed)
}
