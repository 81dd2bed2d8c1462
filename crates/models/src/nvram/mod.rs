//! Simulated NVRAM: memory that survives a power cut.
//!
//! A region outlives the executor whose tasks use it: keep a handle across the cut and read its
//! content afterwards. A change is atomic as long as it happens within one [`NvramCell::with_mut`],
//! which no power cut interrupts; only a page may be torn ([`NvramSlab::put_page`]). Each change is
//! one store, and power can be cut between any two ([`Nvram::plan_cut`]). Stores after the cut are
//! undone at the next [`Nvram::power_on`].
mod power;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Payload, Result};

use power::{Power, StoreFate};
use tantalum_media::cut::CutPlan;

/// A region of a fixed number of bytes, from which cells and slabs are allocated. Clones share the
/// same region.
#[derive(Clone)]
pub struct Nvram(Rc<Region>);

struct Region {
    bytes: u64,
    used_bytes: Cell<u64>,
    power: Power,
}

impl Nvram {
    /// A region of `bytes` bytes, all free.
    pub fn new(bytes: u64) -> Self {
        Nvram(Rc::new(Region { bytes, used_bytes: Cell::new(0), power: Power::default() }))
    }

    /// Capacity in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Number of allocated bytes.
    pub fn used_bytes(&self) -> u64 {
        self.0.used_bytes.get()
    }

    /// Number of stores so far: changes of cells and slabs.
    pub fn stores(&self) -> u64 {
        self.0.power.stores()
    }

    /// Plans a power cut at a store; `None` cancels it. `Land` cuts before the next store. `Vanish`
    /// loses this store. `Tear` leaves a torn page if the store writes a page, and otherwise loses
    /// it.
    pub fn plan_cut(&self, plan: Option<CutPlan>) {
        self.0.power.plan_cut(plan);
    }

    /// Calls `hook` at a planned cut, so that power is lost everywhere at once. Tasks go on; their
    /// stores from then on are undone at the next [`power_on`](Self::power_on).
    pub fn on_cut(&self, hook: impl Fn() + 'static) {
        self.0.power.on_cut(Box::new(hook));
    }

    /// Cuts the power now.
    pub fn cut(&self) {
        self.0.power.cut();
    }

    /// Whether power has been cut since the last [`power_on`](Self::power_on).
    pub fn is_cut(&self) -> bool {
        self.0.power.is_cut()
    }

    /// Restores the content at the time of the cut. Call it after the executor's tasks have been
    /// dropped. Drops plan and hook.
    pub fn power_on(&self) {
        self.0.power.power_on();
    }

    /// Allocates a cell that is charged as `bytes` bytes, regardless of the size of `value` in this
    /// process (a stamp counts as the page that it stands for).
    ///
    /// # Errors
    /// `OutOfSpace` if the region has fewer bytes left.
    pub fn cell<T>(&self, bytes: u64, value: T) -> Result<NvramCell<T>> {
        let share = self.take(bytes)?;
        Ok(NvramCell(Rc::new(CellState { value: RefCell::new(value), share })))
    }

    /// Allocates a slab of `slots` slots of `slot_bytes` bytes each, all empty.
    ///
    /// # Errors
    /// `OutOfSpace` if the region has fewer bytes left.
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

/// Allocated bytes of a region; they are freed when the last handle is dropped.
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

/// One value in NVRAM. Clones share the same value.
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

    /// Calls `read` with the value and returns its result.
    pub fn with<U>(&self, read: impl FnOnce(&T) -> U) -> U {
        read(&self.0.value.borrow())
    }

    /// Changes the value atomically: one store.
    pub fn with_mut<U>(&self, change: impl FnOnce(&mut T) -> U) -> U
    where
        T: Clone + 'static,
    {
        let power = &self.0.share.region.power;
        if power.store() != StoreFate::Kept {
            let (cell, old) = (Rc::clone(&self.0), self.get());
            power.remember(Box::new(move || *cell.value.borrow_mut() = old));
        }
        change(&mut self.0.value.borrow_mut())
    }
}

struct SlabState<T> {
    slots: RefCell<Vec<Option<T>>>,
    share: Share,
}

/// Slots of equal size in NVRAM, numbered from 0. Clones share the same slots.
pub struct NvramSlab<T>(Rc<SlabState<T>>);

impl<T> Clone for NvramSlab<T> {
    fn clone(&self) -> Self {
        NvramSlab(Rc::clone(&self.0))
    }
}

impl<T> NvramSlab<T> {
    /// Number of slots.
    pub fn slots(&self) -> u32 {
        self.0.slots.borrow().len() as u32
    }

    /// A copy of the content of `slot`; `None` if it is empty.
    ///
    /// # Panics
    /// If there is no such slot; the other methods do so as well.
    pub fn get(&self, slot: u32) -> Option<T>
    where
        T: Clone,
    {
        self.0.slots.borrow()[slot as usize].clone()
    }

