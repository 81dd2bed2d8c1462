//! The network interface that a server needs. Implemented by sockets of the live executor, and by connections in
//! memory in virtual time.
use tantalum_base::Result;

/// A connection. Clones are handles to the same connection.
#[allow(async_fn_in_trait, reason = "a connection lives on one thread")]
pub trait ByteStream: Clone + 'static {
    /// Receives at least one byte and returns the number received; 0 if the other side has closed. No bytes are lost
    /// if the future is dropped before it completes.
    async fn recv(&self, into: &mut [u8]) -> Result<usize>;

    /// Sends at least one byte of `bytes` and returns the number sent; 0 or an error if the other side has closed.
    async fn send(&self, bytes: &[u8]) -> Result<usize>;

    /// Shuts down both directions; pending `recv` and `send` return.
    fn shutdown(&self);
}

/// Accepts connections.
#[allow(async_fn_in_trait, reason = "a listener lives on one thread")]
pub trait Accept {
    /// A connection.
    type Stream: ByteStream;

    /// The next connection. An error of kind `Closed` ends the server; any other is retried after a pause. The future
    /// may be dropped before it completes.
    async fn accept(&self) -> Result<Self::Stream>;

    /// Returns unused memory to the operating system. Called after connections that held much memory have closed.
    fn give_back_memory() {}
}
