//! Folders of certificates that cannot work, and the messages about them.
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tantalum_testing::certificates::{LATE_UNIX_SECONDS, VALID_UNIX_SECONDS, copy};
use tantalum_tls::Certificates;

fn read(folder: &Path) -> Result<Certificates, String> {
    Certificates::read(folder, || VALID_UNIX_SECONDS).map_err(|error| error.to_string())
}

fn refusal(change: impl FnOnce(&Path)) -> String {
    let folder = tempfile::tempdir().unwrap();
    copy("server", folder.path());
    assert_eq!(read(folder.path()).unwrap().warnings(), [] as [&str; 0]);
    change(folder.path());
    read(folder.path()).unwrap_err()
}

fn assert_told(refusal: &str, parts: &[&str]) {
    for part in parts {
        assert!(refusal.contains(part), "{part:?} is not in: {refusal}");
    }
}

#[test]
fn a_missing_file_is_named() {
    for name in ["ca-cert.pem", "server-cert.pem", "server-key.pem"] {
        let told = refusal(|folder| fs::remove_file(folder.join(name)).unwrap());
        assert_told(&told, &[name, "--tls-certificates names a folder"]);
    }
    let told = read(Path::new("/nowhere")).err().unwrap();
    assert_told(&told, &["/nowhere/ca-cert.pem"]);
}

#[test]
fn a_list_of_revoked_certificates_that_leads_nowhere_is_refused() {
    let told = refusal(|folder| {
        std::os::unix::fs::symlink("/nowhere", folder.join("ca-crl.pem")).unwrap();
    });
    assert_told(&told, &["ca-crl.pem cannot be read"]);
}

#[test]
fn a_file_without_its_content_is_named() {
    for (name, wanted) in [
        ("ca-cert.pem", "has not a certificate in PEM"),
        ("server-cert.pem", "has not a certificate in PEM"),
        ("server-key.pem", "has not a private key without a passphrase in PEM"),
        ("ca-crl.pem", "has not a list of revoked certificates in PEM"),
    ] {
        for content in ["", "something else", "-----BEGIN CERTIFICATE-----\nMIIB"] {
            let told = refusal(|folder| fs::write(folder.join(name), content).unwrap());
            assert_told(&told, &[name, wanted]);
        }
    }
    for name in ["ca-cert.pem", "server-cert.pem"] {
        let empty = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
        let told = refusal(|folder| fs::write(folder.join(name), empty).unwrap());
        assert_told(&told, &[name, "cannot be "]);
    }
    let told = refusal(|folder| {
        fs::remove_file(folder.join("ca-cert.pem")).unwrap();
        fs::create_dir(folder.join("ca-cert.pem")).unwrap();
    });
    assert_told(&told, &["ca-cert.pem", "not a file"]);
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let told = refusal(|folder| copy_key("server-expired", folder));
    assert_told(&told, &["server-key.pem is not the key of server-cert.pem"]);
}

fn copy_key(from: &str, folder: &Path) {
    let other = tantalum_testing::certificates::folder(from);
    fs::copy(other.join("server-key.pem"), folder.join("server-key.pem")).unwrap();
}

#[test]
fn a_certificate_out_of_its_time_or_of_a_client_is_refused() {
    let told = refusal(|folder| copy("server-expired", folder));
    assert_told(&told, &["server-cert.pem has expired", "make a new certificate"]);
    let folder = tempfile::tempdir().unwrap();
    copy("server", folder.path());
    let early = Certificates::read(folder.path(), || 1_000_000_000).unwrap_err();
    assert_told(&early.to_string(), &["server-cert.pem is not valid yet"]);
    let told = refusal(|folder| {
        let client = tantalum_testing::certificates::folder("client");
        fs::copy(client.join("client-cert.pem"), folder.join("server-cert.pem")).unwrap();
        fs::copy(client.join("client-key.pem"), folder.join("server-key.pem")).unwrap();
    });
    assert_told(&told, &["server-cert.pem is not for this purpose"]);
}

#[test]
fn what_can_work_but_may_be_wrong_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    copy("server-of-another-ca", folder.path());
    let key = folder.path().join("server-key.pem");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let read = read(folder.path()).unwrap();
    let [first, second] = read.warnings() else { panic!("{:?}", read.warnings()) };
    assert_told(first, &["server-key.pem", "read by other users (mode 644)", "chmod 600"]);
    assert_told(second, &["server-cert.pem was not issued by a CA in ca-cert.pem"]);
}

#[test]
fn two_lists_of_one_ca_are_refused() {
    let told = refusal(|folder| {
        copy("server-with-crl", folder);
        let list = folder.join("ca-crl.pem");
        read(folder).unwrap();
        fs::write(&list, fs::read_to_string(&list).unwrap().repeat(2)).unwrap();
    });
    assert_told(&told, &["ca-crl.pem has two lists of one CA", "latest"]);
}

#[test]
fn a_list_that_has_expired_is_a_warning_with_its_date() {
    let folder = tempfile::tempdir().unwrap();
    copy("server-with-crl", folder.path());
    let at = |clock| Certificates::read(folder.path(), clock).unwrap();
    let good = at(|| VALID_UNIX_SECONDS);
    assert_eq!((good.expired_list(), good.warnings().len()), (None, 0));
    // In 2049, when the certificates are still valid.
    let old = at(|| LATE_UNIX_SECONDS);
    let [warning] = old.warnings() else { panic!("{:?}", old.warnings()) };
    assert_eq!(old.expired_list(), Some(&warning[..]));
    assert_told(warning, &["ca-crl.pem", "expired on 2048-10-23 13:18 UTC", "latest list"]);
}

#[test]
fn a_list_may_expire_while_the_server_runs() {
    static NOW: AtomicU64 = AtomicU64::new(VALID_UNIX_SECONDS);
    let folder = tantalum_testing::certificates::folder("server-with-crl");
    let read = Certificates::read(&folder, || NOW.load(Relaxed)).unwrap();
    assert_eq!(read.expired_list(), None);
    NOW.store(LATE_UNIX_SECONDS, Relaxed);
    assert_told(read.expired_list().unwrap(), &["expired on 2048-10-23"]);
}

#[test]
fn what_everybody_can_write_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    copy("server", folder.path());
    let authorities = folder.path().join("ca-cert.pem");
    fs::set_permissions(authorities, fs::Permissions::from_mode(0o606)).unwrap();
    let read = read(folder.path()).unwrap();
    let [warning] = read.warnings() else { panic!("{:?}", read.warnings()) };
    assert_told(warning, &["ca-cert.pem can be written by all users", "chmod o-w"]);
}
