//! The array: blocks, and the effects of operations on them.
use super::counters::{NandCounters, Wear};
use super::faults::{Failures, NandFaults};
use super::geometry::{BlockAddr, NandGeometry, PageAddr};
use super::power::{Erased, InFlight, Operation, Unfinished, cut_at_ns};
use super::slot::{Content, SlotRead};
use super::timing::{NandTiming, Occupancy, Span};
use std::collections::VecDeque;
use tantalum_base::{Payload, Result, Rng};
use tantalum_media::cut::{CutPlan, Fate};
use tantalum_media::zone::{Body, Spare};

/// Maximum number of contents kept to reuse their memory.
const RECYCLED_MAX: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Health {
    Good,
    /// An erase was interrupted: the block needs another one.
    HalfErased,
    /// A program or an erase failed.
    GrownBad,
    FactoryBad,
}

struct Block<P> {
    content: Content<P>,
    erases: u32,
    health: Health,
}

/// The outcome of an operation on the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(super) span: Span,
    /// Whether it succeeds.
    pub(crate) ok: bool,
}

impl Outcome {
    /// The time at which it ends.
    pub(crate) fn end_ns(&self) -> u64 {
        self.span.end_ns
    }
}

/// State of a NAND array. Changes take effect when they are submitted. The data to undo them at a
/// power cut is kept until their time is over.
pub(crate) struct Array<P> {
    pub(crate) geometry: NandGeometry,
    slots_per_page: u32,
    faults: NandFaults,
    occupancy: Occupancy,
    blocks: Vec<Block<P>>,
    in_flight: VecDeque<Unfinished<P>>,
    recycled: Vec<Content<P>>,
    pub(super) program_failures: Failures,
    pub(super) erase_failures: Failures,
    pub(super) read_failures: Failures,
    pub(super) counters: NandCounters,
    /// Counts power cuts. A handle with an older number has lost power.
    pub(crate) power: u64,
    pub(super) mutations: u64,
    pub(super) cut_plan: Option<CutPlan>,
    // From the start of the first pulse to the end of the last one, for the mutation being
    // submitted.
    mutation_span: Option<Span>,
}

impl<P: Payload> Array<P> {
    pub(super) fn new(
        geometry: NandGeometry,
        timing: NandTiming,
        faults: NandFaults,
        seed: u64,
    ) -> Result<Self> {
        geometry.check()?;
        timing.check()?;
        let mut factory = Rng::split(seed, "nand factory-bad blocks");
        let block_count = u64::from(geometry.planes()) * u64::from(geometry.blocks_per_plane);
        let blocks = (0..block_count)
            .map(|_| {
                let bad = factory.chance(faults.factory_bad);
                let health = if bad { Health::FactoryBad } else { Health::Good };
                Block { content: Content::default(), erases: 0, health }
            })
            .collect();
        Ok(Array {
            geometry,
            slots_per_page: geometry.slots_per_page(),
            faults,
            occupancy: Occupancy::new(&geometry, timing),
            blocks,
            in_flight: VecDeque::new(),
            recycled: Vec::new(),
            program_failures: Failures::new(seed, "nand program failures"),
            erase_failures: Failures::new(seed, "nand erase failures"),
            read_failures: Failures::new(seed, "nand read failures"),
            counters: NandCounters::default(),
            power: 0,
            mutations: 0,
            cut_plan: None,
            mutation_span: None,
        })
    }

    #[inline]
    fn index(&self, at: BlockAddr) -> usize {
        debug_assert!(at.block < self.geometry.blocks_per_plane);
        at.plane as usize * self.geometry.blocks_per_plane as usize + at.block as usize
    }

    #[inline]
    fn block(&self, at: BlockAddr) -> &Block<P> {
        &self.blocks[self.index(at)]
    }

