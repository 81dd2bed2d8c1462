//! The location of a page. Pages run along a track, then over the heads of a cylinder, then from
//! the outermost cylinder inwards.
use super::DiskOptions;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Result};

/// The location of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    /// Counted from 0, the outermost.
    pub cylinder: u32,
    /// Angle at which the page begins, as a share of a revolution, 0 to 1.
    pub angle: f64,
    /// Time for one page to pass under the head.
    pub page_ns: u64,
}

/// The zones of tracks.
pub(super) struct Geometry {
    /// Number of pages per track in each zone.
    track_pages: Vec<u64>,
    cylinders_per_zone: u64,
    heads: u64,
    rotation_ns: u64,
    /// Offset of the start of each track to that of the previous one, as a share of a revolution,
    /// so that the head reaches the next track in time.
    skew: f64,
}

impl Geometry {
    pub(super) fn new(options: &DiskOptions) -> Result<Self> {
        options.check()?;
        let (outer, inner) = (options.outer_bytes_per_second, options.inner_bytes_per_second);
        let steps = u64::from(options.zones - 1).max(1);
        let track_pages: Vec<u64> = (0..u64::from(options.zones))
            .map(|zone| {
                let bytes_per_second = outer - (outer - inner) * zone / steps;
                let bytes = bytes_per_second as f64 * (options.rotation_ns as f64 / 1e9);
                (bytes / PAGE_BYTES as f64) as u64
            })
            .collect();
        let heads = u64::from(options.heads);
        let cylinder_of_each = track_pages.iter().sum::<u64>() * heads;
        if track_pages.contains(&0) {
            let context = format!("a track is shorter than a page: {options:?}");
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        Ok(Geometry {
            track_pages,
            cylinders_per_zone: options.pages.div_ceil(cylinder_of_each),
            heads,
            rotation_ns: options.rotation_ns,
            skew: (options.seek_track_ns as f64 / options.rotation_ns as f64).fract(),
        })
    }

    /// Number of cylinders of the whole disk.
    pub(super) fn cylinders(&self) -> u64 {
        self.cylinders_per_zone * self.track_pages.len() as u64
    }

    /// The location of `page`, which must lie on the disk.
    pub(super) fn place(&self, page: u64) -> Place {
        let mut rest = page;
        let mut zone = 0;
        let tracks = self.cylinders_per_zone * self.heads;
        while rest >= self.track_pages[zone] * tracks && zone + 1 < self.track_pages.len() {
            rest -= self.track_pages[zone] * tracks;
            zone += 1;
        }
        let track_pages = self.track_pages[zone];
        let track = zone as u64 * tracks + rest / track_pages;
        let along = (rest % track_pages) as f64 / track_pages as f64;
        Place {
            cylinder: (track / self.heads) as u32,
            angle: (along + track as f64 * self.skew).fract(),
            page_ns: self.rotation_ns / track_pages,
        }
    }
}
