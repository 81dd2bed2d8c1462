//! A policy of one's own, driven as the engine does it: `cargo run -p tantalum-replay --example own_policy TRACE FRAMES`.
use tantalum_base::PageNo;
use tantalum_policy::{Effect, Policy, Request, Tally};
use tantalum_replay::cache_replay::CacheTrace;

/// The page that came in last goes first: what came early stays, which suits loops that are longer than the cache.
pub struct LastInFirstOut {
    /// Pages that it holds at most.
    pub frames: usize,
    /// Each page, and whether it is dirty.
    pub pages: Vec<(PageNo, bool)>,
}

#[rustfmt::skip]
impl Policy for LastInFirstOut {
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        if let Some((_, dirty)) = self.pages.iter_mut().find(|(page, _)| *page == request.page()) {
            *dirty |= request.is_write();
            return true;
        }
        if self.pages.len() == self.frames
            && let Some((page, dirty)) = self.pages.pop() { effects.push(Effect::Evicted { page, dirty }); }
        self.pages.push((request.page(), request.is_write()));
        false
    }
    fn contains(&self, page: PageNo) -> bool { self.pages.iter().any(|(it, _)| *it == page) }
    fn write_candidates(&self, most: usize, out: &mut Vec<PageNo>) { out.extend(self.pages.iter().filter(|it| it.1).map(|it| it.0).take(most)); }
    fn cleaned(&mut self, page: PageNo) { self.pages.iter_mut().filter(|it| it.0 == page).for_each(|it| it.1 = false); }
    fn forget(&mut self, page: PageNo) -> bool { let before = self.pages.len(); self.pages.retain(|it| it.0 != page); self.pages.len() < before }
    fn capacity_pages(&self) -> u32 { self.frames as u32 }
    fn dirty_pages(&self) -> u32 { self.pages.iter().filter(|it| it.1).count() as u32 }
    fn memory_bytes(&self) -> u64 { (self.pages.capacity() * size_of::<(PageNo, bool)>()) as u64 }
}

fn main() -> tantalum_base::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let trace = CacheTrace::load(words[1].as_ref(), &Default::default())?;
    let (mut policy, mut tally) = (
        LastInFirstOut { frames: words[2].parse().expect("a number"), pages: Vec::new() },
        Tally::default(),
    );
    policy.run(&trace.requests, &mut tally);
    println!("{:.4} of {} requests hit", tally.hit_ratio(), tally.requests);
    Ok(())
}
