//! A volume, its files and its configuration.
use super::{good, text};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder with the volume `v.toml` of 4 MiB in `data.tantalum`.
pub fn volume() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("v.toml");
    good(&["create", text(&config), "--capacity", "4MiB"]);
    (folder, config)
}

/// The same, but all acknowledged data survives for every client.
pub fn on_ack_volume() -> (TempDir, PathBuf) {
    let (folder, config) = volume();
    edit(&config, "# durability = \"on_ack\"", "durability = \"on_ack\"");
    (folder, config)
}

pub fn data_of(config: &Path) -> PathBuf {
    config.with_file_name("data.tantalum")
}

/// The names in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Rewrites `config` with `from` replaced.
pub fn edit(config: &Path, from: &str, to: &str) {
    let old = fs::read_to_string(config).unwrap();
    assert!(old.contains(from), "{from} is not in {old}");
    fs::write(config, old.replace(from, to)).unwrap();
}

/// Asserts that `told` contains all `parts`.
pub fn assert_tells(told: &str, parts: &[&str]) {
    for part in parts {
        assert!(told.contains(part), "{part:?} is missing in: {told}");
    }
}