    /// Whether the block may no longer be programmed or erased.
    pub(crate) fn is_bad(&self, at: BlockAddr) -> bool {
        matches!(self.block(at).health, Health::GrownBad | Health::FactoryBad)
    }

    /// Whether the block can be programmed from its first page.
    pub(crate) fn is_erased(&self, at: BlockAddr) -> bool {
        let block = self.block(at);
        block.health == Health::Good && block.content.is_empty()
    }

    /// Whether no page of the block is programmed.
    pub(crate) fn is_blank(&self, at: BlockAddr) -> bool {
        self.block(at).content.is_empty()
    }

    /// Programs a flash page with `spares` and `bodies` (at most as many as it has slots; the rest
    /// is padding).
    ///
    /// # Panics
    /// If the page is not the next one of its block, or the block needs an erase.
    #[inline]
    pub(crate) fn program(
        &mut self,
        now_ns: u64,
        at: PageAddr,
        spares: &[Spare],
        bodies: &[Body<P>],
    ) -> Outcome {
        self.forget_done(now_ns);
        let span = self.occupancy.program(now_ns, at);
        let index = self.index(at.block);
        let slots_per_block = self.geometry.slots_per_block() as usize;
        let block = &mut self.blocks[index];
        let first = at.page * self.slots_per_page;
        assert!(
            first == block.content.len()
                && at.page < self.geometry.pages_per_block
                && block.health != Health::HalfErased
                && block.health != Health::FactoryBad,
            "program of {at:?}: {:?}, next slot {}",
            block.health,
            block.content.len(),
        );
        if !block.content.has_memory() {
            block.content = Content::around(self.recycled.pop(), slots_per_block);
        }
        for (spare, body) in spares.iter().zip(bodies) {
            block.content.push(spare, body);
        }
        for _ in bodies.len() as u32..self.slots_per_page {
            block.content.push_padding();
        }
        let failed = self.program_failures.next(self.faults.program_fail)
            || block.health == Health::GrownBad;
        if failed {
            block.health = Health::GrownBad;
            (first..first + self.slots_per_page).for_each(|at| block.content.mark_unreadable(at));
            self.counters.program_failures += 1;
        }
        self.counters.programs += 1;
        self.counters.bytes_in += u64::from(self.geometry.page_bytes);
        self.note(Operation::Program, at, span, None);
        Outcome { span, ok: !failed }
    }

    /// Programs the controller's `nth` mapping-table page, into blocks of its own that rotate over
    /// the planes; each is erased when it is full. Returns the end time.
    pub(crate) fn program_mapping(&mut self, now_ns: u64, nth: u64) -> u64 {
        let NandGeometry { pages_per_block, page_bytes, .. } = self.geometry;
        let planes = u64::from(self.geometry.planes());
        let (plane, page) = ((nth % planes) as u32, nth / planes % u64::from(pages_per_block));
        let at = BlockAddr { plane, block: 0 }.page(page as u32);
        let end_ns = self.occupancy.program(now_ns, at).end_ns;
        self.counters.programs += 1;
        self.counters.bytes_in += u64::from(page_bytes);
        if at.page + 1 == pages_per_block {
            self.occupancy.erase(end_ns, plane);
            self.counters.erases += 1;
        }
        end_ns
    }

    /// Erases a block. If the erase fails, the block is bad from then on.
    ///
    /// # Panics
    /// If the block is already bad.
    pub(crate) fn erase(&mut self, now_ns: u64, at: BlockAddr) -> Outcome {
        self.forget_done(now_ns);
        let span = self.occupancy.erase(now_ns, at.plane);
        let index = self.index(at);
        let block = &mut self.blocks[index];
        assert!(
            !matches!(block.health, Health::GrownBad | Health::FactoryBad),
            "erase of the bad block {at:?}"
        );
        block.erases += 1;
        let worn = block.erases > self.faults.endurance_erases;
        let chance = if worn { self.faults.worn_erase_fail } else { self.faults.erase_fail };
        let failed = self.erase_failures.next(chance);
        let content = std::mem::take(&mut block.content);
        let was_half_erased = block.health == Health::HalfErased;
        block.health = if failed { Health::GrownBad } else { Health::Good };
        self.counters.erase_failures += u64::from(failed);
        self.counters.erases += 1;
        let erased = Box::new(Erased { content, was_half_erased });
        self.note(Operation::Erase, at.page(0), span, Some(erased));
        Outcome { span, ok: !failed }
    }

