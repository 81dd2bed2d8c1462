//! Traces: the requests of a database to its storage, read, written and generated.
//!
//! ```text
//! event       PageEvent (pages) and BlockEvent (bytes of a kind of file): the two levels
//! formats     the registry; one file per format: page_csv, block_csv, msr, vscsi, ...
//! reader      file or pipe -> iterator of events, in constant memory     source  plain, gzip, zstd
//! compression  the packing of a file, by its first bytes                  encoding  byte order marks
//! writer      events -> file                                             recorder  for live devices
//! layout      block events -> page events: volumes laid end to end
//! expression  a trace as a user names it: a file, a generator, `concat:` of parts of traces (concat)
//! rescue      traces that were cut off                                   account  requests, data left out
//! objects     objects of any size as pages
//! reshape     splits requests of several pages, renumbers pages
//! stat        counts the contents of a trace
//! generate    "zipf:pages=1m,requests=10m,theta=1.0" -> page events
//! link_bench  transactions like LinkBench's, for `generate` and for storage engines
//! ycsb        YCSB's core workloads, for both as well
//! shared      the place of the large real traces for tests and benches
//! ```
//! A new format is one file in `formats` that implements [`Format`], and one line in [`formats`].
pub mod account;
mod compression;
mod concat;
mod encoding;
pub mod event;
pub mod expression;
pub mod formats;
pub mod generate;
pub mod layout;
pub mod link_bench;
pub mod objects;
pub mod open;
pub mod reader;
pub mod recorder;
pub mod rescue;
pub mod reshape;
pub mod shared;
pub mod source;
pub mod stat;
pub mod writer;
pub mod ycsb;
pub mod zipf;

pub use account::Account;
pub use event::{BlockEvent, BlockOp, FileKind, PageEvent};
pub use expression::Expression;
pub use formats::{AnyFormat, Fault, Format};
pub use generate::Generator;
pub use layout::Layout;
pub use link_bench::LinkBench;
pub use objects::Objects;
pub use open::{AnyReader, OpenOptions, PageEvents, open, open_pages};
pub use reader::Reader;
pub use recorder::Recorder;
pub use rescue::Rescue;
pub use reshape::Expand;
pub use stat::{BlockStat, PageStat};
pub use writer::Writer;
