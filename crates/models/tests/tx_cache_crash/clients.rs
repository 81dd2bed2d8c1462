//! Concurrent clients, each on pages of its own, which know their expected content.
use crate::tx_cache_crash::rig::Device;
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{ErrorKind, PageDevice, PageNo, PageRange, Payload, Result, Rng, Stamp, TxId};

/// The commands of the clients.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub clients: u64,
    pub pages_per_client: u64,
    /// Commands per client; a whole transaction counts as one.
    pub commands: u32,
    /// Maximum number of writes in a transaction.
    pub writes_max: u64,
    /// Maximum number of pages in a write.
    pub write_pages_max: u64,
    pub transactions: bool,
}

impl Shape {
    pub fn pages(&self) -> u64 {
        self.clients * self.pages_per_client
    }
}

/// One client: the content of its pages, and the content if the command in flight took effect. A
/// content is the count of its write; 0 means empty.
#[derive(Clone, Debug)]
pub struct Client {
    first: PageNo,
    pub acknowledged: Vec<u64>,
    pub pending: Option<Vec<u64>>,
    rng: Rng,
    next: u64,
}

impl Client {
    pub fn new(shape: &Shape, number: u64, seed: u64) -> Client {
        let mut rng = Rng::split(seed, "clients");
        (0..=number).for_each(|_| _ = rng.next_u64());
        Client {
            first: PageNo(number * shape.pages_per_client),
            acknowledged: vec![0; shape.pages_per_client as usize],
            pending: None,
            rng: Rng::new(rng.next_u64()),
            next: number << 32,
        }
    }

    /// Compares `found`, the counts on the device, with the allowed contents.
    pub fn verify(&mut self, found: &[u64]) -> std::result::Result<(), String> {
        let found = &found[self.first.index()..][..self.acknowledged.len()];
        let pending = self.pending.take();
        if found == self.acknowledged {
            return Ok(());
        }
        match pending {
            Some(pending) if pending == found => self.acknowledged = pending,
            pending => {
                let first = self.first;
                return Err(format!(
                    "pages from {first} on: found {found:?}, acknowledged {:?}, pending {pending:?}",
                    self.acknowledged
                ));
            }
        }
        Ok(())
    }
}

type Shared = Rc<RefCell<Client>>;

fn stamps(first: PageNo, counts: &[u64]) -> Vec<Stamp> {
    let pages = (first.0..).map(PageNo).zip(counts);
    pages.map(|(page, count)| Stamp::new(page, *count)).collect()
}

/// Runs one client to its end; stops for good after a power cut.
pub async fn run(device: Rc<Device>, client: Shared, shape: Shape, is_cut: impl Fn() -> bool) {
    for _ in 0..shape.commands {
        let result = command(&device, &client, &shape, &is_cut).await;
        if is_cut() {
            return std::future::pending().await;
        }
        result.unwrap();
    }
}

async fn command(
    device: &Device,
    client: &Shared,
    shape: &Shape,
    is_cut: &impl Fn() -> bool,
) -> Result<()> {
    let kind = client.borrow_mut().rng.below(20);
    match kind {
        0 => trim(device, client, shape, is_cut).await,
        1 => read(device, client).await,
        kind if kind <= 7 || !shape.transactions => {
            let (first, counts) = draw(client, shape);
            let pending = changed(&client.borrow().acknowledged, client, first, &counts);
            client.borrow_mut().pending = Some(pending);
            let result = device.write(first, &stamps(first, &counts), None).await;
            acknowledge(client, is_cut, result)
        }
        _ => transaction(device, client, shape, is_cut, kind < 11).await,
    }
}

/// The range of a write and its contents, each of which is written only once.
fn draw(client: &Shared, shape: &Shape) -> (PageNo, Vec<u64>) {
    let client = &mut *client.borrow_mut();
    let pages = 1 + client.rng.below(shape.write_pages_max);
    let offset = client.rng.below(shape.pages_per_client - pages + 1);
    let counts = (0..pages).map(|index| client.next + index + 1).collect();
    client.next += pages;
    (PageNo(client.first.0 + offset), counts)
}

fn changed(contents: &[u64], client: &Shared, first: PageNo, counts: &[u64]) -> Vec<u64> {
    let mut contents = contents.to_vec();
    let at = (first.0 - client.borrow().first.0) as usize;
    contents[at..][..counts.len()].copy_from_slice(counts);
    contents
}

fn acknowledge(client: &Shared, is_cut: &impl Fn() -> bool, result: Result<()>) -> Result<()> {
    // A result that arrives after the cut reaches nobody.
    if result.is_ok() && !is_cut() {
        let client = &mut *client.borrow_mut();
        client.acknowledged = client.pending.take().expect("something was waited for");
    }
    result
}

async fn trim(
    device: &Device,
    client: &Shared,
    shape: &Shape,
    is_cut: &impl Fn() -> bool,
) -> Result<()> {
    let (first, _) = draw(client, shape);
    let end = client.borrow().first.0 + shape.pages_per_client;
    let pages = 1 + client.borrow_mut().rng.below(end - first.0);
    let zeros = vec![0; pages as usize];
    let pending = changed(&client.borrow().acknowledged, client, first, &zeros);
    client.borrow_mut().pending = Some(pending);
    acknowledge(client, is_cut, device.trim(PageRange::new(first, pages)).await)
}

async fn read(device: &Device, client: &Shared) -> Result<()> {
    let (first, expected) = (client.borrow().first, client.borrow().acknowledged.clone());
    compare(device, first, &expected, None).await
}

async fn compare(device: &Device, first: PageNo, counts: &[u64], tx: Option<TxId>) -> Result<()> {
    let mut out = vec![Stamp::zero(); counts.len()];
    device.read(first, &mut out, tx).await?;
    let expected = stamps(first, counts);
    for ((seen, expected), count) in out.iter().zip(expected).zip(counts) {
        let expected = if *count == 0 { Stamp::zero() } else { expected };
        assert_eq!(*seen, expected, "from {first} on, in {tx:?}");
    }
    Ok(())
}

async fn transaction(
    device: &Device,
    client: &Shared,
    shape: &Shape,
    is_cut: &impl Fn() -> bool,
    aborts: bool,
) -> Result<()> {
    let tx = device.begin().await?;
    let mut inside = client.borrow().acknowledged.clone();
    let writes = 1 + client.borrow_mut().rng.below(shape.writes_max);
    let mut full = false;
    for _ in 0..writes {
        let (first, counts) = draw(client, shape);
        match device.write(first, &stamps(first, &counts), Some(tx)).await {
            Err(error) if error.kind() == ErrorKind::OutOfSpace && !is_cut() => {
                full = true;
                break;
            }
            result => result?,
        }
        inside = changed(&inside, client, first, &counts);
    }
    let (first, outside) = (client.borrow().first, client.borrow().acknowledged.clone());
    if client.borrow_mut().rng.chance(0.3) {
        compare(device, first, &inside, Some(tx)).await?;
        compare(device, first, &outside, None).await?;
    }
    if aborts || full {
        return device.abort(tx).await;
    }
    client.borrow_mut().pending = Some(inside);
    acknowledge(client, is_cut, device.commit(tx).await)
}
