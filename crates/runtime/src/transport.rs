//! What a server needs of a network: implemented by sockets of the live executor, and by connections in
//! memory in virtual time.
use tantalum_base::Result;

/// A connection. Clones are handles on the same connection.
#[allow(async_fn_in_trait, reason = "a connection lives on one thread")]
pub trait ByteStream: Clone + 'static {
    /// Receives at least one byte and returns how many; 0 where the other side has closed. No bytes
    /// are lost if the future is dropped before it completes.
    async fn recv(&self, into: &mut [u8]) -> Result<usize>;

    /// Sends at least one byte of `bytes` and returns how many; 0 or an error where the other side
    /// has closed.
    async fn send(&self, bytes: &[u8]) -> Result<usize>;

    /// Ends both directions; pending `recv` and `send` return.
    fn shutdown(&self);
}

/// Accepts connections.
#[allow(async_fn_in_trait, reason = "a listener lives on one thread")]
pub trait Accept {
    /// A connection.
    type Stream: ByteStream;

    /// The next connection. An error of kind `Closed` ends the server, any other is retried
    /// after a pause. The future may be dropped before it completes.
    async fn accept(&self) -> Result<Self::Stream>;

    /// Returns unused memory to the operating system; called after connections that held much have
    /// closed.
    fn give_back_memory() {}
}
