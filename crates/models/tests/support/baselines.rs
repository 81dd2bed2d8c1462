//! Clients on a baseline device, a power cut, a recovery, and a check of the result.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{Error, PAGE_BYTES, PageDevice, PageNo, PageRange, Payload, Result, Rng};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::{CutPlan, Fate, ZoneMedia};
use tantalum_models::baselines::{
    Clustering, RedoLog as RedoLogDevice, ShadowDevice, ShadowLog, ShadowOptions, Wal, WalCommit,
    WalOptions, scan_cycles,
};
use tantalum_models::rig::Rig;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Runtime, Virtual};

pub const PAGES: u64 = 24;
const CLIENTS: u64 = 3;

/// A device under test.
pub trait Baseline {
    type Device<M: ZoneMedia>: PageDevice<Page = M::Page>;

    async fn format<M: ZoneMedia>(media: M, runtime: &Virtual) -> Result<Rc<Self::Device<M>>>;

    async fn recover<M: ZoneMedia>(media: M, runtime: &Virtual) -> Result<Rc<Self::Device<M>>>;
}

fn ftl_options() -> FtlOptions {
    FtlOptions { checkpoint_interval_slots: 64, ..FtlOptions::new(PAGES) }
}

pub struct TxFlash;
pub struct AtomicLog;
/// A redo log, with or without commit records.
pub struct RedoLog<const RECORDS: bool>;

fn shadow_options(clustering: Clustering) -> ShadowOptions {
    ShadowOptions { clustering, transactions_max: 4 }
}

async fn format_shadow<M: ZoneMedia>(
    media: M,
    runtime: &Virtual,
    clustering: Clustering,
) -> Result<Rc<ShadowDevice<M>>> {
    let ftl = Ftl::format(media, ftl_options()).await?;
    let device = ShadowLog::device(ftl, shadow_options(clustering));
    let device = Rc::new(device);
    device.device().start(runtime);
    Ok(device)
}

async fn recover_shadow<M: ZoneMedia>(
    media: M,
    runtime: &Virtual,
    clustering: Clustering,
) -> Result<Rc<ShadowDevice<M>>> {
    let options = shadow_options(clustering);
    let (device, scan, _) = ShadowLog::recover(media, ftl_options(), options).await?;
    assert_eq!(scan.is_some(), clustering == Clustering::Cycles);
    device.ftl().validate();
    let device = Rc::new(device);
    device.device().start(runtime);
    Ok(device)
}

impl Baseline for TxFlash {
    type Device<M: ZoneMedia> = ShadowDevice<M>;

    async fn format<M: ZoneMedia>(media: M, runtime: &Virtual) -> Result<Rc<ShadowDevice<M>>> {
        format_shadow(media, runtime, Clustering::Cycles).await
    }

    async fn recover<M: ZoneMedia>(media: M, runtime: &Virtual) -> Result<Rc<ShadowDevice<M>>> {
        recover_shadow(media, runtime, Clustering::Cycles).await
    }
}

impl Baseline for AtomicLog {
    type Device<M: ZoneMedia> = ShadowDevice<M>;

    async fn format<M: ZoneMedia>(media: M, runtime: &Virtual) -> Result<Rc<ShadowDevice<M>>> {
        format_shadow(media, runtime, Clustering::LogFlags).await
    }

    async fn recover<M: ZoneMedia>(media: M, runtime: &Virtual) -> Result<Rc<ShadowDevice<M>>> {
        recover_shadow(media, runtime, Clustering::LogFlags).await
    }
}

fn wal_options(records: bool) -> WalOptions {
    let commit = if records { WalCommit::Record } else { WalCommit::Pages };
    // Less memory than log, so that contents are read back as well.
    WalOptions { log_pages: 64, memory_pages: 8, transactions_max: 4, commit }
}

impl<const RECORDS: bool> Baseline for RedoLog<RECORDS> {
    type Device<M: ZoneMedia> = Wal<M::Page>;

    async fn format<M: ZoneMedia>(media: M, runtime: &Virtual) -> Result<Rc<Wal<M::Page>>> {
        let options = wal_options(RECORDS);
        let device = Rc::new(RedoLogDevice::format(Rc::new(media), ftl_options(), options).await?);
        device.device().start(runtime);
        Ok(device)
    }

