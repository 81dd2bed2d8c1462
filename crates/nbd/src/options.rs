//! The settings of a server.
use crate::protocol::handshake::NAME_BYTES_MAX;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Result};
use tantalum_runtime::live::net::Address;
use tantalum_tls::Certificates;

/// TLS for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The server's certificates, and the CAs of its clients.
    pub certificates: Certificates,
    /// Refuse clients without TLS.
    pub is_required: bool,
}

/// The options of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// Name by which clients may request the export; the empty name always works too. At most 4096 bytes.
    pub export_name: String,
    /// Shown to clients on request. At most 4096 bytes.
    pub description: String,
    /// Size of the export in bytes if it ends within the device's last page, a multiple of 512. The rest of that page
    /// is invisible to clients, and stays zeros. `None`: the export is as large as the device.
    pub size_bytes: Option<u64>,
    /// Refuse every command that changes the device.
    pub read_only: bool,
    /// Also let clients without TLS connect from other machines. They show no certificate: any program that can connect can read and
    /// write all data.
    pub allow_remote: bool,
    /// TLS for clients with a certificate; `None`: no client gets TLS.
    pub tls: Option<Tls>,
    /// Maximum number of connections that have finished negotiation. One more is closed immediately.
    pub connections_max: usize,
    /// Maximum number of additional connections in negotiation. One more replaces the one longest in negotiation.
    pub handshakes_max: usize,
    /// Bytes of one connection's requests in flight, from the request until its reply is sent, in whole pages and at
    /// least one page per request. At this limit the connection is not read. Each connection has a limit of its own.
    pub in_flight_bytes_max: u64,
    /// Longest READ or WRITE, in bytes; announced to clients.
    pub request_bytes_max: u32,
    /// Requests of one connection that the device works on at once.
    pub requests_max: usize,
    /// Time limit of negotiation.
    pub negotiation_ms_max: u64,
    /// Time for which a client may stall in the middle of sending a request or receiving replies. A whole message may
    /// take this long plus its time at 64 KiB per second. Between requests a client may be silent without limit.
    pub stall_ms_max: u64,
    /// Time for which a stopping server waits for clients to receive their replies.
    pub stop_ms_max: u64,
}

impl Default for ServerOptions {
    fn default() -> Self {
        ServerOptions {
            export_name: "tantalum".into(),
            description: "Tantalum volume".into(),
            size_bytes: None,
            read_only: false,
            allow_remote: false,
            tls: None,
            connections_max: 16,
            handshakes_max: 64,
            in_flight_bytes_max: 33 << 20,
            request_bytes_max: 32 << 20,
            requests_max: 64,
            negotiation_ms_max: 10_000,
            stall_ms_max: 60_000,
            stop_ms_max: 5_000,
        }
    }
}

impl ServerOptions {
    /// The use of TLS, as one word: `off`, `offered` or `required`.
    pub fn tls_mode(&self) -> &'static str {
        match &self.tls {
            None => "off",
            Some(tls) if tls.is_required => "required",
            Some(_) => "offered",
        }
    }

    /// Whether clients without TLS are refused.
    pub(crate) fn is_tls_required(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_required)
    }

    /// Refuses (`InvalidInput`) to listen on `address` if other machines can reach it, TLS is not required, and `allow_remote` is not set.
    pub fn check_address(&self, address: &Address) -> Result<()> {
        if address.is_local() || self.allow_remote || self.is_tls_required() {
            return Ok(());
        }
        let remedy = match self.tls {
            None => {
                "serve with certificates (--tls-certificates DIRECTORY, see docs/nbd.md), or on 127.0.0.1, [::1] or a Unix socket"
            }
            Some(_) => "require TLS (--tls require)",
        };
        Err(Error::new(
            ErrorKind::InvalidInput,
            format!(
                "NBD address {address} can be reached from other machines, which could then read \
                 and change all data: {remedy}, or set allow_remote (--allow-remote) if the network is trusted"
            ),
        ))
    }

    /// Checks the settings.
    pub(crate) fn check(&self) -> Result<()> {
        let bad = |what: String| Err(Error::new(ErrorKind::InvalidInput, what));
        for (what, text) in [("name", &self.export_name), ("description", &self.description)] {
            if text.len() > NAME_BYTES_MAX {
                return bad(format!("NBD export {what} is longer than {NAME_BYTES_MAX} bytes"));
            }
        }
        if [self.connections_max, self.handshakes_max, self.requests_max].contains(&0) {
            let what = "connections_max, handshakes_max and requests_max must be at least 1";
            return bad(what.into());
        }
        let page = PAGE_BYTES as u32;
        if self.request_bytes_max < page || !self.request_bytes_max.is_multiple_of(page) {
            return bad(format!("request_bytes_max must be a multiple of {page} bytes"));
        }
        // A request that starts and ends inside pages covers one page more than its length.
        let least = u64::from(self.request_bytes_max) + u64::from(page);
        if self.in_flight_bytes_max < least {
            return bad(format!(
                "in_flight_bytes_max ({}) must hold the longest request ({}) and a page",
                self.in_flight_bytes_max, self.request_bytes_max
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_testing::certificates::VALID_UNIX_SECONDS;

    #[test]
    fn other_machines_are_let_in_only_when_asked() {
        let options = ServerOptions::default();
        let remote = ServerOptions { allow_remote: true, ..Default::default() };
        let local =
            ["127.0.0.1:10809", "[::1]:10809", "127.9.9.9:1", "[::ffff:127.0.0.1]:1", "unix:/s"];
        for address in local {
            options.check_address(&address.parse().unwrap()).unwrap();
        }
        for address in ["0.0.0.0:10809", "[::]:10809", "192.168.1.2:1", "[::ffff:10.0.0.1]:1"] {
            let error = options.check_address(&address.parse().unwrap()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains("allow_remote"), "{error}");
            assert!(error.to_string().contains("--tls-certificates"), "{error}");
            remote.check_address(&address.parse().unwrap()).unwrap();
        }
    }

    #[test]
    fn other_machines_are_let_in_with_tls_alone_if_it_is_required() {
        let folder = tantalum_testing::certificates::folder("server");
        let certificates = Certificates::read(&folder, || VALID_UNIX_SECONDS).unwrap();
        let with = |is_required| ServerOptions {
            tls: Some(Tls { certificates: certificates.clone(), is_required }),
            ..Default::default()
        };
        for address in ["0.0.0.0:10809", "[::]:10809", "192.168.1.2:1"] {
            let address = address.parse().unwrap();
            with(true).check_address(&address).unwrap();
            let error = with(false).check_address(&address).unwrap_err().to_string();
            assert!(error.contains("--tls require"), "{error}");
            ServerOptions { allow_remote: true, ..with(false) }.check_address(&address).unwrap();
        }
    }

    #[test]
    fn options_that_cannot_work_are_refused() {
        let good = ServerOptions::default();
        good.check().unwrap();
        let bad = [
            ServerOptions { connections_max: 0, ..good.clone() },
            ServerOptions { requests_max: 0, ..good.clone() },
            ServerOptions { request_bytes_max: 5000, ..good.clone() },
            ServerOptions { in_flight_bytes_max: 32 << 20, ..good.clone() },
            ServerOptions { handshakes_max: 0, ..good.clone() },
            ServerOptions { export_name: "x".repeat(4097), ..good.clone() },
        ];
        for options in bad {
            assert_eq!(options.check().unwrap_err().kind(), ErrorKind::InvalidInput);
        }
    }
}
