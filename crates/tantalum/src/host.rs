//! Opens a volume in this process: its executor runs on the callers' threads, or on one of its own.
use std::rc::Rc;
use std::sync::mpsc;
use tantalum_base::{Error, ErrorKind, Limits, PageBuf, PageDevice, Result};
use tantalum_media::block_store::StoreCounters;
use tantalum_runtime::live::{Confined, LiveOptions, LiveThread, spawn_thread};
use tantalum_runtime::{LifeCycle, Live};
use tantalum_volume::config::Kind;
use tantalum_volume::{
    FlashVolume, Origin, Stat, TieredVolume, VolumeConfig, VolumeStore, open_tiered_volume,
    open_volume,
};

use crate::counters::Told;
use crate::link::{self, Figures, Lent, close_quietly, confined};
use crate::options::{OpenOptions, Placement};
use crate::shared::{Open, Shared};

/// Environment variable: a file for a page trace of the volume's requests.
pub(crate) const RECORD_VARIABLE: &str = "TANTALUM_RECORD";

/// An open device with its figures and the counters of its store.
struct Opened<D> {
    device: Rc<D>,
    figures: Figures<D>,
    counters: StoreCounters,
}

/// Opens the volume of `config` in this process. It is closed, with everything written back, when the last handle is dropped.
///
/// The environment variable `TANTALUM_RECORD` names a file for a page trace of the requests; it overrides the configuration.
///
/// # Errors
/// As [`Volume::open`](crate::Volume::open).
pub(crate) fn host(config: &VolumeConfig, options: OpenOptions) -> Result<Shared> {
    let mut recorded = config.clone();
    if let Some(record) = std::env::var_os(RECORD_VARIABLE).filter(|file| !file.is_empty()) {
        let record = std::path::absolute(record);
        recorded.record = Some(record.map_err(|error| Error::io(RECORD_VARIABLE, error))?);
    }
    let mut shared = match config.kind {
        Kind::Flash => place(options, move |live| open_flash(live, recorded, options)),
        Kind::Tiered => place(options, move |live| open_tiered(live, recorded, options)),
    }?;
    shared.origin = Origin::of(config);
    shared.config = Some(config.path.clone());
    shared.read_only = options.read_only.into();
    shared.counters.start(if options.read_only { None } else { Told::of(config) });
    Ok(shared)
}

async fn open_flash(
    live: Live,
    config: VolumeConfig,
    options: OpenOptions,
) -> Result<Opened<FlashVolume<VolumeStore>>> {
    let options = options.of_device();
    let (device, report) = open_volume(&live, &config, options).await?;
    let counters = device.device().ftl().media().store().counters().clone();
    let stat = Box::new(move |device: &_| Stat::of_flash(&config, device, &report, options));
    Ok(Opened { device, figures: Figures { stat, metrics: LifeCycle::metrics }, counters })
}

async fn open_tiered(
    live: Live,
    config: VolumeConfig,
    options: OpenOptions,
) -> Result<Opened<TieredVolume<Live, VolumeStore>>> {
    let (device, report) = open_tiered_volume(&live, &config, options.of_device()).await?;
    let counters = device.device().device().drive().ftl().media().store().counters().clone();
    let stat = Box::new(move |device: &_| Stat::of_tiered(&config, device, &report));
    Ok(Opened { device, figures: Figures { stat, metrics: LifeCycle::metrics }, counters })
}

/// Opens a device on the threads that `options` select.
fn place<D, F>(
    options: OpenOptions,
    open: impl FnOnce(Live) -> F + Send + 'static,
) -> Result<Shared>
where
    D: LifeCycle + PageDevice<Page = PageBuf>,
    F: Future<Output = Result<Opened<D>>> + 'static,
{
    let (mut open, limits, counters) = match options.placement {
        Placement::Caller => on_callers(open),
        Placement::Thread => on_thread(open),
    }?;
    open.store_counters = Some(counters);
    Ok(Shared::new(open, limits))
}

/// Opens a device on the callers' threads.
fn on_callers<D, F>(open: impl FnOnce(Live) -> F + Send) -> Result<(Open, Limits, StoreCounters)>
where
    D: LifeCycle + PageDevice<Page = PageBuf>,
    F: Future<Output = Result<Opened<D>>> + 'static,
{
    let mut told = None;
    let make = |live: &Live| {
        let Opened { device, figures, counters } = live.run(open(live.clone()))?;
        told = Some((device.limits().clone(), counters));
        Ok(Lent::with_figures(device, figures))
    };
    // SAFETY: neither opening a volume nor handling a request stores any part of the volume elsewhere:
    // every part is reached from its executor's tasks and from the volume itself. The counters of its store, which
    // are shared, are atomic.
    #[expect(unsafe_code, reason = "the volume goes from thread to thread with its executor")]
    let executor = unsafe { Confined::new(make) }?;
    let Some((limits, counters)) = told else {
        return Err(Error::new(ErrorKind::Closed, "the volume was not opened"));
    };
    Ok((Open::new(confined(executor), ()), limits, counters))
}

/// Opens a device on a thread of its own.
fn on_thread<D, F>(
    open: impl FnOnce(Live) -> F + Send + 'static,
) -> Result<(Open, Limits, StoreCounters)>
where
    D: LifeCycle + PageDevice<Page = PageBuf>,
    F: Future<Output = Result<Opened<D>>> + 'static,
{
    let (connector, requests) = link::channel();
    let (told, outcome) = mpsc::channel();
    let body = move |live: Live| async move {
        let Opened { device, figures, counters } = match open(live.clone()).await {
            Ok(opened) => opened,
            Err(error) => {
                let _ = told.send(Err(error));
                return Ok(());
            }
        };
        // This cannot fail: the opener waits for the message.
        let _ = told.send(Ok::<_, Error>((device.limits().clone(), counters)));
        link::serve_with_figures(&live, Rc::clone(&device), requests, figures).await;
        device.close().await
    };
    let thread = spawn_thread("tantalum-volume", LiveOptions::default(), body)?;
    match outcome.recv() {
        Ok(Ok((limits, counters))) => {
            Ok((Open::new(connector.link(), JoinOnDrop(Some(thread))), limits, counters))
        }
        Ok(Err(error)) => Err(error),
        // If the volume's thread panicked, the panic propagates to the caller.
        Err(_) => match thread.join() {
            Ok(_) => Err(Error::new(ErrorKind::Closed, "the volume's thread ended early")),
            Err(error) => Err(error),
        },
    }
}

/// Waits for the volume's thread, so that dropping the last handle returns only after the volume is closed.
struct JoinOnDrop(Option<LiveThread<Result<()>>>);

impl Drop for JoinOnDrop {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            close_quietly(|| thread.join()?);
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
