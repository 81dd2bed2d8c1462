//! A tiered volume in a separate folder; its home is four times as large as its flash.
use super::exposition::Told;
use super::kill_load::number_of;
use super::nbd::PAGE_BYTES;
use super::server::{Server, run};
use super::{good, tantalum};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Pages of the home: 256 MiB.
pub const HOME_PAGES: u64 = 65536;

/// Pages are destaged soon, and there is little space for dirty ones.
const CONFIG: &str = r#"kind = "tiered"
[media]
type = "file"
path = "flash"
size = "64MiB"
[home]
path = "home"
destage = "DESTAGE"
destage_after_ms = 20
dirty_max = "40%"
[device]
capacity = "256MiB"
cache = "1MiB"
transaction_max = "1MiB"
"#;

/// The volume, and all its files.
pub struct TieredVolume(TempDir);

impl TieredVolume {
    /// Makes a volume with this `destage`.
    pub fn new(destage: &str) -> TieredVolume {
        let volume = TieredVolume(tempfile::tempdir().expect("a folder"));
        std::fs::write(volume.config(), CONFIG.replace("DESTAGE", destage)).expect("written");
        good(&["create", volume.config().to_str().expect("UTF-8")]);
        volume
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn config(&self) -> PathBuf {
        self.at("VOLUME.toml")
    }

    /// Serves it, with metrics.
    pub fn serve(&self) -> Server {
        let metrics = self.at("metrics.sock");
        // A killed server left it behind.
        let _ = std::fs::remove_file(&metrics);
        Server::start_as(&self.config(), &["--metrics", &format!("unix:{}", metrics.display())])
    }

    /// The metrics of its server.
    pub fn told(&self) -> Told {
        Told::by(&self.at("metrics.sock"))
    }

    /// The content of each page of the home if the flash were lost now, and the output of the rescue.
    pub fn rescued(&self) -> (Vec<u64>, String) {
        let (copy, said) = self.rescued_copy();
        (image_numbers(&copy.path().join("home")), said)
    }

    /// A copy of the `home`, in a separate folder, in the state after a loss of the flash now and a rescue; the volume
    /// goes on. Also returns the output of the rescue.
    pub fn rescued_copy(&self) -> (TempDir, String) {
        let elsewhere = tempfile::tempdir_in(self.0.path()).expect("a folder");
        let copy = |name: &str| {
            let (from, to) = (self.at(name), elsewhere.path().join(name));
            let paths = [from.to_str().expect("UTF-8"), to.to_str().expect("UTF-8")];
            run("cp", &["--sparse=always", paths[0], paths[1]]);
            to
        };
        let config = copy("VOLUME.toml");
        copy("home.journal");
        copy("home");
        let said = good(&["rescue", config.to_str().expect("UTF-8")]);
        (elsewhere, said)
    }

    /// Makes the home a plain image; returns the content of each of its pages.
    pub fn detached(&self) -> Vec<u64> {
        let config = self.config();
        let config = config.to_str().expect("UTF-8");
        assert_eq!(tantalum(&["check", config]).code, 0, "it is sound");
        good(&["detach", config]);
        image_numbers(&self.at("home"))
    }
}

/// The content of each page of an image.
fn image_numbers(home: &Path) -> Vec<u64> {
    let bytes = std::fs::read(home).expect("a home");
    let pages = (0..).zip(bytes.chunks(PAGE_BYTES));
    pages.map(|(page, bytes)| number_of(page, bytes)).collect()
}
