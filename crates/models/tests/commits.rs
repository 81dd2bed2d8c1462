//! Commits on every device with transactions: pages stay private until the commit, and a failed commit
//! has ended its transaction.
use crate::reads::devices::{Shape, Zones, run, zones};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use tantalum_base::{
    Error, ErrorKind, PageDevice, PageNo, PageRange, Payload, Result, Stamp, TxId,
};
use tantalum_ftl::{DumpOptions, Ftl, FtlOptions};
use tantalum_media::wrappers::{AppendFault, Faults, FaultsOptions};
use tantalum_media::{ErasedZones, ZoneMedia};
use tantalum_models::baselines::{
    Clustering, RedoLog, ShadowDevice, ShadowLog, ShadowOptions, Wal, WalCommit, WalOptions,
};
use tantalum_models::{TxCache, TxCacheOptions};
use tantalum_runtime::{LifeCycle, Runtime, Virtual};
use tantalum_ssd::{CacheKind, Ssd, SsdOptions};

const PAGES: u64 = 100;

type Media = Faults<Zones>;

/// The medium under the FTL; it can be told to fail.
fn media(runtime: &Virtual) -> Result<Rc<Media>> {
    let zones = zones(runtime, Shape { blocks_per_plane: 40, ..Shape::SMALL })?;
    Ok(Rc::new(Faults::new(Rc::new(zones), FaultsOptions::default())))
}

/// The kind of device under test.
trait Kind: Copy + 'static {
    type Device: PageDevice<Page = Stamp>;

    async fn make(self, runtime: Virtual, media: Rc<Media>) -> Result<Rc<Self::Device>>;
}

#[derive(Clone, Copy)]
struct WriteCached(CacheKind);

impl Kind for WriteCached {
    type Device = Ssd<ErasedZones<Stamp>>;

    async fn make(self, runtime: Virtual, media: Rc<Media>) -> Result<Rc<Self::Device>> {
        let mut ftl = FtlOptions::new(PAGES);
        if self.0 == CacheKind::Durable {
            ftl.dump = Some(DumpOptions::least(&media.geometry(), PAGES, 16));
        }
        let mut options = SsdOptions::new(self.0, 16);
        options.write_back_start_pages = 4;
        options.transaction_pages_max = 12;
        let device =
            Rc::new(Ssd::new(Ftl::format(ErasedZones::shared(media), ftl).await?, options)?);
        device.start(&runtime);
        Ok(device)
    }
}

#[derive(Clone, Copy)]
struct Shadow;

impl Kind for Shadow {
    type Device = ShadowDevice<ErasedZones<Stamp>>;

    async fn make(self, runtime: Virtual, media: Rc<Media>) -> Result<Rc<Self::Device>> {
        let ftl = Ftl::format(ErasedZones::shared(media), FtlOptions::new(PAGES)).await?;
        let options = ShadowOptions { clustering: Clustering::Cycles, transactions_max: 8 };
        let device = Rc::new(ShadowLog::device(ftl, options));
        device.device().start(&runtime);
        Ok(device)
    }
}

#[derive(Clone, Copy)]
struct RedoLogged(WalCommit);

impl Kind for RedoLogged {
    type Device = Wal<Stamp>;

    async fn make(self, runtime: Virtual, media: Rc<Media>) -> Result<Rc<Self::Device>> {
        let options = WalOptions { commit: self.0, ..WalOptions::new(64) };
        let device = RedoLog::format(media, FtlOptions::new(PAGES), options).await?;
        let device = Rc::new(device);
        device.device().start(&runtime);
        Ok(device)
    }
}

#[derive(Clone, Copy)]
struct TxCached;

impl Kind for TxCached {
    type Device = TxCache<Virtual, ErasedZones<Stamp>>;

    async fn make(self, runtime: Virtual, media: Rc<Media>) -> Result<Rc<Self::Device>> {
        let options = TxCacheOptions {
            transactions_max: 8,
            headers: 8,
            write_pages_max: 4,
            free_frames: 2,
            write_backs_in_flight: 2,
            extended_pages: 24,
            ..TxCacheOptions::new(16)
        };
        let pages = PAGES + u64::from(options.extended_pages);
        let ftl = Ftl::format(ErasedZones::shared(media), FtlOptions::new(pages)).await?;
        let device = Rc::new(TxCache::new(runtime.clone(), ftl, options)?);
        device.start(&runtime);
        Ok(device)
    }
}

fn count_of(page: Stamp) -> u64 {
    if page == Stamp::zero() { 0 } else { page.count }
}

async fn read<D: PageDevice<Page = Stamp>>(device: &D, page: PageNo) -> Result<u64> {
    let mut out = [Stamp::zero()];
    device.read(page, &mut out, None).await?;
    Ok(count_of(out[0]))
}

