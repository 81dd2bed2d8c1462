//! Epochs for a journal, and the image of the home after each of them.
use super::contents::content;
use std::collections::BTreeMap;
use tantalum_base::{PAGE_BYTES, PageNo, PageRange, Rng};
use tantalum_cache::journal::Pair;

pub const HOME_PAGES: u64 = 420;
pub const PAIR: Pair = Pair { volume_id: 0xfeed, pages: HOME_PAGES };
pub const HOME_BYTES: u64 = HOME_PAGES * PAGE_BYTES as u64;
pub const JOURNAL_BYTES: u64 = (1 << 20) + 640 * PAGE_BYTES as u64;

/// The changes of an epoch: contents by number, in the order in which they are appended, and zeros.
#[derive(Clone, Default)]
pub struct Epoch {
    pub contents: Vec<(PageNo, u64)>,
    pub zeros: Vec<PageRange>,
}

/// The content number of each page; zero pages are left out.
pub type Model = BTreeMap<u64, u64>;

/// The first page of a home that differs from the model.
pub fn first_difference(home: &[u8], model: &Model) -> Option<usize> {
    let number = |page| model.get(&(page as u64)).copied().unwrap_or(0);
    let mut pages = home.chunks(PAGE_BYTES).enumerate();
    pages.find_map(|(page, found)| (*found != content(number(page))[..]).then_some(page))
}

/// The epochs `1..=count`: large and small ones, some in page order, some in any order, and one
/// that is empty.
pub fn made_up(seed: u64, count: u64) -> Vec<Epoch> {
    let mut rng = Rng::split(seed, "epochs");
    (1..=count).map(|number| made_up_epoch(&mut rng, number)).collect()
}

fn made_up_epoch(rng: &mut Rng, number: u64) -> Epoch {
    let mut pages: Vec<u64> = (0..HOME_PAGES).collect();
    let (changed, zeroed) = match number % 5 {
        1 => (300, 0),
        2 => (12, 2),
        3 => (60, 3),
        4 => (0, 0),
        _ => (270, 1),
    };
    let mut zeros = Vec::new();
    for _ in 0..zeroed {
        let range = PageRange::new(PageNo(rng.below(HOME_PAGES - 20)), 1 + rng.below(20));
        if zeros.iter().all(|other: &PageRange| !other.overlaps(range)) {
            pages.retain(|page| !range.contains(PageNo(*page)));
            zeros.push(range);
        }
    }
    rng.shuffle(&mut pages);
    pages.truncate(changed);
    if number % 2 == 1 {
        pages.sort_unstable();
    }
    let contents = pages.into_iter().map(|page| (PageNo(page), number << 32 | (page + 1)));
    Epoch { contents: contents.collect(), zeros }
}

/// The images after no epoch, after the first, and so on.
pub fn models(epochs: &[Epoch]) -> Vec<Model> {
    let mut models = vec![Model::new()];
    for epoch in epochs {
        let mut model = models[models.len() - 1].clone();
        for range in &epoch.zeros {
            model.retain(|page, _| !range.contains(PageNo(*page)));
        }
        model.extend(epoch.contents.iter().map(|(page, number)| (page.0, *number)));
        models.push(model);
    }
    models
}
