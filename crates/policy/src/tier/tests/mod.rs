//! Compares each tier with a naive one that follows its source line by line over a plain `Vec`: the same
//! pages and counts, step by step, with both page tables.
mod blocks;
mod slots;
mod told;

use super::{Admission, Found, TierCounts, TierSpec};
use crate::page_table::{DirectTable, SparseTable};
use blocks::{Blocks, Late, Slots};
use proptest::prelude::*;
use slots::{Naive, Ring};
use tantalum_base::PageNo;
use told::Media;

/// A request of the top tier.
#[derive(Clone, Copy, Debug)]
enum Step {
    Read(u64),
    Write(u64),
    Evict(u64),
}

fn steps(pages: u64) -> impl Strategy<Value = Vec<Step>> {
    let page = prop_oneof![0..pages, 0..pages.div_ceil(5)];
    let step = (page, 0..5_u8).prop_map(|(page, kind)| match kind {
        0 | 1 => Step::Read(page),
        2 | 3 => Step::Write(page),
        _ => Step::Evict(page),
    });
    prop::collection::vec(step, 1..400)
}

/// A naive tier.
trait Model {
    fn step(&mut self, step: Step) -> Option<Found>;
    /// The cached pages with their dirty flags, in any order.
    fn pages(&self) -> Vec<(u64, bool)>;
    fn counts(&self) -> TierCounts;
    /// Of each erased block, the number of its pages that were moved; `None` for a tier without blocks.
    fn moved(&self) -> Option<&[usize]> {
        None
    }
}

fn agree(text: &str, slots: u32, pages: u64, model: &mut impl Model, steps: &[Step]) {
    let spec = TierSpec::parse(text).unwrap();
    let mut tiers = [
        spec.build_over::<DirectTable>(slots, pages),
        spec.build_over::<SparseTable>(slots, u64::MAX),
    ];
    let is_told = tiers.iter_mut().all(|tier| tier.tell_operations());
    let mut media = [Media::default(), Media::default()];
    for (at, step) in steps.iter().enumerate() {
        let expected = model.step(*step);
        let cached = model.pages();
        for (tier, media) in tiers.iter_mut().zip(&mut media) {
            let found = match *step {
                Step::Read(page) => Some(tier.read(PageNo(page))),
                Step::Write(page) => {
                    tier.write(PageNo(page));
                    None
                }
                Step::Evict(page) => {
                    tier.evict(PageNo(page));
                    None
                }
            };
            assert_eq!(found, expected, "{text}, step {at}: {step:?}");
            assert_eq!(*tier.counts(), model.counts(), "{text}, step {at}: {step:?}");
            for page in 0..pages {
                let expected = cached.iter().any(|(cached, _)| *cached == page);
                assert_eq!(tier.contains(PageNo(page)), expected, "{text}, step {at}: page {page}");
            }
            let dirty = cached.iter().filter(|(_, dirty)| *dirty).count() as u64;
            assert_eq!(tier.dirty_pages(), dirty, "{text}, step {at}: {step:?}");
            if let Some(moved) = model.moved() {
                let of = |pages| moved.iter().filter(|moved| **moved == pages).count() as u64;
                let told = tier.blocks().expect("it has blocks").moved();
                let same = told.iter().enumerate().all(|(pages, blocks)| *blocks == of(pages));
                assert!(same, "{text}, step {at}: {told:?} and {moved:?}");
            }
            tier.validate();
            media.carry_out(&mut **tier, slots, is_told);
        }
    }
    for (tier, media) in tiers.iter_mut().zip(&mut media) {
        let (dirty, before) = (tier.dirty_pages(), tier.counts().disk_writes);
        tier.flush();
        assert_eq!((tier.dirty_pages(), tier.counts().disk_writes), (0, before + dirty));
        media.carry_out(&mut **tier, slots, is_told);
    }
}

const ADMISSIONS: [(&str, Admission); 3] =
    [("write", Admission::Write), ("read", Admission::Read), ("eviction", Admission::Eviction)];

#[test]
fn without_a_tier_every_request_goes_home() {
    let mut tier = TierSpec::parse("none").unwrap().build(10, 100);
    for page in [1, 1, 2] {
        assert_eq!(tier.read(PageNo(page)), Found::Missed);
        tier.write(PageNo(page));
    }
    let expected = TierCounts {
        reads: 3,
        writes: 3,
        disk_reads: 3,
        disk_writes: 3,
        seeks: 6,
        ..TierCounts::default()
    };
    assert_eq!((*tier.counts(), tier.contains(PageNo(1))), (expected, false));
}

proptest! {
    #[test]
    fn random_write_is_as_in_the_paper(
        steps in steps(40), slots in 1..12_u32, admission in 0..3_usize,
        coalesce: bool, dense: bool, piggyback: bool, track in 1..9_u64,
    ) {
        let (admit, admission) = ADMISSIONS[admission];
        let densest = coalesce && dense;
        let mut model = Naive {
            slots: slots as usize, admission, densest, coalesce, piggyback, track,
            pages: Vec::new(), units: Vec::new(), counts: TierCounts::default(),
        };
        let switch = |on: bool| if on { "on" } else { "off" };
        let text = format!(
            "write_cache:admit={admit},order={},coalesce={},piggyback={},track={track}",
            if densest { "densest" } else { "lru" }, switch(coalesce), switch(piggyback),
        );
        agree(&text, slots, 40, &mut model, &steps);
    }

    #[test]
    fn sequential_write_is_as_in_the_paper(
        steps in steps(40), slots in 1..12_usize, admission in 0..3_usize,
        coalesce: bool, piggyback: bool, track in 1..9_u64,
    ) {
        let (admit, admission) = ADMISSIONS[admission];
        let counts = TierCounts::default();
        let mut model = Ring {
            slots: vec![None; slots], next: 0, admission, coalesce, piggyback, track, counts,
        };
        let switch = |on: bool| if on { "on" } else { "off" };
        let text = format!(
            "write_cache:place=sequential,admit={admit},coalesce={},piggyback={},track={track}",
            switch(coalesce), switch(piggyback),
        );
        agree(&text, slots as u32, 40, &mut model, &steps);
    }

    #[test]
    fn the_indirect_use_is_as_in_the_dissertation(
        steps in steps(60), deletes in 0..8_usize, block in 1..6_u32,
    ) {
        let mut model = Slots::new(deletes, block as usize, 20);
        let text = format!("lpd:d={deletes},block={block},low=0.1,high=0.2");
        agree(&text, 20, 60, &mut model, &steps);
    }

    #[test]
    fn late_dropping_is_as_described(steps in steps(60), block in 1..6_u32, tenths in 2..10_u32) {
        let mut model = Late::new(block as usize, 20, f64::from(tenths) / 10.0);
        let text = format!("lazy:keep=0.{tenths},block={block},low=0.1,high=0.2");
        agree(&text, 20, 60, &mut model, &steps);
    }

    #[test]
    fn the_native_use_is_as_in_the_dissertation(steps in steps(60), block in 1..6_u32) {
        let mut model = Blocks::new(block as usize, 20);
        let text = format!("nfa:block={block},low=0.1,high=0.2");
        agree(&text, 20, 60, &mut model, &steps);
    }
}
