//! The certificates of a server: a folder of PEM files, with the names that libnbd and QEMU use.
use crate::clients::ShortChains;
use crate::failure::told_of;
use crate::revoked::{NextUpdate, issuer, next_update};
use rustix::fs::OFlags;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::{
    NoServerSessionStorage, ParsedCertificate, VerifierBuilderError, WebPkiClientVerifier,
};
use rustls::time_provider::TimeProvider;
use rustls::{CertificateError, Error as Fault, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, UnixTime, pem,
};
use std::fmt;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::live::named_file::{Named, open_named};

/// The CAs whose clients are admitted.
const AUTHORITIES: &str = "ca-cert.pem";
/// The certificates that they revoked; this file may be missing.
const REVOKED: &str = "ca-crl.pem";
/// The server's certificate, and intermediate ones behind it.
const CERTIFICATE: &str = "server-cert.pem";
/// Its private key.
const KEY: &str = "server-key.pem";
/// Longest of these files, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Permissions of a key that let others read it.
const OTHERS_READ: u32 = 0o044;
/// Permissions that let everybody write.
const OTHERS_WRITE: u32 = 0o002;

/// The certificates of a server, ready for use. Clones share them.
#[derive(Clone)]
pub struct Certificates {
    pub(crate) config: Arc<ServerConfig>,
    warnings: Vec<String>,
    unix_seconds: fn() -> u64,
    /// The end of the list of revoked certificates that expires first, and the warning about it.
    lists_end: Option<(NextUpdate, String)>,
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl PartialEq for Certificates {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.config, &other.config)
    }
}

impl Eq for Certificates {}

impl Certificates {
    /// Reads `ca-cert.pem`, `server-cert.pem`, `server-key.pem` and, if it is there, `ca-crl.pem` from `folder`. Clients need a
    /// certificate of a CA in `ca-cert.pem`. `unix_seconds` is the time of day, by which certificates expire.
    ///
    /// # Errors
    /// `InvalidInput` or `Io` if a file is missing, cannot be read, or cannot be used. The message names the file and the remedy.
    pub fn read(folder: &Path, unix_seconds: fn() -> u64) -> Result<Self> {
        let provider = Arc::new(provider());
        let clock = Arc::new(Clock(unix_seconds));
        let roots = Arc::new(authorities(folder)?);
        let chain: Vec<CertificateDer<'static>> = all_in(folder, CERTIFICATE)?;
        let key = key(folder)?;
        let mut warnings: Vec<String> = told_of_readers(folder).into_iter().collect();
        warnings.extend(told_of_writers(folder));
        warnings.extend(check_chain(folder, &chain, &roots, &provider, clock.now())?);
        let mut clients =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        let lists = revoked(folder)?;
        let lists_end = lists_end(folder, &lists);
        clients = clients.with_crls(lists);
        let clients = clients.build().map_err(|error| match error {
            VerifierBuilderError::InvalidCrl(why) => {
                wrong(folder, REVOKED, &format!("has a list that cannot be used ({why:?})"))
            }
            other => wrong(folder, AUTHORITIES, &format!("cannot be used: {other}")),
        })?;
        let mut config = ServerConfig::builder_with_details(provider, clock)
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(folder, KEY, &format!("cannot be used: {error}")))?
            .with_client_cert_verifier(Arc::new(ShortChains(clients)))
            .with_single_cert(chain, key)
            .map_err(|error| key_refused(folder, &error))?;
        // Sessions are not resumed: a client shows its certificate each time, as it may have expired. And sessions take no memory.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        let config = Arc::new(config);
        let mut read = Certificates { config, warnings, unix_seconds, lists_end };
        let expired = read.expired_list().map(str::to_owned);
        read.warnings.extend(expired);
        Ok(read)
    }

    /// A warning with its remedy, if a list of revoked certificates has expired by now. The list still counts, but certificates that
    /// were revoked later are admitted.
    pub fn expired_list(&self) -> Option<&str> {
        let (end, told) = self.lists_end.as_ref()?;
        ((self.unix_seconds)() >= end.unix_seconds).then_some(told)
    }

    /// Warnings for the user. The certificates can be used nevertheless.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// The time of day for `rustls`.
