//! The disk, and volumes over it.
use std::path::{Path, PathBuf};
use tantalum_testing::rig::{Loop, MIB, Mounted, Server, tantalum};

/// A disk that keeps a home and a journal. Its parts end in the order in which they stand here.
pub struct Disk {
    pub home: Loop,
    pub journal: Loop,
    _file: Mounted,
    _server: Server,
}

impl Disk {
    /// An empty one.
    pub fn new(folder: &Path, home_bytes: u64, journal_bytes: u64) -> Disk {
        let capacity = (home_bytes + journal_bytes) / MIB;
        let device = format!("wd800aajs:capacity={capacity}MiB");
        let server = Server::start(folder, "disk.sock", &["--device", &device]);
        let file = Mounted::new(folder, &server);
        let home = Loop::new(&file.file, 0, home_bytes);
        let journal = Loop::new(&file.file, home_bytes, journal_bytes);
        Disk { home, journal, _file: file, _server: server }
    }

    /// A cache over it: its configuration.
    pub fn cache(&self, folder: &Path, flash_mib: u64, home_mib: u64) -> PathBuf {
        let config = folder.join("tiered.toml");
        let (home, journal) = (&self.home.device, &self.journal.device);
        let text = format!(
            "kind = \"tiered\"\n[media]\ntype = \"file\"\npath = \"flash\"\nsize = \"{flash_mib}MiB\"\n\
             [home]\npath = \"{home}\"\njournal = \"{journal}\"\n[device]\ncapacity = \"{home_mib}MiB\"\n"
        );
        std::fs::write(&config, text).expect("a configuration");
        tantalum(&["attach", &config.to_string_lossy(), "--force"]);
        config
    }
}
