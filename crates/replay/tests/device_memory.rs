//! Memory of a simulated device. This is the only test in its process, whose memory is measured.
use tantalum_replay::device_memory::measure;

/// Maximum bytes per page of a device whose every page was written twice, the second time in random
/// order. The map and the simulated flash occupy 28 to 29 of them, checkpoints on flash the rest.
const PAGE_BYTES_MAX: f64 = 64.0;

#[test]
fn a_page_of_a_device_that_is_rewritten_at_random_takes_few_bytes() {
    let memory = measure("durassd:capacity=1GiB", 1.0).unwrap();
    let page_bytes = memory.grown_bytes as f64 / memory.pages as f64;
    assert!(page_bytes < PAGE_BYTES_MAX, "{page_bytes:.1} bytes a page: {memory:?}");
    assert!(page_bytes > 20.0, "{page_bytes:.1} bytes a page: not all of it was counted");
    println!("{page_bytes:.1} bytes a page: {memory:?}");
}
