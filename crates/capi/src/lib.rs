//! The C interface: a volume in a file, from C and from any language that can call C.
//!
//! ```text
//! status        TantalumStatus: the result of a call, one value for each kind of error
//! boundary      from C to Rust and back: panics stop here, pointers are checked, messages stored
//! volume        create, open, limits, close
//! pages         read, write, flush, trim, share
//! transactions  begin, commit, abort; reads and writes inside; scattered writes in one call
//! version       the version of the header, and of the library that runs
//! ```
//!
//! `tests/header.rs` generates `include/tantalum.h` from this code, and fails if the two differ.
//! `docs/capi.md` describes the use; `examples/double_write.c` is an example.
#[expect(unsafe_code, reason = "pointers from C become slices and references here")]
mod boundary;
#[expect(unsafe_code, reason = "functions that C calls, by name and with its pointers")]
mod pages;
mod status;
#[expect(unsafe_code, reason = "functions that C calls, by name and with its pointers")]
mod transactions;
#[expect(unsafe_code, reason = "a function that C calls by name")]
mod version;
#[expect(unsafe_code, reason = "functions that C calls, by name and with its pointers")]
mod volume;

pub use boundary::{tantalum_error_message, tantalum_status_name};
pub use pages::{
    TantalumPair, tantalum_flush, tantalum_read, tantalum_share, tantalum_share_range,
    tantalum_trim, tantalum_write,
};
pub use status::TantalumStatus;
pub use transactions::{
    tantalum_abort, tantalum_begin, tantalum_commit, tantalum_read_tx, tantalum_write_scattered,
    tantalum_write_tx,
};
pub use version::{
    TANTALUM_VERSION_MAJOR, TANTALUM_VERSION_MINOR, TANTALUM_VERSION_PATCH, tantalum_version,
};
pub use volume::{
    TANTALUM_CREATE_OVERWRITE, TANTALUM_OPEN_OWN_THREAD, TantalumDurability, TantalumLimits,
    TantalumVolume, tantalum_close, tantalum_create, tantalum_limits, tantalum_open,
};
