//! Words for the kinds of files: a file, a folder, a pipe.
use std::fs::FileType;
use std::os::unix::fs::FileTypeExt;

/// The words for a folder.
pub const FOLDER: &str = "a folder";

/// Words for `kind`, such as "a pipe".
pub fn words_for(kind: FileType) -> &'static str {
    if kind.is_file() {
        "a file"
    } else if kind.is_dir() {
        FOLDER
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_block_device() {
        "a block device"
    } else if kind.is_char_device() {
        "a device without blocks"
    } else {
        "no file"
    }
}
