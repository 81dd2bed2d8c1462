//! The server on sockets of the live executor.
use crate::{Accept, ByteStream, ServerOptions};
use tantalum_base::Result;
use tantalum_runtime::live::Live;
use tantalum_runtime::live::net::{Address, Listener, Stream};

impl ServerOptions {
    /// Listens at `address`, which must be a Unix socket or a loopback address unless
    /// `allow_remote` is set (`InvalidInput`).
    pub fn listen(&self, live: &Live, address: &Address) -> Result<Listener> {
        if let Address::Tcp(address) = address {
            self.check_tcp_address(*address)?;
        }
        Listener::bind(live, address)
    }
}

impl Accept for Listener {
    type Stream = Stream;

    async fn accept(&self) -> Result<Stream> {
        Listener::accept(self).await
    }

    fn give_back_memory() {
        tantalum_runtime::live::memory::give_back();
    }
}

impl ByteStream for Stream {
    async fn recv(&self, into: &mut [u8]) -> Result<usize> {
        Stream::recv(self, into).await
    }

    async fn send(&self, bytes: &[u8]) -> Result<usize> {
        Stream::send(self, bytes).await
    }

    fn shutdown(&self) {
        Stream::shutdown(self);
    }
}
