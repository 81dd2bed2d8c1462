//! The amount of data that the capacitors can dump.
use tantalum_base::{Error, ErrorKind, Result};

/// Capacitors that power the device after the power is lost, and their energy per dumped byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacitors {
    /// Number of capacitors.
    pub count: u32,
    /// Capacitance of each.
    pub microfarads: u32,
    /// Voltage when fully charged.
    pub charged_millivolts: u32,
    /// Minimum voltage at which the device runs.
    pub empty_millivolts: u32,
    /// Energy per byte: for programming it, and for everything that must run in the meantime.
    pub picojoules_per_byte: u32,
    /// Charging current after the power has returned.
    pub charging_milliamperes: u32,
}

impl Capacitors {
    /// Number of bytes that they can dump: C (V² - v²) / 2, divided by the energy per byte.
    ///
    /// # Errors
    /// `InvalidInput` if a byte costs nothing, or the voltages leave no usable energy.
    pub fn dump_bytes(&self) -> Result<u64> {
        if self.picojoules_per_byte == 0 || self.empty_millivolts >= self.charged_millivolts {
            let context = format!("capacitors that store nothing for a dump: {self:?}");
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        let squared = |millivolts: u32| u128::from(millivolts) * u128::from(millivolts);
        // Microfarads times square millivolts are picojoules.
        let picojoules = u128::from(self.count)
            * u128::from(self.microfarads)
            * (squared(self.charged_millivolts) - squared(self.empty_millivolts))
            / 2;
        Ok((picojoules / u128::from(self.picojoules_per_byte)).min(u128::from(u64::MAX)) as u64)
    }

    /// Time to charge them from empty.
    pub fn recharge_ns(&self) -> u64 {
        // Microfarads times millivolts are nanocoulombs, over milliamperes microseconds.
        let nanocoulombs = u128::from(self.count)
            * u128::from(self.microfarads)
            * u128::from(self.charged_millivolts);
        let ns = 1_000 * nanocoulombs / u128::from(self.charging_milliamperes.max(1));
        ns.min(u128::from(u64::MAX)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energy_is_half_of_capacitance_times_square_voltage() {
        let capacitors = Capacitors {
            count: 2,
            microfarads: 1000,
            charged_millivolts: 10_000,
            empty_millivolts: 6_000,
            picojoules_per_byte: 1_000,
            charging_milliamperes: 500,
        };
        // 2 mF from 10 V to 6 V: 64 mJ, at 1 nJ a byte.
        assert_eq!(capacitors.dump_bytes().unwrap(), 64_000_000);
        // 20 mC at 0.5 A.
        assert_eq!(capacitors.recharge_ns(), 40_000_000);
        let more = Capacitors { count: 4, ..capacitors };
        assert_eq!(more.dump_bytes().unwrap(), 128_000_000);
        let empty = Capacitors { empty_millivolts: 10_000, ..capacitors };
        assert_eq!(empty.dump_bytes().unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
