//! The results of a run, for people (text tables), spreadsheets (CSV) and programs (JSON).
//!
//! ```text
//! value    one cell                      column   key for programs, heading and format for people
//! table    columns and rows -> text, CSV, JSON rows
//! report   {"seed", "config", "rows"} around a table; config is a hash of the configuration
//! schema   the columns of every stable output, documented in docs/output.md
//! html     one self-contained page: the verdict, charts, tables, seed and configuration
//! number   12,345   3.21 ms   0.9731
//! ```
pub mod config_hash;
pub mod html;
pub mod number;
pub mod report;
pub mod schema;
pub mod table;
pub mod value;

pub use config_hash::config_hash;
pub use html::{Page, Plot, Section, Tone};
pub use report::{OutputFormat, Report};
pub use table::{Column, Style, Table};
pub use value::Value;
