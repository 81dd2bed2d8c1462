//! A volume through this crate: written content is there, completely or not at all, for every holder of a handle.
use std::path::{Path, PathBuf};
use std::thread;
use tantalum::{
    ErrorKind, OpenOptions, PAGE_BYTES, PageBuf, PageNo, PageRange, Placement, Result, Transaction,
    Volume,
};
use tantalum_base::Rng;
use tantalum_testing::resident::resident_bytes;
use tempfile::TempDir;

fn volume() -> (TempDir, PathBuf, Volume) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    let volume = Volume::create(&path).capacity_bytes(8 << 20).open().unwrap();
    (folder, path, volume)
}

fn page(byte: u8) -> PageBuf {
    PageBuf::copy_from(&[byte; PAGE_BYTES])
}

#[test]
fn handles_go_to_other_threads() {
    fn sent<T: Send + Sync>() {}
    sent::<Volume>();
    sent::<Transaction>();
}

/// Bytes of any length at any offset, in transactions and outside, compared with a model; the volume is reopened in
/// between.
#[test]
fn bytes_are_as_in_memory() {
    const BYTES: usize = 60 * PAGE_BYTES;
    let (_folder, path, mut volume) = volume();
    let mut model = vec![0; BYTES];
    let mut rng = Rng::split(1, "door");
    for step in 0..600u32 {
        let at = rng.below(BYTES as u64) as usize;
        let length = (rng.below(3 * PAGE_BYTES as u64) as usize).min(BYTES - at);
        let bytes: Vec<u8> = (0..length).map(|number| (number as u32 * 7 + step) as u8).collect();
        match rng.below(6) {
            0 | 1 => {
                volume.write_at(at as u64, &bytes).unwrap();
                model[at..at + length].copy_from_slice(&bytes);
            }
            2 | 3 => {
                let mut transaction = volume.begin().unwrap();
                transaction.write_at(at as u64, &bytes).unwrap();
                let other = rng.below((BYTES - 100) as u64) as usize;
                transaction.write_at(other as u64, &[step as u8; 100]).unwrap();
                let mut own = [0; 100];
                transaction.read_at(other as u64, &mut own).unwrap();
                assert_eq!(own, [step as u8; 100]);
                if step % 3 == 0 {
                    // Dropped: it has no effect.
                    continue;
                }
                transaction.commit().unwrap();
                model[at..at + length].copy_from_slice(&bytes);
                model[other..other + 100].fill(step as u8);
            }
            4 => {
                let mut read = vec![9; length];
                volume.read_at(at as u64, &mut read).unwrap();
                assert_eq!(read, model[at..at + length], "step {step}");
            }
            _ if step % 20 == 0 => {
                drop(volume);
                volume = Volume::open(&path).unwrap();
            }
            _ => {
                let range = PageRange::new(PageNo((at / PAGE_BYTES) as u64), 1);
                volume.trim(range).unwrap();
                let begin = at / PAGE_BYTES * PAGE_BYTES;
                model[begin..begin + PAGE_BYTES].fill(0);
            }
        }
    }
    let mut all = vec![0; BYTES];
    volume.read_at(0, &mut all).unwrap();
    assert!(all == model);
    drop(volume);
    assert!(Volume::check(&path).unwrap().findings.is_empty());
}

/// Each thread writes its own bytes, in pages that all threads write.
#[test]
fn nobody_loses_bytes_beside_those_of_others() {
    const THREADS: usize = 6;
    let (_folder, _path, volume) = volume();
    thread::scope(|scope| {
        for number in 0..THREADS {
            let volume = volume.clone();
            scope.spawn(move || {
                for round in 1..40u8 {
                    // Across the boundary of two pages.
                    let at = PAGE_BYTES - 60 + number * 20;
                    volume.write_at(at as u64, &[round; 20]).unwrap();
                    let mut read = [0; 20];
                    volume.read_at(at as u64, &mut read).unwrap();
                    assert_eq!(read, [round; 20], "{number}");
                }
            });
        }
    });
}

