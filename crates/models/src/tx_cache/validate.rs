//! Checks that NVRAM and its indexes agree, for tests.
use tantalum_base::{PageNo, Payload};
use tantalum_media::ZoneMedia;
use tantalum_runtime::Runtime;

use super::device::TxCache;
use super::lists::List;
use super::metadata::{NONE, PagePlace, TxState};
use super::state::{CacheState, Phase, Use};

impl<R: Runtime, M: ZoneMedia> TxCache<R, M> {
    /// Panics if the structures of the cache are inconsistent; the FTL may be at work.
    pub fn validate_cache(&self) {
        let state = self.state.borrow();
        state.validate_mapping();
        state.validate_places();
        state.validate_transactions();
        state.validate_version_chains();
    }
}

impl<P: Payload> CacheState<P> {
    /// Each entry of the mapping leads to a header of that page, which is current.
    fn validate_mapping(&self) {
        let mut in_force = 0;
        self.nvram.mapping.for_each(|page, header| {
            in_force += 1;
            assert_eq!(self.nvram.header(*header).page, PageNo(u64::from(page)));
            let usage = self.headers[*header as usize].usage;
            assert!(
                matches!(usage, Use::Committed | Use::GoingHome | Use::Lost),
                "page {page}: {usage:?}"
            );
        });
        let count = |usage| self.headers.iter().filter(|header| header.usage == usage).count();
        assert_eq!(in_force, count(Use::Committed) + count(Use::GoingHome) + count(Use::Lost));
        assert_eq!(self.going_home.len(), count(Use::GoingHome) + count(Use::Superseded));
        assert_eq!(self.in_force() as usize, count(Use::Committed));
        assert_eq!(self.lists.len(List::Uncommitted) as usize, self.uncommitted_in_frames());
    }

    /// Number of uncommitted pages in frames that are not being moved to the extended cache.
    fn uncommitted_in_frames(&self) -> usize {
        let numbered = (0u32..).zip(&self.headers);
        let waits = |(number, header): &(u32, &super::state::HeaderState)| {
            header.usage == Use::Uncommitted
                && matches!(self.nvram.header(*number).place, PagePlace::Frame(_))
        };
        numbered.filter(waits).count()
    }

    /// Each frame, each slot of the extended cache and each header is either free or used once.
    fn validate_places(&self) {
        let mut frames = vec![0; self.nvram.frames.slots() as usize];
        let extended_pages = self.nvram.headers.slots() - self.nvram.frames.slots();
        let mut extended = vec![0; extended_pages as usize];
        self.free_frames.iter().for_each(|frame| frames[*frame as usize] += 1);
        self.free_extended.iter().for_each(|place| extended[*place as usize] += 1);
        let (mut free, mut uncommitted, mut leaving, mut going) = (0, 0, 0, 0);
        for (number, header) in (0u32..).zip(&self.headers) {
            let open = matches!(header.usage, Use::Uncommitted | Use::Spilling);
            let on_its_way = matches!(header.usage, Use::GoingHome | Use::Superseded);
            if header.usage == Use::Free {
                free += 1;
                continue;
            }
            match self.nvram.header(number).place {
                PagePlace::Frame(frame) => {
                    frames[frame as usize] += 1;
                    uncommitted += u32::from(open);
                    going += u32::from(on_its_way);
                }
                PagePlace::Extended(place) => {
                    extended[place as usize] += 1;
                    leaving += u32::from(!open && header.usage != Use::Lost);
                }
            }
        }
        // Pages being moved to the extended cache already have their slots there.
        let taken = extended.iter().filter(|uses| **uses == 0).count() as u32;
        assert!(frames.iter().all(|uses| *uses == 1), "{frames:?}");
        assert!(extended.iter().all(|uses| *uses <= 1) && taken == self.spilling, "{extended:?}");
        assert_eq!(free, self.free_headers.len());
        assert_eq!(
            (uncommitted, leaving, going),
            (self.uncommitted_frames, self.extended_leaving, self.going_frames)
        );
    }

    /// Each chain contains the pages of its transaction, and each header matches its phase.
    fn validate_transactions(&self) {
        let mut held = 0;
        for (number, transaction) in (0u32..).zip(&self.transactions) {
            let header = self.nvram.tx_header(number);
            let expected = match transaction.phase {
                Phase::Free => TxState::Free,
                Phase::Open => TxState::Running,
                Phase::Committed => TxState::Commit,
            };
            assert_eq!(header.state(), expected, "Tx Header {number}");
            if transaction.phase != Phase::Free {
                assert_eq!(self.by_id.get(&transaction.id), Some(&number));
            }
            if transaction.phase == Phase::Open {
                let chain = self.nvram.chain(header.first);
                assert_eq!(chain.len() as u32, transaction.pages);
                for page_header in chain {
                    let stored = self.nvram.header(page_header);
                    assert_eq!(stored.transaction, number);
                    assert_eq!(self.holders.get(&stored.page), Some(&page_header));
                    held += 1;
                }
            }
        }
        assert_eq!(held, self.holders.len());
        self.validate_held_headers();
        let open = |transaction: &&super::state::Transaction| transaction.phase == Phase::Open;
        assert_eq!(self.transactions.iter().filter(open).count() as u32, self.open);
        let free = |header: &&super::state::HeaderState| header.usage == Use::Free;
        assert!(self.headers.iter().filter(free).all(|header| header.owner == NONE));
    }

    /// The counts of pages that keep the header of a committed transaction are correct.
    fn validate_held_headers(&self) {
        let mut leaving = 0;
        for (number, transaction) in (0u32..).zip(&self.transactions) {
            let owned = || self.headers.iter().filter(|header| header.owner == number);
            let staying = owned().filter(|header| header.usage == Use::Committed).count();
            if transaction.phase == Phase::Committed {
                assert_eq!(transaction.held_by(), (owned().count() as u32, staying as u32));
                leaving += u32::from(staying == 0);
            }
        }
        assert_eq!(self.headers_leaving, leaving);
    }

    /// Each version points to the one that was current before it. That one is still current if
    /// nothing was committed in between. Once the version that points to it is current, it is free,
    /// or becomes free when it has arrived at home.
    fn validate_version_chains(&self) {
        for (number, header) in (0u32..).zip(&self.headers) {
            if matches!(header.usage, Use::Free | Use::Superseded) {
                continue;
            }
            let stored = self.nvram.header(number);
            if matches!(header.usage, Use::Uncommitted | Use::Spilling) {
                let in_force = self.nvram.mapped(stored.page);
                let before = in_force.filter(|at| self.headers[*at as usize].at < header.at);
                if let Some(before) = before {
                    assert_eq!(stored.previous, before, "open version {number}");
                }
            } else if stored.previous != NONE {
                let previous = &self.headers[stored.previous as usize];
                let replaced = matches!(previous.usage, Use::Free | Use::Superseded);
                assert!(replaced || previous.at >= header.at, "version {number} in force");
            }
        }
    }
}
