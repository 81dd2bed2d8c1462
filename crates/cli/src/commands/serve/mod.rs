//! `tantalum serve VOLUME.toml --nbd ADDRESS --socket`, and `tantalum serve --device DEVICE --nbd ADDRESS`.
mod control;
mod local;
mod promise;

use anyhow::{Context, bail};
use control::{Control, Served};
use local::Local;
use promise::Promise;
use std::cell::OnceCell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, Result};
use tantalum_buffer::{Buffered, PoolStatistics};
use tantalum_console::{Verdict, programs};
use tantalum_local::Tracked;
use tantalum_nbd::{Server, ServerOptions};
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::live::signal::Endings;
use tantalum_runtime::rounds::Rounds;
use tantalum_runtime::{LifeCycle, Live};
use tantalum_serving::{
    About, Ending, Listening, Logging, Outside, serve_until, tell, told_of_tls,
};
use tantalum_volume::config::Kind;
use tantalum_volume::{
    OpenOptions, OpenReport, Recorded, Stat, VolumeConfig, open_tiered_volume, open_volume,
};

/// Serve a volume, or a simulated device in real time, until Ctrl-C, SIGTERM, SIGHUP or SIGQUIT
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The volume's configuration
    volume: Option<PathBuf>,
    /// Serve a simulated device at its own speed, such as durassd:capacity=1GiB (docs/devices/README.md); it lives in
    /// memory, and its content is lost when this ends
    #[arg(long, value_name = "DEVICE", conflicts_with = "volume")]
    device: Option<String>,
    /// Seed of the random behaviour of the simulated device
    #[arg(long, default_value_t = 1, conflicts_with = "volume", value_name = "SEED")]
    device_seed: u64,
    /// Let local processes use the volume at the same time: SQLite, programs with libtantalum, Rust programs. They find
    /// the socket by themselves, wherever PATH is; by default PATH is VOLUME.toml.socket. Programs of this user
    /// may connect, and of --socket-group (docs/local.md)
    #[arg(long, value_name = "PATH", num_args = 0..=1, conflicts_with = "device")]
    socket: Option<Option<PathBuf>>,
    /// Record a page trace of the clients' requests to a new file, for `tantalum replay`, `curve` and `advise`; a name
    /// in .zst or .gz compresses it
    #[arg(long, value_name = "FILE", conflicts_with = "device")]
    record: Option<PathBuf>,
    /// What survives a power cut, for this run: on_ack or on_flush. By default device.durability of the configuration,
    /// or on_flush if that is not set: NBD clients flush what must be durable
    #[arg(long, value_name = "MODE", conflicts_with_all = ["device", "read_only"])]
    durability: Option<String>,
    /// Abort an open transaction of a local client after this many idle seconds, as it locks its pages against all
    /// others; 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = tantalum_local::ServerOptions::default().transaction_idle_ms_max / 1000)]
    transaction_idle_seconds_max: u64,
    #[command(flatten)]
    listening: Listening,
    #[command(flatten)]
    logs: Logging,
}

const AFTER_HELP: &str =
    "docs/nbd.md lists the promises to clients, and commands for them. An unknown device name \
prints all devices; durassd:help prints the parameters of one.

Examples:
  tantalum serve vol/VOLUME.toml --nbd unix:/tmp/tantalum.sock
  tantalum serve vol/VOLUME.toml --nbd 127.0.0.1:10809 --read-only
  tantalum serve vol/VOLUME.toml --nbd 0.0.0.0:10809 --tls-certificates /etc/tantalum/tls
  tantalum serve vol/VOLUME.toml --socket
  tantalum serve vol/VOLUME.toml --nbd unix:/tmp/tantalum.sock --metrics 127.0.0.1:9809
  tantalum serve vol/VOLUME.toml --nbd unix:/tmp/tantalum.sock --record load.csv.zst
  tantalum serve --device durassd:capacity=1GiB --nbd unix:/tmp/durassd.sock";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    refuse_unreachable(args)?;
    if args.device.is_some() {
        let words: Vec<OsString> = std::env::args_os().skip(2).collect();
        return Err(programs::LABORATORY.take_over("serve", &words));
    }
    let around = Around::parse(args)?;
    let options = args.listening.options(&around.outside)?;
    let _log = args.logs.start()?;
    let Some(volume) = &args.volume else { bail!("a volume's configuration is needed") };
    let mut config = VolumeConfig::read(volume)?;
    if let Some(record) = &args.record {
        if record.exists() {
            bail!("--record: {} is there already; a recording needs a new file", record.display());
        }
        config.record = Some(std::path::absolute(record).context("--record")?);
    }
    let promise = Promise::choose(&mut config, args.durability.as_deref())?;
    let socket_group = args.listening.socket_group(config.socket_group.as_deref())?;
    let live = Live::new(LiveOptions { socket_group, ..LiveOptions::default() })?;
    let handle = live.clone();
    live.run(async move { serve_volume(handle, config, promise, around, options).await })?;
    Ok(Verdict::Good)
}

