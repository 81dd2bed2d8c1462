//! A database page's content: the stamps of its device pages.
//!
//! Each stamp names the device page of the page's home, also where it lies in the double-write area,
//! and the version of the whole page. So it tells, as a header and a checksum over the page would,
//! which page it is and whether it is whole.
use tantalum_base::{PageNo, PageRange, Payload, Stamp};

/// What a page reads as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Image {
    /// Never written.
    Blank,
    /// All of one version of the page whose home begins at `home`.
    Whole {
        /// First device page of its home.
        home: PageNo,
        /// The how-many-th content.
        version: u64,
    },
    /// Of several versions, or of several pages.
    Torn,
}

/// The content of version `version` of the page with `home`, appended to `out`.
pub(super) fn push(home: PageRange, version: u64, out: &mut Vec<Stamp>) {
    out.extend(home.iter().map(|page| Stamp::new(page, version)));
}

/// What the stamps of one page say.
pub(super) fn read(stamps: &[Stamp]) -> Image {
    let first = stamps[0];
    if stamps.iter().all(|stamp| *stamp == Stamp::zero()) {
        return Image::Blank;
    }
    let Some(home) = first.page_plus_one.checked_sub(1) else { return Image::Torn };
    let home = PageRange::new(PageNo(u64::from(home)), stamps.len() as u64);
    let whole =
        home.iter().zip(stamps).all(|(page, stamp)| *stamp == Stamp::new(page, first.count));
    match whole {
        true => Image::Whole { home: home.first, version: first.count },
        false => Image::Torn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn torn_pages_are_told_from_whole_ones() {
        let home = PageRange::new(PageNo(40), 4);
        let (mut old, mut new) = (Vec::new(), Vec::new());
        push(home, 7, &mut old);
        push(home, 8, &mut new);
        assert_eq!(read(&old), Image::Whole { home: PageNo(40), version: 7 });
        assert_eq!(read(&[Stamp::zero(); 4]), Image::Blank);
        for cut in 1..4 {
            let torn = [&new[..cut], &old[cut..]].concat();
            assert_eq!(read(&torn), Image::Torn, "{cut} new pages");
            let half_blank = [&vec![Stamp::zero(); cut][..], &old[cut..]].concat();
            assert_eq!(read(&half_blank), Image::Torn, "{cut} blank pages");
        }
    }
}
