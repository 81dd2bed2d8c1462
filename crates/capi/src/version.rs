//! The version of the header that a program was compiled with, and of the library that it runs with.
use std::ffi::{CStr, c_char};

/// The version of this header, 0.2.0, as three numbers. Until 1.0 a new minor version may change the
/// interface. The loader refuses a shared library of another one, as its name ends in it.
pub const TANTALUM_VERSION_MAJOR: u32 = 0;
/// See TANTALUM_VERSION_MAJOR.
pub const TANTALUM_VERSION_MINOR: u32 = 2;
/// See TANTALUM_VERSION_MAJOR.
pub const TANTALUM_VERSION_PATCH: u32 = 0;

const VERSION: &CStr = {
    let text = concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes();
    match CStr::from_bytes_with_nul(text) {
        Ok(version) => version,
        Err(_) => panic!("a version has no NUL inside"),
    }
};

/// The version of the library that is running, such as "0.2.0". The text is static.
#[unsafe(no_mangle)]
pub extern "C" fn tantalum_version() -> *const c_char {
    VERSION.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_version_is_the_packages() {
        let (major, minor, patch) =
            (TANTALUM_VERSION_MAJOR, TANTALUM_VERSION_MINOR, TANTALUM_VERSION_PATCH);
        assert_eq!(format!("{major}.{minor}.{patch}"), env!("CARGO_PKG_VERSION"));
    }
}
