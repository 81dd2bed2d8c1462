//! The encoding of text: UTF-8, perhaps with the byte order mark that programs of Windows write. UTF-16 is refused.
use std::path::Path;
use tantalum_base::{Error, ErrorKind, Result};

/// The byte order mark of UTF-8. It has no meaning, and is not part of the first field.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// `head`, the first bytes of a text, without a byte order mark.
pub(crate) fn without_mark(head: &[u8]) -> &[u8] {
    head.strip_prefix(UTF8_MARK).unwrap_or(head)
}

/// Refuses a text that is marked as UTF-16, in which every other byte would make no sense; `path` is for messages.
pub(crate) fn check(path: &Path, head: &[u8]) -> Result<()> {
    if !head.starts_with(b"\xff\xfe") && !head.starts_with(b"\xfe\xff") {
        return Ok(());
    }
    let path = path.display();
    Err(Error::new(
        ErrorKind::Unsupported,
        format!(
            "{path} is text in UTF-16, and only UTF-8 can be read: convert it, for example with `iconv -f UTF-16 -t UTF-8 {path} > TRACE`"
        ),
    ))
}
