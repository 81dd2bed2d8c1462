//! Records in bytes and as remembered stamps, on a disk that forgets or tears unflushed writes.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{
    Durability, ErrorKind, Limits, PageBuf, PageDevice, PageNo, PageRange, Payload, Result, Rng,
    Stamp, TxId,
};
use tantalum_hosts::fault_points::Fault;
use tantalum_hosts::records::{
    ByteCodec, ByteRecord, Codec, Draft, FRAME_BYTES, PAGE_ROOM, Place, Record, RecordDevice,
    Remembered,
};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

const DISK_PAGES: u64 = 64;

/// A text, or the head of something.
#[derive(Clone, PartialEq, Debug)]
enum Note {
    Head(u64),
    Text(Vec<u8>),
}

impl Record for Note {
    fn content_bytes(&self) -> usize {
        match self {
            Note::Head(_) => 9,
            Note::Text(text) => 1 + text.len(),
        }
    }

    fn mark(&self) -> u8 {
        match self {
            Note::Head(_) => 2,
            Note::Text(_) => 1,
        }
    }
}

impl ByteRecord for Note {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Note::Head(number) => {
                out.push(2);
                out.extend(number.to_le_bytes());
            }
            Note::Text(text) => {
                out.push(1);
                out.extend(text);
            }
        }
    }

    fn decode(content: &[u8]) -> Option<Self> {
        match content.split_first()? {
            (2, number) => Some(Note::Head(u64::from_le_bytes(number.try_into().ok()?))),
            (1, text) => Some(Note::Text(text.to_vec())),
            _ => None,
        }
    }
}

fn text(rng: &mut Rng, bytes: usize) -> Rc<Note> {
    let mut text = vec![0; bytes];
    rng.fill(&mut text);
    Rc::new(Note::Text(text))
}

/// A volatile disk that shares. After a cut each page that was not flushed is old, new or torn.
struct Disk<P> {
    durable: RefCell<Vec<P>>,
    now: RefCell<Vec<P>>,
    limits: Limits,
}

impl<P: Payload> Disk<P> {
    fn new() -> Rc<Self> {
        let limits = Limits {
            page_bytes: 4096,
            pages: DISK_PAGES,
            atomic_write_pages_max: 3,
            transaction_pages_max: 0,
            transactions_max: 0,
            share_pairs_max: 64,
            durability: Durability::Volatile,
        };
        let blank = || RefCell::new(vec![P::zero(); DISK_PAGES as usize]);
        Rc::new(Disk { durable: blank(), now: blank(), limits })
    }

    fn cut(&self, rng: &mut Rng) {
        let (mut durable, mut now) = (self.durable.borrow_mut(), self.now.borrow_mut());
        for (old, new) in durable.iter_mut().zip(now.iter_mut()) {
            let found = match rng.below(3) {
                0 => old.clone(),
                1 => new.clone(),
                _ if old != new => new.torn(),
                _ => new.clone(),
            };
            (*old, *new) = (found.clone(), found);
        }
    }
}

impl<P: Payload> PageDevice for Disk<P> {
    type Page = P;

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn read(&self, first: PageNo, out: &mut [P], _: Option<TxId>) -> Result<()> {
        let now = self.now.borrow();
        out.clone_from_slice(&now[first.index()..first.index() + out.len()]);
        Ok(())
    }

    async fn write(&self, first: PageNo, pages: &[P], _: Option<TxId>) -> Result<()> {
        self.limits.check_write(PageRange::new(first, pages.len() as u64))?;
        let mut now = self.now.borrow_mut();
        now[first.index()..first.index() + pages.len()].clone_from_slice(pages);
        Ok(())
    }

    async fn flush(&self) -> Result<()> {
        self.durable.borrow_mut().clone_from(&self.now.borrow());
        Ok(())
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        range.iter().for_each(|page| self.now.borrow_mut()[page.index()] = P::zero());
        Ok(())
    }

    async fn share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        self.limits.check_share(pairs)?;
        for (left, right) in pairs {
            let content = self.now.borrow()[right.index()].clone();
            self.now.borrow_mut()[left.index()] = content;
        }
        self.flush().await
    }
}

fn run<F: Future<Output = ()> + 'static>(test: F) {
    let runtime = Virtual::new(Schedule::Fifo);
    runtime.run(test).unwrap();
    runtime.drop_tasks();
}

type Notes<P, C> = (Rc<Disk<P>>, RecordDevice<Disk<P>, C>);

fn notes<P: Payload, C: Codec<Page = P, Record = Note>>(codec: &Rc<C>) -> Notes<P, C> {
    let disk = Disk::new();
    let device = RecordDevice::new(&disk, codec);
    (disk, device)
}

