//! SHARE on a drive whose table of shared pages is as small as the paper's (section 4.2.1).
use tantalum_base::{PageNo, Result, Rng, Stamp};
use tantalum_hosts::double_write::{Form, PageLoad, PageOptions};
use tantalum_models::DeviceConfig;
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

/// InnoDB's batch of 120 pages, of 16 KiB each: 480 pages of the device.
const OPTIONS: PageOptions = PageOptions {
    form: Form::Share,
    database_pages: 2000,
    device_pages_per_page: 4,
    pool_pages: 480,
    batch_pages: 120,
    metadata_per_page: 0.0,
    metadata_pages: 1,
};

/// Numbers of pages that were shared, and of pages that were written again instead, with `entries`.
fn shared_and_copied(entries: u32) -> (u64, u64) {
    let runtime = Virtual::new(Schedule::Fifo);
    let rt = runtime.clone();
    let run = async move {
        let text = format!("openssd:capacity=64MiB,share-entries={entries}");
        let device = DeviceConfig::parse(&text)?.build::<_, Stamp>(&rt, 1).await?;
        let engine = PageLoad::create(&rt, &device, OPTIONS).await?;
        let mut rng = Rng::split(1, "pages");
        for _ in 0..6000 {
            engine.access(PageNo(rng.below(OPTIONS.database_pages)), true).await?;
        }
        engine.close().await?;
        let counted = device.device().statistics().ftl;
        let flushed = engine.statistics();
        assert!(flushed.batches > 30, "{flushed:?}");
        assert_eq!(counted.pages_shared + counted.pages_share_copied, flushed.shared_pages);
        assert!(counted.shared_entries <= u64::from(entries), "{counted:?}");
        Ok((counted.pages_shared, counted.pages_share_copied))
    };
    let counted: Result<_> = runtime.run(run).unwrap();
    runtime.drop_tasks();
    counted.unwrap()
}

#[test]
fn the_smaller_table_leaves_half_of_a_batch_of_16_kib_pages_to_be_written_again() {
    let (shared, copied) = shared_and_copied(500);
    assert!(copied * 50 < shared, "500 entries hold a batch: {copied} of {shared}");
    let (shared, copied) = shared_and_copied(250);
    let again = copied as f64 / (shared + copied) as f64;
    assert!((0.475..0.485).contains(&again), "{again}");
}
