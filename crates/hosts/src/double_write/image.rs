//! Pages without rows: the content of a page is only its number and its version.
//!
//! The stamp of each of its device pages names that device page of the page's home (also for a copy in the double-write area) and
//! the version of the whole page. So it identifies the page and shows whether it is whole, as a header and a checksum over the
//! page would, and nothing needs to be remembered beside the device.
use std::rc::Rc;
use tantalum_base::{PageNo, PageRange, Stamp};

use crate::btree::Lsn;
use crate::database::{Homed, Layout};
use crate::records::{Codec, FRAME_BYTES, PAGE_ROOM, Record};

/// A page: its number in the database and its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    pub(super) page: PageNo,
    pub(super) version: u64,
    device_pages: u32,
}

impl Image {
    pub(super) fn new(page: PageNo, version: u64, device_pages: u32) -> Self {
        Image { page, version, device_pages }
    }
}

impl Record for Image {
    fn content_bytes(&self) -> usize {
        self.device_pages as usize * PAGE_ROOM - FRAME_BYTES
    }

    fn mark(&self) -> u8 {
        1
    }
}

impl Homed for Image {
    type Record = Image;

    fn blank() -> Self {
        Image::new(PageNo(0), 0, 1)
    }

    fn number(&self) -> PageNo {
        self.page
    }

    fn lsn(&self) -> Lsn {
        Lsn(self.version)
    }

    fn record(&self) -> Rc<Image> {
        Rc::new(*self)
    }

    fn from_record(record: &Rc<Image>) -> Option<Self> {
        Some(**record)
    }
}

/// Images as stamps.
#[derive(Debug)]
pub struct Images {
    layout: Layout,
    device_pages: u32,
}

impl Images {
    pub(super) fn new(layout: Layout, device_pages: u32) -> Self {
        Images { layout, device_pages }
    }

    fn home(&self, page: PageNo) -> PageRange {
        self.layout.home(page)
    }
}

impl Codec for Images {
    type Page = Stamp;
    type Record = Image;

    fn encode(&self, _first: PageNo, records: &[Rc<Image>]) -> Vec<Stamp> {
        let stamps = records.iter().flat_map(|image| {
            self.home(image.page).iter().map(|page| Stamp::new(page, image.version))
        });
        stamps.collect()
    }

    fn decode(&self, _offset: u16, stamps: &[Stamp]) -> Option<Rc<Image>> {
        let first = stamps.first()?;
        let page = self.layout.page_at(PageNo(u64::from(first.page_plus_one).checked_sub(1)?))?;
        let home = self.home(page);
        let expected = home.iter().map(|page| Stamp::new(page, first.count));
        let whole = home.pages == stamps.len() as u64 && expected.eq(stamps.iter().copied());
        whole.then(|| Rc::new(Image::new(page, first.count, self.device_pages)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::Payload;

    use crate::database::LogPlace;
    use crate::double_write::{Form, PageOptions};

    #[test]
    fn torn_pages_are_told_from_whole_ones() {
        let options = PageOptions {
            form: Form::On,
            database_pages: 40,
            device_pages_per_page: 4,
            pool_pages: 16,
            batch_pages: 4,
            metadata_per_page: 0.0,
            metadata_pages: 1,
        };
        let layout = Layout::new(&options, LogPlace::Nowhere);
        let images = Images::new(layout, 4);
        let encode =
            |version| images.encode(PageNo(0), &[Rc::new(Image::new(PageNo(7), version, 4))]);
        let (old, new) = (encode(7), encode(8));
        assert_eq!(*images.decode(0, &old).unwrap(), Image::new(PageNo(7), 7, 4));
        assert!(images.decode(0, &[Stamp::zero(); 4]).is_none());
        for cut in 1..4 {
            let torn = [&new[..cut], &old[cut..]].concat();
            assert!(images.decode(0, &torn).is_none(), "{cut} new pages");
            let half_blank = [&vec![Stamp::zero(); cut][..], &old[cut..]].concat();
            assert!(images.decode(0, &half_blank).is_none(), "{cut} blank pages");
        }
    }
}
