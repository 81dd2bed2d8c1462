//! What a session asks of its connection.
use tantalum_base::Result;

/// A connection. Handles are cheap to clone and all name the same one.
#[allow(async_fn_in_trait, reason = "a connection lives on one thread")]
pub(crate) trait ByteStream: Clone + 'static {
    /// Receives at least one byte; 0 where the other side has closed. May be given up.
    async fn recv(&self, into: &mut [u8]) -> Result<usize>;

    /// Sends at least one byte of `bytes` and says how many.
    async fn send(&self, bytes: &[u8]) -> Result<usize>;

    /// Ends both directions; what waits in `recv` or `send` comes back.
    fn shutdown(&self);
}