/// Refuses to serve no device, or no clients, and proposes a command.
fn refuse_unreachable(args: &Args) -> anyhow::Result<()> {
    let taken =
        args.socket.iter().flatten().find(|path| path.extension().is_some_and(|e| e == "toml"));
    if let (None, None, Some(taken)) = (&args.volume, &args.device, taken) {
        bail!(
            "--socket took {0} as the place of the socket. Name the volume first: tantalum serve {0} --socket",
            taken.display()
        );
    }
    let what = match (&args.volume, &args.device) {
        (Some(volume), _) => volume.display().to_string(),
        (None, Some(device)) => format!("--device {device}"),
        (None, None) => bail!(
            "a volume's configuration or --device is needed. For example: tantalum serve vol/VOLUME.toml --nbd unix:/tmp/tantalum.sock"
        ),
    };
    if args.listening.has_nbd() || args.socket.is_some() {
        return Ok(());
    }
    let socket =
        if args.device.is_some() { "" } else { ", or --socket for local programs such as SQLite" };
    bail!(
        "no client could connect: name an address for NBD clients, --nbd unix:PATH, --nbd \
         127.0.0.1:PORT or --nbd [::1]:PORT{socket}. For example: tantalum serve {what} --nbd \
         unix:/tmp/tantalum.sock"
    )
}

/// An open volume.
type Opened<D> = Rc<Tracked<Recorded<Buffered<D>>>>;

/// Adds the figures of NBD clients to those of the volume, once there is a server for them.
type TellClients = Rc<OnceCell<Box<dyn Fn(&mut Stat)>>>;

/// The server's settings that do not concern the volume: its addresses, its log, and a limit for local clients.
struct Around {
    outside: Outside,
    socket: Option<Option<PathBuf>>,
    /// Time for which a transaction of a local client may be idle.
    transaction_idle_ms_max: u64,
    logs: Logging,
    tell_clients: TellClients,
}

impl Around {
    fn parse(args: &Args) -> anyhow::Result<Self> {
        Ok(Around {
            outside: args.listening.outside()?,
            socket: args.socket.clone(),
            transaction_idle_ms_max: args.transaction_idle_seconds_max.saturating_mul(1000),
            logs: args.logs.clone(),
            tell_clients: TellClients::default(),
        })
    }
}

async fn serve_volume(
    live: Live,
    config: VolumeConfig,
    promise: Promise,
    around: Around,
    options: ServerOptions,
) -> Result<()> {
    let served = promise.apply(&config);
    let open = OpenOptions { read_only: options.read_only, ..OpenOptions::default() };
    match config.kind {
        Kind::Flash => {
            let opened = open_volume(&live, &served, open).await?;
            let (volume, report, told) = (Rc::clone(&opened.0), opened.1, config.clone());
            let stat = move || Stat::of_flash(&told, &volume, &report, open).unwrap_or_default();
            let opened_as = Served::Flash(Rc::clone(&opened.0));
            let stat = with_clients(stat, &around.tell_clients);
            let control = (!options.read_only).then(|| control(&live, &config, stat, opened_as));
            serve_opened(live, (&config, &promise), opened, around, options, control.flatten())
                .await
        }
        Kind::Tiered => {
            let opened = open_tiered_volume(&live, &served, open).await?;
            let (volume, report, told) = (Rc::clone(&opened.0), opened.1, config.clone());
            let stat = move || Stat::of_tiered(&told, &volume, &report).unwrap_or_default();
            let opened_as = Served::Tiered(Rc::clone(&opened.0));
            let stat = with_clients(stat, &around.tell_clients);
            let control = (!options.read_only).then(|| control(&live, &config, stat, opened_as));
            serve_opened(live, (&config, &promise), opened, around, options, control.flatten())
                .await
        }
    }
}

/// The figures that `stat` returns, and those of NBD clients.
fn with_clients<F: Fn() -> Stat>(stat: F, tell: &TellClients) -> impl Fn() -> Stat + use<F> {
    let tell = Rc::clone(tell);
    move || {
        let mut told = stat();
        tell.get().iter().for_each(|tell| tell(&mut told));
        told
    }
}

fn put_clients<D: PageDevice<Page = PageBuf>>(stat: &mut Stat, server: &Server<D>) {
    let statistics = server.statistics();
    stat.put("nbd_tls", server.options().tls_mode());
    stat.put("nbd_connections", statistics.connections_open);
    stat.put("nbd_tls_connections", statistics.tls_connections_open);
}

/// Lets `tantalum stat` and other commands reach the server, if possible.
fn control(
    live: &Live,
    config: &VolumeConfig,
    stat: impl Fn() -> Stat + 'static,
    served: Served,
) -> Option<Control> {
    let control = Control::start(live, &config.path, stat, served);
    let told =
        |error: &_| eprintln!("tantalum: `tantalum stat` will not reach this server: {error}");
    control.inspect_err(told).ok()
}