    /// Senses a flash page and transfers all of it. After this, [`slot`](Self::slot) returns the content of its
    /// slots.
    #[inline]
    pub(crate) fn read(&mut self, now_ns: u64, at: PageAddr) -> u64 {
        let span = self.occupancy.read(now_ns, at);
        self.counters.bytes_out += u64::from(self.geometry.page_bytes);
        self.sensed(at);
        span.end_ns
    }

    /// Senses a flash page and transfers only its spare area. Returns the end time.
    pub(crate) fn read_spare(&mut self, now_ns: u64, at: PageAddr) -> u64 {
        let span = self.occupancy.read_spare(now_ns, at);
        self.sensed(at);
        span.end_ns
    }

    #[inline]
    fn sensed(&mut self, at: PageAddr) {
        self.counters.reads += 1;
        if self.read_failures.next(self.faults.uncorrectable) {
            let index = self.index(at.block);
            let first = at.page * self.slots_per_page;
            let content = &mut self.blocks[index].content;
            (first..first + self.slots_per_page).for_each(|at| content.mark_unreadable(at));
        }
    }

    /// Prefetches slots into the processor's cache: they are far apart in memory, and their loads
    /// overlap here.
    pub(crate) fn fetch(&self, slots: impl Iterator<Item = (BlockAddr, u32)>) {
        let word = |(at, slot)| self.block(at).content.word(slot);
        std::hint::black_box(slots.fold(0, |all, at| all ^ word(at)));
    }

    /// The content of slot `slot` of a block, without the time of the read.
    #[inline]
    pub(crate) fn slot(&self, at: BlockAddr, slot: u32) -> SlotRead<P> {
        let block = self.block(at);
        if block.health == Health::HalfErased {
            return SlotRead::Unreadable;
        }
        block.content.read(slot)
    }

    /// Whether slot `slot` of a block was programmed completely and can be read.
    pub(crate) fn is_whole(&self, at: BlockAddr, slot: u32) -> bool {
        self.block(at).content.is_whole(slot)
    }

    /// Counts a read that found only uncorrectable data.
    pub(crate) fn count_uncorrectable(&mut self) {
        self.counters.uncorrectable_reads += 1;
    }

    #[inline]
    fn note(
        &mut self,
        operation: Operation,
        at: PageAddr,
        span: Span,
        erased: Option<Box<Erased<P>>>,
    ) {
        let Span { start_ns, end_ns } = span;
        self.mutation_span = Some(match self.mutation_span {
            Some(whole) => {
                Span { start_ns: whole.start_ns.min(start_ns), end_ns: whole.end_ns.max(end_ns) }
            }
            None => span,
        });
        let info = InFlight { operation, at, start_ns, end_ns };
        self.in_flight.push_back(Unfinished { info, erased });
    }

    /// Forgets operations at the front of the queue that are done at `now_ns`.
    #[inline]
    fn forget_done(&mut self, now_ns: u64) {
        while self.in_flight.front().is_some_and(|first| first.info.end_ns <= now_ns) {
            let erased = self.in_flight.pop_front().and_then(|first| first.erased);
            if let Some(Erased { content, .. }) = erased.map(|erased| *erased)
                && content.has_memory()
                && self.recycled.len() < RECYCLED_MAX
            {
                self.recycled.push(content);
            }
        }
    }

