//! The X25-M compared with its data sheet, one command at a time: a read takes 85 us and a write 115, and no write is faster than a
//! read. `tantalum repro devices` measures its rates.
use tantalum_base::{PageDevice, PageNo, Payload, Stamp};
use tantalum_models::DeviceConfig;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

/// Number of pages to read; as many after them are written.
const PAGES: u64 = 2_048;
/// Longer than any program or erase that could delay a command.
const REST_NS: u64 = 20_000_000;

/// Times of single reads and writes of `device`, with a rest of this length before each: reads,
/// writes.
fn took(device: &'static str, rest_ns: u64) -> (Vec<u64>, Vec<u64>) {
    let runtime = Virtual::new(Schedule::Fifo);
    let rt = runtime.clone();
    let run = async move {
        let device = DeviceConfig::parse(device).unwrap().build::<_, Stamp>(&rt, 1).await.unwrap();
        for page in 0..PAGES {
            device.write(PageNo(page), &[Stamp::new(PageNo(page), 1)], None).await.unwrap();
        }
        device.flush().await.unwrap();
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for at in 0..512 {
            rt.sleep(rest_ns).await;
            let page = PageNo(at * 37 % PAGES);
            let (start_ns, mut out) = (rt.now_ns(), [Stamp::zero()]);
            device.read(page, &mut out, None).await.unwrap();
            reads.push(rt.now_ns() - start_ns);
            assert_eq!(out, [Stamp::new(page, 1)]);
            rt.sleep(rest_ns).await;
            let (start_ns, page) = (rt.now_ns(), PageNo(PAGES + page.0));
            device.write(page, &[Stamp::new(page, 2)], None).await.unwrap();
            writes.push(rt.now_ns() - start_ns);
        }
        (reads, writes)
    };
    runtime.run(run).unwrap()
}

fn least_and_most(took_ns: &[u64]) -> (u64, u64) {
    (*took_ns.iter().min().unwrap(), *took_ns.iter().max().unwrap())
}

#[test]
fn an_idle_drive_takes_what_its_data_sheet_says() {
    let (reads, writes) = took("x25-m:capacity=256MiB", REST_NS);
    let ((least_read, most_read), (least_write, most_write)) =
        (least_and_most(&reads), least_and_most(&writes));
    // Within 2 %.
    assert!(least_read >= 83_300 && most_read <= 86_700, "{least_read} to {most_read}");
    assert!(least_write >= 112_700 && most_write <= 117_300, "{least_write} to {most_write}");
}

#[test]
fn no_write_is_cheaper_than_a_read_of_an_idle_drive() {
    let read_ns = least_and_most(&took("x25-m:capacity=256MiB", REST_NS).0).1;
    for (device, programmed_ns) in [
        ("x25-m:capacity=256MiB", 0),
        // Acknowledged from flash: the fastest program in addition.
        ("x25-m:capacity=256MiB,storage-cache=off", 360_000),
    ] {
        for rest_ns in [0, REST_NS] {
            let least_ns = least_and_most(&took(device, rest_ns).1).0;
            assert!(least_ns >= read_ns + programmed_ns, "{device}, {rest_ns}: {least_ns}");
        }
    }
}

#[test]
fn its_cache_is_as_small_on_a_scaled_drive() {
    let cache_pages = |text: &str| DeviceConfig::parse(text).unwrap().ssd.cache_pages;
    for text in ["x25-m", "x25-m:capacity=8GiB", "x25-m:capacity=64MiB"] {
        assert_eq!(cache_pages(text), 64, "{text}");
    }
    // A larger cache than the minimum shrinks to the minimum.
    assert_eq!(cache_pages("ssd-a:capacity=64MiB"), 1_024);
}
