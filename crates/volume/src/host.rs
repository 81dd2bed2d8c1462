//! A volume for synchronous front ends: its executor runs on the caller's thread, or on one of its own.
use std::rc::Rc;
use std::sync::mpsc;
use tantalum_base::{Error, ErrorKind, Limits, PageBuf, PageDevice, Result};
use tantalum_media::block_store::StoreCounters;
use tantalum_runtime::live::wall_clock::unix_ms;
use tantalum_runtime::live::{Confined, EngineChoice, LiveOptions, LiveThread, spawn_thread};
use tantalum_runtime::{LifeCycle, Live};

use crate::client::{self, Client, Lent};
use crate::config::{Kind, VolumeConfig};
use crate::counters::Told;
use crate::flash::{FlashVolume, OpenReport, open_flash};
use crate::open_options::OpenOptions;
use crate::origin::Origin;
use crate::store::{VolumeStore, open_store, open_tiered_stores, reread_partitions};
use crate::tiered::{TieredVolume, open_tiered};

/// Environment variable: a file for a page trace of the volume's requests.
pub(crate) const RECORD_VARIABLE: &str = "TANTALUM_RECORD";

/// How a volume is hosted.
#[derive(Clone, Debug, Default)]
pub struct HostOptions {
    /// The executor's settings.
    pub live: LiveOptions,
    /// Where its executor runs.
    pub placement: Placement,
    /// How it is opened.
    pub open: OpenOptions,
}

/// The threads on which a hosted volume's executor runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// On the callers' threads: no thread switches, and each caller makes its own system calls
    /// ([`EngineChoice::Blocking`]). Cleaning and checkpoints progress only during calls.
    #[default]
    Caller,
    /// On a thread of its own: many callers share its group commits.
    Thread,
}

/// A volume that is open until the last client is dropped.
pub struct VolumeHost {
    client: Client,
    report: OpenReport,
    store_counters: StoreCounters,
}

impl VolumeHost {
    /// Opens the volume of `config`. It is closed, with everything written back, when the last clone of
    /// its client is dropped. [`HostOptions::open`] can make it read-only.
    ///
    /// The environment variable `TANTALUM_RECORD` names a file for a page trace of the requests; it
    /// overrides the configuration.
    pub fn open(mut config: VolumeConfig, options: HostOptions) -> Result<Self> {
        if let Some(record) = std::env::var_os(RECORD_VARIABLE).filter(|file| !file.is_empty()) {
            let record = std::path::absolute(record);
            config.record = Some(record.map_err(|error| Error::io(RECORD_VARIABLE, error))?);
        }
        let at = config.clone();
        let opened = match options.placement {
            Placement::Caller => Self::open_here(config, options.live, options.open),
            Placement::Thread => Self::open_on_thread(config, options.live, options.open),
        }?;
        let told = if options.open.read_only { None } else { Told::of(&at) };
        let client = opened.client.opened_at(Origin::of(&at), options.open.read_only).telling(told);
        Ok(VolumeHost { client, ..opened })
    }