/// Records of many lengths, packed, aligned and with skipped pages, are found where they were drafted.
async fn all_come_back<P: Payload, C: Codec<Page = P, Record = Note>>(codec: Rc<C>) {
    for seed in 0..50 {
        let (_, device) = notes(&codec);
        let rng = &mut Rng::new(seed);
        let mut draft = Draft::new(PageNo(3));
        let mut expected = Vec::new();
        while draft.next().0 < 40 {
            let some = 1 + rng.below(6);
            let long = rng.below(6_000);
            let mut records: Vec<_> = (0..some)
                .map(|_| rng.below(long + 1))
                .collect::<Vec<_>>()
                .into_iter()
                .map(|bytes| text(rng, bytes as usize))
                .collect();
            let places = match rng.below(3) {
                0 => draft.pack(records.clone()),
                1 => records.iter().map(|record| draft.align(Rc::clone(record))).collect(),
                _ => {
                    draft.skip(1);
                    records = vec![Rc::new(Note::Head(seed))];
                    vec![draft.align(Rc::clone(&records[0]))]
                }
            };
            expected.extend(places.into_iter().zip(records));
        }
        device.write(&draft).await.unwrap();
        for (place, record) in expected {
            assert_eq!(*device.read(place).await.unwrap(), *record, "seed {seed}, {place:?}");
        }
    }
}

#[test]
fn records_come_back_from_bytes_and_from_stamps() {
    run(all_come_back::<PageBuf, _>(Rc::new(ByteCodec::<Note>::default())));
    run(all_come_back::<Stamp, _>(Rc::new(Remembered::<Note>::default())));
}

/// Places and numbers of written pages are the same in both.
#[test]
fn packed_records_share_pages_and_aligned_ones_do_not() {
    let rng = &mut Rng::new(1);
    let mut draft = Draft::new(PageNo(10));
    let texts: Vec<_> = (0..8).map(|_| text(rng, 1_000)).collect();
    let packed = draft.pack(texts.clone());
    // 8 times 8 bytes of frame, 1 of kind and 1,000 of text.
    assert_eq!(draft.next(), PageNo(12), "{} bytes", 8 * 1_009);
    assert_eq!(packed[4], Place { page: PageNo(10), offset: 4 * 1_009, bytes: 1_009 });
    assert_eq!(packed[4].range(), PageRange::new(PageNo(10), 2), "it crosses the boundary");
    let aligned: Vec<_> = texts.into_iter().map(|text| draft.align(text)).collect();
    assert_eq!(draft.next(), PageNo(20));
    assert_eq!(aligned[7], Place::of_pages(PageNo(19), 1));
    assert_eq!(Place::of_pages(PageNo(0), 2).bytes as usize, 2 * PAGE_ROOM);
}

/// A read after a cut finds a record written before or after the last flush, or fails with an error that names
/// the place.
async fn cut_again_and_again<P: Payload, C: Codec<Page = P, Record = Note>>(codec: Rc<C>) {
    let (mut torn, mut old, mut new) = (0, 0, 0);
    let (disk, device) = notes(&codec);
    let rng = &mut Rng::new(7);
    // Records of two pages in 16 places; the next number of each, and the numbers that its place may hold.
    let place = |slot: u64| Place::of_pages(PageNo(2 * slot), 2);
    let mut possible: Vec<Vec<Rc<Note>>> = vec![Vec::new(); 16];
    for _ in 0..400 {
        for _ in 0..rng.below(8) {
            let slot = rng.below(16);
            let record = text(rng, PAGE_ROOM);
            let mut draft = Draft::new(place(slot).page);
            draft.align(Rc::clone(&record));
            device.write(&draft).await.unwrap();
            possible[slot as usize].push(record);
            if rng.chance(0.2) {
                device.flush().await.unwrap();
                possible
                    .iter_mut()
                    .for_each(|held| drop(held.drain(..held.len().saturating_sub(1))));
            }
        }
        disk.cut(rng);
        device.reopened();
        for slot in 0..16 {
            let held = &mut possible[slot as usize];
            match device.read(place(slot)).await {
                Ok(found) => {
                    let at = held.iter().rposition(|record| *record == found);
                    let at = at.expect("a record that this place may not hold");
                    new += u64::from(at + 1 == held.len());
                    old += u64::from(at + 1 < held.len());
                    *held = vec![found];
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt);
                    let pages = place(slot).range().to_string();
                    assert!(error.to_string().contains(&pages), "{error}");
                    torn += 1;
                    // A later write makes it whole; until then it is unchanged.
                }
            }
        }
    }
    assert!(torn > 20 && old > 20 && new > 20, "{torn} torn, {old} old, {new} new");
}

#[test]
fn after_cuts_a_record_is_whole_or_an_error() {
    run(cut_again_and_again::<PageBuf, _>(Rc::new(ByteCodec::<Note>::default())));
    run(cut_again_and_again::<Stamp, _>(Rc::new(Remembered::<Note>::default())));
}

