//! Growing a volume: existing content stays, new pages are empty, and any power cut leaves the old or the new size.
use std::path::Path;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf, PageDevice, PageNo, Payload, Result, Rng};
use tantalum_media::block_store::{CrashOptions, CrashStore, CutStyle, MemoryStore};
use tantalum_media::{BlockStore, CutPlan, Fate};
use tantalum_runtime::LifeCycle;
use tantalum_runtime::virtual_time::{Schedule, Virtual};
use tantalum_volume::fault_points::Fault;
use tantalum_volume::superblock::{COPIES, SUPERBLOCK_BYTES};
use tantalum_volume::{
    Copies, OpenOptions, Resized, VolumeConfig, config, create_flash, open_flash, plan_growth,
    settle, write_growth,
};

const SMALL: u64 = 256;
const LARGE: u64 = 640;
/// Pages of a transaction in memory: further pages are staged behind the volume's pages.
const MEMORY: u64 = 16;

fn configuration(capacity: &str) -> VolumeConfig {
    // A zone size that is the default for neither capacity.
    let text = config::template(capacity)
        .replace("# zone = \"8MiB\"", "zone = \"128KiB\"")
        .replace("# transaction_memory = \"4MiB\"", "transaction_memory = \"64KiB\"");
    VolumeConfig::parse(&text, Path::new("v.toml")).unwrap()
}

fn small() -> VolumeConfig {
    assert_eq!((SMALL, MEMORY), (256, 16));
    configuration("1MiB")
}

fn content(page: u64, count: u64) -> PageBuf {
    let mut content = PageBuf::zero();
    Rng::new(page << 32 | count).fill(content.make_mut());
    content
}

/// The content of the small volume.
fn held(page: u64) -> PageBuf {
    if page < SMALL && page % 5 != 4 { content(page, 1) } else { PageBuf::zero() }
}

/// A small volume with content, killed during a transaction with some staged pages.
fn volume() -> MemoryStore {
    let store = MemoryStore::new(16 << 20);
    let runtime = Virtual::new(Schedule::Fifo);
    let (handle, made) = (runtime.clone(), store.clone());
    let life = async move {
        create_flash(made.clone(), &small(), 7).await?;
        let (volume, _) = open_flash(&handle, made, &small(), OpenOptions::default()).await?;
        for page in (0..SMALL).filter(|page| held(*page) != PageBuf::zero()) {
            volume.write(PageNo(page), &[held(page)], None).await?;
        }
        let tx = volume.begin().await?;
        for page in 0..3 * MEMORY {
            volume.write(PageNo(page), &[content(page, 2)], Some(tx)).await?;
        }
        let staged = volume.device().ftl().mapped_from(PageNo(SMALL));
        assert!(staged >= MEMORY, "{staged} pages are staged");
        Ok::<_, tantalum_base::Error>(())
    };
    runtime.run(life).unwrap().unwrap();
    runtime.drop_tasks();
    store
}

/// The phases of growing, each on an executor of its own, up to the first failure.
fn grow<S: BlockStore + Clone>(store: &S, on: impl Fn() -> Virtual) -> Result<Resized> {
    let phase = |phase: &dyn Fn(&Virtual) -> Result<()>| {
        let runtime = on();
        let done = phase(&runtime);
        runtime.drop_tasks();
        done
    };
    let planned = {
        let store = store.clone();
        on().run(async move { plan_growth(&store, &small(), LARGE).await }).unwrap()?
    };
    phase(&|runtime| runtime.run(settle(runtime.clone(), store.clone(), small())).unwrap())?;
    phase(&|runtime| runtime.run(write_growth(store.clone(), planned)).unwrap())?;
    phase(&|runtime| runtime.run(settle(runtime.clone(), store.clone(), small())).unwrap())?;
    Ok(planned)
}

fn fifo() -> Virtual {
    Virtual::new(Schedule::Fifo)
}

/// Opens the volume on `store` with `config`, and writes to its last page. Returns its size and the problem found in its pages.
fn opened(store: &MemoryStore, config: &VolumeConfig) -> Result<(u64, Option<String>)> {
    let runtime = fifo();
    let (handle, store, config) = (runtime.clone(), store.clone(), config.clone());
    let found = runtime.run(async move {
        let (volume, _) = open_flash(&handle, store, &config, OpenOptions::default()).await?;
        let pages = volume.limits().pages;
        let mut found = vec![PageBuf::zero(); pages as usize];
        volume.read(PageNo(0), &mut found, None).await?;
        let wrong = (0..pages).find(|page| found[*page as usize] != held(*page));
        let mut problem = wrong.map(|page| format!("page {page} of {pages} is wrong"));
        if !volume.check(|_, _| ()).await?.is_empty() {
            problem = Some("the check finds something".into());
        }
        volume.validate();
        Ok((pages, problem))
    });
    runtime.drop_tasks();
    found.unwrap()
}

#[test]
fn a_volume_that_has_grown_has_what_it_had_and_takes_more() {
    let store = volume();
    let Resized { before, after } = grow(&store, fifo).unwrap();
    assert_eq!((before.pages, after.pages, after.pages_before), (SMALL, LARGE, SMALL));
    assert!(after.zones > before.zones);
    // The old configuration is accepted, and so is one with the new capacity.
    for config in [small(), configuration("2560KiB")] {
        assert_eq!(opened(&store, &config).unwrap(), (LARGE, None));
    }
    let error = opened(&store, &configuration("2MiB")).unwrap_err();
    assert!(error.kind() == ErrorKind::Format && error.to_string().contains("but the volume has"));
    // The whole volume can be written, more than once.
    let runtime = fifo();
    let (handle, on) = (runtime.clone(), store.clone());
    let filled = runtime.run(async move {
        let (volume, _) = open_flash(&handle, on, &small(), OpenOptions::default()).await?;
        for round in 3..6 {
            for page in 0..LARGE {
                volume.write(PageNo(page), &[content(page, round)], None).await?;
            }
        }
        let tx = volume.begin().await?;
        for page in 0..LARGE / 2 {
            volume.write(PageNo(page), &[PageBuf::zero()], Some(tx)).await?;
        }
        volume.commit(tx).await?;
        let mut found = vec![PageBuf::zero(); LARGE as usize];
        volume.read(PageNo(0), &mut found, None).await?;
        for page in 0..LARGE {
            let held = if page < LARGE / 2 { PageBuf::zero() } else { content(page, 5) };
            assert!(found[page as usize] == held, "page {page}");
        }
        volume.close().await
    });
    filled.unwrap().unwrap();
}