    async fn recover<M: ZoneMedia>(media: M, runtime: &Virtual) -> Result<Rc<Wal<M::Page>>> {
        let options = wal_options(RECORDS);
        let recovered =
            RedoLogDevice::recover(Rc::new(media), ftl_options(), options, runtime).await?;
        let device = Rc::new(recovered.0);
        device.ftl().validate();
        device.device().start(runtime);
        Ok(device)
    }
}

/// A command of a client; each client has pages of its own.
#[derive(Clone, Debug)]
enum Command {
    Commit(Vec<(PageNo, u64)>),
    Abort(Vec<(PageNo, u64)>),
    Write(PageNo, u64),
    Trim(PageNo),
    Read(PageNo),
}

fn commands(client: u64, seed: u64, count: u32) -> Vec<Command> {
    let mut rng = Rng::split(seed, &format!("client {client}"));
    let mut number = 0;
    let mut next = || {
        number += 1;
        number
    };
    (0..count)
        .map(|_| {
            let page = |rng: &mut Rng| PageNo(client + CLIENTS * rng.below(PAGES / CLIENTS));
            let one = page(&mut rng);
            match rng.below(12) {
                0 => Command::Trim(one),
                1 | 2 => Command::Read(one),
                3 => Command::Write(one, next()),
                kind => {
                    let pages = 1 + rng.below(6);
                    let writes = (0..pages).map(|_| (page(&mut rng), next())).collect();
                    if kind == 4 { Command::Abort(writes) } else { Command::Commit(writes) }
                }
            }
        })
        .collect()
}

