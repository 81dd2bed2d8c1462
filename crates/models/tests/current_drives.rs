//! Today's drives and cloud storage, compared with their data sheets: each expected figure here comes from a data sheet or other source,
//! none from the simulation.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, Payload, Rng, Stamp};
use tantalum_models::{DeviceSpec, SimulatedDevice};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual, spawn_all};

type Device = Rc<SimulatedDevice<Stamp>>;

/// Number of pages that are filled and read: many in each plane.
const SPAN: u64 = 1 << 16;
/// Pages of a sequential request: 128 KiB.
const LONG: u64 = 32;
/// Longer than any remaining work of a device.
const REST_NS: u64 = 1_000_000_000;

#[derive(Clone, Copy)]
struct Load {
    write: bool,
    in_order: bool,
    /// Pages of a request.
    len: u64,
    requests: u64,
    in_flight: u64,
    span: u64,
}

const READS: Load =
    Load { write: false, in_order: false, len: 1, requests: 1 << 16, in_flight: 512, span: SPAN };

impl Load {
    /// Requests a second.
    async fn run(self, runtime: &Virtual, device: &Device) -> f64 {
        let (next, rng) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Rng::new(1))));
        let start_ns = runtime.now_ns();
        let client = |_| {
            let (device, next, rng) = (Rc::clone(device), Rc::clone(&next), Rc::clone(&rng));
            async move {
                let mut contents = vec![Stamp::zero(); self.len as usize];
                while next.get() < self.requests {
                    let count = next.replace(next.get() + 1);
                    let places = self.span / self.len;
                    let place = match self.in_order {
                        true => count % places,
                        false => rng.borrow_mut().below(places),
                    };
                    let first = PageNo(place * self.len);
                    match self.write {
                        true => device.write(first, &contents, None).await?,
                        false => device.read(first, &mut contents, None).await?,
                    }
                }
                Ok(())
            }
        };
        spawn_all(runtime, "client", (0..self.in_flight).map(client)).await.unwrap();
        self.requests as f64 * 1e9 / (runtime.now_ns() - start_ns) as f64
    }
}

/// Runs `test` on a new device called `text` and returns its result.
fn on<T: 'static>(
    text: &'static str,
    test: impl AsyncFnOnce(&Virtual, &Device) -> T + 'static,
) -> T {
    let runtime = Virtual::new(Schedule::Fifo);
    let rt = runtime.clone();
    let found = runtime.run(async move {
        let device = DeviceSpec::parse(text).unwrap().build(&rt, 1).await.unwrap().device;
        test(&rt, &device).await
    });
    runtime.drop_tasks();
    found.unwrap()
}

/// Writes `span` pages sequentially.
async fn fill(runtime: &Virtual, device: &Device, span: u64) {
    let fill =
        Load { write: true, in_order: true, len: LONG, requests: span / LONG, span, ..READS };
    Load { in_flight: 32, ..fill }.run(runtime, device).await;
    device.flush().await.unwrap();
    runtime.sleep(REST_NS).await;
}

/// Mean times in nanoseconds of an idle device called `text`: of a random read, of a write, and of the flush after it.
fn single_ns(text: &'static str) -> [f64; 3] {
    on(text, async |runtime, device| {
        fill(runtime, device, SPAN).await;
        let reads = Load { requests: 256, in_flight: 1, ..READS };
        let read_ns = 1e9 / reads.run(runtime, device).await;
        let (mut write_ns, mut flush_ns) = (0, 0);
        for page in (0..64).map(|at| PageNo(at * 37)) {
            runtime.sleep(REST_NS).await;
            let start_ns = runtime.now_ns();
            device.write(page, &[Stamp::zero()], None).await.unwrap();
            let written_ns = runtime.now_ns();
            device.flush().await.unwrap();
            write_ns += written_ns - start_ns;
            flush_ns += runtime.now_ns() - written_ns;
        }
        [read_ns, write_ns as f64 / 64.0, flush_ns as f64 / 64.0]
    })
}

/// Rates of a device called `text` with a full queue, before cleaning starts: random reads a second, and bytes a second of sequential
/// reads and writes.
fn many(text: &'static str) -> [f64; 3] {
    on(text, async |runtime, device| {
        fill(runtime, device, SPAN).await;
        let reads = READS.run(runtime, device).await;
        let in_order = Load { in_order: true, len: LONG, in_flight: 32, requests: 4_096, ..READS };
        let read = in_order.run(runtime, device).await;
        let write = Load { write: true, span: 4 * SPAN, ..in_order }.run(runtime, device).await;
        let bytes = (LONG * 4096) as f64;
        [reads, read * bytes, write * bytes]
    })
}

/// Asserts that `found` differs from the data sheet's figure by at most `tolerance`, as a share of that
/// figure.
#[track_caller]
fn near(what: &str, found: f64, sheet: f64, tolerance: f64) {
    let error = found / sheet - 1.0;
    assert!(
        error.abs() <= tolerance,
        "{what}: {found:.0} instead of {sheet:.0}, {:.1} %",
        error * 100.0
    );
}

#[test]
fn a_consumers_drive_with_three_bits_a_cell_is_as_its_data_sheet_and_reviews_say() {
    let [read_ns, write_ns, flush_ns] = single_ns("nvme-tlc:capacity=4GiB");
    // Samsung's data sheet of the 990 PRO of 1 TB, queue depth 1: 22,000 random reads a second and 80,000 writes.
    near("read", 1e9 / read_ns, 22_000.0, 0.03);
    near("write", 1e9 / write_ns, 80_000.0, 0.03);
    // Callaghan, 2026: consumer drives take 0.9 to 3.5 ms for a sync. Ours writes the page and its mapping.
    assert!((900_000.0..3_500_000.0).contains(&flush_ns), "{flush_ns}");
    let [reads, read, write] = many("nvme-tlc:capacity=4GiB");
    // The data sheet, queue depth 32 in 16 threads: 1,200,000 random reads a second; 7,450 MB/s.
    near("random reads", reads, 1_200_000.0, 0.03);
    near("reads in order", read, 7_450e6, 0.05);
    // TechPowerUp on the 980 PRO of 1 TB: 1.5 GB/s when the SLC cache is full.
    near("writes in order", write, 1_500e6, 0.05);
}