/// Adds one to `page`, in a transaction that holds the page before it reads it. Returns false if
/// another transaction holds it.
async fn add_one<D: PageDevice<Page = Stamp>>(device: &D, page: PageNo, fill: u64) -> Result<bool> {
    let tx = device.begin().await?;
    // More pages than one, so that the commit needs room.
    let others = (0..8).map(|at| PageNo(20 + fill * 8 + at));
    for other in std::iter::once(page).chain(others) {
        match device.write(other, &[Stamp::new(other, u64::MAX)], Some(tx)).await {
            Err(error) if error.kind() == ErrorKind::Conflict => {
                device.abort(tx).await?;
                return Ok(false);
            }
            written => written?,
        }
    }
    let count = read(device, page).await?;
    device.write(page, &[Stamp::new(page, count + 1)], Some(tx)).await?;
    device.commit(tx).await?;
    Ok(true)
}

/// Clients that add to the same two pages: nothing committed is undone.
fn nothing_is_undone(kind: impl Kind) {
    for seed in 0..12 {
        let (added, counts) = run(seed, move |runtime| async move {
            let device = kind.make(runtime.clone(), media(&runtime)?).await?;
            let clients: Vec<_> = (0..4)
                .map(|client| {
                    let (device, clock) = (Rc::clone(&device), runtime.clone());
                    runtime.spawn("client", async move {
                        let mut added = [0; 2];
                        for nth in 0..40 {
                            let page = (client + nth) % 2;
                            if add_one(&*device, PageNo(page), client).await? {
                                added[page as usize] += 1;
                            }
                            clock.sleep(1_000 + 7_000 * client).await;
                        }
                        Ok::<_, Error>(added)
                    })
                })
                .collect();
            let mut added = [0; 2];
            for client in clients {
                let by_client = client.await?;
                added.iter_mut().zip(by_client).for_each(|(sum, one)| *sum += one);
            }
            let counts = [read(&*device, PageNo(0)).await?, read(&*device, PageNo(1)).await?];
            Ok::<_, Error>((added, counts))
        })
        .unwrap_or_else(|error| panic!("seed {seed}: {error:?}"));
        assert!(added.iter().all(|added| *added > 4), "seed {seed}: {added:?} were added");
        assert_eq!(added, counts, "seed {seed}: what was added, and what is there");
    }
}

#[test]
fn a_page_belongs_to_its_transaction_until_the_commit_is_there() {
    nothing_is_undone(WriteCached(CacheKind::Durable));
    nothing_is_undone(WriteCached(CacheKind::WriteThrough));
    nothing_is_undone(WriteCached(CacheKind::Ordered));
    nothing_is_undone(Shadow);
    nothing_is_undone(RedoLogged(WalCommit::Pages));
    nothing_is_undone(RedoLogged(WalCommit::Record));
    nothing_is_undone(TxCached);
}

/// Checks that the transaction has ended and holds nothing.
async fn has_ended<D: PageDevice<Page = Stamp>>(device: &D, tx: TxId, page: PageNo) {
    let gone = |error: Error| assert_eq!(error.kind(), ErrorKind::UnknownTransaction, "{error}");
    let mut out = [Stamp::zero()];
    gone(device.read(page, &mut out, Some(tx)).await.unwrap_err());
    gone(device.commit(tx).await.unwrap_err());
    gone(device.abort(tx).await.unwrap_err());
    let Ok(next) = device.begin().await else { return };
    match device.write(page, &[Stamp::new(page, u64::MAX)], Some(next)).await {
        Ok(()) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::Latched, "{error}"),
    }
    device.abort(next).await.unwrap();
}

/// Runs transactions until a commit fails because of the medium's failures set by `fail`. Returns
/// the kind of the error.
fn ends_what_it_refuses(kind: impl Kind, fail: fn(&Media)) -> ErrorKind {
    run(0, move |runtime| async move {
        let media = media(&runtime).unwrap();
        let device = kind.make(runtime.clone(), Rc::clone(&media)).await.unwrap();
        for page in (0..PAGES).map(PageNo) {
            device.write(page, &[Stamp::new(page, 1)], None).await.unwrap();
        }
        device.flush().await.unwrap();
        fail(&media);
        for count in 2..100_000u64 {
            let tx = match device.begin().await {
                Ok(tx) => tx,
                // The failure came after the last commit, so no transaction can be begun.
                Err(error) => return error.kind(),
            };
            let page = PageNo(count * 7 % PAGES);
            let before = read(&*device, page).await.unwrap();
            if device.write(page, &[Stamp::new(page, count)], Some(tx)).await.is_err() {
                let failed = device.commit(tx).await.unwrap_err();
                has_ended(&*device, tx, page).await;
                return failed.kind();
            }
            if let Err(error) = device.commit(tx).await {
                has_ended(&*device, tx, page).await;
                if error.kind() == ErrorKind::OutOfSpace {
                    assert_eq!(
                        read(&*device, page).await.unwrap(),
                        before,
                        "nothing of it is there"
                    );
                }
                return error.kind();
            }
            assert_eq!(read(&*device, page).await.unwrap(), count);
        }
        panic!("no commit fails")
    })
}

