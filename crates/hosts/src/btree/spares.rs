//! Copies of leaves in the memory of those that earlier copies took the place of.
use std::cell::RefCell;
use std::rc::Rc;

use super::page::{Content, TreePage};
use crate::values::Value;

/// Leaves that are kept at the most.
const LEAVES_MAX: usize = 64;

/// Leaves that nobody sees any more.
pub(crate) struct Spares<V>(RefCell<Vec<Rc<TreePage<V>>>>);

impl<V> Default for Spares<V> {
    fn default() -> Self {
        Spares(RefCell::default())
    }
}

impl<V: Value> Spares<V> {
    /// A copy of a page, to be changed.
    pub(super) fn copy(&self, page: &TreePage<V>) -> Rc<TreePage<V>> {
        let spare = match &page.content {
            Content::Leaf(_) => self.0.borrow_mut().pop(),
            _ => None,
        };
        let Some(mut copy) = spare else { return Rc::new(page.clone()) };
        let held = Rc::make_mut(&mut copy);
        (held.number, held.lsn, held.device_pages) = (page.number, page.lsn, page.device_pages);
        match (&mut held.content, &page.content) {
            (Content::Leaf(rows), Content::Leaf(from)) => rows.clone_from(from),
            (content, from) => content.clone_from(from),
        }
        copy
    }

    /// Keeps a page that another one took the place of, if it is of use.
    pub(crate) fn keep(&self, page: Rc<TreePage<V>>) {
        let mut spares = self.0.borrow_mut();
        let unseen = Rc::strong_count(&page) == 1 && Rc::weak_count(&page) == 0;
        if unseen && matches!(page.content, Content::Leaf(_)) && spares.len() < LEAVES_MAX {
            spares.push(page);
        }
    }
}
