//! Shapes that are not met at the small scale: traces of 20,000 requests, only buffers of 500 and 1,000 pages.

/// Of chapter 3.
pub(crate) const CFDC_NOT_MET: &[&str] = &[
    "a larger window makes REF write more",
    "CFDC takes more time again with a window of 0.99: over that with 0.9",
];

/// Of chapter 4; most of these differ at the full scale too: `docs/experiments.md`.
pub(crate) const ENERGY_NOT_MET: &[&str] = &[
    "CFDC takes least time on every device: the others' over its",
    "LRU-WSR takes more time than LRU on every device",
    "the power of the others slightly falls with the buffer: with the largest over with the smallest",
];

/// Of chapter 5: too few evictions with 10,000 pages, too little re-use for figure 5.8, and a disk that is as small as the trace.
pub(crate) const CASA_NOT_MET: &[&str] = &[
    "at 1:1 CCFLRU takes more than one and a half times as long as LRU",
    "at 1:64 CASA takes less time than CFLRU with its best window",
    "CASA writes less the more a write costs: from one ratio to the next",
    "CASA reads more the more a write costs: from one ratio to the next",
    "CASA has the best time at nearly every ratio and size, and is slightly behind otherwise: over the best of the others",
    "CASA has the best time on the SSD: over the best of the others",
    "CASA is comparable to CFLRU with its best window on the disk: over the best of the others",
    "SAWC takes about the time of CFDC, without a parameter: over the mean of CFDC's three windows",
    "with few updates CASA and SAWC have a higher hit ratio than CFDC with any window: theirs over its",
    "the hit ratio dominates the time with few updates: CFDC with any window takes longer than CASA and SAWC",
];
