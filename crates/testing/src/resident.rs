//! The share of a file that is in the system's page cache.
use crate::skip::found;
use std::path::Path;
use std::process::Command;

/// Bytes of the file at `path` that are in the page cache, as `fincore` of util-linux counts them; [`skip`](crate::skip())s
/// without that program.
pub fn resident_bytes(path: &Path) -> Option<u64> {
    let options = ["--bytes", "--noheadings", "--output", "RES"];
    let output = Command::new("fincore").args(options).arg(path).output();
    let output = found(output.ok(), "fincore")?;
    // Nothing is printed for a file without a page there by some versions.
    let told = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(if told.is_empty() { 0 } else { told.parse().expect("a number of bytes") })
}
