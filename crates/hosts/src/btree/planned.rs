//! A page of a plan: its current state, and its changes.
use std::rc::Rc;

use super::change::{Change, PageChanges};
use super::page::{Content, Lsn, Sizes, TreePage};
use crate::values::Value;

/// A page that a plan has looked at.
///
/// Most plans change one row of a leaf. That change is applied only when it takes effect: usually nothing else holds the page
/// then, and it can be changed in place. Other changes are applied to a copy.
pub(super) struct Planned<V> {
    /// The page of the source until it is changed, then a private copy.
    page: Rc<TreePage<V>>,
    /// The changes, in the order in which they were made.
    changes: Vec<Change<V>>,
    /// Set if the only change is not applied yet: the sizes of the page once it is.
    ahead: Option<Sizes>,
}

impl<V: Value> Planned<V> {
    pub(super) fn new(page: Rc<TreePage<V>>) -> Self {
        Planned { page, changes: Vec::new(), ahead: None }
    }

    pub(super) fn is_changed(&self) -> bool {
        !self.changes.is_empty()
    }

    /// The page. If it is a leaf, one change of a row may not be applied yet.
    pub(super) fn page(&self) -> &TreePage<V> {
        &self.page
    }

    /// The whole content, with the changes applied.
    pub(super) fn content(&mut self) -> &Content<V> {
        self.catch_up();
        &self.page.content
    }

    /// The number of its entries and their bytes, with the changes.
    pub(super) fn sizes(&self) -> Sizes {
        self.ahead.unwrap_or_else(|| self.page.content.sizes())
    }

    /// Changes the page. Returns `false` if it does not accept that change.
    pub(super) fn change(&mut self, change: Change<V>) -> bool {
        if !self.is_changed() {
            self.ahead = change.sizes_of_leaf(&self.page.content);
            if self.ahead.is_some() {
                self.changes.push(change);
                return true;
            }
        }
        self.catch_up();
        if !change.apply(&mut Rc::make_mut(&mut self.page).content) {
            return false;
        }
        // Changes that are replaced by new content need no log record.
        if matches!(change, Change::Content(_)) {
            self.changes.clear();
        }
        self.changes.push(change);
        true
    }

    /// The changes to record in a log: the whole content if the page has not changed since `whole_before`.
    pub(super) fn changes(&self, whole_before: Lsn) -> PageChanges<V> {
        let after = self.page.lsn;
        let changes = match after < whole_before {
            true => {
                let mut content = self.page.content.clone();
                if self.ahead.is_some() {
                    make(&self.changes, &mut content);
                }
                vec![Change::Content(content)]
            }
            false => self.changes.clone(),
        };
        PageChanges { page: self.page.number, after, changes }
    }

    /// Puts the new content into the page's `frame` in the pool.
    pub(super) fn take_effect(self, lsn: Lsn, frame: &mut Rc<TreePage<V>>) {
        *frame = self.page;
        // A task that is reading the page or writing it home keeps the old content.
        let page = Rc::make_mut(frame);
        page.lsn = lsn;
        if self.ahead.is_some() {
            make(&self.changes, &mut page.content);
        }
    }

    /// Applies the delayed change, on a copy if others hold the page.
    fn catch_up(&mut self) {
        if self.ahead.take().is_some() {
            make(&self.changes, &mut Rc::make_mut(&mut self.page).content);
        }
    }
}

/// Applies changes that were found to be possible.
fn make<V: Value>(changes: &[Change<V>], content: &mut Content<V>) {
    for change in changes {
        let made = change.apply(content);
        debug_assert!(made, "{change:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btree::Entries;
    use crate::values::{Key, ValueStamp};
    use tantalum_base::{PageNo, Rng};

    fn leaf(rows: &[u8]) -> Rc<TreePage<ValueStamp>> {
        let value = |row: &u8| ValueStamp { bytes: u32::from(*row), count: 1 };
        let rows = rows.iter().map(|row| (Key::from([*row]), value(row))).collect();
        let content = Content::Leaf(Entries::new(rows));
        Rc::new(TreePage { number: PageNo(7), lsn: Lsn(1), device_pages: 1, content })
    }

    fn put(row: u8, bytes: u32) -> Change<ValueStamp> {
        Change::Put(Key::from([row]), ValueStamp { bytes, count: 2 })
    }

    #[test]
    fn a_page_that_nobody_else_sees_is_changed_in_place_and_others_keep_theirs() {
        for seen in [false, true] {
            let mut frame = leaf(&[1, 3]);
            let before = Rc::as_ptr(&frame);
            let reader = seen.then(|| Rc::clone(&frame));
            let mut planned = Planned::new(Rc::clone(&frame));
            assert!(planned.change(put(2, 9)));
            assert_eq!(*frame, *leaf(&[1, 3]), "nothing is changed before it takes effect");
            planned.take_effect(Lsn(5), &mut frame);
            assert_eq!(Rc::as_ptr(&frame) == before, !seen);
            assert_eq!((frame.lsn, frame.content.sizes().entries), (Lsn(5), 3));
            assert!(reader.is_none_or(|reader| *reader == *leaf(&[1, 3])));
        }
    }

    /// The pool may have evicted the page and be about to load it into a new frame.
    #[test]
    fn a_frame_that_lost_its_page_meanwhile_gets_all_of_it() {
        let page = leaf(&[1, 3]);
        let mut planned = Planned::new(Rc::clone(&page));
        assert!(planned.change(Change::Remove(Key::from([1]))));
        let mut frame = leaf(&[]);
        planned.take_effect(Lsn(5), &mut frame);
        assert_eq!(frame.content, leaf(&[3]).content);
        assert_eq!(*page, *leaf(&[1, 3]));
    }

    #[test]
    fn changes_come_to_the_same_however_they_are_made() {
        let mut rng = Rng::new(1);
        for round in 0..2_000 {
            let rows: Vec<u8> = (0..20).filter(|_| rng.below(2) == 0).collect();
            let (mut frame, mut expected) = (leaf(&rows), (*leaf(&rows)).clone());
            let mut planned = Planned::new(Rc::clone(&frame));
            for _ in 0..1 + rng.below(3) {
                let row = rng.below(20) as u8;
                let change = match rng.below(2) {
                    0 => put(row, rng.below(100) as u32),
                    _ => Change::Remove(Key::from([row])),
                };
                let taken = change.apply(&mut expected.content);
                assert_eq!(planned.change(change), taken, "round {round}");
                assert_eq!(planned.sizes(), expected.content.sizes(), "round {round}");
                if rng.below(4) == 0 {
                    assert_eq!(*planned.content(), expected.content, "round {round}");
                }
            }
            if planned.is_changed() {
                let whole = planned.changes(Lsn(2)).changes;
                assert_eq!(whole, [Change::Content(expected.content.clone())], "round {round}");
                planned.take_effect(Lsn(5), &mut frame);
                assert_eq!(frame.content, expected.content, "round {round}");
            }
        }
    }
}
