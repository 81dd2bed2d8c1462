//! Certificates of servers and clients, for tests. They are valid from 2020 to 2049, and their keys are public.
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A time at which they are valid, for tests in virtual time: in the year 2030.
pub const VALID_UNIX_SECONDS: u64 = 1_900_000_000;

/// A time at which they are valid, but the list of revoked ones has expired: in the year 2049.
pub const LATE_UNIX_SECONDS: u64 = 2_499_897_600;

/// The folder with the certificates of a server or client: `server`, `server-expired`, `server-of-another-ca`, `server-with-crl`, `client`,
/// `client-expired`, `client-of-another-ca`, `client-revoked`, `client-without-certificate`.
pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("certificates").join(name);
    assert!(folder.is_dir(), "{} is made by certificates/make", folder.display());
    folder
}

/// Copies such a folder to `to`, with a key that only this user can read, to change files in it.
pub fn copy(name: &str, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for file in std::fs::read_dir(folder(name)).unwrap() {
        let file = file.unwrap();
        let path = to.join(file.file_name());
        std::fs::copy(file.path(), &path).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    }
}
