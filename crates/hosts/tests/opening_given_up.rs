//! An opening that is given up midway, for example after a timeout: no task continues to write afterwards.
use std::rc::Rc;
use tantalum_base::Result;
use tantalum_base::fault_points::assert_noticed;
use tantalum_hosts::double_write::{DoubleWrite, DoubleWriteOptions, Form, PageOptions};
use tantalum_hosts::fault_points::Fault;
use tantalum_hosts::records::ByteCodec;
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::Tree;
use tantalum_models::DeviceSpec;
use tantalum_runtime::{First, Runtime, Virtual, first};

type Bytes = ByteCodec<Block<Rc<[u8]>>>;

const ROWS: Tree = Tree(0);
const TRANSACTIONS: u32 = 300;

fn options() -> DoubleWriteOptions {
    let pages = PageOptions {
        form: Form::On,
        database_pages: 400,
        device_pages_per_page: 1,
        pool_pages: 32,
        batch_pages: 8,
        metadata_per_page: 0.0,
        metadata_pages: 0,
    };
    DoubleWriteOptions { pages, log_pages: 1_024, trees: 1 }
}

/// The keys are scattered, so that changes of many pages must be repeated.
fn key(number: u32) -> [u8; 4] {
    (number * 7_919 % TRANSACTIONS).to_be_bytes()
}

fn value(number: u32) -> Rc<[u8]> {
    vec![number as u8; 500].into()
}

/// Gives up openings, each a little later than the one before, until one succeeds; returns the error that
/// it found.
async fn give_up(runtime: Virtual) -> Result<Option<String>> {
    let device = DeviceSpec::parse("durassd:capacity=64MiB")?;
    let device = device.build_bytes(&runtime, 1).await?.device;
    let codec = Rc::new(Bytes::default());
    let holders = Rc::strong_count(&device);
    let engine = DoubleWrite::create(&runtime, &device, &codec, options()).await?;
    for number in 0..TRANSACTIONS {
        let mut transaction = engine.begin();
        transaction.put(ROWS, &key(number), value(number)).await?;
        transaction.commit().await?;
    }
    // Without a checkpoint openings must repeat everything.
    engine.stop().await;
    drop(engine);
    let (mut patience_ns, mut given_up) = (20_000, 0);
    let (engine, _) = loop {
        let opening = DoubleWrite::open(&runtime, &device, &codec, options());
        match first(opening, runtime.sleep(patience_ns)).await {
            First::One(opened) => break opened?,
            First::Other(()) => given_up += 1,
        }
        // Requests to the device come to their end.
        runtime.sleep(1_000_000_000).await;
        if Rc::strong_count(&device) > holders {
            return Ok(Some(format!("given up after {patience_ns} ns, it left tasks behind")));
        }
        patience_ns += 100_000;
    };
    assert!(given_up > 20, "only {given_up} openings were given up");
    for number in 0..TRANSACTIONS {
        if engine.get(ROWS, &key(number)).await? != Some(value(number)) {
            return Ok(Some(format!("row {number} is not what was committed")));
        }
    }
    engine.close().await?;
    Ok(None)
}

fn found() -> Option<String> {
    Virtual::alone("openings that are given up", give_up).expect("no command fails")
}

#[test]
fn an_opening_that_is_given_up_leaves_nobody_behind() {
    assert_eq!(found(), None);
}

#[test]
fn an_opening_that_writes_on_is_noticed() {
    assert_noticed(Fault::OpeningGoesOn, found);
}
