//! The cost of the link; and profiles make working devices.
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{Durability, ErrorKind, PageBuf, PageDevice, PageNo, Payload, Stamp};
use tantalum_models::personality::PersonalitySpec;
use tantalum_models::profile::{BaselineKind, DEVICES, DeviceFamily};
use tantalum_models::{DeviceConfig, DeviceSpec, HostQueue, HostQueueOptions};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{JoinHandle, LifeCycle, Runtime, Virtual};
use tantalum_ssd::{CacheKind, Ssd};

const LINK: HostQueueOptions = HostQueueOptions {
    depth: 4,
    command_ns: 1_000,
    page_ns: 0,
    write_ns: 0,
    link_command_ns: 100,
    link_bytes_per_second: 4_096_000_000,
    flush_ns: 50_000,
    flush_alone: true,
    barrier: true,
};

/// Runs `clients` writers of one page each. Returns the time at which each was done.
fn ends(clients: u64, link: HostQueueOptions, flush_last: bool) -> Vec<u64> {
    let runtime = Virtual::new(Schedule::Fifo);
    let rt = runtime.clone();
    let run = async move {
        let config = DeviceConfig::parse("durassd:capacity=64MiB").unwrap();
        let device = config.build(&rt, 1).await.unwrap();
        let queue = HostQueue::new(rt.clone(), Rc::clone(device.device()), link).unwrap();
        let (queue, start_ns) = (Rc::new(queue), rt.now_ns());
        let task = |page: u64| {
            let (queue, rt) = (Rc::clone(&queue), rt.clone());
            async move {
                if flush_last && page + 1 == clients {
                    queue.flush().await.unwrap();
                } else {
                    let stamp = Stamp::new(PageNo(page), 1);
                    queue.write(PageNo(page), &[stamp], None).await.unwrap();
                }
                rt.now_ns() - start_ns
            }
        };
        let tasks: Vec<JoinHandle<u64>> =
            (0..clients).map(|page| rt.spawn("client", task(page))).collect();
        let mut ends = Vec::new();
        for task in tasks {
            ends.push(task.await);
        }
        ends
    };
    runtime.run(run).unwrap()
}

#[test]
fn transfers_take_turns_and_the_queue_has_its_depth() {
    // A page takes 1,000 ns of the link; its command takes 100 of it, and 1,000 in addition.
    assert_eq!(ends(3, LINK, false), [2_100, 3_200, 4_300]);
    // The fifth command starts when the first is done; the link is then busy until 4,400.
    assert_eq!(ends(5, LINK, false), [2_100, 3_200, 4_300, 5_400, 6_500]);
    // The additional latency of a page overlaps like the command's own latency.
    let slow_pages = HostQueueOptions { page_ns: 5_000, ..LINK };
    assert_eq!(ends(3, slow_pages, false), [7_100, 8_200, 9_300]);
    // So does the additional latency of a write.
    let slow_writes = HostQueueOptions { write_ns: 5_000, ..LINK };
    assert_eq!(ends(3, slow_writes, false), [7_100, 8_200, 9_300]);
    // With one slot, commands do not overlap.
    let one = HostQueueOptions { depth: 1, ..LINK };
    assert_eq!(ends(3, one, false), [2_100, 4_200, 6_300]);
}

#[test]
fn a_flush_waits_for_all_before_it_where_it_is_no_queued_command() {
    assert_eq!(ends(3, LINK, true), [2_100, 3_200, 53_200]);
    let queued = HostQueueOptions { flush_alone: false, ..LINK };
    // It has its place after the two writes, but need not wait for their ends.
    assert_eq!(ends(3, queued, true), [2_100, 3_200, 53_200]);
    let slow_pages = HostQueueOptions { page_ns: 5_000, ..queued };
    assert_eq!(ends(3, slow_pages, true), [7_100, 8_200, 58_200]);
}