    fn open_here(config: VolumeConfig, live: LiveOptions, open: OpenOptions) -> Result<Self> {
        if !matches!(live.engine, EngineChoice::Auto | EngineChoice::Blocking) {
            let context = "without a thread for the volume the engine must be \"auto\": choose \
                           that, or a thread for the volume";
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        let counters = StoreCounters::default();
        let counted = counters.clone();
        let (client, report) = match config.kind {
            Kind::Flash => {
                confine(move |live| async move { open_on(&live, &config, open, &counted).await })
            }
            Kind::Tiered => {
                confine(
                    move |live| async move { open_tiered_on(&live, &config, open, &counted).await },
                )
            }
        }?;
        Ok(VolumeHost { client, report, store_counters: counters })
    }

    fn open_on_thread(config: VolumeConfig, live: LiveOptions, open: OpenOptions) -> Result<Self> {
        let counters = StoreCounters::default();
        let counted = counters.clone();
        let (client, report) =
            match config.kind {
                Kind::Flash => on_thread(live, move |live| async move {
                    open_on(&live, &config, open, &counted).await
                }),
                Kind::Tiered => on_thread(live, move |live| async move {
                    open_tiered_on(&live, &config, open, &counted).await
                }),
            }?;
        Ok(VolumeHost { client, report, store_counters: counters })
    }

    /// A client of the volume.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The result of opening the volume.
    pub fn report(&self) -> &OpenReport {
        &self.report
    }

    /// Counts of reads from and writes to the store since it was opened. They remain available after
    /// the volume is closed, and then include the writes of closing.
    pub fn store_counters(&self) -> &StoreCounters {
        &self.store_counters
    }
}

/// Opens a volume on the callers' threads.
fn confine<D, F>(open: impl FnOnce(Live) -> F + Send) -> Result<(Client, OpenReport)>
where
    D: LifeCycle + PageDevice<Page = PageBuf>,
    F: Future<Output = Result<(Rc<D>, OpenReport)>> + 'static,
{
    let mut opened = None;
    let make = |live: &Live| {
        let (volume, report) = live.run(open(live.clone()))?;
        opened = Some((volume.limits().clone(), report));
        Ok(Lent::new(volume))
    };
    // SAFETY: neither opening a volume nor handling a request stores any part of the volume elsewhere:
    // every part is reached from its executor's tasks and from the volume itself.
    #[expect(unsafe_code, reason = "the volume goes from thread to thread with its executor")]
    let executor = unsafe { Confined::new(make) }?;
    let Some((limits, report)) = opened else {
        return Err(Error::new(ErrorKind::Closed, "the volume was not opened"));
    };
    Ok((Client::confined(executor, limits), report))
}

/// Opens a volume on a thread of its own.
fn on_thread<D, F>(
    live: LiveOptions,
    open: impl FnOnce(Live) -> F + Send + 'static,
) -> Result<(Client, OpenReport)>
where
    D: LifeCycle + PageDevice<Page = PageBuf>,
    F: Future<Output = Result<(Rc<D>, OpenReport)>> + 'static,
{
    let (connector, requests) = client::channel();
    let (opened, outcome) = mpsc::channel();
    let body = move |live: Live| async move {
        let volume = match open(live.clone()).await {
            Ok((volume, report)) => {
                let limits = volume.limits().clone();
                // The opener is still there, because it waits for this.
                let _ = opened.send(Ok::<(Limits, OpenReport), Error>((limits, report)));
                volume
            }
            Err(error) => {
                let _ = opened.send(Err(error));
                return Ok(());
            }
        };
        client::serve_client_telling(&live, Rc::clone(&volume), requests, D::metrics).await;
        volume.close().await
    };
    let thread = spawn_thread("tantalum-volume", live, body)?;
    match outcome.recv() {
        Ok(Ok((limits, report))) => {
            Ok((connector.connect(limits, JoinOnDrop(Some(thread))), report))
        }
        Ok(Err(error)) => Err(error),
        // The caller can be told, so a panic of the volume's thread propagates.
        Err(_) => match thread.join() {
            Ok(_) => Err(Error::new(ErrorKind::Closed, "the volume's thread ended early")),
            Err(error) => Err(error),
        },
    }
}

/// Opens the volume of `config` on the executor of this thread.
pub async fn open_volume(
    live: &Live,
    config: &VolumeConfig,
) -> Result<(Rc<FlashVolume<VolumeStore>>, OpenReport)> {
    open_volume_with(live, config, OpenOptions::default()).await
}

/// As [`open_volume`], with `options`.
pub async fn open_volume_with(
    live: &Live,
    config: &VolumeConfig,
    options: OpenOptions,
) -> Result<(Rc<FlashVolume<VolumeStore>>, OpenReport)> {
    open_on(live, config, options, &StoreCounters::default()).await
}

async fn open_on(
    live: &Live,
    config: &VolumeConfig,
    options: OpenOptions,
    counters: &StoreCounters,
) -> Result<(Rc<FlashVolume<VolumeStore>>, OpenReport)> {
    let store = open_store(live, config, options, counters).await?;
    let opened = open_flash(live, store, config, options).await;
    opened.map_err(|error| {
        let way_out = match error.kind() {
            ErrorKind::OutOfSpace if config.media.sparse => {
                " (make room on its file system, or open the volume to be read only, which writes nothing)"
            }
            _ => "",
        };
        error.wrap(format!("opening {}{way_out}", config.path.display()))
    })
}

/// Opens the tiered volume of `config` on the executor of this thread.
///
/// # Errors
/// As [`open_volume_with`], and if home or journal do not belong to the flash.
pub async fn open_tiered_volume(
    live: &Live,
    config: &VolumeConfig,
    options: OpenOptions,
) -> Result<(Rc<TieredVolume<Live, VolumeStore>>, OpenReport)> {
    open_tiered_on(live, config, options, &StoreCounters::default()).await
}

async fn open_tiered_on(
    live: &Live,
    config: &VolumeConfig,
    options: OpenOptions,
    counters: &StoreCounters,
) -> Result<(Rc<TieredVolume<Live, VolumeStore>>, OpenReport)> {
    let open = async {
        let stores = open_tiered_stores(live, config, options, counters).await?;
        let home = stores.home.clone();
        let opened = open_tiered(live, stores, config, options, unix_ms).await?;
        // A volume of an earlier version has just got its claim.
        if !options.read_only && opened.0.device().device().home().store().claim().is_some() {
            reread_partitions(&home);
        }
        Ok::<_, Error>(opened)
    };
    open.await.map_err(|error| error.wrap(format!("opening {}", config.path.display())))
}

/// Waits for the volume's thread, so that the volume is closed when dropping the last client returns.
struct JoinOnDrop(Option<LiveThread<Result<()>>>);

impl Drop for JoinOnDrop {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            client::close_quietly(|| thread.join()?);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// During the unwinding of a panic, a second panic would end the process.
    #[test]
    fn a_panic_of_the_volumes_thread_does_not_go_on_from_a_destructor() {
        let thread =
            spawn_thread("panics", LiveOptions::default(), |_| async { panic!("planted") });
        let keeper = JoinOnDrop(Some(thread.unwrap()));
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _keeper = keeper;
            panic!("the caller's");
        }));
        assert_eq!(*unwound.unwrap_err().downcast::<&str>().unwrap(), "the caller's");
    }
}
