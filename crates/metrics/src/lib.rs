//! Lets an administrator watch a running server: its metrics over HTTP, as Prometheus scrapes them.
//!
//! ```text
//! endpoint         listens, limits and stops connections, beside other work of its executor
//!   connection     one connection: a request, a response, the end
//!     request      the request, and the head of the response
//! fetch            the client side: fetches the metrics of an endpoint once
//! scrape           parses the text into numbers
//! ```
//!
//! The numbers come from the parts that count them, and are rendered as text in `tantalum_runtime::metrics`. The format
//! is written by hand: `prometheus-client` has its own counters, which must be `Send + Sync`, and ours live on the one
//! thread of their volume.
mod connection;
mod endpoint;
mod fetch;
mod request;
mod scrape;

pub use endpoint::{Endpoint, EndpointOptions};
pub use fetch::fetch;
pub use scrape::{Bucket, Scrape};
