//! Clients with pages in memory are told which of them changed.
use super::world::{World, content, is_empty, with_server};
use crate::changes::Changed;
use crate::fault_points::Fault;
use crate::{Level, Request, ServerOptions};
use std::collections::BTreeMap;
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{PageBuf, PageDevice, PageNo, PageRange, Payload, Rng};

/// A writer that locks and changes pages in all ways, a reader that keeps the pages it has read, and another
/// writer without locks, as over NBD, that writes while nobody reads. The reader's pages must be current.
async fn a_reader_beside_writers(world: Rc<World>, seed: u64) {
    const PAGES: u64 = 30;
    let mut rng = Rng::split(seed, "writers");
    let (writer, reader) = (world.client().await, world.client().await);
    let mut kept: BTreeMap<u64, PageBuf> = BTreeMap::new();
    for step in 1..40 {
        assert_eq!(writer.raise(1, Level::Exclusive).await, Level::Exclusive);
        let page = PageNo(rng.below(PAGES));
        match rng.below(5) {
            0 => {
                let write = Request::Write { first: page, pages: vec![content(step); 2], tx: None };
                writer.ask(write).await.unwrap();
            }
            1 => {
                let pages = vec![(page, content(step)), (PageNo(page.0 + 7), content(step))];
                writer.ask(Request::WriteScattered(pages)).await.unwrap();
            }
            2 => {
                let tx = writer.ask(Request::Begin).await.unwrap().tx;
                let pages = vec![content(step); 3];
                writer.ask(Request::Write { first: page, pages, tx: Some(tx) }).await.unwrap();
                let end = if rng.chance(0.3) { Request::Abort(tx) } else { Request::Commit(tx) };
                writer.ask(end).await.unwrap();
            }
            3 => _ = writer.ask(Request::Trim(PageRange::new(page, 2))).await.unwrap(),
            _ => world.device.write(page, &[content(step)], None).await.unwrap(),
        }
        writer.lower(1, Level::None).await;

        let told = reader.refreshed(1, Level::Shared, 2).await;
        assert_eq!(told.level, Level::Shared);
        kept.retain(|page, _| !told.changed.concerns(PageRange::new(PageNo(*page), 1)));
        kept.extend((0..).zip(told.pages));
        for _ in 0..6 {
            let page = rng.below(PAGES);
            let here = kept.get(&page).cloned();
            let there = reader.read(page).await;
            assert!(here.is_none_or(|here| here == there), "seed {seed}: page {page} is old");
            kept.insert(page, there);
        }
        reader.lower(1, Level::None).await;
    }
    assert!(kept.values().any(|page| !is_empty(page)));
}

#[test]
fn a_reader_never_takes_for_current_what_another_client_changed() {
    assert_noticed(Fault::ChangesUntold, || {
        for seed in 0..30 {
            with_server(seed, ServerOptions::default(), move |world| {
                a_reader_beside_writers(world, seed)
            });
        }
        None
    });
}

#[test]
fn a_small_change_leaves_the_rest_of_a_cache_as_it_is() {
    with_server(1, ServerOptions::default(), |world| async move {
        let (writer, reader) = (world.client().await, world.client().await);
        let pages = vec![(PageNo(3), content(1)), (PageNo(4), content(1)), (PageNo(9), content(1))];
        writer.ask(Request::WriteScattered(pages)).await.unwrap();
        let told = reader.refreshed(1, Level::Shared, 2).await;
        let ranges = vec![PageRange::new(PageNo(3), 2), PageRange::new(PageNo(9), 1)];
        assert_eq!((told.changed, told.pages.len()), (Changed::Pages(ranges), 0));
        assert_eq!(reader.refreshed(2, Level::Shared, 2).await.changed, Changed::Pages(vec![]));
        let many = (0..1500).map(|page| (PageNo(2 * page), content(2))).collect();
        writer.ask(Request::WriteScattered(many)).await.unwrap();
        let told = reader.refreshed(3, Level::Shared, 2).await;
        assert_eq!(told.changed, Changed::Everything, "more than is told one by one");
        assert_eq!(told.pages, [content(2), PageBuf::zero()]);
    });
}
