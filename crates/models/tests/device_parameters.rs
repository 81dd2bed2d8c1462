//! Parameters of named devices, as text: their effects, and the refused values.
use std::rc::Rc;
use tantalum_base::{ErrorKind, PageDevice, PageNo, Payload, Stamp};
use tantalum_models::metered::{Allowance, Rate};
use tantalum_models::personality::PersonalitySpec;
use tantalum_models::profile::TxSsdConfig;
use tantalum_models::tx_cache::HeaderRelease;
use tantalum_models::{DeviceConfig, DeviceSpec};
use tantalum_policy::CleaningSpec;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};
use tantalum_ssd::FlushMeaning;

fn ssd(text: &str) -> DeviceConfig {
    let config = DeviceConfig::parse(text).unwrap();
    // The name contains everything needed to make the device again.
    assert_eq!(DeviceConfig::parse(&config.name).unwrap(), config, "{}", config.name);
    config
}

fn tx_ssd(text: &str) -> TxSsdConfig {
    match DeviceSpec::parse(text).unwrap() {
        DeviceSpec::TxSsd(config) => {
            let again = DeviceSpec::parse(&config.name).unwrap();
            assert_eq!(again, DeviceSpec::TxSsd(config.clone()), "{}", config.name);
            config
        }
        other => panic!("{text} is {other:?}"),
    }
}

fn refused(text: &str, said: &str) {
    let error = DeviceSpec::parse(text).expect_err(text);
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text}: {error}");
    assert!(error.to_string().contains(said), "{text}: {error}");
}

#[test]
fn a_flush_means_what_was_said_and_reaches_the_device() {
    let plain = ssd("durassd:capacity=1GiB");
    assert!(!plain.link.barrier);
    let order = ssd("durassd:capacity=1GiB,flush=order");
    assert!(order.link.barrier && order.ssd.flush == FlushMeaning::Order);
    let back = ssd("durassd:capacity=1GiB,flush=write-back");
    assert!(back.link.barrier && back.ssd.flush == FlushMeaning::WriteBack);
    assert_eq!(back.ssd, ssd("durassd:capacity=1GiB,barrier=on").ssd);
    refused("durassd:flush=sync", "flush is order or write-back");
    refused("durassd:flush=order,barrier=off", "no flush reaches the device");
    refused("durassd:flush=order,storage-cache=off", "of a write cache that is on");
    refused("ssd-a:flush=order", "no parameter \"flush\"");
}

#[test]
fn flushes_that_are_dropped_are_told() {
    let drops = |text: &str| DeviceSpec::parse(text).unwrap().drops_flushes();
    for text in ["ssd-a:barrier=off", "ssd-b:barrier=off", "cheetah-15k6:barrier=off"] {
        assert!(drops(text), "{text}");
    }
    for text in [
        "ssd-a",
        "durassd",
        "ssd-a:barrier=off,storage-cache=off",
        "cheetah-15k6:barrier=off,storage-cache=off",
        "txssd",
        "bast",
    ] {
        assert!(!drops(text), "{text}");
    }
}

/// Times of a write and of a flush on the device called `text`.
fn write_and_flush_ns(text: &str) -> (u64, u64) {
    let (runtime, config) = (Virtual::new(Schedule::Fifo), ssd(text));
    let rt = runtime.clone();
    let run = async move {
        let device = config.build::<_, Stamp>(&rt, 1).await.unwrap();
        let start_ns = rt.now_ns();
        device.write(PageNo(0), &[Stamp::new(PageNo(0), 1)], None).await.unwrap();
        let written_ns = rt.now_ns();
        device.flush().await.unwrap();
        (written_ns - start_ns, rt.now_ns() - written_ns)
    };
    let times = runtime.run(run).unwrap();
    runtime.drop_tasks();
    times
}

#[test]
fn a_flush_that_orders_costs_a_call_and_one_that_writes_back_two_programs() {
    let (_, order_ns) = write_and_flush_ns("durassd:capacity=1GiB,flush=order");
    assert_eq!(order_ns, 2_000);
    let (_, back_ns) = write_and_flush_ns("durassd:capacity=1GiB,flush=write-back");
    assert!(back_ns > 700_000, "{back_ns}");
}

