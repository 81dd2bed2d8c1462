//! Requests a second and bytes a page of every replacement policy.
fn main() -> tantalum_base::Result<()> {
    tantalum_replay::cache_bench::bench(|line| println!("{line}"))
}
