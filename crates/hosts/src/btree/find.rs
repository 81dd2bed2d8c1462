//! Search from the root to a leaf.
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageNo, Result};

use super::SPACE_PAGE;
use super::page::{Content, TreePage};
use crate::values::{Key, Value};

/// The source of a tree's pages.
#[allow(async_fn_in_trait, reason = "engines live on one thread; their futures need not be Send")]
pub(crate) trait TreePages<V> {
    /// The current state of a page. It does not change while the caller holds it.
    async fn page(&self, page: PageNo) -> Result<Rc<TreePage<V>>>;

    /// Counts the changes that moved keys to other pages.
    fn structure_version(&self) -> u64;
}

/// A leaf that a search found.
struct Found<V> {
    leaf: Rc<TreePage<V>>,
    /// The first key that other leaves cover.
    end: Option<Key>,
}

/// The leaf that covers `key`, with its content as of one moment.
async fn leaf<V: Value>(pages: &impl TreePages<V>, root: PageNo, key: &[u8]) -> Result<Found<V>> {
    'from_the_root: loop {
        let version = pages.structure_version();
        let (mut at, mut end) = (root, None);
        loop {
            let page = pages.page(at).await?;
            // Nodes read before this change may lead to the wrong page now.
            if pages.structure_version() != version {
                continue 'from_the_root;
            }
            match step(&page, key)? {
                Some((child, child_end)) => {
                    at = child;
                    end = child_end.cloned().or(end);
                }
                None => return Ok(Found { leaf: page, end }),
            }
        }
    }
}

/// The child that covers `key`, and the end of its keys; `None` in a leaf.
pub(super) fn step<'a, V: Value>(
    page: &'a TreePage<V>,
    key: &[u8],
) -> Result<Option<(PageNo, Option<&'a Key>)>> {
    match &page.content {
        Content::Leaf(_) => Ok(None),
        Content::Inner(children) => match children.child(key) {
            Some(child) => Ok(Some(child)),
            None => Err(broken(page.number, "is a node without children")),
        },
        Content::Space(_) | Content::Free { .. } => {
            Err(broken(page.number, "is no node of a tree"))
        }
    }
}

/// The error for a page that is whole but has unexpected content.
pub(crate) fn broken(page: PageNo, what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("page {page} of the database {what}"))
}

/// The page of the leaf that covers `key`.
pub(crate) async fn leaf_page<V: Value>(
    pages: &impl TreePages<V>,
    root: PageNo,
    key: &[u8],
) -> Result<PageNo> {
    Ok(leaf(pages, root, key).await?.leaf.number)
}

/// The row with `key`.
pub(crate) async fn find<V: Value>(
    pages: &impl TreePages<V>,
    root: PageNo,
    key: &[u8],
) -> Result<Option<V>> {
    match &leaf(pages, root, key).await?.leaf.content {
        Content::Leaf(rows) => Ok(rows.get(key).cloned()),
        _ => Ok(None),
    }
}

/// The number of free pages, of `database_pages`. Trees must not change meanwhile.
pub(crate) async fn free_pages<V: Value>(
    pages: &impl TreePages<V>,
    database_pages: u64,
) -> Result<u64> {
    let Content::Space(space) = pages.page(SPACE_PAGE).await?.content else {
        return Err(broken(SPACE_PAGE, "does not say which pages are free"));
    };
    let (mut free, mut next) = (database_pages - space.used, space.free);
    while let Some(page) = next {
        free += 1;
        next = match pages.page(page).await?.content {
            Content::Free { next } if free <= database_pages => next,
            _ => return Err(broken(page, "is listed as free and is not")),
        };
    }
    Ok(free)
}

/// Adds rows of one leaf to `rows`: those with keys from `from` on, before `to` if it is given, at most `most`. Returns the
/// key at which the next rows begin, if there may be any.
pub(crate) async fn scan_leaf<V: Value>(
    pages: &impl TreePages<V>,
    root: PageNo,
    (from, to): (&[u8], Option<&[u8]>),
    most: usize,
    rows: &mut Vec<(Key, V)>,
) -> Result<Option<Key>> {
    let found = leaf(pages, root, from).await?;
    if let Content::Leaf(entries) = &found.leaf.content {
        let first = entries.search(from).unwrap_or_else(|at| at);
        let within = |key: &Key| to.is_none_or(|to| **key < *to);
        let taken = entries.list()[first..].iter().take_while(|(key, _)| within(key)).take(most);
        rows.extend(taken.cloned());
    }
    Ok(found.end.filter(|end| to.is_none_or(|to| **end < *to)))
}