/// Serves an open volume, and closes it.
async fn serve_opened<D: LifeCycle<Page = PageBuf>>(
    live: Live,
    configured: (&VolumeConfig, &Promise),
    (volume, report): (Opened<D>, OpenReport),
    around: Around,
    options: ServerOptions,
    control: Option<Control>,
) -> Result<()> {
    let served = serve_until_stopped(&live, configured, &volume, &report, around, options).await;
    if let (Ok(()), Some(buffer)) = (&served, volume.statistics()) {
        tell(&told_of_buffer(&buffer));
    }
    if let Some(control) = control {
        control.stop().await;
    }
    // The volume is closed even after a failure to serve. Acknowledged writes are safe anyway, but closing makes the next
    // opening quick.
    let closed = volume.close().await;
    if served.is_ok() && closed.is_ok() {
        tracing::info!("the volume is closed");
    }
    served.and(closed)
}

async fn serve_until_stopped<D: LifeCycle<Page = PageBuf>>(
    live: &Live,
    (config, promise): (&VolumeConfig, &Promise),
    volume: &Opened<D>,
    report: &OpenReport,
    around: Around,
    mut options: ServerOptions,
) -> Result<()> {
    let endings = Endings::watch(live)?;
    let read_only = options.read_only;
    if config.kind == Kind::Tiered {
        // A home may end within its last page.
        options.size_bytes = Some(config.size_bytes()?);
    }
    // NBD's block sizes have no field for this (docs/nbd.md), so the description states it.
    options.description = format!(
        "{}; a write of up to {} bytes is all or nothing",
        options.description,
        u64::from(volume.limits().atomic_write_pages_max) * PAGE_BYTES as u64,
    );
    let listeners = around.outside.listen(live, &options)?;
    let rounds = Rounds::default();
    let server = Server::beside(rounds.clone(), Rc::clone(volume), options.clone())?;
    if listeners.nbd.is_some() {
        let server = server.clone();
        // This is the only place that sets it.
        let _ = around.tell_clients.set(Box::new(move |stat| put_clients(stat, &server)));
    }
    let local = around.socket.as_ref().map(|path| {
        let idle_ms_max = around.transaction_idle_ms_max;
        let volume = Rc::clone(volume);
        Local::start(live, config, path.as_deref(), volume, (&options, idle_ms_max), rounds)
    });
    let local = local.transpose()?;
    let first = listeners.nbd.as_ref().map(|listener| listener.local_address().to_string());
    let promised = match &listeners.nbd {
        _ if read_only => "read-only".to_owned(),
        Some(_) => promise.told(),
        // Local clients always get `on_ack`.
        None => "on_ack".to_owned(),
    };
    let address = first.or(local.as_ref().map(Local::place)).unwrap_or_default();
    let engine = live.engine_name();
    let found = told_of_opening(report);
    let tls = told_of_tls(options.tls.as_ref());
    tell(&format!("{}: {promised} at {address}{tls} ({engine}, {found})", config.path.display()));
    let recovery = &report.recovery;
    tracing::info!(
        replayed = recovery.replayed,
        dropped = recovery.dropped,
        pages_lost = recovery.pages_lost,
        superblocks_mended = report.superblocks_mended,
        "opened {}",
        config.path.display()
    );
    if let (Some(local), Some(_)) = (&local, &listeners.nbd) {
        tell(&format!("local clients at {}", local.place()));
    }
    if let Some(recording) = volume.recording() {
        tell(&format!("recording to {}", recording.path().display()));
    }
    let about = About {
        device: config.path.display().to_string(),
        kind: config.kind.name(),
        durability: volume.limits().durability.name(),
        local: local.as_ref().map(Local::tell),
    };
    let device = Rc::clone(volume);
    let _ready = around.logs.ready()?;
    let ending = Ending {
        begin: || local.iter().for_each(Local::begin_to_stop),
        hasten: || local.iter().for_each(Local::hasten),
        rest: async {
            match &local {
                Some(local) => local.stop().await,
                None => Ok(()),
            }
        },
    };
    serve_until(live, endings, about, (device, server), listeners, ending).await
}

/// The findings of the opening.
fn told_of_opening(report: &OpenReport) -> String {
    let mended = if report.superblocks_mended > 0 { ", a superblock mended" } else { "" };
    let taken = match report.recovery.pages_taken_from_home {
        0 => String::new(),
        pages => format!(
            ", the end of the flash's log is damaged: {pages} pages given up, home has later changes"
        ),
    };
    let (replayed, dropped) = (report.recovery.replayed, report.recovery.dropped);
    format!("{replayed} changes replayed, {dropped} dropped{mended}{taken}")
}

/// The statistics of the buffer, in one line.
fn told_of_buffer(buffer: &PoolStatistics) -> String {
    format!(
        "buffer: {} pages asked for, {:.1}% hits, {} read from the device in {} reads, {} written \
         through in {} writes",
        buffer.requests,
        100.0 * buffer.hit_ratio(),
        buffer.physical_reads,
        buffer.device_reads,
        buffer.physical_writes,
        buffer.device_writes,
    )
}
