//! A device and its medium from one power-on period to the next.
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind};
use tantalum_media::{CutPlan, Episodes, ErasedZones, IoClass, PowerCut, ZoneMedia};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Opening, Runtime, Virtual};

use super::damage::Damage;
use super::life::{Cut, CutAt, Operations, PowerOn, Strike};
use super::passing::Passing;
use super::powered::Powered;
use super::rig::{Rig, Size};
use super::subject::{Kept, Medium, Subject, Tested};

/// How a span of virtual time ended.
pub(super) enum Ended<T> {
    /// The main future is finished.
    Done(T),
    /// The power was cut during it.
    Cut,
    /// It stalled or panicked; a description.
    Wrong(String),
}

/// Runs `main` until it is finished or the power is cut.
pub(super) fn powered<T: 'static>(
    runtime: &Virtual,
    main: impl Future<Output = T> + 'static,
) -> Ended<T> {
    let ran = std::panic::catch_unwind(AssertUnwindSafe(|| runtime.run(main)));
    match ran {
        Ok(Ok(done)) => Ended::Done(done),
        Ok(Err(deadlock)) => Ended::Wrong(deadlock.to_string()),
        Err(payload) if PowerCut::is(&*payload) => Ended::Cut,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            Ended::Wrong(format!("panicked: {}", text.unwrap_or("without a word")))
        }
    }
}

/// Errors that pass, of the medium and everything beside it.
#[derive(Clone)]
pub(super) struct Errors(Vec<Episodes<Virtual>>);

impl Errors {
    /// The errors have passed.
    pub(super) fn end(&self) {
        self.0.iter().for_each(Episodes::end_all);
    }

    /// Number of failed operations of these classes so far.
    pub(super) fn failed(&self, classes: &[IoClass]) -> u64 {
        let each = |episodes: &Episodes<Virtual>| -> u64 {
            classes.iter().map(|class| episodes.failed(*class)).sum()
        };
        self.0.iter().map(each).sum()
    }

    /// Number of failed reads so far, including scans.
    pub(super) fn failed_reads(&self) -> u64 {
        self.failed(&[IoClass::Read, IoClass::Scan])
    }

    /// Checks that a read may return `error`: for an I/O error, reads must have failed since their count was `failed`.
    ///
    /// # Errors
    /// `Corrupt` if it is an I/O error but no read failed meanwhile: then the device has not tried whether the
    /// errors have passed.
    pub(super) fn check_failed_since(&self, failed: u64, error: &Error) -> Result<(), Error> {
        if error.kind() != ErrorKind::Io || self.failed_reads() > failed {
            return Ok(());
        }
        let context = format!("a read failed, and no read of the medium did: {error:?}");
        Err(Error::new(ErrorKind::Corrupt, context))
    }
}

/// The rig and medium on which a device is made or opened.
type OpeningOf<R, Kept> = Opening<Virtual, ErasedZones<<R as Rig>::Page>, Kept>;

/// A device between two power-on periods: its medium and everything else that survives.
pub(super) struct Bench<R: Rig, K: Tested<R::Page>> {
    pub(super) rig: R,
    pub(super) subject: Subject<K>,
    pub(super) damage: Damage<R::Page>,
    pub(super) kept: K::Kept,
    pages: u64,
    seed: u64,
}

impl<R: Rig, K: Tested<R::Page>> Bench<R, K> {
    /// A new device, without damage.
    ///
    /// # Errors
    /// `InvalidInput` if the device or the medium cannot have that many pages.
    pub(super) fn new(subject: &Subject<K>, seed: u64, pages: u64) -> Result<Self, Error> {
        let rig = match subject.medium(pages)? {
            Medium::Array(shape) => R::of_shape(seed, &shape)?,
            Medium::Lab { more_zones } => R::of_size(seed, Size::of_pages(pages), more_zones),
        };
        Ok(Bench {
            rig,
            subject: subject.clone(),
            damage: Damage::never(),
            kept: K::Kept::default(),
            pages,
            seed,
        })
    }

    /// Switches the power on, and starts the planned decay and losses. Returns the device kind, and the means to
    /// make or open the device.
    pub(super) fn open(
        &mut self,
        runtime: &Virtual,
        power_on: &PowerOn,
    ) -> (K, OpeningOf<R, K::Kept>) {
        self.kept.power_on(runtime, self.seed);
        let media = self.rig.open(runtime);
        self.damage.power_on(&media.geometry(), power_on);
        let media = Powered::new(media, self.cut_watch()).damaged(
            self.damage.clone(),
            self.rig.loser(),
            self.rig.striker(),
        );
        let media = ErasedZones::new(media);
        let kind = self.subject.kind(&media.geometry(), self.pages);
        (kind, Opening { runtime: runtime.clone(), media, kept: self.kept.clone() })
    }

    /// Plans a cut. A cut at a part that the device lacks never happens.
    pub(super) fn plan(&mut self, cut: Cut) {
        let plan = CutPlan { after_operations: cut.after, fate: cut.fate };
        match cut.at {
            CutAt::Media => self.rig.plan(plan),
            beside => self.kept.plan(beside, plan),
        }
    }

