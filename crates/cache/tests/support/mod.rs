//! Common parts of the tests.
pub mod contents;
pub mod cuts;
pub mod damage;
pub mod epochs;
pub mod history;
pub mod large;
pub mod lives;
pub mod media;
