//! A home of whole sectors that is not a whole number of pages: its end, and the check that nothing is written behind it.
//!
//! The volume's last page holds the remaining sectors; the rest of that page reads as zeros. NBD clients do not see the rest.
//! Other clients see whole pages, but may write only zeros to the rest, because the home cannot store it.
use tantalum_base::size::Size;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageNo, Payload, Result, ResultExt};
use tantalum_media::BlockStore;
use tantalum_media::block_store::{FileStore, FileStoreOptions, SECTOR_BYTES, is_there};
use tantalum_runtime::Live;

use crate::config::VolumeConfig;
use crate::home_config::HomeConfig;
use crate::refusals::{HOME_GONE, HOME_SHORTER};
use crate::sizes;
use crate::tiered::home_config;

const SIZE: &str = "home.size";

impl HomeConfig {
    /// The configured size of the home in bytes, a whole number of sectors.
    ///
    /// # Errors
    /// `InvalidInput` if it is not.
    pub(crate) fn size_bytes(&self) -> Result<Option<u64>> {
        let Some(text) = &self.size else { return Ok(None) };
        let bytes = Size::parse_bytes(text).context(|| SIZE)?;
        match bytes > 0 && bytes.is_multiple_of(SECTOR_BYTES) {
            true => Ok(Some(bytes)),
            false => {
                let context = format!(
                    "{SIZE} = {text:?} is not a whole number of sectors of {SECTOR_BYTES} bytes"
                );
                Err(Error::new(ErrorKind::InvalidInput, context))
            }
        }
    }

    /// Options for opening the home's file or device.
    ///
    /// # Errors
    /// As of [`size_bytes`](Self::size_bytes).
    pub(crate) fn store_options(&self) -> Result<FileStoreOptions> {
        // Room is allocated as it is used, and trims release it.
        let end_bytes = self.size_bytes()?;
        Ok(FileStoreOptions { sparse: true, end_bytes, ..FileStoreOptions::default() })
    }
}

impl VolumeConfig {
    /// Bytes that hosts see: all pages, less the part of the last page behind the end of the home.
    ///
    /// # Errors
    /// `InvalidInput` if the settings contradict each other.
    pub fn size_bytes(&self) -> Result<u64> {
        let pages = self.capacity_pages()?;
        let said = self.home.as_ref().map(HomeConfig::size_bytes).transpose()?.flatten();
        let bytes = said.unwrap_or(pages * PAGE_BYTES as u64);
        if bytes.div_ceil(PAGE_BYTES as u64) == pages {
            return Ok(bytes);
        }
        let context = format!(
            "{SIZE} is {bytes} bytes, and device.capacity = {:?}: both are the size of the home",
            self.device.capacity
        );
        Err(Error::new(ErrorKind::InvalidInput, context))
    }

    /// The last page, if the home ends within it.
    pub(crate) fn last_page(&self) -> Result<Option<LastPage>> {
        let (bytes, page) = (self.size_bytes()?, PAGE_BYTES as u64);
        let held_bytes = (bytes % page) as usize;
        Ok((held_bytes > 0).then_some(LastPage { page: PageNo(bytes / page), held_bytes }))
    }

    /// Whether the configured capacity is exactly the size in bytes, even if that is not a whole number of pages.
    pub(crate) fn is_capacity_exact(&self) -> Result<bool> {
        let bytes = Size::parse_bytes(&self.device.capacity).context(|| sizes::CAPACITY)?;
        Ok(bytes == self.size_bytes()?)
    }
}

/// Opens the home of `config`.
///
/// # Errors
/// `Io` if it does not exist; `InvalidInput` if it is shorter than configured; as [`FileStore::open`].
pub(crate) fn open_home_file(
    live: &Live,
    config: &VolumeConfig,
    read_only: bool,
) -> Result<FileStore> {
    let home = home_config(config)?;
    let options = FileStoreOptions { read_only, ..home.store_options()? };
    let path = home.home_path(&config.path);
    if !is_there(&path)? {
        let (home, at) = (path.display(), config.path.display());
        let context = format!("the home {home} {HOME_GONE}, or correct home.path in {at}");
        return Err(HOME_GONE.error(ErrorKind::Io, context));
    }
    let store = FileStore::open(live, &path, options)?;
    let (bytes, key) = match options.end_bytes {
        Some(bytes) => (bytes, SIZE),
        None => (config.size_bytes()?, sizes::CAPACITY),
    };
    if store.bytes() < bytes {
        let path = path.display();
        let context = format!(
            "the home {path} has fewer than the {bytes} bytes that {key} says: {HOME_SHORTER} (put its own home back)"
        );
        return Err(HOME_SHORTER.error(ErrorKind::InvalidInput, context));
    }
    Ok(store)
}

/// The last page, with the end of the home within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastPage {
    page: PageNo,
    held_bytes: usize,
}

impl LastPage {
    /// Refuses a write that the home cannot store.
    ///
    /// # Errors
    /// `OutOfRange` for a last page with anything but zeros behind the end.
    pub(crate) fn check<P: Payload>(&self, page: PageNo, content: &P) -> Result<()> {
        if page != self.page {
            return Ok(());
        }
        let mut bytes = [0; PAGE_BYTES];
        content.write_to(&mut bytes);
        if bytes[self.held_bytes..].iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        let context = format!(
            "page {page} is the last one, and the home ends {} bytes into it: behind that only zeros can be written",
            self.held_bytes
        );
        Err(Error::new(ErrorKind::OutOfRange, context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use tantalum_base::PageBuf;

    fn config(capacity: &str, size: &str) -> Result<VolumeConfig> {
        let text = format!(
            "kind = \"tiered\"\n[media]\ntype = \"file\"\npath = \"flash\"\nsize = \"100MiB\"\n[home]\npath = \"home\"\n{size}\n\
             [device]\ncapacity = \"{capacity}\"\n"
        );
        VolumeConfig::parse(&text, Path::new("v.toml"))
    }

    #[test]
    fn a_home_may_end_within_the_last_page() {
        let odd = config("10486272B", "size = \"10486272B\"").unwrap();
        assert_eq!((odd.capacity_pages().unwrap(), odd.size_bytes().unwrap()), (2561, 10_486_272));
        assert_eq!(odd.rounded_sizes().unwrap(), []);
        let last = odd.last_page().unwrap().unwrap();
        let mut content = [0; PAGE_BYTES];
        content[511] = 1;
        last.check(PageNo(2560), &PageBuf::copy_from(&content)).unwrap();
        content[512] = 1;
        let content = PageBuf::copy_from(&content);
        last.check(PageNo(2559), &content).unwrap();
        let error = last.check(PageNo(2560), &content).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfRange);
        // Without home.size, pages are whole, as in older volumes.
        let whole = config("10486272B", "").unwrap();
        assert_eq!((whole.size_bytes().unwrap(), whole.last_page().unwrap()), (10_489_856, None));
        assert_eq!(whole.rounded_sizes().unwrap().len(), 1);
        for (size, word) in [("10486273B", "sectors"), ("10MiB", "both"), ("x", "home.size")] {
            let error = config("10486272B", &format!("size = \"{size}\"")).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}