#[derive(Debug)]
struct Clock(fn() -> u64);

impl Clock {
    fn now(&self) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs((self.0)()))
    }
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(self.now())
    }
}

fn wrong(folder: &Path, name: &str, what: &str) -> Error {
    let path = folder.join(name);
    Error::new(ErrorKind::InvalidInput, format!("{} {what}", path.display()))
}

/// The bytes of a file.
fn bytes(folder: &Path, name: &str) -> Result<Vec<u8>> {
    let path = folder.join(name);
    let failed = |error: std::io::Error| {
        let remedy = match error.kind() {
            std::io::ErrorKind::NotFound => {
                "; --tls-certificates names a folder with ca-cert.pem, server-cert.pem and server-key.pem (docs/nbd.md)"
            }
            std::io::ErrorKind::PermissionDenied => "; the server's user must be able to read it",
            _ => "",
        };
        Error::io(format!("{} cannot be read{remedy}", path.display()), error)
    };
    let named =
        open_named(&path, OpenOptions::new().read(true), OFlags::empty()).map_err(failed)?;
    let file = match named {
        Named::Usable(file) => file,
        Named::Other(kind) => return Err(wrong(folder, name, &format!("is {kind}, not a file"))),
    };
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(wrong(folder, name, "is too long for a PEM file"));
    }
    Ok(bytes)
}

/// All items of a kind in a file, at least one.
fn all_in<T: PemObject>(folder: &Path, name: &str) -> Result<Vec<T>> {
    let items =
        T::pem_slice_iter(&bytes(folder, name)?).collect::<std::result::Result<Vec<T>, _>>();
    let items = items.map_err(|error| not_pem(folder, name, &error))?;
    match items.is_empty() {
        true => Err(not_pem(folder, name, &pem::Error::NoItemsFound)),
        false => Ok(items),
    }
}

fn not_pem(folder: &Path, name: &str, error: &pem::Error) -> Error {
    let wanted = match name {
        KEY => "a private key without a passphrase",
        REVOKED => "a list of revoked certificates",
        _ => "a certificate",
    };
    wrong(folder, name, &format!("has not {wanted} in PEM: {error}"))
}

fn authorities(folder: &Path) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in all_in::<CertificateDer<'static>>(folder, AUTHORITIES)? {
        roots.add(certificate).map_err(|error| {
            wrong(folder, AUTHORITIES, &format!("has a certificate that cannot be used: {error}"))
        })?;
    }
    Ok(roots)
}

/// The lists of revoked certificates. Several lists of one CA are refused, as only the first of them would count.
fn revoked(folder: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>> {
    // A dangling link does not count as a missing file: reading it fails. So no revoked client is admitted because of it.
    let about = folder.join(REVOKED).symlink_metadata();
    if about.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        return Ok(Vec::new());
    }
    let lists: Vec<CertificateRevocationListDer<'static>> = all_in(folder, REVOKED)?;
    let mut issuers: Vec<_> = lists.iter().map(|list| issuer(list)).collect();
    issuers.sort_unstable();
    match issuers.windows(2).any(|two| two[0].is_some() && two[0] == two[1]) {
        true => Err(wrong(folder, REVOKED, "has two lists of one CA: leave only the latest there")),
        false => Ok(lists),
    }
}

