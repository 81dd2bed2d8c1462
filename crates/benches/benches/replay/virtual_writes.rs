//! Simulated page writes a second of one core's time, with cleaning, and the rate of a replay.
fn main() -> tantalum_base::Result<()> {
    tantalum_replay::device_bench::bench(|line| println!("{line}"))
}
