//! What the server asks of a network, so that it is the same over sockets of the live executor
//! and over connections in memory in virtual time.
use tantalum_base::Result;

/// A connection. Handles are cheap to clone and all name the same one.
#[allow(async_fn_in_trait, reason = "a connection lives on one thread")]
pub trait ByteStream: Clone + 'static {
    /// Receives at least one byte and says how many; 0 where the other side has closed. The
    /// future may be dropped before it completes; no bytes are lost then.
    async fn recv(&self, into: &mut [u8]) -> Result<usize>;

    /// Sends at least one byte of `bytes` and says how many; 0 or an error where the other side
    /// has closed.
    async fn send(&self, bytes: &[u8]) -> Result<usize>;

    /// Ends both directions; what waits in `recv` or `send` comes back.
    fn shutdown(&self);
}

/// Where connections come from.
#[allow(async_fn_in_trait, reason = "a listener lives on one thread")]
pub trait Accept {
    /// A connection.
    type Stream: ByteStream;

    /// The next connection. An error of kind `Closed` ends the server, any other is retried
    /// after a pause. The future may be dropped before it completes.
    async fn accept(&self) -> Result<Self::Stream>;

    /// Gives memory back to the operating system that the program does not use any more; called when
    /// connections that held much have gone.
    fn give_back_memory() {}
}
