//! Requests a second of every middle tier.
fn main() -> tantalum_base::Result<()> {
    tantalum_replay::tier_bench::bench(|line| println!("{line}"))
}
