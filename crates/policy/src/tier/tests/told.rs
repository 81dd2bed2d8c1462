//! Carries out the recorded operations of a tier on a flash of plain slots: every read finds its page, and the
//! operations match the counts.
use crate::tier::{MiddleTier, Operation, TierCounts, TierSpec};
use std::collections::BTreeMap;
use tantalum_base::PageNo;

/// The page in each slot, and the number of operations so far.
#[derive(Default)]
pub(super) struct Media {
    slots: BTreeMap<u32, PageNo>,
    flash_reads: u64,
    flash_writes: u64,
    home_reads: u64,
    home_writes: u64,
}

impl Media {
    /// Carries out the operations that `tier` recorded, on a flash of `slots` slots; none if it
    /// does not record.
    pub(super) fn carry_out(&mut self, tier: &mut dyn MiddleTier, slots: u32, is_told: bool) {
        let mut operations = Vec::new();
        tier.take_operations(&mut operations);
        for operation in operations {
            match operation {
                Operation::ReadFlash { slot, page } => {
                    assert_eq!(self.slots.get(&slot), Some(&page), "{operation:?}");
                    self.flash_reads += 1;
                }
                Operation::WriteFlash { slot, page } => {
                    assert!(slot < slots, "{operation:?}");
                    self.slots.insert(slot, page);
                    self.flash_writes += 1;
                }
                Operation::ReadHome { .. } => self.home_reads += 1,
                Operation::WriteHome { .. } => self.home_writes += 1,
                Operation::Destage { slot, page } => {
                    assert_eq!(self.slots.get(&slot), Some(&page), "{operation:?}");
                    self.flash_reads += 1;
                    self.home_writes += 1;
                }
            }
        }
        let TierCounts { flash_reads, disk_reads, disk_writes, .. } = *tier.counts();
        let flash_writes =
            tier.counts().flash_random_writes + tier.counts().flash_sequential_writes;
        let counted = [flash_reads, flash_writes, disk_reads, disk_writes];
        let told = [self.flash_reads, self.flash_writes, self.home_reads, self.home_writes];
        assert_eq!(told, if is_told { counted } else { [0; 4] });
    }
}

#[test]
fn tiers_that_know_a_slot_for_each_page_tell_their_operations() {
    let tells = |text| TierSpec::parse(text).unwrap().build(4, 100).tell_operations();
    let known =
        ["none", "loc", "glb", "write_cache:piggyback=on", "write_cache:coalesce=on,track=1"];
    assert!(known.into_iter().chain(["write_cache:place=sequential,coalesce=on"]).all(tells));
    assert!(!["write_cache:coalesce=on", "bl", "lpd", "nfa", "lazy"].into_iter().any(tells));
    let mut tier = TierSpec::parse("none").unwrap().build(4, 100);
    let (page, mut operations) = (PageNo(1), Vec::new());
    tier.read(page);
    tier.take_operations(&mut operations);
    assert!(operations.is_empty(), "nobody has asked for them");
    tier.tell_operations();
    tier.read(page);
    tier.write(page);
    tier.take_operations(&mut operations);
    assert_eq!(operations, [Operation::ReadHome { page }, Operation::WriteHome { page }]);
}
