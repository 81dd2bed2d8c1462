//! A device and its medium from one power-on to the next.
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use tantalum_base::Error;
use tantalum_media::{CutPlan, Nvram, PowerCut, ZoneMedia};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

use super::decay::Decay;
use super::life::{Cut, CutAt};
use super::powered::Powered;
use super::rig::Rig;
use super::subject::{Opening, Subject};

/// How a stretch of virtual time ended.
pub(super) enum Ended<T> {
    /// The main future is done.
    Done(T),
    /// The power went in it.
    Cut,
    /// It stood still or panicked; what was wrong.
    Wrong(String),
}

/// Runs `main` until it is done or the power goes.
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

/// A device between two power-ons: its medium and what else survives.
pub(super) struct Bench<R: Rig, S: Subject<Powered<R::Media>>> {
    pub(super) rig: R,
    pub(super) subject: S,
    pub(super) decay: Decay<<R::Media as ZoneMedia>::Page>,
    kept: S::Kept,
    pages: u64,
}

impl<R: Rig, S: Subject<Powered<R::Media>>> Bench<R, S> {
    /// A new one; where `decays`, contents may decay.
    ///
    /// # Errors
    /// `InvalidInput` where the device cannot have so many pages, or the medium.
    pub(super) fn new(subject: &S, seed: u64, pages: u64, decays: bool) -> Result<Self, Error> {
        let rig = match subject.array(pages)? {
            Some(shape) => R::of_shape(seed, &shape)?,
            None => R::with_more_zones(seed, subject.more_zones()),
        };
        Ok(Bench {
            rig,
            subject: subject.clone(),
            decay: if decays { Decay::new() } else { Decay::never() },
            kept: subject.kept(),
            pages,
        })
    }

    fn nvram(&self) -> Option<Nvram> {
        self.subject.nvram(&self.kept)
    }

    /// Power comes on; decay strikes at these reads.
    pub(super) fn open(
        &mut self,
        runtime: &Virtual,
        decaying_reads: &[u64],
    ) -> Opening<Powered<R::Media>, S::Kept> {
        self.decay.power_on(decaying_reads);
        if let Some(nvram) = self.nvram() {
            nvram.power_on();
        }
        let media = self.rig.open(runtime);
        Opening {
            runtime: runtime.clone(),
            media: Powered::decaying(media, self.cut_watch(), self.decay.clone()),
            pages: self.pages,
            kept: self.kept.clone(),
        }
    }

    /// Plans a cut. One at a store of NVRAM, where the device has none, never comes.
    pub(super) fn plan(&mut self, cut: Cut) {
        let plan = CutPlan { after_operations: cut.after, fate: cut.fate };
        match cut.at {
            CutAt::Media => self.rig.plan(plan),
            CutAt::Nvram => {
                if let Some(nvram) = self.nvram() {
                    nvram.plan_cut(Some(plan));
                }
            }
        }
    }

    /// Tells whether the power has gone since it came on, at the medium or at a store to NVRAM.
    pub(super) fn cut_watch(&self) -> impl Fn() -> bool + 'static {
        let (media, nvram) = (self.rig.cut_watch(), self.nvram());
        move || media() || nvram.as_ref().is_some_and(Nvram::is_cut)
    }

    /// Tells operations of the medium and stores to NVRAM so far.
    pub(super) fn counts(&self) -> impl Fn() -> (u64, u64) + 'static {
        let (media, nvram) = (self.rig.operations_watch(), self.nvram());
        move || (media(), nvram.as_ref().map_or(0, Nvram::stores))
    }

    /// Power is gone: what was in flight meets its fate, and the device does what it does on
    /// stored energy.
    ///
    /// # Errors
    /// What went wrong in that.
    pub(super) fn dark(
        &mut self,
        runtime: Virtual,
        device: Option<Rc<S::Device>>,
    ) -> Result<(), String> {
        if let Some(nvram) = self.nvram() {
            // What tasks store as they are dropped does not count.
            nvram.cut();
        }
        runtime.drop_tasks();
        self.rig.settle(&runtime).map_err(|error| format!("the rig failed: {error}"))?;
        let Some(device) = device.filter(|_| S::HAS_STORED_ENERGY) else { return Ok(()) };
        let runtime = Virtual::new(Schedule::Fifo);
        let (subject, opening) = (self.subject.clone(), self.open(&runtime, &[]));
        let dumped =
            powered(&runtime, async move { subject.on_stored_energy(device, opening).await });
        runtime.drop_tasks();
        self.rig.settle(&runtime).map_err(|error| format!("the rig failed: {error}"))?;
        match dumped {
            Ended::Done(Ok(())) => Ok(()),
            Ended::Done(Err(error)) => Err(format!("on stored energy: {error:?}")),
            Ended::Cut => Err("on stored energy: no cut falls there".to_owned()),
            Ended::Wrong(wrong) => Err(format!("on stored energy: {wrong}")),
        }
    }
}