#[test]
fn reads_come_over_the_link_as_well() {
    let runtime = Virtual::new(Schedule::Fifo);
    let rt = runtime.clone();
    let took = Rc::new(Cell::new(0));
    let told = Rc::clone(&took);
    let run = async move {
        let config = DeviceConfig::parse("durassd:capacity=64MiB").unwrap();
        let device = config.build::<_, PageBuf>(&rt, 1).await.unwrap();
        let link = HostQueueOptions { write_ns: 5_000, ..LINK };
        let queue = HostQueue::new(rt.clone(), Rc::clone(device.device()), link).unwrap();
        let page = PageBuf::copy_from(&[7; 4096]);
        let pages = [page.clone(), PageBuf::zero()];
        queue.write(PageNo(5), &pages, None).await.unwrap();
        let mut out = [PageBuf::zero(), PageBuf::zero()];
        let start_ns = rt.now_ns();
        queue.read(PageNo(5), &mut out, None).await.unwrap();
        told.set(rt.now_ns() - start_ns);
        assert_eq!(out, pages);
    };
    runtime.run(run).unwrap();
    // Both pages are in the write cache: a command, then two pages over the link, without the additional latency of a
    // write.
    assert_eq!(took.get(), 1_000 + 100 + 2_000);
}

#[test]
fn profiles_come_from_text_and_refuse_what_they_do_not_know() {
    let ssds = DEVICES.iter().filter(|entry| matches!(entry.family, DeviceFamily::Ssd(_)));
    for name in ssds.map(|entry| entry.name) {
        let config = DeviceConfig::parse(&format!("{name}:capacity=4GiB,op=0.07")).unwrap();
        assert_eq!(config.ftl.pages, 1 << 20);
        let raw = config.nand.geometry.bytes() as f64 / 4096.0;
        let share = raw / config.ftl.pages as f64 - 1.0;
        // In addition to the requested flash: open zones, checkpoints, reserve, the dump area.
        assert!((0.07..0.21).contains(&share), "{name}: {share}");
        // Pages share a flash page, unless the device programs each on its own.
        let page_bytes = match name {
            "openssd" | "x25-m" => 4096,
            "nvme-tlc" | "nvme-qlc" | "nvme-plp" => 16_384,
            _ => 8192,
        };
        assert_eq!(config.nand.geometry.page_bytes, page_bytes, "{name}");
        // The name contains everything needed to make the device again.
        assert_eq!(DeviceConfig::parse(&config.name).unwrap(), config);
    }
    for (text, entries) in [
        ("openssd", Some(500)),
        ("openssd:share-entries=250", Some(250)),
        ("openssd:share-entries=4294967295", None),
        ("durassd", None),
        ("durassd:share-entries=0", Some(0)),
    ] {
        let config = DeviceConfig::parse(text).unwrap();
        assert_eq!(config.ftl.share_entries_max, entries, "{text}");
        assert_eq!(DeviceConfig::parse(&config.name).unwrap(), config);
    }
    let whole = DeviceConfig::parse("durassd").unwrap();
    assert_eq!(whole.ftl.pages, 480_000_000_000 / 4096);
    assert!(whole.ssd.cache == CacheKind::Durable && !whole.link.barrier);
    for (text, said) in [
        ("durasd", "durassd, ssd-a, ssd-b"),
        ("cheetah-15k6", "no SSD"),
        ("durassd:storage-cache=of", "on or off, default on"),
        ("durassd:barrier=1", "off or on, default off"),
        ("durassd:colour=1", "op (0 to 8"),
        ("openssd:share-entries=few", "0 to 4294967295, default 500"),
        ("openssd:share-entries=-1", "0 to 4294967295, default 500"),
        ("durassd:op=9", "op=9"),
        ("durassd:capacity=4", "unit of bytes"),
        ("durassd:capacity=4KiB,capacity=8KiB", "twice"),
        ("ssd-a:pages=4294967295", "pages"),
    ] {
        let error = DeviceConfig::parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text}");
        assert!(error.to_string().contains(said), "{text}: {error}");
    }
}

#[test]
fn the_smallest_devices_work_to_their_last_page() {
    for pages in [1, 100, 5_000] {
        let runtime = Virtual::new(Schedule::Fifo);
        let rt = runtime.clone();
        let run = async move {
            let config = DeviceConfig::parse(&format!("durassd:pages={pages},op=0")).unwrap();
            let device = config.build(&rt, 1).await.unwrap();
            for count in 1..=3 {
                for page in (0..pages).map(PageNo) {
                    device.write(page, &[Stamp::new(page, count)], None).await.unwrap();
                }
            }
            let mut out = [Stamp::zero()];
            for page in (0..pages).map(PageNo) {
                device.read(page, &mut out, None).await.unwrap();
                assert_eq!(out[0], Stamp::new(page, 3));
            }
            let ssd: &Rc<Ssd<_>> = device.device();
            ssd.close().await.unwrap();
            ssd.ftl().validate();
        };
        runtime.run(run).unwrap();
    }
}

