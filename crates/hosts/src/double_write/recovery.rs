//! After a crash: torn homes are restored from the double-write area, where there is one.
use tantalum_base::{PageDevice, PageRange, Payload, Result, Stamp};

use super::engine::write_parts;
use super::image::{self, Image};
use super::layout::Layout;
use super::options::{DoubleWriteOptions, Form};

/// What a recovery found and did, in pages of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RecoveryReport {
    /// Whole pages in the double-write area.
    pub area_whole: u64,
    /// Homes that were torn and were written again from the area.
    pub restored: u64,
}

/// Recovers the database that `options` describe. With double write on, each whole page of the area
/// whose home is torn is written to its home. A torn page of the area needs nothing: its home was not
/// written yet. With SHARE there is nothing to do, as homes change as a whole; with double write off
/// there is nothing that could be done.
///
/// # Errors
/// The device's.
pub async fn recover<D: PageDevice<Page = Stamp>>(
    device: &D,
    options: &DoubleWriteOptions,
) -> Result<RecoveryReport> {
    let mut report = RecoveryReport::default();
    if options.form != Form::On {
        return Ok(report);
    }
    let layout = Layout::new(options);
    let most = device.limits().atomic_write_pages_max.max(1) as usize;
    for slot in 0..layout.area_slots() {
        let (copy, stamps) = read(device, layout.area(slot)).await?;
        let Image::Whole { home, .. } = copy else { continue };
        let Some(page) = layout.page_at(home) else { continue };
        report.area_whole += 1;
        let home = layout.home(page);
        if read(device, home).await?.0 == Image::Torn {
            write_parts(device, home.first, &stamps, most).await?;
            report.restored += 1;
        }
    }
    device.flush().await?;
    Ok(report)
}

/// The version of each page's home; `None` where it is torn, or holds another page's content.
///
/// # Errors
/// The device's.
pub async fn versions<D: PageDevice<Page = Stamp>>(
    device: &D,
    options: &DoubleWriteOptions,
) -> Result<Vec<Option<u64>>> {
    let layout = Layout::new(options);
    let mut versions = Vec::with_capacity(options.database_pages as usize);
    for page in 0..options.database_pages {
        let home = layout.home(page);
        versions.push(match read(device, home).await?.0 {
            Image::Blank => Some(0),
            Image::Whole { home: first, version } if first == home.first => Some(version),
            Image::Whole { .. } | Image::Torn => None,
        });
    }
    Ok(versions)
}

async fn read<D: PageDevice<Page = Stamp>>(
    device: &D,
    range: PageRange,
) -> Result<(Image, Vec<Stamp>)> {
    let mut stamps = vec![Stamp::zero(); range.pages as usize];
    device.read(range.first, &mut stamps, None).await?;
    Ok((image::read(&stamps), stamps))
}