/// A shared record stays when its source is written again or trimmed.
async fn share_and_overwrite<P: Payload, C: Codec<Page = P, Record = Note>>(codec: Rc<C>) {
    let (disk, device) = notes(&codec);
    let rng = &mut Rng::new(3);
    let (home, area) = (Place::of_pages(PageNo(4), 2), Place::of_pages(PageNo(20), 2));
    for round in 0..50 {
        let record = text(rng, PAGE_ROOM + round);
        let mut draft = Draft::new(area.page);
        draft.align(Rc::clone(&record));
        device.write(&draft).await.unwrap();
        let pairs: Vec<_> = home.range().iter().zip(area.range().iter()).collect();
        device.share(&pairs).await.unwrap();
        assert_eq!(device.read(home).await.unwrap(), record);
        if rng.chance(0.5) {
            device.trim(area.range()).await.unwrap();
            assert_eq!(device.read(area).await.unwrap_err().kind(), ErrorKind::Corrupt);
        }
        disk.cut(rng);
        device.reopened();
        assert_eq!(device.read(home).await.unwrap(), record, "round {round}");
    }
    let counts = device.counts();
    assert_eq!((counts.pages_written, counts.pages_shared, counts.shares), (100, 100, 50));
}

#[test]
fn a_shared_record_outlives_the_place_it_came_from() {
    run(share_and_overwrite::<PageBuf, _>(Rc::new(ByteCodec::<Note>::default())));
    run(share_and_overwrite::<Stamp, _>(Rc::new(Remembered::<Note>::default())));
}

#[test]
fn a_text_that_looks_like_a_head_is_none() {
    run(async {
        let codec = Rc::new(ByteCodec::<Note>::default());
        let (_, device) = notes(&codec);
        // The room of a page with a head, moved to the place where the second page of a text begins.
        let head = &codec.encode(PageNo(0), &[Rc::new(Note::Head(5))])[0];
        let mut forged = vec![0; PAGE_ROOM - 9];
        forged.extend(&head[1..]);
        let mut draft = Draft::new(PageNo(8));
        draft.align(Rc::new(Note::Text(forged)));
        draft.align(Rc::new(Note::Head(6)));
        device.write(&draft).await.unwrap();
        assert_eq!(device.try_read(Place::of_pages(PageNo(9), 1)).await.unwrap(), None);
        let head = device.read(Place::of_pages(PageNo(10), 1)).await.unwrap();
        assert_eq!(*head, Note::Head(6));
    });
}

/// A text whose second page begins with bytes that look like a record; returns the record found there.
fn read_from_the_middle() -> Option<String> {
    let found = Rc::new(RefCell::new(None));
    let out = Rc::clone(&found);
    run(async move {
        let (_, notes) = notes(&Rc::new(ByteCodec::<Note>::default()));
        let inner = Note::Text(b"no record of its own".to_vec());
        let framed = ByteCodec::default().encode(PageNo(0), &[Rc::new(inner)]);
        let mut text = vec![b'x'; PAGE_ROOM - FRAME_BYTES - 1];
        text.extend(&framed[0][1..100]);
        let whole = Rc::new(Note::Text(text));
        let mut draft = Draft::new(PageNo(4));
        let place = draft.align(Rc::clone(&whole));
        notes.write(&draft).await.unwrap();
        assert_eq!(notes.read(place).await.unwrap(), whole);
        let inner = notes.try_read(Place::of_pages(PageNo(5), 1)).await.unwrap();
        out.replace(inner.map(|inner| format!("{inner:?}")));
    });
    found.take()
}

#[test]
fn no_record_is_read_from_the_middle_of_another_one() {
    assert_noticed(Fault::RecordsAnywhere, read_from_the_middle);
}

#[test]
fn what_no_page_can_hold_any_more_is_forgotten() {
    run(async {
        let codec = Rc::new(Remembered::<Note>::default());
        let (_, device) = notes(&codec);
        let rng = &mut Rng::new(11);
        for round in 0..1_000 {
            let mut draft = Draft::new(PageNo(2 * rng.below(16)));
            draft.align(text(rng, PAGE_ROOM));
            device.write(&draft).await.unwrap();
            let left = PageRange::new(PageNo(40 + 2 * rng.below(8)), 2);
            let pairs: Vec<_> = left.iter().zip((draft.next().0 - 2..).map(PageNo)).collect();
            device.share(&pairs).await.unwrap();
            if round % 10 == 9 {
                device.flush().await.unwrap();
                assert!(codec.runs() <= 16 + 8, "{} runs in 24 places", codec.runs());
            }
        }
        device.trim(PageRange::new(PageNo(0), DISK_PAGES)).await.unwrap();
        assert!(codec.runs() > 0, "a cut may still bring them back");
        device.flush().await.unwrap();
        assert_eq!(codec.runs(), 0);
    });
}