#[test]
fn every_device_comes_from_its_name_and_from_its_full_name() {
    for entry in DEVICES {
        let all: &[&str] = match entry.family {
            DeviceFamily::Ssd(_) | DeviceFamily::Disk(_) => &[
                "pages=70000",
                "capacity=1GiB,storage-cache=off",
                "capacity=1GiB,cache=99,barrier=on",
            ],
            DeviceFamily::TxSsd(_) => &["pages=70000", "capacity=1GiB,op=0.2", "pages=9k,cache=99"],
            DeviceFamily::Baseline(BaselineKind::Wal) => &[
                "pages=70000",
                "capacity=1GiB,op=0.2",
                "pages=9k,log=999,transactions=7,commit=record",
            ],
            DeviceFamily::Baseline(_) => &["pages=70000", "capacity=1GiB,op=0.2,transactions=99"],
            DeviceFamily::Hybrid(_) => &["pages=70000", "capacity=1GiB,logs=4"],
            DeviceFamily::Personality => &["pages=70000", "capacity=1GiB,op=0.2,block=32"],
            DeviceFamily::Cloud(_) => &["pages=70000", "capacity=1GiB"],
        };
        for parameters in all {
            let spec = DeviceSpec::parse(&format!("{}:{parameters}", entry.name)).unwrap();
            assert_eq!(DeviceSpec::parse(spec.name()).unwrap(), spec, "{}", spec.name());
        }
        let runtime = Virtual::new(Schedule::Fifo);
        let rt = runtime.clone();
        let run = async move {
            let spec = DeviceSpec::parse(&format!("{}:capacity=64MiB", entry.name)).unwrap();
            let device = spec.build_bytes(&rt, 1).await.unwrap().device;
            assert_eq!(device.limits().pages, 16_384);
            let page = PageBuf::copy_from(&[9; 4096]);
            device.write(PageNo(77), std::slice::from_ref(&page), None).await.unwrap();
            device.flush().await.unwrap();
            let mut out = [PageBuf::zero(), PageBuf::zero()];
            device.read(PageNo(76), &mut out, None).await.unwrap();
            assert_eq!(out, [PageBuf::zero(), page]);
        };
        runtime.run(run).unwrap();
        runtime.drop_tasks();
    }
}

#[test]
fn earlier_layers_and_tx_ssds_have_names() {
    for name in PersonalitySpec::NAMES {
        let spec = DeviceSpec::parse(&format!("{name}:pages=5000")).unwrap();
        let DeviceSpec::Personality(config) = &spec else { panic!("{name} is {spec:?}") };
        assert_eq!((config.pages, spec.cache_pages()), (5000, 0));
    }
    let parsed = |text: &str| match DeviceSpec::parse(text).unwrap() {
        DeviceSpec::TxSsd(config) => config,
        other => panic!("{text} is {other:?}"),
    };
    // The whole device has table II's capacity and IV-A's cache; a small one has the minimum cache.
    let whole = parsed("txssd");
    assert_eq!((whole.capacity_pages, whole.cache.cache_pages), ((32 << 30) / 4096, 8192));
    assert_eq!(parsed("txssd:capacity=64MiB").cache.cache_pages, 1024);
    let chosen = parsed("txssd:capacity=64MiB,op=0.3,cache=2k");
    assert_eq!((chosen.over_provisioning, chosen.cache.extended_pages), (0.3, 2048));
    assert_eq!(parsed("nvcache:capacity=64MiB").cache.transactions_max, 0);
    for (text, said) in [
        ("txssd:barrier=on", "cache (64 to"),
        ("nvcache:cache=1", "cache=1"),
        ("txssd:capacity=16TiB", "1 to 2147483647"),
        ("txssd:capacity=7TiB,op=8", "cannot have"),
        ("dftl:logs=8", "cmt (2 to"),
        ("tx-flash:log=8k", "transactions (1 to"),
        ("wal:log=1", "log=1"),
        ("wal:commit=late", "commit=late"),
        ("bast:capacity=4", "unit of bytes"),
    ] {
        let error = DeviceSpec::parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text}");
        assert!(error.to_string().contains(said), "{text}: {error}");
    }
}