#[test]
fn a_command_has_its_share_of_the_cache_or_the_quota_that_was_said() {
    // 7,812 pages divided by 32 commands.
    assert_eq!(ssd("durassd").ssd.atomic_write_pages_max(), 244);
    assert_eq!(ssd("durassd:capacity=1GiB").ssd.atomic_write_pages_max(), 32);
    assert_eq!(ssd("durassd:capacity=1GiB,cache=64").ssd.atomic_write_pages_max(), 16);
    assert_eq!(ssd("durassd:capacity=1GiB,quota=0").ssd.atomic_write_pages_max(), 256);
    assert_eq!(ssd("durassd:capacity=1GiB,quota=5").ssd.atomic_write_pages_max(), 5);
    assert_eq!(ssd("ssd-a:capacity=1GiB").ssd.command_quota_pages, 0);
    assert_eq!(ssd("ssd-a:capacity=1GiB,quota=9").ssd.atomic_write_pages_max(), 9);
    refused("durassd:capacity=1GiB,quota=1025", "quota is 0 to 1024");
}

#[test]
fn energy_is_bytes_or_capacitors_and_enough_for_the_cache() {
    let budget = |text: &str| ssd(text).ftl.dump.unwrap().budget_bytes;
    assert_eq!(budget("durassd:energy=64MB"), 64_000_000);
    // The paper's whole device has 15 of them.
    assert_eq!(ssd("durassd:capacitors=15").ftl, ssd("durassd").ftl);
    assert_eq!(budget("durassd:capacitors=30"), 2 * budget("durassd"));
    let (one, three) = (ssd("durassd:capacity=1GiB,capacitors=5"), ssd("durassd:capacitors=15"));
    assert_eq!(3 * one.ssd.recharge_ns, three.ssd.recharge_ns);
    // The minimum named in a refusal is accepted; one byte less is not.
    let least = ssd("durassd:capacity=1GiB,cache=2k").ftl.dump.unwrap().budget_bytes;
    let text = |bytes| format!("durassd:capacity=1GiB,cache=2k,energy={bytes}B");
    assert_eq!(budget(&text(least)), least);
    refused(&text(least - 1), &format!("at least {least} are needed"));
    // 2^20 frames of 4 KiB need at least 4.3 GB; 15 capacitors store 51 MB.
    refused("durassd:cache=1m,capacitors=15", "at least 4304756736 are needed, 1259 capacitors");
    refused("durassd:energy=12", "bytes that can be dumped, with a unit");
    refused("durassd:capacitors=0", "1 to 65536");
    refused("durassd:energy=1GB,capacitors=3", "not both");
    refused("durassd:energy=64MB,storage-cache=off", "of a write cache that is on");
    refused("ssd-b:energy=64MB", "no parameter \"energy\"");
    let config = ssd("durassd:capacity=1GiB,energy=64MB");
    config.ftl.check(&config.geometry(), 0).unwrap();
}

#[test]
fn the_capacitors_that_a_refusal_names_are_enough() {
    let error = DeviceSpec::parse("durassd:cache=40k,capacitors=15").unwrap_err().to_string();
    let count: u32 = error.rsplit(", ").next().unwrap().split(' ').next().unwrap().parse().unwrap();
    ssd(&format!("durassd:cache=40k,capacitors={count}"));
    refused(&format!("durassd:cache=40k,capacitors={}", count - 1), "are needed");
}

#[test]
fn cleaning_and_wear_levelling_are_chosen_by_name() {
    for name in ["durassd", "ssd-a", "openssd", "x25-m"] {
        let ftl = ssd(&format!("{name}:capacity=1GiB,cleaning=fifo,wear_spread=16")).ftl;
        assert_eq!((ftl.cleaning, ftl.wear_spread_max), (CleaningSpec::Fifo, 16), "{name}");
    }
    for name in ["txssd", "nvcache"] {
        let config = tx_ssd(&format!("{name}:capacity=1GiB,cleaning=cost-benefit,wear_spread=0"));
        let ftl = config.device().unwrap().ftl;
        assert_eq!((ftl.cleaning, ftl.wear_spread_max), (CleaningSpec::CostBenefit, u32::MAX));
    }
    let drawn = |seed| CleaningSpec::DChoices { choices: 4, seed };
    assert_eq!(ssd("durassd:cleaning=d-choices:4").ftl.cleaning, drawn(0));
    assert_eq!(ssd("durassd:capacity=1GiB").ftl.wear_spread_max, 128);
    refused("durassd:cleaning=lifo", "cleaning is greedy, cost-benefit, fifo or d-choices:N");
    refused("txssd:wear_spread=-1", "wear_spread is resets");
    refused("mtron:cleaning=fifo", "no parameter \"cleaning\"");
}