#[test]
fn a_commit_that_fails_has_ended_its_transaction() {
    let log_fails = |media: &Media| media.fail_append(3, AppendFault::Io);
    for cache in [CacheKind::Durable, CacheKind::WriteThrough, CacheKind::Ordered] {
        let kind = ends_what_it_refuses(WriteCached(cache), log_fails);
        assert!(matches!(kind, ErrorKind::Latched | ErrorKind::Io), "{cache:?}: {kind:?}");
    }
    for kind in [
        ends_what_it_refuses(Shadow, log_fails),
        ends_what_it_refuses(RedoLogged(WalCommit::Pages), log_fails),
        // A record.
        ends_what_it_refuses(RedoLogged(WalCommit::Record), log_fails),
        ends_what_it_refuses(TxCached, log_fails),
    ] {
        assert!(matches!(kind, ErrorKind::Latched | ErrorKind::Io), "{kind:?}");
    }
}

#[test]
fn a_commit_that_finds_no_room_has_ended_its_transaction() {
    // Every other zone, so that cleaning continues until there are too few.
    let zones_go = |media: &Media| (0..1_000).step_by(2).for_each(|nth| media.fail_reset(nth));
    let through = ends_what_it_refuses(WriteCached(CacheKind::WriteThrough), zones_go);
    assert_eq!(through, ErrorKind::OutOfSpace);
    assert_eq!(ends_what_it_refuses(Shadow, zones_go), ErrorKind::OutOfSpace);
}

/// The limits of a transaction in one call; if it is refused, it leaves nothing behind.
fn a_scattered_write_is_a_transaction(kind: impl Kind) {
    run(0, move |runtime| async move {
        let device = kind.make(runtime.clone(), media(&runtime).unwrap()).await.unwrap();
        let pages = |numbers: &[u64], count: u64| -> Vec<(PageNo, Stamp)> {
            numbers.iter().map(|page| (PageNo(*page), Stamp::new(PageNo(*page), count))).collect()
        };
        let write = async |numbers: &[u64], count| {
            device.write_scattered(pages(numbers, count), || ()).await.map_err(|error| error.kind())
        };
        assert_eq!(write(&[7, 90, 3], 1).await, Ok(()));
        assert_eq!(write(&[7, 90, 7], 2).await, Err(ErrorKind::InvalidInput));
        assert_eq!(write(&[7, PAGES], 2).await, Err(ErrorKind::OutOfRange));
        let many: Vec<u64> = (0..=u64::from(device.limits().transaction_pages_max)).collect();
        if (many.len() as u64) < PAGES {
            assert_eq!(write(&many, 2).await, Err(ErrorKind::TooLarge));
        }
        let tx = device.begin().await.unwrap();
        device.write(PageNo(4), &[Stamp::new(PageNo(4), 5)], Some(tx)).await.unwrap();
        assert_eq!(write(&[3, 4], 2).await, Err(ErrorKind::Conflict));
        for (page, count) in [(3, 1), (4, 0), (7, 1), (90, 1)] {
            assert_eq!(read(&*device, PageNo(page)).await.unwrap(), count, "page {page}");
        }
        // Its own pages, and those before and after them.
        let mut out = [Stamp::zero(); 6];
        device.read(PageNo(2), &mut out, Some(tx)).await.unwrap();
        assert_eq!(out.map(count_of), [0, 1, 5, 0, 0, 1]);
        device.commit(tx).await.unwrap();
        assert_eq!(write(&[3, 4], 2).await, Ok(()));
        assert_eq!(read(&*device, PageNo(4)).await.unwrap(), 2);
        // None of them counts as open any more.
        for _ in 0..device.limits().transactions_max {
            device.begin().await.unwrap();
        }
    });
}

#[test]
fn pages_are_written_in_one_call_as_in_a_transaction() {
    for cache in [CacheKind::Durable, CacheKind::WriteThrough, CacheKind::Ordered] {
        a_scattered_write_is_a_transaction(WriteCached(cache));
    }
    a_scattered_write_is_a_transaction(Shadow);
    a_scattered_write_is_a_transaction(RedoLogged(WalCommit::Pages));
    a_scattered_write_is_a_transaction(RedoLogged(WalCommit::Record));
}

