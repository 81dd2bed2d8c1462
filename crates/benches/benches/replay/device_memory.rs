//! Memory of a 480 GB device in simulation.
fn main() -> tantalum_base::Result<()> {
    tantalum_replay::device_memory::bench(|line| println!("{line}"))
}