/// The content of `page` after write `number`; 0 means empty.
fn content<P: Payload>(page: PageNo, number: u64) -> P {
    if number == 0 {
        return P::zero();
    }
    let mut bytes = [0; PAGE_BYTES];
    bytes[..8].copy_from_slice(&(page.0 + 1).to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    for (at, byte) in bytes.iter_mut().enumerate().skip(16) {
        *byte = (at as u64).wrapping_mul(number | 1) as u8;
    }
    P::from_bytes(&bytes)
}

fn apply(state: &mut [u64], command: &Command) {
    match command {
        Command::Commit(writes) => writes.iter().for_each(|(page, number)| {
            state[page.index()] = *number;
        }),
        Command::Write(page, number) => state[page.index()] = *number,
        Command::Trim(page) => state[page.index()] = 0,
        Command::Abort(_) | Command::Read(_) => {}
    }
}

async fn perform<D: PageDevice>(device: &D, command: &Command, state: &[u64]) -> Result<()> {
    match command {
        Command::Write(page, number) => device.write(*page, &[content(*page, *number)], None).await,
        Command::Trim(page) => device.trim(PageRange::new(*page, 1)).await,
        Command::Read(page) => {
            let mut out = [D::Page::zero()];
            device.read(*page, &mut out, None).await?;
            assert_eq!(out[0], content(*page, state[page.index()]), "page {page}");
            Ok(())
        }
        Command::Commit(writes) | Command::Abort(writes) => {
            let tx = device.begin().await?;
            for (page, number) in writes {
                device.write(*page, &[content(*page, *number)], Some(tx)).await?;
                let mut own = [D::Page::zero()];
                device.read(*page, &mut own, Some(tx)).await?;
                assert_eq!(own[0], content(*page, *number), "its own write of page {page}");
            }
            match command {
                Command::Abort(_) => device.abort(tx).await,
                _ => device.commit(tx).await,
            }
        }
    }
}

/// The progress of a client.
#[derive(Clone, Default)]
struct Progress {
    issued: usize,
    acknowledged: usize,
}

/// The place of a power cut.
pub type Cut = Option<(u64, Fate)>;

/// Numbers of media operations in a run.
#[derive(Clone, Copy, Default, Debug)]
pub struct Operations {
    pub load: u64,
    pub recovery: u64,
}

/// Runs the clients up to the cut and recovers, with another cut in the recovery if requested.
/// Checks the content, continues, cuts once more and checks again.
pub fn run<B: Baseline + 'static, R: Rig + 'static>(
    seed: u64,
    count: u32,
    cut: Cut,
    cut_in_recovery: Cut,
) -> std::result::Result<Operations, String> {
    let rig = Rc::new(RefCell::new(R::new(seed)));
    let mut operations = Operations::default();
    let progress = Rc::new(RefCell::new(vec![Progress::default(); CLIENTS as usize]));
    operations.load = load::<B, R>(&rig, seed, count, cut, &progress)?;
    if let Some((after, fate)) = cut_in_recovery {
        let runtime = Virtual::new(Schedule::Shuffled(seed ^ 2));
        let media = rig.borrow_mut().open(&runtime);
        rig.borrow_mut().plan(CutPlan { after_operations: after, fate });
        let handle = runtime.clone();
        // It fails if the cut falls into it.
        drop(runtime.run(async move { B::recover(media, &handle).await.map(|_| ()) }));
        runtime.drop_tasks();
        rig.borrow_mut().power_off(&runtime).map_err(|error| error.to_string())?;
    }
    let mut later = vec![0; PAGES as usize];
    for round in 0..2u64 {
        let runtime = Virtual::new(Schedule::Shuffled(seed ^ 3 ^ round));
        let media = rig.borrow_mut().open(&runtime);
        let handle = runtime.clone();
        let (progress, shown) = (Rc::clone(&progress), later.clone());
        let counted = Rc::clone(&rig);
        let opened = runtime.run(async move {
            let device = B::recover(media, &handle).await?;
            let recovery = counted.borrow().operations();
            let pages = read_all(&*device).await?;
            let found = check(&pages, &progress.borrow(), seed, count, &shown);
            if found.is_ok() && round == 0 {
                go_on(&*device).await?;
            }
            Ok::<_, Error>((found, recovery))
        });
        let (found, recovery) = opened
            .map_err(|deadlock| format!("opening {round}: {deadlock}"))?
            .map_err(|error| format!("opening {round}: {error:?}"))?;
        found.map_err(|violation| format!("opening {round}: {violation}"))?;
        if round == 0 {
            operations.recovery = recovery;
            later.iter_mut().zip(0..).for_each(|(later, page)| *later = later_number(page));
        }
        runtime.drop_tasks();
        rig.borrow_mut().power_off(&runtime).map_err(|error| error.to_string())?;
    }
    Ok(operations)
}

/// The number for writes after the first opening: every third page is written again, in one
/// transaction.
fn later_number(page: u64) -> u64 {
    if page.is_multiple_of(3) { 1_000_000 + page } else { 0 }
}

async fn go_on<D: PageDevice>(device: &D) -> Result<()> {
    let tx = device.begin().await?;
    for page in (0..PAGES).filter(|page| later_number(*page) > 0) {
        let content = content(PageNo(page), later_number(page));
        device.write(PageNo(page), &[content], Some(tx)).await?;
    }
    device.commit(tx).await
}

async fn read_all<D: PageDevice>(device: &D) -> Result<Vec<D::Page>> {
    let mut pages = vec![D::Page::zero(); PAGES as usize];
    device.read(PageNo(0), &mut pages, None).await?;
    Ok(pages)
}

/// Runs the load of all clients. Returns the media operations until the cut.
fn load<B: Baseline + 'static, R: Rig + 'static>(
    rig: &Rc<RefCell<R>>,
    seed: u64,
    count: u32,
    cut: Cut,
    progress: &Rc<RefCell<Vec<Progress>>>,
) -> std::result::Result<u64, String> {
    let runtime = Virtual::new(Schedule::Shuffled(seed ^ 1));
    let media = rig.borrow_mut().open(&runtime);
    let handle = runtime.clone();
    let device = runtime
        .run(async move { B::format(media, &handle).await })
        .map_err(|deadlock| format!("formatting: {deadlock}"))?
        .map_err(|error| format!("formatting: {error}"))?;
    let before = rig.borrow().operations();
    if let Some((after, fate)) = cut {
        rig.borrow_mut().plan(CutPlan { after_operations: after, fate });
    }
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (device, progress) = (Rc::clone(&device), Rc::clone(progress));
            let rig = Rc::clone(rig);
            runtime.spawn("client", async move {
                let mut state = vec![0; PAGES as usize];
                for command in commands(client, seed, count) {
                    progress.borrow_mut()[client as usize].issued += 1;
                    let done = perform(&*device, &command, &state).await;
                    if rig.borrow().is_cut() {
                        // A result that arrives after the cut reaches nobody.
                        return Ok(());
                    }
                    done?;
                    apply(&mut state, &command);
                    progress.borrow_mut()[client as usize].acknowledged += 1;
                }
                Ok::<(), Error>(())
            })
        })
        .collect();
    let ended = runtime.run(async move {
        for client in clients {
            client.await?;
        }
        Ok::<(), Error>(())
    });
    let operations = rig.borrow().operations() - before;
    // After a power cut, nothing needs to go on.
    if !rig.borrow().is_cut() {
        ended
            .map_err(|deadlock| format!("the load: {deadlock}"))?
            .map_err(|error| format!("the load: {error:?}"))?;
    }
    drop(device);
    runtime.drop_tasks();
    rig.borrow_mut().power_off(&runtime).map_err(|error| error.to_string())?;
    Ok(operations)
}