#[test]
fn where_cleaning_copies_to_is_chosen_by_name() {
    for (text, with_writes) in [
        ("openssd:capacity=1GiB", true),
        ("openssd:capacity=1GiB,copies=apart", false),
        ("durassd:capacity=1GiB", false),
        ("ssd-a:capacity=1GiB,copies=with-writes", true),
    ] {
        assert_eq!(ssd(text).ftl.copies_with_writes, with_writes, "{text}");
    }
    // The board has all the flash of which its firmware offers a part; one block of it is free.
    let config = ssd("openssd:pages=262144,op=0.074");
    let geometry = config.geometry();
    let raw_zones = (262_144.0_f64 * 1.074 / f64::from(geometry.slots_per_zone)).ceil() as u32;
    let own = geometry.zones - raw_zones;
    assert!((3..=7).contains(&own), "{own} zones for checkpoints and failures");
    refused("ssd-a:copies=mixed", "copies is apart or with-writes");
    refused("mtron:copies=apart", "no parameter \"copies\"");
}

#[test]
fn the_mtron_is_built_of_other_layers_and_channels_by_name() {
    let hybrid = |text: &str| match DeviceSpec::parse(text).unwrap() {
        DeviceSpec::Hybrid(config) => {
            // The name contains everything needed to make the device again.
            let again = DeviceSpec::parse(&config.name).unwrap();
            assert_eq!(again, DeviceSpec::Hybrid(config.clone()), "{}", config.name);
            config.layer
        }
        other => panic!("{text} is {other:?}"),
    };
    let plain = hybrid("mtron:pages=4k");
    assert_eq!((plain.spec, plain.nand.geometry.planes()), (PersonalitySpec::Bast { logs: 16 }, 8));
    let fast = hybrid("mtron:pages=4k,layer=fast,logs=64,channels=2,packages=3");
    assert_eq!((fast.spec, fast.nand.geometry.planes()), (PersonalitySpec::Fast { logs: 64 }, 6));
    assert_eq!(hybrid("mtron:pages=4k,layer=block-map").spec, PersonalitySpec::BlockMap);
    refused("mtron:layer=dftl", "layer");
    refused("mtron:channels=0", "channels");
}

/// Number of pages moved by cleaning on the device called `text`, after three times its capacity in
/// random writes.
fn pages_moved(text: &str, seed: u64) -> u64 {
    let (runtime, config) = (Virtual::new(Schedule::Fifo), ssd(text));
    let rt = runtime.clone();
    let run = async move {
        let device = config.build::<_, Stamp>(&rt, seed).await.unwrap();
        let mut rng = tantalum_base::Rng::new(1);
        for count in 0..4 * 4096 {
            let page = PageNo(if count < 4096 { count } else { rng.below(4096) });
            device.write(page, &[Stamp::new(page, count + 1)], None).await.unwrap();
        }
        device.device().ftl().statistics().pages_moved
    };
    let moved = runtime.run(run).unwrap();
    runtime.drop_tasks();
    moved
}

#[test]
fn the_cleaning_policy_that_was_said_cleans() {
    let text = |cleaning: &str| format!("durassd:pages=4096,op=0.1,cache=64,cleaning={cleaning}");
    let moved = |cleaning: &str, seed| pages_moved(&text(cleaning), seed);
    let (greedy, fifo) = (moved("greedy", 1), moved("fifo", 1));
    assert!(greedy > 1000 && fifo > greedy, "{greedy} {fifo}");
    // Random draws come from the device's seed.
    assert_eq!(moved("d-choices:2", 1), moved("d-choices:2", 1));
    assert_ne!(moved("d-choices:2", 1), moved("d-choices:2", 2));
}

