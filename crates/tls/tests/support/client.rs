//! A client of TLS over a connection in memory.
use rustls::crypto::ring;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use std::cell::RefCell;
use std::io::{Read, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tantalum_runtime::ByteStream;
use tantalum_runtime::pipe::PipeEnd;
use tantalum_testing::certificates::{VALID_UNIX_SECONDS, folder};

/// The version of TLS that a client offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Tls12,
    Tls13,
}

#[derive(Debug)]
struct Fixed;

impl TimeProvider for Fixed {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(VALID_UNIX_SECONDS)))
    }
}

/// The client's end of a connection. One task may receive on a clone while another sends.
#[derive(Clone)]
pub struct TlsClient {
    pub plain: PipeEnd,
    pub session: Rc<RefCell<ClientConnection>>,
}

fn config(certificates: &str, version: Version) -> ClientConfig {
    let (name, more) = certificates.split_once('+').unwrap_or((certificates, "0"));
    let here = folder(name);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(here.join("ca-cert.pem")).unwrap()).unwrap();
    let versions: &[&rustls::SupportedProtocolVersion] = match version {
        Version::Tls12 => &[&rustls::version::TLS12],
        Version::Tls13 => &[&rustls::version::TLS13],
    };
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_details(provider, Arc::new(Fixed))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots);
    match CertificateDer::from_pem_file(here.join("client-cert.pem")) {
        Ok(certificate) => {
            let key = PrivateKeyDer::from_pem_file(here.join("client-key.pem")).unwrap();
            let authority = CertificateDer::from_pem_file(here.join("ca-cert.pem")).unwrap();
            let more = std::iter::repeat_n(authority, more.parse().unwrap());
            let chain = std::iter::once(certificate).chain(more).collect();
            config.with_client_auth_cert(chain, key).unwrap()
        }
        Err(_) => config.with_no_client_auth(),
    }
}

impl TlsClient {
    /// A client before its handshake, with the certificates of a folder of tests. It sends that of its CA three times more if the
    /// name is followed by `+3`.
    pub fn new(plain: PipeEnd, certificates: &str, version: Version) -> Self {
        let name = ServerName::try_from("localhost").unwrap();
        let session = ClientConnection::new(Arc::new(config(certificates, version)), name).unwrap();
        TlsClient { plain, session: Rc::new(RefCell::new(session)) }
    }

    /// Does the handshake; fails if the server does not go on with it.
    pub async fn connect(
        plain: PipeEnd,
        certificates: &str,
        version: Version,
    ) -> Result<Self, rustls::Error> {
        let client = TlsClient::new(plain, certificates, version);
        while client.session.borrow().is_handshaking() {
            client.flush().await;
            client.take_in().await?;
        }
        client.flush().await;
        Ok(client)
    }

    /// The bytes that the session has to send.
    pub fn outgoing(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut session = self.session.borrow_mut();
        while session.wants_write() {
            session.write_tls(&mut bytes).unwrap();
        }
        bytes
    }

    /// Sends them, or as many as the server takes.
    pub async fn flush(&self) {
        let bytes = self.outgoing();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match self.plain.send(rest).await.unwrap() {
                0 => return,
                sent => rest = &rest[sent..],
            }
        }
    }

    /// Takes in what the server sends next; false at the end.
    pub async fn take_in(&self) -> Result<bool, rustls::Error> {
        let mut bytes = [0; 4096];
        let received = self.plain.recv(&mut bytes).await.unwrap();
        let mut session = self.session.borrow_mut();
        if received == 0 {
            return match session.is_handshaking() {
                true => Err(rustls::Error::General("the server closed".into())),
                false => Ok(false),
            };
        }
        let mut rest = &bytes[..received];
        while !rest.is_empty() && session.read_tls(&mut rest).unwrap() > 0 {
            session.process_new_packets()?;
        }
        Ok(true)
    }

    /// Sends all of `bytes`.
    pub async fn send(&self, bytes: &[u8]) {
        for piece in bytes.chunks(16 << 10) {
            self.session.borrow_mut().writer().write_all(piece).unwrap();
            self.flush().await;
        }
    }

    /// The next `count` bytes; fewer if the server closes first.
    pub async fn receive(&self, count: usize) -> Result<Vec<u8>, rustls::Error> {
        let mut bytes = vec![0; count];
        let mut have = 0;
        while have < count {
            let read = self.session.borrow_mut().reader().read(&mut bytes[have..]);
            match read {
                Ok(0) => break,
                Ok(more) => have += more,
                Err(_) => {
                    if !self.take_in().await? {
                        break;
                    }
                }
            }
        }
        bytes.truncate(have);
        Ok(bytes)
    }
}
