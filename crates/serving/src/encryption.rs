//! TLS for NBD clients, as options of a command.
use std::path::PathBuf;
use tantalum_base::Result;
use tantalum_nbd::{Certificates, Tls};
use tantalum_runtime::live::net::Address;
use tantalum_runtime::live::wall_clock;

/// Options for TLS.
#[derive(clap::Args, Clone, Debug)]
pub struct Encryption {
    /// Offer TLS to NBD clients that have a certificate: DIRECTORY has ca-cert.pem, server-cert.pem, server-key.pem and perhaps ca-crl.pem.
    /// At an address that other machines can reach, TLS is required then (docs/nbd.md)
    #[arg(long, value_name = "DIRECTORY", requires = "nbd")]
    tls_certificates: Option<PathBuf>,
    /// Let NBD clients without TLS in, too (on), or refuse them (require). By default on for Unix sockets and loopback addresses, and
    /// require for others
    #[arg(long, value_name = "MODE", requires = "tls_certificates")]
    tls: Option<Mode>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    On,
    Require,
}

impl Encryption {
    /// Reads the certificates for clients that connect to `address`; `None` if there are none.
    ///
    /// # Errors
    /// If they cannot be used.
    pub fn read(&self, address: Option<&Address>) -> Result<Option<Tls>> {
        let Some(folder) = &self.tls_certificates else { return Ok(None) };
        let certificates = Certificates::read(folder, || wall_clock::unix_ms() / 1000)?;
        let is_required = match self.tls {
            Some(mode) => mode == Mode::Require,
            None => address.is_some_and(|address| !address.is_local()),
        };
        Ok(Some(Tls { certificates, is_required }))
    }
}

/// The part of a server's first line that says whether TLS is offered or required.
pub fn told_of_tls(tls: Option<&Tls>) -> &'static str {
    match tls {
        None => "",
        Some(tls) if tls.is_required => ", TLS required",
        Some(_) => ", TLS offered",
    }
}

/// Logs warnings about the certificates, and about an address that admits clients of other machines without TLS.
pub fn warn(address: &Address, tls: Option<&Tls>) {
    for warning in tls.iter().flat_map(|tls| tls.certificates.warnings()) {
        tracing::warn!("{warning}");
    }
    if !address.is_local() && !tls.is_some_and(|tls| tls.is_required) {
        tracing::warn!(
            "clients without TLS are admitted at {address}: any program that can connect can read and change all data"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_need_tls_unless_told_otherwise() {
        let options = |tls, tls_certificates| Encryption { tls, tls_certificates };
        let folder = || Some(tantalum_testing::certificates::folder("server"));
        for (address, is_required) in [
            ("unix:/run/s", false),
            ("127.0.0.1:1", false),
            ("[::1]:1", false),
            ("192.0.2.1:1", true),
            ("0.0.0.0:1", true),
            ("[::]:1", true),
        ] {
            let address: Address = address.parse().unwrap();
            let read = |tls, folder| options(tls, folder).read(Some(&address)).unwrap();
            assert_eq!(read(None, None), None);
            assert_eq!(read(None, folder()).unwrap().is_required, is_required, "{address}");
            assert!(read(Some(Mode::Require), folder()).unwrap().is_required);
            assert!(!read(Some(Mode::On), folder()).unwrap().is_required);
        }
    }
}
