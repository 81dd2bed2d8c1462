//! The whole device against a plain map: random commands, and regular closing and reopening.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use tantalum_base::{ErrorKind, PageDevice, PageNo, PageRange, Payload, Rng, Stamp};
use tantalum_ftl::{DumpOptions, Ftl, FtlOptions};
use tantalum_media::ZoneMedia;
use tantalum_models::rig::{FileRig, NandRig, Rig};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Virtual};
use tantalum_ssd::{CacheKind, Ssd, SsdOptions};

const PAGES: u64 = 120;
const CACHE_PAGES: u32 = 24;

fn content<P: Payload>(page: u64, count: u64) -> P {
    let mut bytes = [count as u8; 4096];
    bytes[..8].copy_from_slice(&(page + 1).to_le_bytes());
    bytes[8..16].copy_from_slice(&count.to_le_bytes());
    P::from_bytes(&bytes)
}

/// For each page, the page whose content it has, and the number of that write.
type Map = BTreeMap<u64, (u64, u64)>;

async fn commands<M: ZoneMedia>(
    ssd: &Ssd<M>,
    map: &RefCell<Map>,
    rng: &mut Rng,
    seed: u64,
) -> tantalum_base::Result<()> {
    for _ in 0..150 {
        let len = 1 + rng.below(6);
        let first = rng.below(PAGES - len);
        let count = rng.next_u64();
        let pages: Vec<M::Page> = (first..first + len).map(|page| content(page, count)).collect();
        let put =
            || map.borrow_mut().extend((first..first + len).map(|page| (page, (page, count))));
        let transactions = ssd.limits().transactions_max > 0;
        match rng.below(12) {
            0..=3 => {
                ssd.write(PageNo(first), &pages, None).await?;
                put();
            }
            4 | 5 if transactions => {
                let tx = ssd.begin().await?;
                ssd.write(PageNo(first), &pages, Some(tx)).await?;
                if rng.chance(0.5) {
                    ssd.commit(tx).await?;
                    put();
                } else {
                    ssd.abort(tx).await?;
                }
            }
            6 => {
                ssd.trim(PageRange::new(PageNo(first), len)).await?;
                map.borrow_mut().retain(|page, _| !(first..first + len).contains(page));
            }
            7 => ssd.flush().await?,
            8 | 9 if ssd.limits().share_pairs_max > 0 => {
                let to = rng.below(PAGES - len);
                let refused = {
                    let held = map.borrow();
                    if to.abs_diff(first) < len {
                        Some(ErrorKind::InvalidInput)
                    } else if (first..first + len).any(|page| !held.contains_key(&page)) {
                        Some(ErrorKind::Unmapped)
                    } else {
                        None
                    }
                };
                let shared = ssd.share_range(PageNo(to), PageNo(first), len).await;
                assert_eq!(shared.as_ref().err().map(|error| error.kind()), refused);
                if shared.is_ok() {
                    for (to, from) in (to..to + len).zip(first..) {
                        let held = map.borrow()[&from];
                        map.borrow_mut().insert(to, held);
                    }
                }
            }
            _ => {
                let mut out = vec![M::Page::zero(); len as usize];
                ssd.read(PageNo(first), &mut out, None).await?;
                for (page, seen) in (first..).zip(&out) {
                    let expected = map
                        .borrow()
                        .get(&page)
                        .map_or(M::Page::zero(), |(page, count)| content(*page, *count));
                    assert_eq!(*seen, expected, "seed {seed} page {page}");
                }
            }
        }
    }
    Ok(())
}

fn beside_a_map<R: Rig>(cache: CacheKind, seeds: u64) {
    for seed in 0..seeds {
        let share_entries_max = [None, None, Some(20), Some(0)][seed as usize % 4];
        // A durable cache needs zones for its dump.
        let mut rig = R::with_more_zones(seed, if cache == CacheKind::Durable { 7 } else { 0 });
        let map = Rc::new(RefCell::new(BTreeMap::new()));
        for opening in 0..6 {
            let runtime = Virtual::new(Schedule::Shuffled(seed + opening));
            let media = rig.open(&runtime);
            let (map, rt) = (Rc::clone(&map), runtime.clone());
            let session = async move {
                let dump = DumpOptions::least(&media.geometry(), PAGES, CACHE_PAGES);
                let options = FtlOptions {
                    checkpoint_interval_slots: 150,
                    share_entries_max,
                    dump: (cache == CacheKind::Durable).then_some(dump),
                    ..FtlOptions::new(PAGES)
                };
                let ftl = match opening {
                    0 => Ftl::format(media, options).await?,
                    _ => Ftl::recover(media, options).await?.0,
                };
                let ssd = Rc::new(Ssd::new(ftl, SsdOptions::new(cache, CACHE_PAGES))?);
                ssd.start(&rt);
                let mut rng = Rng::split(seed, &format!("opening {opening}"));
                commands(&ssd, &map, &mut rng, seed).await?;
                ssd.close().await?;
                ssd.ftl().validate();
                Ok::<_, tantalum_base::Error>(())
            };
            runtime.run(session).unwrap().unwrap_or_else(|error| panic!("seed {seed}: {error:?}"));
            runtime.drop_tasks();
            rig.power_off(&runtime).unwrap();
        }
    }
}

#[test]
fn nand_beside_a_map() {
    for cache in
        [CacheKind::Durable, CacheKind::WriteThrough, CacheKind::Ordered, CacheKind::Volatile]
    {
        beside_a_map::<NandRig<Stamp>>(cache, 10);
    }
}

#[test]
fn file_beside_a_map() {
    for cache in
        [CacheKind::Durable, CacheKind::WriteThrough, CacheKind::Ordered, CacheKind::Volatile]
    {
        beside_a_map::<FileRig>(cache, 4);
    }
}