#[test]
fn a_tx_ssd_takes_what_a_tx_cache_has() {
    let cache = tx_ssd(
        "txssd:capacity=4GiB,cache=8k,extended=4k,transactions=200,headers=300,release=mapped",
    )
    .cache;
    assert_eq!((cache.cache_pages, cache.extended_pages), (8192, 4096));
    assert_eq!((cache.transactions_max, cache.headers), (200, 300));
    assert_eq!(cache.header_release, HeaderRelease::Mapped);
    let usual = tx_ssd("txssd:capacity=4GiB,release=written-back").cache;
    assert_eq!(usual, tx_ssd("txssd:capacity=4GiB").cache);
    // Half as many headers as pages of the cache. With more transactions there are as many headers as
    // transactions; fewer headers than transactions are refused.
    let headers = |text| tx_ssd(text).cache.headers;
    assert_eq!(headers("txssd:capacity=4GiB,cache=8k"), 4096);
    assert_eq!(headers("txssd:capacity=1GiB,cache=64"), 128);
    assert_eq!(headers("txssd:capacity=1GiB,cache=64,transactions=500"), 500);
    refused("txssd:transactions=500,headers=499", "headers is 500 to");
    refused("txssd:release=never", "release is written-back or mapped");
    refused("nvcache:extended=0", "no parameter \"extended\"");
    assert_eq!(tx_ssd("txssd:capacity=1GiB,extended=0").cache.extended_pages, 0);
}

#[test]
fn a_tx_ssd_of_all_parameters_works() {
    let runtime = Virtual::new(Schedule::Fifo);
    let rt = runtime.clone();
    let run = async move {
        let text = "txssd:pages=5000,cache=64,extended=100,transactions=2,headers=3,release=mapped,\
                    cleaning=fifo,wear_spread=4";
        let device = tx_ssd(text).build::<_, Stamp>(&rt, 1).await.unwrap();
        let (first, second) = (device.begin().await.unwrap(), device.begin().await.unwrap());
        let refusal = device.begin().await.unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::TooManyTransactions);
        // More than fits in the cache: the rest is in the extended cache.
        for page in (0..90).map(PageNo) {
            device.write(page, &[Stamp::new(page, 1)], Some(first)).await.unwrap();
        }
        device.abort(second).await.unwrap();
        device.commit(first).await.unwrap();
        let mut out = vec![Stamp::zero(); 90];
        device.read(PageNo(0), &mut out, None).await.unwrap();
        assert!((0..90).all(|page| out[page as usize] == Stamp::new(PageNo(page), 1)));
        assert!(device.device().statistics().pages_spilled > 0);
        Rc::clone(&device)
    };
    runtime.run(run).unwrap();
    runtime.drop_tasks();
}

#[test]
fn a_cache_larger_than_its_device_is_refused_before_anything_is_made() {
    refused("txssd:capacity=100GiB,cache=512m", "cache is 64 to 26214400");
    refused("durassd:capacity=1GiB,cache=1m", "cache is 64 to 262144");
    refused("cheetah-15k6:capacity=1GiB,cache=1m", "cache is 1 to 262144");
    refused("txssd:capacity=1GiB,extended=512m", "extended is 0 to 262144");
    // The minimum cache of a scaled device may be larger than that of a small device.
    assert_eq!(ssd("durassd:pages=5,cache=1k").ssd.cache_pages, 1024);
}

#[test]
fn a_clouds_volume_is_sold_with_more_of_each() {
    let metered = |text: &str| match DeviceSpec::parse(text).unwrap() {
        DeviceSpec::Cloud(config) => {
            let again = DeviceSpec::parse(&config.name).unwrap();
            assert_eq!(again, DeviceSpec::Cloud(config.clone()), "{}", config.name);
            config.metered
        }
        other => panic!("{text} is {other:?}"),
    };
    let more = metered("cloud_volume:pages=4k,iops=16000,throughput=1000MiB,latency-us=500");
    let rate = Rate { commands_per_second: 16_000, bytes_per_second: 1000 << 20 };
    assert_eq!((more.pages, more.allowance), (4096, Allowance::Shared(rate)));
    assert_eq!([more.read_ns, more.write_ns, more.flush_ns], [500_000; 3]);
    assert_eq!(metered("cloud-volume").pages, (1 << 40) / 4096);
    assert_eq!(metered("cloud-local-ssd").pages, (375 << 30) / 4096);
    refused("cloud-volume:iops=0", "iops is 1 to 10000000, default 3000");
    refused("cloud-volume:throughput=125", "throughput is bytes a second, with a unit");
    refused("cloud-volume:throughput=0MiB", "throughput is bytes a second, with a unit");
    refused("cloud-volume:latency-us=0", "latency-us is 1 to 1000000, default 1000");
    refused("cloud-local-ssd:iops=9", "no parameter \"iops\"");
}