/// A transaction locks a page before it reads it for a partial write: no other change comes in between.
#[test]
fn a_page_of_which_a_part_is_written_is_taken() {
    let (_folder, _path, volume) = volume();
    let mut transaction = volume.begin().unwrap();
    transaction.write_at(100, b"part").unwrap();
    let refused = volume.write(PageNo(0), vec![page(1)]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    volume.write(PageNo(1), vec![page(1)]).unwrap();
    transaction.commit().unwrap();
    volume.write(PageNo(0), vec![page(2)]).unwrap();
    let mut read = [0; 4];
    volume.read_at(100, &mut read).unwrap();
    assert_eq!(read, [2; 4]);
}

/// Reads lock nothing: after two transactions have read a page and the first has written it and committed, the second
/// may write it.
#[test]
fn a_page_that_another_transaction_wrote_is_refused() {
    let (_folder, _path, volume) = volume();
    let (mut one, mut other) = (volume.begin().unwrap(), volume.begin().unwrap());
    one.write(PageNo(7), vec![page(1)]).unwrap();
    assert!(other.read(PageNo(7), 1).unwrap() == [page(0)]);
    let refused = other.write(PageNo(7), vec![page(2)]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    one.commit().unwrap();
    other.write(PageNo(7), vec![page(2)]).unwrap();
    other.commit().unwrap();
    assert!(volume.read(PageNo(7), 1).unwrap() == [page(2)]);
}

#[test]
fn a_transaction_that_is_dropped_leaves_nothing_and_no_place_taken() {
    let (_folder, _path, volume) = volume();
    let fails = || -> Result<()> {
        let mut transaction = volume.begin()?;
        transaction.write(PageNo(3), vec![page(1), page(2)])?;
        transaction.write(PageNo(1 << 40), vec![page(3)])
    };
    for _ in 0..2 * volume.limits().transactions_max {
        assert_eq!(fails().unwrap_err().kind(), ErrorKind::OutOfRange);
    }
    assert!(volume.read(PageNo(3), 1).unwrap() == [page(0)]);
    let transaction = volume.begin().unwrap();
    transaction.abort().unwrap();
    volume.write_scattered(vec![(PageNo(9), page(1)), (PageNo(2), page(2))]).unwrap();
    volume.share(vec![(PageNo(4), PageNo(9))]).unwrap();
    volume.flush().unwrap();
    assert!(volume.read(PageNo(4), 1).unwrap() == [page(1)]);
}

#[test]
fn a_volume_is_made_once_and_what_fails_leaves_nothing() {
    let (folder, path, first) = volume();
    first.write(PageNo(1), vec![page(7)]).unwrap();
    let again = Volume::create(&path).open().map(drop).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::InvalidInput);
    assert!(again.to_string().contains("already exists"), "{again}");
    let nothing = folder.path().join("none");
    Volume::create(&nothing).capacity_bytes(0).open().map(drop).unwrap_err();
    assert!(!nothing.exists());
    assert_eq!(Volume::open(&nothing).map(drop).unwrap_err().kind(), ErrorKind::Io);
    // Also with the path of the file.
    let settings = Volume::create(nothing.join("v.toml")).capacity_bytes(8 << 20);
    let second = settings.cache_bytes(1 << 20).buffer_bytes(1 << 20).durable_on_flush().sparse();
    assert_eq!(second.open().unwrap().bytes(), 8 << 20);
    let text = std::fs::read_to_string(nothing.join("v.toml")).unwrap();
    for said in ["\ncache = ", "\nsparse = true", "\ndurability = \"on_flush\"", "\n[buffer]"] {
        assert!(text.contains(said), "{said:?} is not in {text}");
    }
    drop(first);
    assert_reads_only(&path);
}

fn assert_reads_only(path: &Path) {
    let [one, two] = [0, 1].map(|_| Volume::open_read_only(path).unwrap());
    assert!(one.read(PageNo(1), 1).unwrap() == two.read(PageNo(1), 1).unwrap());
    assert!(one.read(PageNo(1), 1).unwrap() == [page(7)]);
    for refused in
        [one.write(PageNo(1), vec![page(8)]), one.write_at(5, b"x"), one.begin().map(drop)]
    {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ReadOnly);
    }
    assert_eq!(Volume::open(path).map(drop).unwrap_err().kind(), ErrorKind::Locked);
}

/// The figures of a volume change with its content, wherever it runs; those of a reader are the same.
#[test]
fn figures_tell_the_fill_of_a_volume() {
    let (_folder, path, volume) = volume();
    let empty = volume.stat().unwrap();
    assert_eq!(empty.number("capacity_bytes"), Some(8 << 20));
    assert_eq!(empty.number("mapped_bytes"), Some(0));
    assert_eq!((empty.text("kind"), empty.text("holds")), (Some("flash"), Some("nothing")));
    assert_eq!((empty.text("dirty_bytes"), empty.number("kind")), (None, None));
    volume.write(PageNo(3), vec![page(1); 10]).unwrap();
    let filled = volume.stat().unwrap();
    assert_eq!(filled.number("mapped_bytes"), Some(10 * PAGE_BYTES as u64));
    assert_eq!(filled.text("holds"), Some("unknown"));
    assert_eq!(filled.text("identity"), empty.text("identity"));
    assert!(filled.iter().all(|(name, figure)| filled.text(name) == Some(figure)));
    drop(volume);
    let thread = OpenOptions { placement: Placement::Thread, ..OpenOptions::READ_ONLY };
    for options in [OpenOptions::READ_ONLY, thread] {
        let told = Volume::open_with(&path, options).unwrap().stat().unwrap();
        for name in ["identity", "mapped_bytes", "zones", "holds"] {
            assert_eq!(told.text(name), filled.text(name), "{name}");
        }
    }
}

/// The next process finds in the system's memory what this one read, unless the configuration says otherwise.
#[test]
fn what_a_program_reads_stays_in_the_systems_memory() {
    const BYTES: usize = 256 * PAGE_BYTES;
    // Not in memory, as the folder for temporary files may be.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for setting in ["", "system_cache = false\n"] {
        let path = folder.path().join(if setting.is_empty() { "cached" } else { "direct" });
        let volume = Volume::create(&path).capacity_bytes(16 << 20).open().unwrap();
        volume.write_at(0, &vec![7; BYTES]).unwrap();
        drop(volume);
        let config = path.join("VOLUME.toml");
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, text.replace("[media]\n", &format!("[media]\n{setting}"))).unwrap();
        // The opening above read the rest.
        let data = std::fs::File::open(path.join("data.tantalum")).unwrap();
        rustix::fs::fadvise(&data, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let mut read = vec![0; BYTES];
        Volume::open(&path).unwrap().read_at(0, &mut read).unwrap();
        assert!(read.iter().all(|byte| *byte == 7));
        let Some(resident) = resident_bytes(&path.join("data.tantalum")) else { return };
        assert!((resident >= BYTES as u64) == setting.is_empty(), "{setting}: {resident} bytes");
    }
}
