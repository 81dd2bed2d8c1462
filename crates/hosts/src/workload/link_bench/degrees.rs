//! The number of links of each node.

/// Number of links, and the percentage of nodes that have more: points of the distribution that comes with the benchmark
/// (`Distribution.dat`, `nlinks`), after Facebook's graph. Up to 8 links, every number is listed. The longest lists are cut off at the
/// last point.
const MORE_LINKS: [(u32, f64); 29] = [
    (0, 80.252_551),
    (1, 27.015_377),
    (2, 13.262_481),
    (3, 8.183_191),
    (4, 5.540_870),
    (5, 4.131_385),
    (6, 3.222_225),
    (7, 2.620_728),
    (8, 2.183_262),
    (10, 1.659_012),
    (12, 1.325_369),
    (16, 0.967_296),
    (24, 0.607_693),
    (32, 0.485_531),
    (48, 0.358_744),
    (64, 0.291_426),
    (96, 0.232_003),
    (128, 0.198_128),
    (256, 0.137_743),
    (512, 0.099_177),
    (1_000, 0.067_934),
    (1_500, 0.051_044),
    (4_400, 0.015_770),
    (5_000, 0.013_195),
    (6_007, 0.009_610),
    (7_006, 0.007_540),
    (8_019, 0.006_084),
    (10_020, 0.004_050),
    (11_251, 0.003_099),
];

/// Number of links of the node at `rank` (from 0 on) by number of links, of `nodes`.
pub(super) fn links_of(rank: u64, nodes: u64) -> u32 {
    let percent = 100.0 * (rank as f64 + 0.5) / nodes as f64;
    if percent >= MORE_LINKS[0].1 {
        return 0;
    }
    for pair in MORE_LINKS.windows(2) {
        let [(fewer, more_than_fewer), (more, more_than_more)] = [pair[0], pair[1]];
        if percent >= more_than_more {
            // Interpolates on a line in logarithmic axes, as for a power law.
            let part = (more_than_fewer / percent).ln() / (more_than_fewer / more_than_more).ln();
            let between = f64::from(fewer) * (f64::from(more) / f64::from(fewer)).powf(part);
            return if more <= fewer + 1 { more } else { between.ceil() as u32 };
        }
    }
    MORE_LINKS[MORE_LINKS.len() - 1].0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_as_many_links_as_the_published_distribution_says() {
        let nodes = 100_000;
        let links: Vec<u32> = (0..nodes).map(|rank| links_of(rank, nodes)).collect();
        assert!(links.is_sorted_by(|more, fewer| more >= fewer));
        for (links_min, percent) in MORE_LINKS {
            let more = links.iter().filter(|links| **links > links_min).count();
            let expected = percent / 100.0 * nodes as f64;
            assert!((more as f64 - expected).abs() <= 6.0, "{links_min}: {more} beside {expected}");
        }
        // The benchmark's documentation says 4.74; the longest lists are cut off here.
        let mean = links.iter().sum::<u32>() as f64 / nodes as f64;
        assert!((4.2..4.74).contains(&mean), "{mean}");
    }
}
