//! Simulated NVRAM: memory that survives a power cut.
//!
//! A region outlives the executor whose tasks use it: keep a handle across the cut and read what
//! is there. A change is made whole or not at all as long as it happens within one
//! [`NvramCell::with_mut`], which no power cut interrupts.
//!
//! Each change through a cell or a slab is one store. A cut can be planned at a store
//! ([`Nvram::plan_cut`]); everything stops there, between two lines of the same poll where need be.
use crate::cut::{CutPlan, Fate, PowerCut};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result};

/// A region of so many bytes, out of which cells and slabs are taken. Clones name the same one.
#[derive(Clone)]
pub struct Nvram(Rc<Region>);

struct Region {
    bytes: u64,
    used_bytes: Cell<u64>,
    stores: Cell<u64>,
    plan: Cell<Option<CutPlan>>,
    cuts: Cell<u64>,
}

impl Region {
    /// Makes one store, unless power is cut at it.
    fn store<U>(&self, change: impl FnOnce() -> U) -> U {
        self.stores.set(self.stores.get() + 1);
        match self.plan.get() {
            None => change(),
            Some(CutPlan { after_operations: 0, fate }) => {
                self.plan.set(None);
                self.cuts.set(self.cuts.get() + 1);
                if fate == Fate::Land {
                    change();
                }
                PowerCut::unwind()
            }
            Some(plan) => {
                let after_operations = plan.after_operations - 1;
                self.plan.set(Some(CutPlan { after_operations, ..plan }));
                change()
            }
        }
    }
}

impl Nvram {
    /// A region of `bytes` bytes, all free.
    pub fn new(bytes: u64) -> Self {
        Nvram(Rc::new(Region {
            bytes,
            used_bytes: Cell::new(0),
            stores: Cell::new(0),
            plan: Cell::new(None),
            cuts: Cell::new(0),
        }))
    }

    /// Stores so far: what [`plan_cut`](Self::plan_cut) counts.
    pub fn stores(&self) -> u64 {
        self.0.stores.get()
    }

    /// Plans a power cut at a store; `None` calls it off. A store is whole: it lands, or else
    /// vanishes. The executor is unwound with [`PowerCut`].
    pub fn plan_cut(&self, plan: Option<CutPlan>) {
        self.0.plan.set(plan);
    }

    /// Power cuts at stores so far.
    pub fn power_cuts(&self) -> u64 {
        self.0.cuts.get()
    }

    /// Capacity in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Bytes that are taken.
    pub fn used_bytes(&self) -> u64 {
        self.0.used_bytes.get()
    }

    /// A cell that is accounted with `bytes` bytes, whatever `value` takes in this process (a
    /// stamp counts as the page it stands for).
    ///
    /// # Errors
    /// `OutOfSpace` where the region has less left.
    pub fn cell<T>(&self, bytes: u64, value: T) -> Result<NvramCell<T>> {
        let share = self.take(bytes)?;
        Ok(NvramCell(Rc::new(CellState { value: RefCell::new(value), share })))
    }

    /// A slab of `slots` places of `slot_bytes` bytes each, all empty.
    ///
    /// # Errors
    /// `OutOfSpace` where the region has less left.
    pub fn slab<T>(&self, slots: u32, slot_bytes: u64) -> Result<NvramSlab<T>> {
        let share = self.take(u64::from(slots) * slot_bytes)?;
        let slots = RefCell::new((0..slots).map(|_| None).collect());
        Ok(NvramSlab(Rc::new(SlabState { slots, share })))
    }

    fn take(&self, bytes: u64) -> Result<Share> {
        let used_bytes = self.used_bytes();
        if bytes > self.bytes() - used_bytes {
            let context = format!(
                "NVRAM of {} bytes with {used_bytes} taken has no room for {bytes}",
                self.bytes()
            );
            return Err(Error::new(ErrorKind::OutOfSpace, context));
        }
        self.0.used_bytes.set(used_bytes + bytes);
        Ok(Share { region: Rc::clone(&self.0), bytes })
    }
}

impl fmt::Debug for Nvram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nvram({} of {} bytes)", self.used_bytes(), self.bytes())
    }
}

/// Bytes of a region, given back when the last handle on them goes.
struct Share {
    region: Rc<Region>,
    bytes: u64,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.region.used_bytes.set(self.region.used_bytes.get() - self.bytes);
    }
}

struct CellState<T> {
    value: RefCell<T>,
    share: Share,
}

/// One value in NVRAM. Clones name the same one.
pub struct NvramCell<T>(Rc<CellState<T>>);

impl<T> Clone for NvramCell<T> {
    fn clone(&self) -> Self {
        NvramCell(Rc::clone(&self.0))
    }
}

impl<T> NvramCell<T> {
    /// A copy of the value.
    pub fn get(&self) -> T
    where
        T: Clone,
    {
        self.0.value.borrow().clone()
    }

    /// What `read` makes of the value.
    pub fn with<U>(&self, read: impl FnOnce(&T) -> U) -> U {
        read(&self.0.value.borrow())
    }

    /// Changes the value, as a whole.
    pub fn with_mut<U>(&self, change: impl FnOnce(&mut T) -> U) -> U {
        self.0.share.region.store(|| change(&mut self.0.value.borrow_mut()))
    }
}

