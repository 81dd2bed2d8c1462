//! The server on sockets of the live executor.
use crate::ServerOptions;
use tantalum_base::Result;
use tantalum_runtime::live::Live;
use tantalum_runtime::live::net::{Address, Listener};

impl ServerOptions {
    /// Listens at `address`, which must be a Unix socket or a loopback address unless TLS is required or
    /// `allow_remote` is set (`InvalidInput`).
    pub fn listen(&self, live: &Live, address: &Address) -> Result<Listener> {
        self.check_address(address)?;
        Listener::bind(live, address)
    }
}
