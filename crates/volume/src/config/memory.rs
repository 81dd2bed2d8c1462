//! The memory that an open volume needs by its settings: the buffer, and the map of its pages.
use tantalum_base::{ErrorKind, PAGE_BYTES, Result};
use tantalum_policy::{Policy, PolicySpec, Workload};
use tantalum_runtime::live::memory;

use super::{BufferConfig, VolumeConfig, invalid};
use crate::refusals::TOO_MUCH_MEMORY;
use crate::sizes;

/// Minimum bytes of memory that the map needs for each page.
const MAP_BYTES: u64 = 5;

impl VolumeConfig {
    /// Pages of the buffer; 0 if there is none.
    pub fn buffer_pages(&self) -> Result<u32> {
        let Some(buffer) = &self.buffer else { return Ok(0) };
        let pages = sizes::pages("buffer.size", &buffer.size)?;
        let small_enough = u32::try_from(pages).ok().filter(|it| *it <= PolicySpec::FRAMES_MAX);
        small_enough.ok_or_else(|| {
            let most = (u64::from(PolicySpec::FRAMES_MAX) * PAGE_BYTES as u64) >> 40;
            invalid(format!("buffer.size is over the limit of {most} TiB"))
        })
    }

    /// Refuses a buffer that no machine could have. This allocates no memory for the buffer.
    pub(super) fn check_buffer(&self) -> Result<()> {
        let Some(buffer) = &self.buffer else { return Ok(()) };
        let (pages, workload) = (self.buffer_pages()?, self.workload()?);
        let policy = PolicySpec::parse(&buffer.policy);
        let checked = policy.and_then(|policy| policy.check(pages, workload));
        checked.map_err(|error| error.wrap("buffer.policy"))
    }

    /// A new, empty policy for the buffer; `None` if there is no buffer.
    ///
    /// # Errors
    /// `TooLarge` if the buffer is larger than the memory that this process may use.
    pub fn buffer_policy(&self) -> Result<Option<Box<dyn Policy>>> {
        let Some(buffer) = &self.buffer else { return Ok(None) };
        let (pages, workload) = (self.buffer_pages()?, self.workload()?);
        refuse_buffer(buffer, pages, memory::limit_bytes())?;
        let policy = PolicySpec::parse(&buffer.policy);
        let policy = policy.and_then(|policy| policy.build(pages, workload));
        policy.map(Some).map_err(|error| error.wrap("buffer.policy"))
    }

    fn workload(&self) -> Result<Workload<'static>> {
        Ok(Workload { pages_end: self.capacity_pages()?, future: &[] })
    }

    /// This volume without a buffer, for commands that read each page only once.
    pub fn without_buffer(&self) -> VolumeConfig {
        VolumeConfig { buffer: None, ..self.clone() }
    }
}

/// Refuses a buffer of `pages` pages that exceeds `limit_bytes` of memory.
fn refuse_buffer(buffer: &BufferConfig, pages: u32, limit_bytes: u64) -> Result<()> {
    let what = || format!("buffer.size = {:?}: set a smaller one", buffer.size);
    refuse_beyond(u64::from(pages) * PAGE_BYTES as u64, limit_bytes, what)
}

/// Refuses a map of `pages` pages that exceeds `limit_bytes` of memory.
pub(super) fn refuse_map(capacity: &str, pages: u64, limit_bytes: u64) -> Result<()> {
    let what = || {
        format!("the map of device.capacity = {capacity:?}: open the volume on a larger machine")
    };
    refuse_beyond(pages.saturating_mul(MAP_BYTES), limit_bytes, what)
}

fn refuse_beyond(bytes: u64, limit_bytes: u64, what: impl Fn() -> String) -> Result<()> {
    if bytes <= limit_bytes {
        return Ok(());
    }
    let [needed, limit] = [bytes.div_ceil(1 << 20), limit_bytes >> 20];
    let context =
        format!("{} ({needed} MiB are more than the {limit} MiB {TOO_MUCH_MEMORY})", what());
    Err(TOO_MUCH_MEMORY.error(ErrorKind::TooLarge, context))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_in_memory_is_refused_with_the_limit() {
        let buffer = BufferConfig { size: "1GiB".into(), policy: "lru".into() };
        assert!(refuse_buffer(&buffer, 1 << 18, 1 << 30).is_ok());
        let error = refuse_buffer(&buffer, (1 << 18) + 1, 1 << 30).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        let told = error.to_string();
        let words =
            "buffer.size = \"1GiB\": set a smaller one (1025 MiB are more than the 1024 MiB";
        assert!(told.contains(words), "{told}");

        assert!(refuse_map("8TiB", 1 << 31, 10 << 30).is_ok());
        let told = refuse_map("8TiB", 1 << 31, 8 << 30).unwrap_err().to_string();
        assert!(told.contains("device.capacity = \"8TiB\": open the volume"), "{told}");
        assert!(told.contains("(10240 MiB are more than the 8192 MiB"), "{told}");
    }
}