/// Each client's pages must match the state after some number of its commands: at least the
/// acknowledged ones, at most the issued ones. If `later` has a number, the page must have that
/// content.
fn check<P: Payload>(
    pages: &[P],
    progress: &[Progress],
    seed: u64,
    count: u32,
    later: &[u64],
) -> std::result::Result<(), String> {
    for client in 0..CLIENTS {
        let Progress { issued, acknowledged } = progress[client as usize].clone();
        let commands = commands(client, seed, count);
        let mut state = vec![0; PAGES as usize];
        commands[..acknowledged].iter().for_each(|command| apply(&mut state, command));
        let mut wrong = Vec::new();
        let found = (acknowledged..=issued).any(|number| {
            if number > acknowledged {
                apply(&mut state, &commands[number - 1]);
            }
            let own = (client..PAGES).step_by(CLIENTS as usize);
            wrong = own
                .filter(|page| {
                    let at = *page as usize;
                    let number = if later[at] > 0 { later[at] } else { state[at] };
                    pages[at] != content(PageNo(*page), number)
                })
                .collect();
            wrong.is_empty()
        });
        if !found {
            return Err(format!(
                "client {client}: {acknowledged} of {issued} commands were acknowledged; the last \
                 command is {:?}; wrong are {:?}",
                commands.get(issued.saturating_sub(1)),
                wrong.iter().map(|page| (page, &pages[*page as usize])).collect::<Vec<_>>(),
            ));
        }
    }
    Ok(())
}

/// Compares the mapping from TxFlash's scan of the drive, after some load and a cut, with the reads
/// of the recovered FTL. Returns the numbers of committed and broken cycles.
pub fn scan_against_recovery<R: Rig + 'static>(seed: u64, cut: Cut) -> (u64, u64) {
    let rig = Rc::new(RefCell::new(R::new(seed)));
    let progress = Rc::new(RefCell::new(vec![Progress::default(); CLIENTS as usize]));
    load::<TxFlash, R>(&rig, seed, 40, cut, &progress).unwrap();
    let runtime = Virtual::new(Schedule::Fifo);
    let media = rig.borrow_mut().open(&runtime);
    let scanned = runtime.run(async move {
        let scan = scan_cycles(&media).await.unwrap();
        let mut contents = Vec::new();
        for (page, _, slot) in &scan.mapping {
            let mut out = [R::Page::zero()];
            media.read(&[*slot], &mut out).await.unwrap();
            contents.push((*page, out[0].clone()));
        }
        let (ftl, _) = Ftl::recover(media, ftl_options()).await.unwrap();
        for (page, content) in contents {
            let mut out = [R::Page::zero()];
            ftl.read(&[page], &mut out).await.unwrap();
            // A trim writes no page, so the scan alone cannot find it.
            assert!(out[0] == content || !ftl.is_mapped(page), "page {page}");
        }
        (scan.committed, scan.broken)
    });
    scanned.unwrap()
}
