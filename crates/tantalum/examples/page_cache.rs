//! A page cache over a volume, with any policy: `cargo run -p tantalum --example page_cache FOLDER`.
use std::collections::BTreeMap;
use tantalum::{PAGE_BYTES, PageBuf, PageNo, Payload, Result, Volume};
use tantalum_policy::{Effect, Policy, PolicySpec, Request, Workload};

/// A write-through cache for reads.
pub struct PageCache {
    /// The volume below.
    pub volume: Volume,
    policy: Box<dyn Policy>,
    pages: BTreeMap<PageNo, PageBuf>,
}

impl PageCache {
    /// A cache of `frames` pages with replacement `policy`, such as `lru` or `s3-fifo`.
    pub fn over(volume: Volume, policy: &str, frames: u32) -> Result<PageCache> {
        let workload = Workload { pages_end: volume.limits().pages, future: &[] };
        let policy = PolicySpec::parse(policy)?.build(frames, workload)?;
        Ok(PageCache { volume, policy, pages: BTreeMap::new() })
    }

    /// Reads a page, and returns whether it was in memory.
    pub fn read(&mut self, page: PageNo) -> Result<(PageBuf, bool)> {
        if let Some(content) = self.pages.get(&page).cloned() {
            self.keep(page, content.clone());
            return Ok((content, true));
        }
        let content = self.volume.read(page, 1)?.pop().unwrap_or_else(PageBuf::zero);
        self.keep(page, content.clone());
        Ok((content, false))
    }

    /// Writes a page: durable when it returns.
    pub fn write(&mut self, page: PageNo, content: PageBuf) -> Result<()> {
        self.volume.write(page, vec![content.clone()])?;
        self.keep(page, content);
        Ok(())
    }

    fn keep(&mut self, page: PageNo, content: PageBuf) {
        let mut effects = Vec::new();
        self.policy.access(Request::new(page, false), &mut effects);
        self.pages.insert(page, content);
        for gone in effects.into_iter().filter(|effect| effect.leaves()).map(Effect::page) {
            self.pages.remove(&gone);
        }
    }
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).expect("the folder of a volume");
    let volume = Volume::create(folder).capacity_bytes(16 << 20).open_or_create()?;
    let mut cache = PageCache::over(volume, "lru", 100)?;
    cache.write(PageNo(7), PageBuf::copy_from(&[7; PAGE_BYTES]))?;
    println!("page 7 was in memory: {}", cache.read(PageNo(7))?.1);
    Ok(())
}
