//! Checks both copies of the anchors. One copy is enough for recovery. Without any anchors, recovery scans every zone.
//! So damage to anchors affects nothing that is in force.
use std::collections::BTreeMap;
use tantalum_base::Result;
use tantalum_media::{AnchorCopies, ZoneMedia};
use tantalum_runtime::{DevicePart, Finding};

use crate::checkpoints::anchor_pages::{Era, Extent, Head, Read, decode, in_force};
use crate::ftl::Ftl;
use crate::recovery::SKIPPED_CHECKPOINTS;

const NAMES: [&str; 2] = ["first copy", "second copy"];

/// The result of checking the anchors.
#[derive(Default)]
pub(super) struct CheckedAnchors {
    /// The checkpoint that the era in force names.
    pub checkpoint: Option<u64>,
    /// The extents of its pages.
    pub extents: Vec<Extent>,
    pub damaged: Vec<Finding>,
}

impl<M: ZoneMedia> Ftl<M> {
    pub(super) async fn check_anchors(&self) -> Result<CheckedAnchors> {
        let copies = self.media.inspect_anchors().await?;
        Ok(copies.map(|copies| CheckedAnchors::of(&copies)).unwrap_or_default())
    }
}

impl CheckedAnchors {
    /// Checks the anchors of the era in force and of earlier eras, and finds those of which a copy is not whole. The
    /// last anchor is not checked, because a power cut may leave only one copy of it. At most as many anchors are
    /// checked as there are half of the places, because an era that never came into force may have overwritten older
    /// ones.
    fn of(copies: &AnchorCopies) -> Self {
        let mut known: BTreeMap<u64, Read> = BTreeMap::new();
        for (number, content) in copies.iter().flatten().flatten().flatten() {
            let Some(read) = decode(content) else { continue };
            if known.get(number).is_none_or(|known| known.head.era <= read.head.era) {
                known.insert(*number, read);
            }
        }
        let places = copies[0].len() as u64;
        let Some(era) = in_force(&known) else { return CheckedAnchors::default() };
        let last = era.last().map_or(0, |(number, _)| *number);
        let Era { checkpoint, extents, .. } = Era::new(&era);
        let mut damaged = Vec::new();
        for number in (last + 1).saturating_sub(places / 2).max(1)..last {
            let (one, next) = (known.get(&number), &known.get(&(number + 1)));
            if !next.is_some_and(|next| was_written(one.map(|one| &one.head), &next.head)) {
                continue;
            }
            let place = (number % places) as usize;
            for (copy, name) in copies.iter().zip(NAMES) {
                let is_whole = |(found, _): &(u64, Vec<u8>)| *found == number;
                let at = || format!("anchor {number}, {name}");
                match &copy[place] {
                    Ok(found) if found.as_ref().is_some_and(is_whole) => {}
                    Ok(_) => {
                        let problem = "it is damaged, or was never written: the other copy is used";
                        damaged.push(Finding::not_in_force(DevicePart::Log, at(), problem));
                    }
                    Err(error) => damaged.push(Finding::unread(DevicePart::Log, at(), error)),
                }
            }
        }
        CheckedAnchors { checkpoint: Some(checkpoint), extents, damaged }
    }
}

/// Whether both copies of an anchor were durable when the `next` anchor was begun. They were if one run of the device
/// wrote both anchors, one after the other: a recovery between them would have skipped checkpoint numbers.
fn was_written(anchor: Option<&Head>, next: &Head) -> bool {
    let Some(anchor) = anchor else { return next.index > 0 };
    let since = next.checkpoint.wrapping_sub(anchor.checkpoint);
    match anchor.era == next.era {
        true => anchor.index.checked_add(1) == Some(next.index),
        false => next.index == 0 && (1..SKIPPED_CHECKPOINTS).contains(&since),
    }
}
