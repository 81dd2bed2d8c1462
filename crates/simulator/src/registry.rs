//! Devices and media by name.
use tantalum_base::spec::unknown_name;
use tantalum_base::{Error, ErrorKind, Limits, PageBuf, Result, Spec, Stamp};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_ssd::CacheKind;

use super::bench::{Bench, Ended, powered};
use super::life::{CutAt, Life, PowerOn};
use super::rig::{FileRig, NandRig, Rig};
use super::run::{Outcome, run};
use super::subject::{Kept, Subject, Tested};
use super::subjects::{self, PERSONALITIES, SSD_PROFILES};
use tantalum_base::PageDevice;
use tantalum_cache::{Destage, Mode};
use tantalum_models::baselines::{Clustering, WalCommit};
use tantalum_models::personality::PersonalitySpec;

/// The media that `--media` accepts: NAND with stamps for contents, NAND with real bytes, a file.
pub const MEDIA: &[&str] = &["nand", "nand-bytes", "file"];

/// Every device of the crash lab, with the parameters in which the promises differ: the default of
/// `--device`.
pub const DEVICES: &[&str] = &[
    "ssd:cache=durable",
    "ssd:cache=through",
    "ssd:cache=ordered",
    "ssd:cache=volatile",
    "ssd:cache=through,cleaning=paced",
    "ssd:cache=ordered,cleaning=paced",
    "ssd:cache=through,transactions=staged",
    "ssd:cache=ordered,transactions=staged",
    "buffered:cache=durable",
    "buffered:cache=through",
    "buffered:cache=ordered",
    "tiered:destage=ordered",
    "tiered:destage=ordered,mode=write-through",
    "tiered:destage=dense",
    "tiered:destage=ordered,transactions=staged",
    "tiered:destage=ordered,mode=write-through,transactions=staged",
    "tiered:destage=dense,transactions=staged",
    "txcache",
    "nvcache",
    "wal",
    "wal:commit=record",
    "tx-flash",
    "atomic-log",
    PERSONALITIES[0],
    PERSONALITIES[1],
    PERSONALITIES[2],
    PERSONALITIES[3],
];

/// Devices of the papers by the names that `replay` and `serve` use, each small enough to be cut
/// everywhere: with its link, its kind of cache and its durations.
pub const PROFILES: &[&str] = &["durassd", "ssd-a", "ssd-b", "openssd", "x25-m", "txssd", "mtron"];

/// Whether `device` runs on `media`. Block mapping, BAST, FAST and DFTL need blocks that are erased,
/// which a file lacks; [`PROFILES`] are flash devices.
pub fn carries(media: &str, device: &str) -> bool {
    let name = device.split(':').next().unwrap_or(device);
    media != "file" || !(PersonalitySpec::NAMES.contains(&name) || PROFILES.contains(&name))
}

/// `text` with the device's name in the spelling used here, if case or hyphens differ.
pub fn spelled(text: &str) -> String {
    let known = DEVICES.iter().chain(PROFILES).map(|device| device.split(':').next());
    let names: Vec<&str> = known.flatten().collect();
    Spec::spelled(text, &names).into_owned()
}

/// A kind of device on a kind of medium, for any number of lives.
pub trait Lives {
    /// Its name for `--device`, with every parameter.
    fn device(&self) -> String;

    /// Its name for `--media`.
    fn media(&self) -> &str;

    /// Number of logical pages, if the device exists only with that number.
    fn pages(&self) -> Option<u64>;

    /// The parts beside the medium at which power can be cut.
    fn cut_at(&self) -> &'static [CutAt];

    /// The limits of such a device with `pages` pages.
    ///
    /// # Errors
    /// `InvalidInput` if the medium is too small.
    fn limits(&self, pages: u64) -> Result<Limits>;

    /// Runs one life.
    fn live(&self, life: &Life) -> Outcome;
}

/// The device called `device` on the medium called `media`.
///
/// # Errors
/// `InvalidInput`, which lists what is accepted.
pub fn find(device: &str, media: &str) -> Result<Box<dyn Lives>> {
    if !carries(media, device) {
        let context = format!("{device} is made of flash: it runs on nand, not on {media}");
        return Err(Error::new(ErrorKind::InvalidInput, context));
    }
    match media {
        "nand" => on::<NandRig<Stamp>>("nand", device, of_flash::<NandRig<Stamp>>),
        "nand-bytes" => on::<NandRig<PageBuf>>("nand-bytes", device, of_flash::<NandRig<PageBuf>>),
        "file" => on::<FileRig>("file", device, unknown),
        _ => Err(unknown_name(media, "a medium", MEDIA)),
    }
}