/// The end of the list that expires first, and the warning about it.
fn lists_end(
    folder: &Path,
    lists: &[CertificateRevocationListDer<'static>],
) -> Option<(NextUpdate, String)> {
    let end = lists.iter().filter_map(|list| next_update(list)).min()?;
    let told = format!(
        "{} has a list that expired on {}: clients whose certificates were revoked since then are let in. Put the CA's latest list there, and start the server again",
        folder.join(REVOKED).display(),
        end.text
    );
    Some((end, told))
}

/// The cryptography. Key agreement uses only the fast curves, as strangers can make the server do it. A connection may last for
/// years, and TLS 1.2 cannot renew its keys. So TLS 1.2 has only ciphers without a limit on the bytes per key.
fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    provider.kx_groups = vec![ring::kx_group::X25519, ring::kx_group::SECP256R1];
    provider.cipher_suites.retain(|suite| {
        let name = format!("{:?}", suite.suite());
        suite.tls13().is_some() || name.contains("CHACHA20")
    });
    provider
}

fn key(folder: &Path) -> Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_slice(&bytes(folder, KEY)?)
        .map_err(|error| not_pem(folder, KEY, &error))
}

fn key_refused(folder: &Path, error: &Fault) -> Error {
    match error {
        Fault::InconsistentKeys(_) => wrong(
            folder,
            KEY,
            &format!("is not the key of {CERTIFICATE}: copy the two that were made together"),
        ),
        Fault::InvalidCertificate(why) => {
            wrong(folder, CERTIFICATE, &format!("cannot be used: it {}", told_of(why)))
        }
        other => wrong(
            folder,
            KEY,
            &format!(
                "cannot be used: {other}; keys may be RSA of 2048 bits or more, ECDSA P-256, P-384, or Ed25519"
            ),
        ),
    }
}

/// Warns if others can read the key.
fn told_of_readers(folder: &Path) -> Option<String> {
    let path = folder.join(KEY);
    let mode = std::fs::metadata(&path).ok()?.permissions().mode();
    (mode & OTHERS_READ != 0).then(|| {
        let path = path.display();
        format!(
            "{path} can be read by other users (mode {:o}), who could pass for this server: chmod 600 {path}",
            mode & 0o777
        )
    })
}

/// Warns if everybody can write to the folder or a file in it: anybody could then get access.
fn told_of_writers(folder: &Path) -> Vec<String> {
    let paths = [AUTHORITIES, REVOKED, CERTIFICATE, KEY].map(|name| folder.join(name));
    let all = std::iter::once(folder.to_path_buf()).chain(paths);
    let is_open = |path: &std::path::PathBuf| {
        let mode = std::fs::metadata(path).map(|about| about.permissions().mode());
        mode.is_ok_and(|mode| mode & OTHERS_WRITE != 0)
    };
    let told = |path: std::path::PathBuf| {
        let path = path.display();
        format!("{path} can be written by all users, who could let themselves in: chmod o-w {path}")
    };
    all.filter(is_open).map(told).collect()
}

/// Checks that clients can accept the server's certificate. Warns if none of the CAs in `ca-cert.pem` issued it: clients may trust
/// another CA.
fn check_chain(
    folder: &Path,
    chain: &[CertificateDer<'static>],
    roots: &RootCertStore,
    provider: &CryptoProvider,
    now: UnixTime,
) -> Result<Option<String>> {
    let algorithms = provider.signature_verification_algorithms.all;
    let parsed = chain.first().map(ParsedCertificate::try_from).transpose();
    let checked = parsed.and_then(|parsed| match parsed {
        Some(first) => {
            verify_server_cert_signed_by_trust_anchor(&first, roots, &chain[1..], now, algorithms)
        }
        None => Ok(()),
    });
    let path = folder.join(CERTIFICATE);
    match checked {
        Ok(()) => Ok(None),
        Err(Fault::InvalidCertificate(CertificateError::UnknownIssuer)) => Ok(Some(format!(
            "{} was not issued by a CA in {AUTHORITIES}: clients accept this server only if they have its CA from another source",
            path.display()
        ))),
        Err(Fault::InvalidCertificate(why)) => Err(wrong(
            folder,
            CERTIFICATE,
            &format!(
                "{}, so clients would refuse this server: make a new certificate for it (docs/nbd.md)",
                told_of(&why)
            ),
        )),
        Err(other) => Err(wrong(folder, CERTIFICATE, &format!("cannot be used: {other}"))),
    }
}
