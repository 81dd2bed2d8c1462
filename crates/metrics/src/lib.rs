//! Lets an administrator watch a running server: its metrics over HTTP, as Prometheus scrapes them.
//!
//! ```text
//! endpoint         listens, limits and stops connections, beside whatever else its executor does
//!   connection     one connection: a request, a response, the end
//!     request      what was asked for, and what is answered
//! fetch            the other side: asks an endpoint once
//! scrape           text as numbers again
//! ```
//!
//! What there is to tell comes from those who count it (`tantalum_runtime::metrics`), and
//! is made text there. The format is written by hand: `prometheus-client` keeps its own counters, which have to be `Send + Sync`, and ours
//! live on the one thread of their volume.
mod connection;
mod endpoint;
mod fetch;
mod request;
mod scrape;

pub use endpoint::{Endpoint, EndpointOptions};
pub use fetch::fetch;
pub use scrape::{Bucket, Scrape};
