//! Sizes in VOLUME.toml: text (`"500MB"`) converted to pages.
use tantalum_base::size::Size;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Result};

use crate::config::VolumeConfig;
use crate::superblock::Superblock;

/// The setting for the size of a volume.
pub(crate) const CAPACITY: &str = "device.capacity";

/// A size that is not a multiple of a page, and the size used instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundedSize {
    /// Its setting, such as `device.capacity`.
    pub key: &'static str,
    /// The configured text.
    pub text: String,
    /// The size used.
    pub bytes: u64,
}

/// The size `text` of setting `key` in pages, at least one, rounded up.
///
/// # Errors
/// `InvalidInput` with the key if it is not a size in bytes, or is zero.
pub(crate) fn pages(key: &'static str, text: &str) -> Result<u64> {
    let bytes = Size::parse_bytes(text).map_err(|error| error.wrap(key))?;
    if bytes == 0 {
        let context =
            format!("{key} = {text:?} is zero: at least a page of {PAGE_BYTES} bytes is needed");
        return Err(Error::new(ErrorKind::InvalidInput, context));
    }
    Ok(bytes.div_ceil(PAGE_BYTES as u64))
}

/// As [`pages`], rounded down: for a part of an existing file or device, which may have no byte more.
pub(crate) fn whole_pages(key: &'static str, text: &str) -> Result<u64> {
    let bytes = Size::parse_bytes(text).map_err(|error| error.wrap(key))?;
    if bytes < PAGE_BYTES as u64 {
        let context = format!("{key} = {text:?} is less than a page of {PAGE_BYTES} bytes");
        return Err(Error::new(ErrorKind::InvalidInput, context));
    }
    Ok(bytes / PAGE_BYTES as u64)
}

impl VolumeConfig {
    /// The configuration with the capacity and the zones of an existing volume.
    pub(crate) fn with_sizes_of(&self, superblock: &Superblock) -> VolumeConfig {
        let page_kib = PAGE_BYTES as u64 / 1024;
        let mut config = self.clone();
        config.device.capacity = format!("{}KiB", superblock.pages * page_kib);
        let zone = u64::from(superblock.slots_per_zone) * page_kib;
        config.media.zone.get_or_insert(format!("{zone}KiB"));
        config
    }

    /// The sizes that are not multiples of a page, and the sizes used instead.
    pub fn rounded_sizes(&self) -> Result<Vec<RoundedSize>> {
        let (device, exact) = (&self.device, self.is_capacity_exact()?);
        let sizes = [
            (CAPACITY, Some(&device.capacity).filter(|_| !exact)),
            ("media.size", self.media.size.as_ref()),
            ("media.zone", self.media.zone.as_ref()),
            ("device.cache", Some(&device.cache)),
            ("device.transaction_max", device.transaction_max.as_ref()),
            ("device.transaction_memory", device.transaction_memory.as_ref()),
            ("device.checkpoint_interval", device.checkpoint_interval.as_ref()),
            ("buffer.size", self.buffer.as_ref().map(|buffer| &buffer.size)),
        ];
        let mut rounded = Vec::new();
        for (key, text) in sizes {
            let Some(text) = text else { continue };
            let to_pages = if key == "media.size" { whole_pages } else { pages };
            let bytes = to_pages(key, text)? * PAGE_BYTES as u64;
            if bytes != Size::parse_bytes(text)? {
                rounded.push(RoundedSize { key, text: text.clone(), bytes });
            }
        }
        Ok(rounded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::template;
    use std::path::Path;

    #[test]
    fn what_is_no_multiple_of_a_page_is_rounded_and_told() {
        let text = template("500MB")
            .replace("# zone = \"8MiB\"", "zone = \"1MB\"")
            .replace("# transaction_max = \"1GiB\"", "transaction_max = \"5000B\"")
            .replace("# [buffer]", "[buffer]\nsize = \"0.1GiB\"");
        let config = VolumeConfig::parse(&text, Path::new("v.toml")).unwrap();
        assert_eq!(config.capacity_pages().unwrap(), 122_071);
        assert_eq!(config.zone_slots().unwrap(), 245);
        assert_eq!(config.ssd_options().unwrap().staged_pages_max, 2);
        assert_eq!(config.buffer_pages().unwrap(), 26_215);
        let told = config.rounded_sizes().unwrap();
        let told: Vec<_> = told.iter().map(|size| (size.key, &size.text[..], size.bytes)).collect();
        let expected = [
            ("device.capacity", "500MB", 500_002_816),
            ("media.zone", "1MB", 1_003_520),
            ("device.transaction_max", "5000B", 8192),
            ("buffer.size", "0.1GiB", 107_376_640),
        ];
        assert_eq!(told, expected);
        let even = VolumeConfig::parse(&template("512MB"), Path::new("v.toml")).unwrap();
        assert_eq!(even.rounded_sizes().unwrap(), []);
    }

    #[test]
    fn of_what_is_there_no_more_is_taken() {
        assert_eq!(whole_pages("media.size", "8191B").unwrap(), 1);
        assert_eq!(pages("device.capacity", "8191B").unwrap(), 2);
        for text in ["0MiB", "12", "4095B"] {
            let message = whole_pages("media.size", text).unwrap_err().to_string();
            assert!(message.contains("media.size"), "{message}");
        }
    }
}
