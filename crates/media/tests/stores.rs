//! Wrappers of stores forward every call that they do not override.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::Result;
use tantalum_media::block_store::{Counting, EitherStore, Flaky, Salvage, StoreCounters, UntilCut};
use tantalum_media::{BlockStore, Episodes, IoBuf};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

/// Records which methods are called.
#[derive(Clone, Default)]
struct Asked(Rc<RefCell<Vec<&'static str>>>);

impl Asked {
    fn note<T>(&self, method: &'static str, answer: T) -> T {
        self.0.borrow_mut().push(method);
        answer
    }
}

impl BlockStore for Asked {
    fn bytes(&self) -> u64 {
        self.note("bytes", 8192)
    }

    fn buffer(&self, bytes: usize) -> IoBuf {
        self.note("buffer", IoBuf::zeroed(bytes))
    }

    fn recycle(&self, buf: IoBuf) {
        drop(buf);
        self.note("recycle", ());
    }

    async fn read(&self, _offset: u64, buf: IoBuf) -> Result<IoBuf> {
        self.note("read", Ok(buf))
    }

    async fn write(&self, _offset: u64, buf: IoBuf, _durable: bool) -> Result<IoBuf> {
        self.note("write", Ok(buf))
    }

    async fn sync(&self) -> Result<()> {
        self.note("sync", Ok(()))
    }

    async fn zero(&self, _offset: u64, _bytes: u64) -> Result<()> {
        self.note("zero", Ok(()))
    }

    async fn prepare(&self, _offset: u64, _bytes: u64) -> Result<()> {
        self.note("prepare", Ok(()))
    }

    async fn give_room_back(&self, _offset: u64, _bytes: u64) -> Result<bool> {
        self.note("give_room_back", Ok(true))
    }

    fn next_room(&self, _offset: u64) -> Option<u64> {
        self.note("next_room", None)
    }

    fn keep_spare(&self, _bytes: u64) {
        self.note("keep_spare", ());
    }

    fn check_room(&self) -> Result<()> {
        self.note("check_room", Ok(()))
    }
}

/// A layer that overrides nothing.
struct Bare(Asked);

impl tantalum_media::StoreLayer for Bare {
    type Inner = Asked;

    fn inner(&self) -> &Asked {
        &self.0
    }
}

/// Checks that each method calls the same method of the inner store once, and no other.
fn forwards(store: impl BlockStore, asked: &Asked) {
    let all = async move {
        store.bytes();
        let buf = store.buffer(4096);
        let buf = store.read(0, buf).await?;
        let buf = store.write(0, buf, true).await?;
        store.recycle(buf);
        store.sync().await?;
        store.zero(0, 4096).await?;
        store.prepare(0, 4096).await?;
        assert!(store.give_room_back(0, 4096).await?);
        assert_eq!(store.next_room(0), None);
        store.keep_spare(4096);
        store.check_room()
    };
    Virtual::new(Schedule::Fifo).run(all).unwrap().unwrap();
    let each = [
        "bytes",
        "buffer",
        "read",
        "write",
        "recycle",
        "sync",
        "zero",
        "prepare",
        "give_room_back",
        "next_room",
        "keep_spare",
        "check_room",
    ];
    assert_eq!(asked.0.take(), each);
}

#[test]
fn every_method_of_a_wrapper_asks_the_same_of_its_store() {
    let asked = Asked::default();
    forwards(Bare(asked.clone()), &asked);
    forwards(Counting::new(asked.clone(), StoreCounters::default()), &asked);
    forwards(Salvage::new(asked.clone(), true), &asked);
    let episodes = Episodes::new(Virtual::new(Schedule::Fifo));
    forwards(Flaky::new(asked.clone(), episodes), &asked);
    forwards(UntilCut::new(asked.clone(), || false), &asked);
    forwards(EitherStore::<_, Bare>::One(asked.clone()), &asked);
    forwards(EitherStore::<Bare, _>::Other(asked.clone()), &asked);
}