    /// Starts errors that pass, on the medium and the parts beside it. A part that does not exist does not fail.
    pub(super) fn pass(&self, runtime: &Virtual, passing: &[Passing]) {
        for passing in passing {
            let episode = passing.episode(runtime.now_ns());
            match passing.at {
                CutAt::Media => self.rig.begin(episode),
                beside => {
                    self.kept.episodes(beside).map(|episodes| episodes.begin(episode));
                }
            }
        }
    }

    /// The errors that pass during this power-on period.
    pub(super) fn errors(&self) -> Errors {
        let beside = K::Kept::CUT_AT.iter().filter_map(|at| self.kept.episodes(*at));
        Errors(self.rig.episodes().into_iter().chain(beside).collect())
    }

    /// Returns a function that reports whether the power has been cut since it came on, at the medium or a part
    /// beside it; even if that part is made later, together with the device.
    pub(super) fn cut_watch(&self) -> impl Fn() -> bool + 'static {
        let media = self.rig.cut_watch();
        let kept = self.kept.clone();
        move || media() || kept.is_cut()
    }

    /// Returns a function that reports the number of operations so far, at the medium and beside it.
    pub(super) fn counts(&self) -> impl Fn() -> Operations + 'static {
        let (media, kept) = (self.rig.operations_watch(), self.kept.clone());
        move || {
            Operations::counted(|at| match at {
                CutAt::Media => media(),
                beside => kept.operations(beside),
            })
        }
    }

    /// The power is off: operations in flight meet their fate, the device uses its stored energy, and then the
    /// medium is damaged.
    ///
    /// # Errors
    /// A description of any failure.
    pub(super) fn dark(
        &mut self,
        runtime: Virtual,
        device: Option<Rc<K::Device>>,
        strikes: &[Strike],
    ) -> Result<(), String> {
        self.lights_out(runtime, device)?;
        self.strike(strikes).map_err(|error| format!("the rig failed: {error}"))
    }

    fn lights_out(
        &mut self,
        runtime: Virtual,
        device: Option<Rc<K::Device>>,
    ) -> Result<(), String> {
        // Stores that tasks make as they are dropped do not count.
        self.kept.cut();
        runtime.drop_tasks();
        self.power_off(&runtime)?;
        let Some(device) = device.filter(|_| K::HAS_STORED_ENERGY) else { return Ok(()) };
        let runtime = Virtual::new(Schedule::Fifo);
        let (kind, on) = self.open(&runtime, &PowerOn::default());
        let dumped = powered(&runtime, async move { kind.on_stored_energy(device, on).await });
        runtime.drop_tasks();
        self.power_off(&runtime)?;
        match dumped {
            Ended::Done(Ok(())) => Ok(()),
            Ended::Done(Err(error)) => Err(format!("on stored energy: {error:?}")),
            Ended::Cut => Err("on stored energy: no cut falls there".to_owned()),
            Ended::Wrong(wrong) => Err(format!("on stored energy: {wrong}")),
        }
    }

    /// Operations in flight meet their fate.
    fn power_off(&mut self, runtime: &Virtual) -> Result<(), String> {
        let medium = self.rig.power_off(runtime);
        let done = medium.and_then(|()| self.kept.power_off(runtime));
        done.map_err(|error| format!("the rig failed: {error}"))
    }

    /// Finds out which writes that were not durable have survived, and damages the medium.
    fn strike(&mut self, strikes: &[Strike]) -> Result<(), Error> {
        if !self.damage.is_kept() {
            return Ok(());
        }
        let runtime = Virtual::new(Schedule::Fifo);
        let media = self.rig.open(&runtime);
        let (damage, uncertain) = (self.damage.clone(), self.damage.uncertain());
        let reads_spares = media.reads_spares();
        runtime.finish("looking", async move {
            for (zone, epoch) in uncertain {
                damage.found(zone, epoch, &media.scan(zone, 0, Some(epoch)).await?);
            }
            Ok(())
        })?;
        self.rig.power_off(&runtime)?;
        let strike_slot = self.rig.striker();
        for strike in strikes {
            let damaged = self.damage.strike(reads_spares, *strike);
            damaged.into_iter().for_each(|(slot, bit)| strike_slot(slot, bit));
        }
        self.damage.struck();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NandRig, subjects};
    use tantalum_base::Stamp;
    use tantalum_runtime::DeviceKind;

    /// The medium of the first power-on period exists before the NVRAM does.
    #[test]
    fn a_cut_at_the_nvram_stops_the_medium_at_the_first_power_on_too() {
        let subject = subjects::tx_cache(true);
        let mut bench = Bench::<NandRig<Stamp>, _>::new(&subject, 1, 24).unwrap();
        let runtime = Virtual::new(Schedule::Fifo);
        let (kind, on) = bench.open(&runtime, &PowerOn::default());
        let formatted = powered(&runtime, async move { kind.format(on).await });
        let Ended::Done(Ok(device)) = formatted else { panic!("formatting works") };
        let kept = bench.kept.clone();
        let appends = powered(&runtime, async move {
            kept.cut();
            device.ftl().checkpoint().await
        });
        assert!(matches!(appends, Ended::Cut));
    }
}
