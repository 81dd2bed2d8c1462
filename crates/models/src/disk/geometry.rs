//! Where a page lies. Pages run along a track, over the heads of a cylinder, and from the
//! outermost cylinder inwards.
use super::DiskOptions;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Result};

/// A page's place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    /// From 0, the outermost, on.
    pub cylinder: u32,
    /// Share of a turn, 0 to 1, at which the page begins.
    pub angle: f64,
    /// Time in which one page passes under the head.
    pub page_ns: u64,
}

/// Zones of tracks.
pub(super) struct Geometry {
    /// Pages of a track, a zone.
    track_pages: Vec<u64>,
    cylinders_per_zone: u64,
    heads: u64,
    rotation_ns: u64,
    /// Share of a turn by which each track begins later than the one before, so that the next
    /// track can be reached in time.
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

    /// Cylinders of the whole disk.
    pub(super) fn cylinders(&self) -> u64 {
        self.cylinders_per_zone * self.track_pages.len() as u64
    }

    /// The place of `page`, which lies on the disk.
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