#[test]
fn a_named_tx_ssd_has_transactions_and_a_named_nv_cache_none() {
    let runtime = Virtual::new(Schedule::Fifo);
    let rt = runtime.clone();
    let run = async move {
        let build =
            async |text: &str| DeviceSpec::parse(text).unwrap().build(&rt, 1).await.unwrap().device;
        let device = build("txssd:pages=100,op=0").await;
        let (old, new) = ([Stamp::new(PageNo(99), 1)], [Stamp::new(PageNo(99), 2)]);
        device.write(PageNo(99), &old, None).await.unwrap();
        let tx = device.begin().await.unwrap();
        device.write(PageNo(99), &new, Some(tx)).await.unwrap();
        let mut out = [Stamp::zero()];
        device.read(PageNo(99), &mut out, None).await.unwrap();
        assert_eq!(out, old);
        device.commit(tx).await.unwrap();
        device.read(PageNo(99), &mut out, None).await.unwrap();
        assert_eq!(out, new);
        for name in ["wal:commit=pages,", "wal:commit=record,", "tx-flash:", "atomic-log:"] {
            let device = build(&format!("{name}pages=9000,op=0,transactions=3")).await;
            let limits = device.limits();
            assert_eq!((limits.pages, limits.transactions_max), (9000, 3));
            let tx = device.begin().await.unwrap();
            device.write(PageNo(99), &new, Some(tx)).await.unwrap();
            device.read(PageNo(99), &mut out, None).await.unwrap();
            assert_eq!(out, [Stamp::zero()], "{name}");
            device.commit(tx).await.unwrap();
            device.read(PageNo(99), &mut out, None).await.unwrap();
            assert_eq!(out, new, "{name}");
            // The link and the device behind it also pass on a commit in one call.
            let (seen, last) = (Rc::new(Cell::new(false)), [Stamp::new(PageNo(7), 3)]);
            let ended = Rc::clone(&seen);
            let pages = vec![(PageNo(7), last[0]), (PageNo(99), old[0])];
            device.write_scattered(pages, move || ended.set(true)).await.unwrap();
            device.read(PageNo(7), &mut out, None).await.unwrap();
            assert_eq!((seen.get(), out), (true, last), "{name}");
            device.read(PageNo(99), &mut out, None).await.unwrap();
            assert_eq!(out, old, "{name}");
        }
        let plain = build("nvcache:pages=100,op=0").await;
        assert_eq!(plain.begin().await.unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(plain.limits().durability, Durability::OnAck);
    };
    runtime.run(run).unwrap();
    runtime.drop_tasks();
}

/// Mean times of a write and of a flush of `device`, over 64 of each.
fn write_and_flush_ns(device: &str) -> (u64, u64) {
    let spec = DeviceSpec::parse(device).unwrap();
    let runtime = Virtual::new(Schedule::Fifo);
    let rt = runtime.clone();
    let run = async move {
        let device = spec.build(&rt, 1).await.unwrap().device;
        let (mut write_ns, mut flush_ns) = (0, 0);
        for page in (0..64).map(PageNo) {
            let start_ns = rt.now_ns();
            device.write(page, &[Stamp::new(page, 1)], None).await.unwrap();
            let written_ns = rt.now_ns();
            device.flush().await.unwrap();
            write_ns += written_ns - start_ns;
            flush_ns += rt.now_ns() - written_ns;
        }
        (write_ns / 64, flush_ns / 64)
    };
    let means = runtime.run(run).unwrap();
    runtime.drop_tasks();
    means
}

#[test]
fn storage_cache_and_barriers_decide_who_waits_for_flash() {
    // A program takes 0.93 ms on average, its transfer 0.04; the same holds for the mapping page.
    let two_programs_ns = 2 * (927_500 + 43_200);
    let about = |ns: u64, expected: u64| ns.abs_diff(expected) < expected / 20;
    for device in ["durassd", "ssd-a"] {
        let (write_ns, flush_ns) =
            write_and_flush_ns(&format!("{device}:capacity=2GiB,storage-cache=off,barrier=on"));
        assert!(
            write_ns > two_programs_ns && about(write_ns, two_programs_ns + 75_000),
            "{write_ns}"
        );
        assert!(flush_ns < 10_000, "{device}: nothing is left to flush: {flush_ns}");
        let (write_ns, flush_ns) =
            write_and_flush_ns(&format!("{device}:capacity=2GiB,barrier=on"));
        assert!(write_ns < 100_000, "{device}: {write_ns}");
        assert!(about(flush_ns, two_programs_ns), "{device}: {flush_ns}");
        let (write_ns, flush_ns) =
            write_and_flush_ns(&format!("{device}:capacity=2GiB,barrier=off"));
        assert!(write_ns < 100_000 && flush_ns < 10_000, "{device}: {write_ns}, {flush_ns}");
    }
}
