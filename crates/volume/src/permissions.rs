//! Permissions of the files that a volume creates: a user who may not read the original may not read a copy.
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tantalum_media::block_store::PRIVATE_MODE;

use crate::config::{Kind, VolumeConfig};

/// The permissions that a copy gets from the original: to read and to write.
const READ_AND_WRITE: u32 = 0o666;

/// The permissions of the file at `path`, for another file with the same content. [`PRIVATE_MODE`] if there is no such file, or if
/// it is a block device, whose permissions are for administrators of disks.
fn mode_of(path: &Path) -> u32 {
    match path.metadata() {
        Ok(about) if about.is_file() => about.permissions().mode() & READ_AND_WRITE,
        _ => PRIVATE_MODE,
    }
}

/// The permissions of new files of the volume of `config`, and of files with its content: those of its home, or of its data if it
/// has no home. [`PRIVATE_MODE`] if neither exists yet.
pub fn new_file_mode(config: &VolumeConfig) -> u32 {
    match (&config.home, config.kind) {
        (Some(home), Kind::Tiered) => mode_of(&home.home_path(&config.path)),
        _ => config.data_path().map_or(PRIVATE_MODE, |data| mode_of(&data)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, Permissions, set_permissions};

    #[test]
    fn a_copy_may_be_read_by_those_who_may_read_the_original() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("home");
        assert_eq!(mode_of(&file), 0o600);
        File::create(&file).unwrap();
        for (mode, copy) in [(0o600, 0o600), (0o640, 0o640), (0o755, 0o644), (0o4660, 0o660)] {
            set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            assert_eq!(mode_of(&file), copy);
        }
        assert_eq!(mode_of(Path::new("/dev/null")), 0o600);
        assert_eq!(mode_of(folder.path()), 0o600);
    }
}
