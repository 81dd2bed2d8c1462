//! From the root to a leaf.
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageNo, Result};

use super::SPACE_PAGE;
use super::page::{Content, TreePage};
use crate::values::{Key, Value};

/// Where a tree's pages are found.
#[allow(async_fn_in_trait, reason = "engines live on one thread; their futures need not be Send")]
pub(crate) trait TreePages<V> {
    /// A page as it is now. It changes no more in the hands of who asked.
    async fn page(&self, page: PageNo) -> Result<Rc<TreePage<V>>>;

    /// Counts the changes of trees that brought keys to other pages.
    fn structure_version(&self) -> u64;
}

/// A leaf that was found.
struct Found<V> {
    leaf: Rc<TreePage<V>>,
    /// The key from which on others cover them.
    end: Option<Key>,
}

/// The leaf that covers `key`, all of it as of one moment.
async fn leaf<V: Value>(pages: &impl TreePages<V>, root: PageNo, key: &[u8]) -> Result<Found<V>> {
    'from_the_root: loop {
        let version = pages.structure_version();
        let (mut at, mut end) = (root, None);
        loop {
            let page = pages.page(at).await?;
            // Nodes that were read before may send elsewhere now.
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

/// The child that covers `key` and where it ends; `None` in a leaf.
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

/// The page is whole, and yet not what it should be.
pub(crate) fn broken(page: PageNo, what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("page {page} of the database {what}"))
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

/// Pages that are free, of `database_pages`. Nobody changes trees meanwhile.
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

/// Adds rows with keys from `from` on to `rows`: those of one leaf, before `to` where that is given, at most `most`. Where the
/// next ones begin, if there may be any.
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