    /// A mutation of the layer above starts: all operations submitted until
    /// [`end_mutation`](Self::end_mutation) belong to it.
    pub(crate) fn begin_mutation(&mut self) {
        self.mutation_span = None;
    }

    /// Cuts the power if the plan names this mutation. Returns whether it did.
    pub(crate) fn end_mutation(&mut self, now_ns: u64) -> bool {
        self.mutations += 1;
        let Some(plan) = &mut self.cut_plan else { return false };
        if plan.after_operations > 0 {
            plan.after_operations -= 1;
            return false;
        }
        let plan = *plan;
        self.cut_plan = None;
        let cut_at_ns = cut_at_ns(plan.fate, now_ns, self.mutation_span);
        self.power_cut(cut_at_ns, &mut |_| plan.fate);
        true
    }

    /// Cuts the power at `now_ns`: operations that have ended stay, those that have not started are
    /// undone, and `fate` decides about those in progress.
    pub(super) fn power_cut(&mut self, now_ns: u64, fate: &mut dyn FnMut(&InFlight) -> Fate) {
        // Fates are requested in the order of submission; operations are undone in reverse order.
        let fates: Vec<Fate> = self
            .in_flight
            .iter()
            .map(|Unfinished { info, .. }| match () {
                () if info.end_ns <= now_ns => Fate::Land,
                () if info.start_ns >= now_ns => Fate::Vanish,
                () => fate(info),
            })
            .collect();
        for fate in fates.into_iter().rev() {
            let Some(unfinished) = self.in_flight.pop_back() else { break };
            match fate {
                Fate::Land => {}
                Fate::Vanish => self.undo(unfinished),
                Fate::Tear => self.tear(&unfinished.info),
            }
        }
        self.occupancy.clear();
        self.power += 1;
    }

    fn undo(&mut self, unfinished: Unfinished<P>) {
        let InFlight { operation, at, .. } = unfinished.info;
        let index = self.index(at.block);
        let first = at.page * self.slots_per_page;
        let block = &mut self.blocks[index];
        match operation {
            Operation::Program => block.content.truncate(first),
            Operation::Erase => {
                let was_half_erased = unfinished.erased.is_some_and(|erased| {
                    block.content = erased.content;
                    erased.was_half_erased
                });
                block.erases -= 1;
                if was_half_erased && block.health == Health::Good {
                    block.health = Health::HalfErased;
                }
            }
        }
    }

    fn tear(&mut self, info: &InFlight) {
        let index = self.index(info.at.block);
        let slots_per_page = self.slots_per_page;
        let block = &mut self.blocks[index];
        match info.operation {
            // A torn page shows in one of two ways: as an error, or as wrong content.
            Operation::Program => {
                let first = info.at.page * slots_per_page;
                for slot in first..first + slots_per_page {
                    if (info.at.page + info.at.block.plane).is_multiple_of(2) {
                        block.content.mark_unreadable(slot);
                    } else {
                        block.content.mark_torn(slot);
                    }
                }
            }
            Operation::Erase => {
                block.content = Content::default();
                if block.health == Health::Good {
                    block.health = Health::HalfErased;
                }
            }
        }
    }

    /// Erase counts of all blocks.
    pub(super) fn wear(&self) -> Wear {
        let mut wear = Wear { min: u32::MAX, ..Wear::default() };
        let (mut sum, mut count) = (0u64, 0u64);
        for block in &self.blocks {
            match block.health {
                Health::FactoryBad => {
                    wear.factory_bad_blocks += 1;
                    continue;
                }
                Health::GrownBad => wear.grown_bad_blocks += 1,
                Health::Good | Health::HalfErased => {}
            }
            wear.min = wear.min.min(block.erases);
            wear.max = wear.max.max(block.erases);
            sum += u64::from(block.erases);
            count += 1;
        }
        if count == 0 {
            return Wear { min: 0, ..wear };
        }
        Wear { mean: sum as f64 / count as f64, ..wear }
    }
}