    /// Fills `slot` and returns its old content: one store.
    #[inline]
    pub fn put(&self, slot: u32, value: T) -> Option<T>
    where
        T: Clone + 'static,
    {
        if self.power().store() != StoreFate::Kept {
            self.remember(slot, self.get(slot));
        }
        self.0.slots.borrow_mut()[slot as usize].replace(value)
    }

    /// Fills `slot` with a page: one store, which a power cut may tear.
    #[inline]
    pub fn put_page(&self, slot: u32, page: T)
    where
        T: Payload,
    {
        match self.power().store() {
            StoreFate::Kept => {}
            StoreFate::Lost => self.remember(slot, self.get(slot)),
            StoreFate::Torn => self.remember(slot, Some(page.torn())),
        }
        self.0.slots.borrow_mut()[slot as usize] = Some(page);
    }

    /// Empties `slot` and returns its old content: one store.
    #[inline]
    pub fn take(&self, slot: u32) -> Option<T>
    where
        T: Clone + 'static,
    {
        if self.power().store() != StoreFate::Kept {
            self.remember(slot, self.get(slot));
        }
        self.0.slots.borrow_mut()[slot as usize].take()
    }

    fn power(&self) -> &Power {
        &self.0.share.region.power
    }

    /// Makes the next power-on restore `old` in `slot`.
    fn remember(&self, slot: u32, old: Option<T>)
    where
        T: 'static,
    {
        let slab = Rc::clone(&self.0);
        let restore = move || slab.slots.borrow_mut()[slot as usize] = old;
        self.power().remember(Box::new(restore));
    }

    /// Calls `read` with the content of `slot` and returns its result.
    pub fn with<U>(&self, slot: u32, read: impl FnOnce(Option<&T>) -> U) -> U {
        read(self.0.slots.borrow()[slot as usize].as_ref())
    }

    /// Changes several slots as one store: after a power cut, either all of `change` has taken
    /// effect, or none.
    pub fn with_mut<U>(&self, change: impl FnOnce(&mut [Option<T>]) -> U) -> U
    where
        T: Clone + 'static,
    {
        if self.power().store() != StoreFate::Kept {
            let (slab, old) = (Rc::clone(&self.0), self.0.slots.borrow().clone());
            self.power().remember(Box::new(move || *slab.slots.borrow_mut() = old));
        }
        change(&mut self.0.slots.borrow_mut())
    }

    /// Calls `visit` for every filled slot, in ascending order.
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
    use tantalum_base::{PageNo, Stamp};
    use tantalum_media::cut::Fate;
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

    #[test]
    fn what_is_stored_after_a_cut_is_gone_at_the_next_power_on() {
        for cut in 0..=5 {
            let nvram = Nvram::new(1 << 20);
            let cell = nvram.cell(8, 0u64).unwrap();
            let slab = nvram.slab::<u32>(4, 8).unwrap();
            let hooked = Rc::new(Cell::new(0));
            let seen = Rc::clone(&hooked);
            nvram.on_cut(move || seen.set(seen.get() + 1));
            nvram.plan_cut(Some(CutPlan { after_operations: cut, fate: Fate::Vanish }));
            slab.put(1, 10);
            cell.with_mut(|value| *value = 7);
            slab.put(1, 11);
            slab.with_mut(|slots| slots.swap(0, 1));
            slab.take(0);
            assert_eq!((slab.get(0), slab.get(1), cell.get()), (None, None, 7), "tasks go on");
            assert_eq!(
                (nvram.stores(), nvram.is_cut(), hooked.get()),
                (5, cut < 5, u32::from(cut < 5))
            );
            nvram.power_on();
            let expected = [
                (None, None, 0),
                (None, Some(10), 0),
                (None, Some(10), 7),
                (None, Some(11), 7),
                (Some(11), None, 7),
                (None, None, 7),
            ];
            assert_eq!((slab.get(0), slab.get(1), cell.get()), expected[cut as usize], "{cut}");
            slab.put(3, 3);
            nvram.power_on();
            assert_eq!(slab.get(3), Some(3), "stores are kept again");
        }
    }

    #[test]
    fn a_page_may_be_torn() {
        let nvram = Nvram::new(1 << 20);
        let slab = nvram.slab::<Stamp>(1, 4096).unwrap();
        let (old, new) = (Stamp::new(PageNo(1), 1), Stamp::new(PageNo(1), 2));
        slab.put_page(0, old);
        nvram.plan_cut(Some(CutPlan { after_operations: 0, fate: Fate::Tear }));
        slab.put_page(0, new);
        nvram.power_on();
        assert_eq!(slab.get(0), Some(new.torn()));
    }
}