struct SlabState<T> {
    slots: RefCell<Vec<Option<T>>>,
    share: Share,
}

/// Places of equal size in NVRAM, by number from 0. Clones name the same ones.
pub struct NvramSlab<T>(Rc<SlabState<T>>);

impl<T> Clone for NvramSlab<T> {
    fn clone(&self) -> Self {
        NvramSlab(Rc::clone(&self.0))
    }
}

impl<T> NvramSlab<T> {
    /// Number of places.
    pub fn slots(&self) -> u32 {
        self.0.slots.borrow().len() as u32
    }

    /// A copy of what place `slot` holds; `None` where it is empty.
    ///
    /// # Panics
    /// Where there is no such place; so do the others.
    pub fn get(&self, slot: u32) -> Option<T>
    where
        T: Clone,
    {
        self.0.slots.borrow()[slot as usize].clone()
    }

    /// Fills place `slot` and returns what it held.
    pub fn put(&self, slot: u32, value: T) -> Option<T> {
        self.with_mut(|slots| slots[slot as usize].replace(value))
    }

    /// Empties place `slot` and returns what it held.
    pub fn take(&self, slot: u32) -> Option<T> {
        self.with_mut(|slots| slots[slot as usize].take())
    }

    /// What `read` makes of place `slot`.
    pub fn with<U>(&self, slot: u32, read: impl FnOnce(Option<&T>) -> U) -> U {
        read(self.0.slots.borrow()[slot as usize].as_ref())
    }

    /// Changes several places as one: either all of `change` is there after a power cut, or none.
    pub fn with_mut<U>(&self, change: impl FnOnce(&mut [Option<T>]) -> U) -> U {
        self.0.share.region.store(|| change(&mut self.0.slots.borrow_mut()))
    }

    /// Calls `visit` with every filled place, in ascending order.
    pub fn for_each(&self, mut visit: impl FnMut(u32, &T)) {
        for (slot, value) in self.0.slots.borrow().iter().enumerate() {
            if let Some(value) = value {
                visit(slot as u32, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_runtime::virtual_time::Schedule;
    use tantalum_runtime::{Runtime, Virtual};

    #[test]
    fn contents_survive_the_executor() {
        let nvram = Nvram::new(1 << 20);
        let cell = nvram.cell(8, 0u64).unwrap();
        let slab = nvram.slab::<u32>(4, 4096).unwrap();
        let runtime = Virtual::new(Schedule::Fifo);
        let task = {
            let (cell, slab, runtime) = (cell.clone(), slab.clone(), runtime.clone());
            async move {
                for step in 1.. {
                    cell.with_mut(|value| *value = step);
                    slab.put(step as u32 % 4, step as u32);
                    runtime.sleep(10).await;
                }
            }
        };
        let _unfinished = runtime.spawn("writer", task);
        let sleeper = runtime.clone();
        runtime.run(async move { sleeper.sleep(25).await }).unwrap();
        runtime.drop_tasks();
        drop(runtime);
        assert_eq!(cell.get(), 3);
        let mut filled = Vec::new();
        slab.for_each(|slot, value| filled.push((slot, *value)));
        assert_eq!(filled, [(1, 1), (2, 2), (3, 3)]);
        assert_eq!((slab.take(2), slab.get(2), slab.slots()), (Some(2), None, 4));
        slab.with_mut(|slots| slots.swap(0, 1));
        assert_eq!(slab.with(0, |value| value.copied()), Some(1));
    }

    #[test]
    fn a_cut_at_a_store_stops_everything_there() {
        for (fate, expected) in [(Fate::Land, 3), (Fate::Vanish, 2), (Fate::Tear, 2)] {
            let nvram = Nvram::new(100);
            let cell = nvram.cell(8, 0).unwrap();
            let slab = nvram.slab::<u32>(2, 8).unwrap();
            nvram.plan_cut(Some(CutPlan { after_operations: 2, fate }));
            let (value, place) = (cell.clone(), slab.clone());
            let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                value.with_mut(|value| *value = 1);
                value.with_mut(|value| *value = 2);
                value.with_mut(|value| *value = 3);
                place.put(0, 9);
            }));
            assert!(PowerCut::is(&*unwound.unwrap_err()), "{fate:?}");
            assert_eq!((cell.get(), slab.get(0)), (expected, None), "{fate:?}");
            assert_eq!((nvram.stores(), nvram.power_cuts()), (3, 1));
            slab.put(0, 1);
            assert_eq!(slab.get(0), Some(1), "the plan is over");
        }
    }

    #[test]
    fn capacity_is_accounted() {
        let nvram = Nvram::new(100);
        let first = nvram.cell(60, ()).unwrap();
        assert_eq!(nvram.cell(41, ()).err().unwrap().kind(), ErrorKind::OutOfSpace);
        let second = nvram.slab::<u8>(4, 10).unwrap();
        assert_eq!((nvram.used_bytes(), nvram.bytes()), (100, 100));
        let clone = first.clone();
        drop((first, second));
        assert_eq!(nvram.used_bytes(), 60, "one handle is left");
        drop(clone);
        assert_eq!(nvram.used_bytes(), 0);
    }
}