/// No call may change a page that an open transaction holds; everything else goes on.
fn a_held_page_is_closed_to_others(kind: impl Kind) {
    run(0, move |runtime| async move {
        let device = kind.make(runtime.clone(), media(&runtime).unwrap()).await.unwrap();
        let write = async |pages: &[u64], count, tx| {
            let contents: Vec<_> =
                pages.iter().map(|page| Stamp::new(PageNo(*page), count)).collect();
            device.write(PageNo(pages[0]), &contents, tx).await
        };
        for page in 0..8 {
            write(&[page], 1, None).await.unwrap();
        }
        let (tx, other) = (device.begin().await.unwrap(), device.begin().await.unwrap());
        write(&[4], 5, Some(tx)).await.unwrap();
        let both = |page: u64| vec![(PageNo(page), Stamp::new(PageNo(page), 9))];
        let (all, some) = (PageRange::new(PageNo(0), PAGES), PageRange::new(PageNo(3), 3));
        let (here, there) = (PageNo(4), PageNo(2));
        let can_share = device.limits().share_pairs_max > 0;
        let refused = [
            ("write", write(&[4], 9, None).await),
            ("write of several", write(&[3, 4, 5], 9, None).await),
            ("write in another transaction", write(&[4, 5], 9, Some(other)).await),
            ("trim", device.trim(some).await),
            ("trim of all", device.trim(all).await),
            ("scattered write", device.write_scattered(both(4), || ()).await),
            ("share", device.share(&[(PageNo(3), PageNo(1)), (here, there)]).await),
            ("clone", device.clone_range(PageNo(3), PageNo(0), 2).await),
        ];
        for (call, refused) in refused {
            let expected = match call {
                "scattered write" if refused_as(&refused, ErrorKind::Unsupported) => continue,
                "share" | "clone" if !can_share => ErrorKind::Unsupported,
                _ => ErrorKind::Conflict,
            };
            assert!(refused_as(&refused, expected), "{call}: {refused:?}");
        }
        for page in 0..8 {
            assert_eq!(read(&*device, PageNo(page)).await.unwrap(), 1, "page {page}");
        }
        // Its neighbours are free, and its content may be read and shared.
        write(&[3], 2, None).await.unwrap();
        device.trim(PageRange::new(PageNo(5), 3)).await.unwrap();
        if can_share {
            device.share(&[(PageNo(6), here)]).await.unwrap();
        }
        let released = runtime.spawn("one who waits", {
            let device = Rc::clone(&device);
            async move { device.until_released(some).await }
        });
        device.abort(other).await.unwrap();
        device.commit(tx).await.unwrap();
        released.await;
        write(&[4], 6, None).await.unwrap();
        let aborted = device.begin().await.unwrap();
        write(&[4], 7, Some(aborted)).await.unwrap();
        assert!(refused_as(&device.trim(some).await, ErrorKind::Conflict));
        device.abort(aborted).await.unwrap();
        assert_eq!(read(&*device, here).await.unwrap(), 6);
        device.trim(some).await.unwrap();
        assert_eq!(read(&*device, here).await.unwrap(), 0);
    });
}

fn refused_as(done: &Result<()>, kind: ErrorKind) -> bool {
    done.as_ref().is_err_and(|error| error.kind() == kind)
}

/// The order of acceptance counts: a write that is in flight when a transaction takes its page is not
/// refused.
fn a_write_in_flight_is_not_refused(kind: impl Kind) {
    run(0, move |runtime| async move {
        let device = kind.make(runtime.clone(), media(&runtime).unwrap()).await.unwrap();
        let page = PageNo(4);
        let contents = [2, 3].map(|count| [Stamp::new(page, count)]);
        let mut written = pin!(device.write(page, &contents[0], None));
        let begun = poll_fn(|context| Poll::Ready(written.as_mut().poll(context))).await;
        let tx = device.begin().await.unwrap();
        device.write(page, &contents[1], Some(tx)).await.unwrap();
        match begun {
            Poll::Ready(written) => written.unwrap(),
            Poll::Pending => written.await.unwrap(),
        }
        assert_eq!(read(&*device, page).await.unwrap(), 2);
        device.commit(tx).await.unwrap();
        assert_eq!(read(&*device, page).await.unwrap(), 3);
    });
}

/// Calls `test` with each kind of device that has transactions.
macro_rules! on_every_device {
    ($test:ident) => {
        for cache in [CacheKind::Durable, CacheKind::WriteThrough, CacheKind::Ordered] {
            $test(WriteCached(cache));
        }
        $test(Shadow);
        $test(RedoLogged(WalCommit::Pages));
        $test(RedoLogged(WalCommit::Record));
        $test(TxCached);
    };
}

#[test]
fn nobody_else_changes_a_page_that_a_transaction_holds() {
    on_every_device!(a_held_page_is_closed_to_others);
}

#[test]
fn a_change_that_was_accepted_before_a_transaction_took_its_page_goes_on() {
    on_every_device!(a_write_in_flight_is_not_refused);
}
