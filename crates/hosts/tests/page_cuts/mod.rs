//! Pages of 16 KiB under a load, and their possible states after a cut.
use std::fmt::Debug;
use tantalum_hosts::double_write::{Form, PageOptions};

pub const DATABASE_PAGES: u64 = 40;
pub const DEVICE_PAGES: u64 = 200;

pub fn engine_options(form: Form) -> PageOptions {
    PageOptions {
        form,
        database_pages: DATABASE_PAGES,
        device_pages_per_page: 4,
        pool_pages: 16,
        batch_pages: 4,
        metadata_per_page: 0.1,
        metadata_pages: 8,
    }
}

/// The number of torn homes among the `found` versions. The others have a version within their
/// bounds.
pub fn torn_of(found: &[Option<u64>], bounds: &[(u64, u64)], what: impl Debug) -> usize {
    for (page, (version, (least, most))) in found.iter().zip(bounds).enumerate() {
        if let Some(version) = version {
            assert!(
                (least..=most).contains(&version),
                "{what:?}: page {page} has version {version} of {least} to {most}"
            );
        }
    }
    found.iter().filter(|version| version.is_none()).count()
}