/// `device` on such a rig; `other` makes devices that are not for every rig.
fn on<R: Rig + 'static>(
    media: &'static str,
    device: &str,
    other: fn(&'static str, &str, Spec) -> Result<Box<dyn Lives>>,
) -> Result<Box<dyn Lives>> {
    let mut spec = Spec::parse(device)?;
    match spec.name() {
        name @ ("ssd" | "buffered") => {
            let cache = match spec.word("cache", &["durable", "through", "ordered", "volatile"])? {
                "durable" => CacheKind::Durable,
                "through" => CacheKind::WriteThrough,
                "ordered" => CacheKind::Ordered,
                _ => CacheKind::Volatile,
            };
            let is_staged =
                name == "ssd" && spec.word("transactions", &["in-memory", "staged"])? == "staged";
            let is_paced = name == "ssd"
                && !is_staged
                && spec.word("cleaning", &["unpaced", "paced"])? == "paced";
            spec.finish()?;
            if is_staged && matches!(cache, CacheKind::Durable | CacheKind::Volatile) {
                let context = "transactions are staged with cache=through or cache=ordered";
                return Err(Error::new(ErrorKind::InvalidInput, context));
            }
            Ok(match name {
                "ssd" if is_staged => kind::<R, _>(media, subjects::staged(cache)),
                "ssd" if is_paced => kind::<R, _>(media, subjects::paced(cache)),
                "ssd" => kind::<R, _>(media, subjects::ssd(cache)),
                _ => kind::<R, _>(media, subjects::buffered(cache)),
            })
        }
        "tiered" => {
            let destage = match spec.word("destage", &["ordered", "dense"])? {
                "ordered" => Destage::Ordered,
                _ => Destage::Dense,
            };
            let mode = match spec.word("mode", &["write-back", "write-through"])? {
                "write-through" => Mode::WriteThrough,
                _ => Mode::WriteBack,
            };
            let is_staged = spec.word("transactions", &["in-memory", "staged"])? == "staged";
            spec.finish()?;
            Ok(kind::<R, _>(media, subjects::tiered(destage, mode, is_staged)))
        }
        name @ ("txcache" | "nvcache") => {
            let transactions = name == "txcache";
            spec.finish()?;
            Ok(kind::<R, _>(media, subjects::tx_cache(transactions)))
        }
        "wal" => {
            let commit = match spec.word("commit", &["pages", "record"])? {
                "record" => WalCommit::Record,
                _ => WalCommit::Pages,
            };
            spec.finish()?;
            Ok(kind::<R, _>(media, subjects::wal(commit)))
        }
        name @ ("tx-flash" | "atomic-log") => {
            let cycles = name == "tx-flash";
            spec.finish()?;
            let clustering = if cycles { Clustering::Cycles } else { Clustering::LogFlags };
            Ok(kind::<R, _>(media, subjects::shadow(clustering)))
        }
        _ => other(media, device, spec),
    }
}

/// A device that needs blocks which are erased, or an array of its own. It is not compiled for files.
fn of_flash<R: Rig + 'static>(
    media: &'static str,
    device: &str,
    spec: Spec,
) -> Result<Box<dyn Lives>> {
    match spec.name() {
        name if PersonalitySpec::NAMES.contains(&name) => {
            // Their own defaults are for larger media than the lab's.
            let small = PERSONALITIES.iter().find(|small| small.split(':').next() == Some(device));
            let spec = PersonalitySpec::parse(small.copied().unwrap_or(device))?;
            Ok(kind::<R, _>(media, subjects::personality(spec)))
        }
        name if SSD_PROFILES.contains(&name) => Ok(kind::<R, _>(media, subjects::profile(device)?)),
        "txssd" => Ok(kind::<R, _>(media, subjects::tx_ssd(device)?)),
        "mtron" => Ok(kind::<R, _>(media, subjects::mtron(device)?)),
        _ => unknown(media, device, spec),
    }
}

fn unknown(_media: &'static str, _device: &str, spec: Spec) -> Result<Box<dyn Lives>> {
    let names = [DEVICES, PROFILES].concat();
    Err(spec.unknown_name("device of the crash lab", &names))
}

/// `subject` on the medium called `media`.
pub(super) fn kind<R: Rig + 'static, K: Tested<R::Page>>(
    media: &'static str,
    subject: Subject<K>,
) -> Box<dyn Lives> {
    Box::new(Kind::<R, K> { media, subject, rig: std::marker::PhantomData })
}

struct Kind<R, K> {
    media: &'static str,
    subject: Subject<K>,
    rig: std::marker::PhantomData<R>,
}

impl<R: Rig, K: Tested<R::Page>> Lives for Kind<R, K> {
    fn device(&self) -> String {
        self.subject.text.clone()
    }

    fn media(&self) -> &str {
        self.media
    }

    fn pages(&self) -> Option<u64> {
        self.subject.pages
    }

    fn cut_at(&self) -> &'static [CutAt] {
        K::Kept::CUT_AT
    }

    fn limits(&self, pages: u64) -> Result<Limits> {
        let mut bench = Bench::<R, K>::new(&self.subject, 0, pages)?;
        let runtime = Virtual::new(Schedule::Fifo);
        let (kind, on) = bench.open(&runtime, &PowerOn::default());
        let formatted = powered(&runtime, async move {
            let device = kind.format(on).await?;
            Ok::<_, Error>(device.limits().clone())
        });
        runtime.drop_tasks();
        match formatted {
            Ended::Done(limits) => limits,
            Ended::Cut => Err(Error::new(ErrorKind::PowerCut, "no cut was planned")),
            Ended::Wrong(wrong) => Err(Error::new(ErrorKind::Corrupt, wrong)),
        }
    }

    fn live(&self, life: &Life) -> Outcome {
        run::<R, K>(&self.subject, life)
    }
}
