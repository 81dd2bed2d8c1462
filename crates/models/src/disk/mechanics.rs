//! The time of an access.
use super::DiskOptions;
use super::geometry::{Geometry, Place};
use tantalum_base::Result;

/// The mean square root of the distance between two random points on a line of length 1.
const MEAN_ROOT_DISTANCE: f64 = 8.0 / 15.0;

/// The arm and the platters.
pub(super) struct Mechanics {
    pub(super) geometry: Geometry,
    options: DiskOptions,
    stroke: f64,
    seek_root_ns: f64,
}

impl Mechanics {
    pub(super) fn new(options: &DiskOptions) -> Result<Self> {
        let geometry = Geometry::new(options)?;
        let beyond_track_ns = (options.seek_average_ns - options.seek_track_ns) as f64;
        Ok(Mechanics {
            stroke: (geometry.cylinders().max(2) - 1) as f64,
            geometry,
            options: *options,
            seek_root_ns: beyond_track_ns / MEAN_ROOT_DISTANCE,
        })
    }

    /// Time of a seek over `distance` cylinders. It grows with the square root of the distance, as
    /// the arm accelerates for one half and slows down for the other; no speed limit is reached.
    pub(super) fn seek_ns(&self, distance: u32) -> u64 {
        if distance == 0 {
            return 0;
        }
        let root = (f64::from(distance) / self.stroke).sqrt();
        self.options.seek_track_ns + (self.seek_root_ns * root) as u64
    }

    /// Time from `now_ns`, with the head over `cylinder`, until the head can start at `place`.
    pub(super) fn positioning_ns(
        &self,
        now_ns: u64,
        cylinder: u32,
        place: &Place,
        write: bool,
    ) -> u64 {
        let distance = cylinder.abs_diff(place.cylinder);
        // If the arm did not move, it needs no settle time.
        let settle_ns = if write && distance > 0 { self.options.write_settle_ns } else { 0 };
        let there_ns = self.options.overhead_ns + self.seek_ns(distance) + settle_ns;
        let rotation_ns = self.options.rotation_ns;
        let passes_ns = (place.angle * rotation_ns as f64) as u64 % rotation_ns;
        let phase_ns = (now_ns + there_ns) % rotation_ns;
        there_ns + (passes_ns + rotation_ns - phase_ns) % rotation_ns
    }
}
