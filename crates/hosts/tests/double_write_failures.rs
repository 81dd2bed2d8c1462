//! What wrong input, failures, a stop and futures that are dropped leave of a database.
mod worst_disk;

use std::rc::Rc;
use tantalum_base::{Durability, ErrorKind, PageDevice, Result, Stamp};
use tantalum_hosts::double_write::{DoubleWrite, DoubleWriteOptions, Form, PageOptions, Tree};
use tantalum_hosts::records::Remembered;
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::ValueStamp;
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;
use worst_disk::WorstDisk;

type Stamps = Remembered<Block<ValueStamp>>;
type Engine<D> = Rc<DoubleWrite<Virtual, D, ValueStamp, Stamps>>;

const ROWS: Tree = Tree(0);

fn options(form: Form) -> DoubleWriteOptions {
    let pages = PageOptions {
        form,
        database_pages: 200,
        device_pages_per_page: 2,
        pool_pages: 64,
        batch_pages: 8,
        metadata_per_page: 0.0,
        metadata_pages: 0,
    };
    DoubleWriteOptions { pages, log_pages: 256, trees: 2 }
}

fn disk(durability: Durability) -> (Rc<WorstDisk<Stamp>>, Rc<Stamps>) {
    (WorstDisk::new(durability, 3_000), Rc::new(Stamps::default()))
}

fn key(number: u64) -> Vec<u8> {
    format!("row {number:06}").into_bytes()
}

fn value(count: u64) -> ValueStamp {
    ValueStamp { bytes: 900, count }
}

fn run<F: Future<Output = ()> + 'static>(seed: u64, test: impl FnOnce(Virtual) -> F) {
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let ran = runtime.run(test(runtime.clone()));
    runtime.drop_tasks();
    ran.unwrap_or_else(|deadlock| panic!("{deadlock:?}"));
}

async fn put<D: PageDevice<Page = Stamp>>(
    engine: &Engine<D>,
    number: u64,
    value: ValueStamp,
) -> Result<()> {
    let mut transaction = engine.begin();
    transaction.put(ROWS, &key(number), value).await?;
    transaction.commit().await
}

#[test]
fn no_key_tree_or_size_is_too_large_to_be_refused() {
    run(1, |rt| async move {
        let (disk, codec) = disk(Durability::OnAck);
        let mut huge = options(Form::On);
        huge.pages.database_pages = u64::MAX / 2 + 2;
        let refused = DoubleWrite::create(&rt, &disk, &codec, huge).await.err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        let engine = DoubleWrite::create(&rt, &disk, &codec, options(Form::On)).await.unwrap();
        let mut transaction = engine.begin();
        let refused = transaction.scan(Tree(u32::MAX), &[], None, 1).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        let refused = transaction.get_for_update(ROWS, &[]).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        let refused = transaction.get_for_update(ROWS, &[7; 251]).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TooLarge);
        assert_eq!(transaction.get_for_update(ROWS, &[7; 250]).await.unwrap(), None);
    });
}
