//! A creation that was cut short after the configuration was written.
//!
//! The data are created in a file with a temporary name. This file exists before the configuration does, and until the data are
//! complete. So a creation that was cut short differs from a volume whose data are elsewhere, such as on a disk that is not mounted.
use tantalum_base::Result;
use tantalum_media::block_store::is_there;

use crate::config::{Kind, MediaType, VolumeConfig};
use crate::create::staging_path;
use crate::permissions::new_file_mode;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;

/// Whether the creation of the volume of `config` was cut short, or is in progress. [`create_volume`](crate::create_volume)
/// finishes it, and no data are lost. Only for volumes of kind `flash` in a file; false for others.
///
/// # Errors
/// `Io` if the folder of the data cannot be read now.
pub fn is_creation_unfinished(config: &VolumeConfig) -> Result<bool> {
    if !is_file_alone(config) {
        return Ok(false);
    }
    let data = config.data_path()?;
    Ok(!is_there(&data)? && is_there(&staging_path(&data))?)
}

/// Creates the file with the temporary name, which shows that the creation is unfinished. Errors are left to the creation itself,
/// which needs the same file.
pub(crate) fn begin_creation(config: &VolumeConfig) {
    let Ok(data) = config.data_path() else { return };
    if is_file_alone(config) && matches!(is_there(&data), Ok(false)) {
        let mut options = OpenOptions::new();
        options.create(true).append(true).mode(new_file_mode(config));
        let _ = options.open(staging_path(&data));
    }
}

/// Removes that file if it is empty: then no caller is creating the data in it.
pub(crate) fn end_creation(config: &VolumeConfig) {
    let Ok(data) = config.data_path() else { return };
    let staged = staging_path(&data);
    if is_file_alone(config)
        && staged.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0)
    {
        let _ = std::fs::remove_file(staged);
    }
}

/// Whether the volume is of kind `flash`, in a file.
fn is_file_alone(config: &VolumeConfig) -> bool {
    config.kind == Kind::Flash && config.media.media_type == MediaType::File
}
