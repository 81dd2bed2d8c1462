//! Ids that are text, as pages: numbered from 0 in the order in which they first come.
//!
//! Each text is kept, so that no two of them are ever the same page, as they could be by a hash.
use tantalum_base::FastMap;

/// The texts seen so far, in memory in proportion to their number and length.
#[derive(Debug, Default)]
pub(crate) struct TextIds {
    pages: FastMap<Box<[u8]>, u64>,
}

impl TextIds {
    /// The page of `text`.
    #[inline]
    pub(crate) fn page(&mut self, text: &[u8]) -> u64 {
        if let Some(&page) = self.pages.get(text) {
            return page;
        }
        let page = self.pages.len() as u64;
        self.pages.insert(text.into(), page);
        page
    }
}
