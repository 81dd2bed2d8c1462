//! Objects as pages: one page each, whatever their sizes, or as many pages as their sizes need.
use crate::event::PageEvent;
use tantalum_base::{Error, ErrorKind, FastMap, PageNo, Result};

/// The pages of an object of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Objects {
    /// One page: ratios count objects.
    #[default]
    OnePage,
    /// As many pages as its size needs: ratios count bytes.
    AsPages,
}

impl Objects {
    /// `one-page` or `as-pages`.
    ///
    /// # Errors
    /// `InvalidInput` for any other word.
    pub fn parse(text: &str) -> Result<Objects> {
        match text {
            "one-page" => Ok(Objects::OnePage),
            "as-pages" => Ok(Objects::AsPages),
            _ => Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "{text:?} is not a way to make pages of objects; accepted: one-page, as-pages"
                ),
            )),
        }
    }
}

/// All objects are smaller than this.
const OBJECT_BYTES_END: u64 = 1 << 40;

/// Lays objects out in pages, in the order of first occurrence.
///
/// Memory grows with the number of objects. An object that outgrows its pages gets new ones behind all others.
#[derive(Debug)]
pub(crate) struct ObjectPages {
    page_bytes: u64,
    places: FastMap<u64, Place>,
    end: u64,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    first: u64,
    pages: u32,
}

impl ObjectPages {
    /// A layout with pages of `page_bytes` bytes.
    pub(crate) fn new(page_bytes: u32) -> ObjectPages {
        ObjectPages { page_bytes: u64::from(page_bytes), places: FastMap::default(), end: 0 }
    }

    /// `event`, whose page is an object's number, for the pages that `bytes` of that object need. If `bytes` is 0, as
    /// in lines that only query or delete, these are the pages that the object has.
    #[inline]
    pub(crate) fn event(&mut self, event: PageEvent, bytes: u64) -> Result<PageEvent, String> {
        let Some((PageNo(object), _)) = event.range() else { return Ok(event) };
        if bytes >= OBJECT_BYTES_END {
            return Err(format!("an object of {bytes} bytes: none has 2^40"));
        }
        let pages = u32::try_from(bytes.div_ceil(self.page_bytes).max(1));
        let pages = pages.map_err(|_| "an object of over 2^32 pages".to_owned())?;
        let known = self.places.get(&object).copied();
        let (place, pages) = match known {
            Some(place) if bytes == 0 => (place, place.pages),
            Some(place) if pages <= place.pages => (place, pages),
            _ => {
                let place = Place { first: self.end, pages };
                self.end += u64::from(pages);
                self.places.insert(object, place);
                (place, pages)
            }
        };
        Ok(event.at(PageNo(place.first), pages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_as_many_pages_as_it_needs_and_moves_where_it_outgrows_them() {
        let mut objects = ObjectPages::new(4096);
        let mut read = |object, bytes| {
            let event = objects.event(PageEvent::one(PageNo(object), false), bytes).unwrap();
            event.range().map(|(page, pages)| (page.0, pages)).unwrap()
        };
        assert_eq!(read(u64::MAX, 8193), (0, 3));
        assert_eq!(read(7, 1), (3, 1));
        assert_eq!(read(u64::MAX, 0), (0, 3), "a size that is not told");
        assert_eq!(read(u64::MAX, 4096), (0, 1), "a part of it");
        assert_eq!(read(7, 4097), (4, 2), "it grew");
        assert_eq!(read(7, 1), (4, 1));
        assert_eq!(read(8, 0), (6, 1));
        let event = PageEvent::one(PageNo(1), true);
        assert!(objects.event(event, 1 << 40).unwrap_err().contains("2^40"));
        assert_eq!(objects.event(PageEvent::Commit, 9), Ok(PageEvent::Commit));
    }
}
