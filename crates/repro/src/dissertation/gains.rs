//! The gains of policies over others on a device, under figure 4.2's load.
use tantalum_base::Result;

use super::super::Scale;
use super::runs::over;
use super::workload::oltp;

/// Section 4.2.1: windows were not tuned.
const POLICIES: [&str; 4] = ["lru", "cflru:window=0.5", "lru_wsr", "cfdc:window=0.5,cluster=16"];

/// Gains in percent of the other policy's time.
pub(in super::super) struct Gains {
    pub cfdc_over_cflru: f64,
    pub lru_wsr_over_lru: f64,
}

/// The gains on `device`, a text with parameters.
pub(in super::super) fn gains_on(device: &str, scale: Scale, seed: u64) -> Result<Gains> {
    let pages = if scale == Scale::Small { 1_000 } else { 8_000 };
    let runs = over(device, &oltp(scale)?, &POLICIES, &[pages], seed)?;
    let [lru, cflru, lru_wsr, cfdc] = &runs[..] else { unreachable!("a run a policy") };
    let gain = |ours: f64, theirs: f64| 100.0 * (1.0 - ours / theirs);
    Ok(Gains {
        cfdc_over_cflru: gain(cfdc.seconds, cflru.seconds),
        lru_wsr_over_lru: gain(lru_wsr.seconds, lru.seconds),
    })
}
