//! Energy accounting over virtual time: each component uses its idle power all the time, and the
//! difference to its peak power while it is busy.
//!
//! Source: Ou, "Caching for flash-based databases and flash-based caching for databases" (2012),
//! chapter 4: formula 4.1 and the power profiles of tables 4.1 and 4.2. The dissertation measured
//! volts and amperes; here only the idle and peak power of a component are known, so its power is on
//! the line between them.

/// The power of a component.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    /// Power when idle.
    pub idle_w: f64,
    /// Power when busy all the time.
    pub peak_w: f64,
}

impl Power {
    /// Average power if it is busy for a share `busy` of the time, 0 to 1.
    pub fn average_w(&self, busy: f64) -> f64 {
        self.idle_w + (self.peak_w - self.idle_w) * busy
    }
}

/// CPU, RAM and mainboard (table 4.2, ATX).
pub const MAINBOARD: Power = Power { idle_w: 19.6, peak_w: 33.5 };
/// The system disk, which is idle in the experiments (table 4.2, IDE).
pub const SYSTEM_DISK: Power = Power { idle_w: 6.3, peak_w: 12.2 };

/// The data disks of table 4.1, by the name of the simulated device.
pub const DATA_DISKS: [(&str, Power); 5] = [
    ("wd800aajs", Power { idle_w: 5.3, peak_w: 6.3 }),
    ("wd1500hlfs", Power { idle_w: 4.5, peak_w: 5.7 }),
    ("mba3147rc", Power { idle_w: 8.4, peak_w: 10.0 }),
    ("mtron", Power { idle_w: 1.2, peak_w: 2.0 }),
    ("x25-m", Power { idle_w: 0.1, peak_w: 1.2 }),
];

/// The power of the data disk that is simulated as `device` (a name, or one with parameters); `None`
/// if it is not in table 4.1.
pub fn data_disk(device: &str) -> Option<Power> {
    let name = device.split(':').next().unwrap_or(device);
    DATA_DISKS.iter().find(|(known, _)| *known == name).map(|(_, power)| *power)
}

/// The energy of a run, by the power lines of section 4.1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Consumption {
    /// Length of the run.
    pub seconds: f64,
    /// Average power of the data disk (SATA or SAS).
    pub data_disk_w: f64,
    /// Average power of the system disk (IDE).
    pub system_disk_w: f64,
    /// Average power of CPU, RAM and mainboard (ATX).
    pub mainboard_w: f64,
}

impl Consumption {
    /// A run of `seconds` in which the data disk and the mainboard were busy for these times.
    pub fn of(seconds: f64, disk: Power, disk_busy_s: f64, mainboard_busy_s: f64) -> Self {
        let share = |busy: f64| if seconds > 0.0 { (busy / seconds).clamp(0.0, 1.0) } else { 0.0 };
        Consumption {
            seconds,
            data_disk_w: disk.average_w(share(disk_busy_s)),
            system_disk_w: SYSTEM_DISK.average_w(0.0),
            mainboard_w: MAINBOARD.average_w(share(mainboard_busy_s)),
        }
    }

    /// Average power of all three lines.
    pub fn average_w(&self) -> f64 {
        self.data_disk_w + self.system_disk_w + self.mainboard_w
    }

    /// Energy of the run.
    pub fn joules(&self) -> f64 {
        self.average_w() * self.seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_lies_between_idle_and_peak_and_energy_is_its_time() {
        let disk = data_disk("mtron:pages=70000,logs=16").unwrap();
        let idle = Consumption::of(10.0, disk, 0.0, 0.0);
        // Section 4.2.2: an idle share of 27.08 W with SSD2.
        assert!((idle.average_w() - 27.1).abs() < 0.05, "{idle:?}");
        let half = Consumption::of(10.0, disk, 5.0, 5.0);
        assert!((half.data_disk_w - 1.6).abs() < 1e-9 && (half.mainboard_w - 26.55).abs() < 1e-9);
        assert!((half.joules() - 10.0 * (1.6 + 6.3 + 26.55)).abs() < 1e-6);
        let full = Consumption::of(10.0, disk, 10.0, 10.0);
        assert!((full.data_disk_w - 2.0).abs() < 1e-9 && full.average_w() > half.average_w());
        assert_eq!(Consumption::of(0.0, disk, 0.0, 0.0).joules(), 0.0);
        assert!(data_disk("durassd").is_none());
    }
}