#[test]
fn it_grows_again_and_again() {
    let store = volume();
    grow(&store, fifo).unwrap();
    for (at, pages) in [(1, LARGE + 1), (2, 2 * LARGE)] {
        let runtime = fifo();
        let on = store.clone();
        let planned = runtime.run(async move { plan_growth(&on, &small(), pages).await });
        let planned = planned.unwrap().unwrap();
        assert_eq!(planned.before.growths, at);
        runtime.run(settle(runtime.clone(), store.clone(), small())).unwrap().unwrap();
        runtime.drop_tasks();
        runtime.run(write_growth(store.clone(), planned)).unwrap().unwrap();
        let config = small();
        let says = format!("{}KiB", pages * 4);
        let error = opened(&store, &config).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format, "a capacity of two growths ago: {error}");
        assert_eq!(opened(&store, &configuration(&says)).unwrap(), (pages, None));
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let store = volume();
    for (pages, told) in [(SMALL - 1, "does not shrink"), (1 << 31, "over the limit of 8 TiB")] {
        let on = store.clone();
        let refused = fifo().run(async move { plan_growth(&on, &small(), pages).await });
        let refused = refused.unwrap().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert!(refused.to_string().contains(told), "{refused}");
    }
    let error = opened(&store, &configuration("2MiB")).unwrap_err();
    assert!(error.to_string().contains("`tantalum resize` makes it larger"), "{error}");
}

/// Grows a volume with a power cut at operation number `operations`. Returns the problem found afterwards, and whether growing
/// was complete before the cut.
fn cut(operations: u64, fate: Fate, style: CutStyle) -> (Option<String>, bool) {
    let store = volume();
    // One store that loses power, whatever executor uses it.
    let runtime = fifo();
    let on = CrashStore::new(runtime.clone(), store.clone(), CrashOptions::default());
    on.plan_cut(CutPlan { after_operations: operations, fate });
    let grown = grow(&on, || runtime.clone());
    let is_cut = on.is_cut();
    assert!(is_cut || grown.is_ok(), "{grown:?}");
    drop(grown);
    let dark = async move { on.cut(&mut Rng::new(operations), style).await };
    fifo().run(dark).unwrap().unwrap();
    let at = |problem: String| Some(format!("{fate:?} at operation {operations}: {problem}"));
    let pages = match opened(&store, &small()) {
        Err(error) => return (at(error.to_string()), !is_cut),
        Ok((_, Some(problem))) => return (at(problem), !is_cut),
        Ok((pages, None)) => pages,
    };
    let whole = [SMALL, LARGE].contains(&pages) && (is_cut || pages == LARGE);
    let problem = (!whole).then(|| format!("{pages} pages"));
    // Repeating the call continues from there.
    let problem = problem.or_else(|| match pages == LARGE {
        true => superblocks(&store).err(),
        false => grow(&store, fifo).err().map(|error| error.to_string()),
    });
    let problem = problem.or_else(|| match opened(&store, &small()) {
        Ok((LARGE, None)) => None,
        other => Some(format!("after it was repeated: {other:?}")),
    });
    (problem.and_then(at), !is_cut)
}

/// Fails if the copies differ, because opening for writing should have repaired them.
fn superblocks(store: &MemoryStore) -> std::result::Result<(), String> {
    let on = store.clone();
    let read = fifo().run(async move { on.read(0, on.buffer(COPIES * SUPERBLOCK_BYTES)).await });
    let bytes = read.unwrap().unwrap();
    let (first, second) = bytes.split_at(SUPERBLOCK_BYTES);
    match first == second && Copies::decode(&bytes).problems().is_empty() {
        true => Ok(()),
        false => Err("the copies of the superblock differ".into()),
    }
}

/// The problem found after an interruption at any operation.
fn cut_anywhere() -> Option<String> {
    for fate in Fate::ALL {
        for style in [CutStyle::Random, CutStyle::TearAll] {
            for operations in 0.. {
                let (problem, is_done) = cut(operations, fate, style);
                if problem.is_some() {
                    return problem;
                }
                if is_done {
                    assert!(operations > 6, "growing changes next to nothing");
                    break;
                }
            }
        }
    }
    None
}

#[test]
fn a_power_cut_leaves_the_one_size_or_the_other() {
    assert_eq!(PAGE_BYTES as u64 * LARGE, 2560 << 10);
    assert_eq!(cut_anywhere(), None);
}

#[test]
fn copies_that_are_written_together_are_noticed() {
    assert_noticed(Fault::GrownCopiesTogether, cut_anywhere);
}

#[test]
fn pages_that_were_staged_and_stay_are_noticed() {
    assert_noticed(Fault::GrownOverStaged, || {
        let store = volume();
        grow(&store, fifo).map_err(|error| error.to_string()).err().or_else(|| {
            match opened(&store, &small()) {
                Ok((LARGE, problem)) => problem,
                other => Some(format!("{other:?}")),
            }
        })
    });
}