#[test]
fn a_drive_with_four_bits_a_cell_is_as_its_specification_and_reviews_say() {
    let [read_ns, write_ns, flush_ns] = single_ns("nvme-qlc:capacity=4GiB");
    // Intel's specification of the 670p of 2 TB, queue depth 1: 54,000 random writes a second. Its 20,000 reads are from the SLC
    // cache; the flash itself takes 85 us to sense (ISSCC 2021).
    near("write", 1e9 / write_ns, 54_000.0, 0.03);
    assert!((85_000.0..100_000.0).contains(&read_ns), "{read_ns}");
    // No source: two programs, one of the page and one of its mapping.
    near("flush", flush_ns, 4_000_000.0, 0.05);
    let [reads, read, write] = many("nvme-qlc:capacity=4GiB");
    // The specification, queue depth 256: 310,000 random reads a second; 3,500 MB/s.
    near("random reads", reads, 310_000.0, 0.03);
    near("reads in order", read, 3_500e6, 0.08);
    // Guru3D on the P41 Plus, with half as many dies: 262 MB/s when the SLC cache is full.
    near("writes in order", write, 2.0 * 262e6, 0.05);
}

#[test]
fn a_servers_drive_with_capacitors_is_as_its_data_sheet_says() {
    let [read_ns, write_ns, flush_ns] = single_ns("nvme-plp:capacity=4GiB");
    // Both figures are assumed.
    near("read", read_ns, 70_000.0, 0.05);
    near("write", write_ns, 20_000.0, 0.05);
    // Callaghan, 2026: 12 to 58 us with power loss protection.
    assert!((10_000.0..58_000.0).contains(&flush_ns), "{flush_ns}");
    let [reads, read, write] = many("nvme-plp:capacity=4GiB");
    // Samsung's data sheet of the PM9A3 of 7.68 TB: 900,000 random reads a second, 6,500 and 3,500 MB/s.
    near("random reads", reads, 900_000.0, 0.03);
    near("reads in order", read, 6_500e6, 0.05);
    near("writes in order", write, 3_500e6, 0.12);
}

#[test]
fn a_servers_drive_goes_on_writing_at_random_as_its_data_sheet_says() {
    let writes = on("nvme-plp:capacity=3GiB", async |runtime, device| {
        let pages = device.limits().pages;
        fill(runtime, device, pages).await;
        let writes = Load { write: true, requests: pages, span: pages, in_flight: 256, ..READS };
        writes.run(runtime, device).await;
        Load { requests: pages / 2, ..writes }.run(runtime, device).await
    });
    // Samsung's data sheet of the PM9A3 of 7.68 TB: 200,000 random writes a second over the whole drive.
    near("random writes", writes, 200_000.0, 0.12);
}

#[test]
fn a_clouds_local_ssd_is_as_fast_as_documented_and_no_faster() {
    let [reads, read, write] = many("cloud-local-ssd");
    // Google Cloud: 453.3 read and 240 write IOPS, and 1.77 and 0.94 MB/s, for each of 375 GB.
    near("random reads", reads, 453.3 * 375.0, 0.01);
    near("reads in order", read, 1.77 * 375.0 * (1 << 20) as f64, 0.01);
    near("writes in order", write, 0.94 * 375.0 * (1 << 20) as f64, 0.01);
    let writes = on("cloud-local-ssd", async |runtime, device| {
        Load { write: true, ..READS }.run(runtime, device).await
    });
    near("random writes", writes, 240.0 * 375.0, 0.01);
}

#[test]
fn a_clouds_volume_has_its_iops_its_bytes_and_its_round_trip() {
    let volume = "cloud-volume:capacity=4GiB";
    for took_ns in single_ns(volume) {
        // AWS: "single-digit millisecond latency".
        assert!((1e6..10e6).contains(&took_ns), "{took_ns}");
    }
    // AWS: 3,000 IOPS and 125 MiB/s, sequential or not.
    let bytes = 125.0 * (1 << 20) as f64;
    let [reads, read, write] = many(volume);
    near("random reads", reads, 3_000.0, 0.01);
    near("reads in order", read, bytes, 0.01);
    near("writes in order", write, bytes, 0.01);
    let [writes, large, both] = on(volume, async |runtime, device| {
        let few = Load { requests: 6_000, in_flight: 64, ..READS };
        let writes = Load { write: true, ..few }.run(runtime, device).await;
        // "I/O size is capped at 256 KiB": one of 1 MiB counts as four, but the limit on bytes is
        // lower.
        let large = Load { len: 256, requests: 500, ..few }.run(runtime, device).await;
        // Reads and writes share one allowance.
        let half = Load { in_flight: 32, ..few };
        let (start_ns, other) = (runtime.now_ns(), Rc::clone(device));
        let (rt, write) = (runtime.clone(), Load { write: true, ..half });
        let writer = runtime.spawn("writer", async move { write.run(&rt, &other).await });
        half.run(runtime, device).await;
        writer.await;
        let both = 12_000.0 * 1e9 / (runtime.now_ns() - start_ns) as f64;
        [writes, large, both]
    });
    near("random writes", writes, 3_000.0, 0.01);
    near("large reads", large, 125.0, 0.01);
    near("reads and writes", both, 3_000.0, 0.01);
}
