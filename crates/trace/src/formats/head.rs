//! The beginning of a trace: only this is examined to recognize the format.

/// The first bytes of a trace, decompressed.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The bytes, cut anywhere.
    pub bytes: &'a [u8],
    /// Whether these are all bytes of the trace.
    pub whole: bool,
}

impl<'a> Head<'a> {
    /// Number of bytes examined.
    pub const BYTES_MAX: u64 = 4096;

    /// The complete lines that are not blank, without their ends. The incomplete last line is included only if there is
    /// no other.
    pub fn lines(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let end = match self.bytes.iter().rposition(|&byte| byte == b'\n') {
            Some(at) if !self.whole => at,
            _ => self.bytes.len(),
        };
        let lines = self.bytes[..end].split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        lines.filter(|line| !line.is_empty())
    }

    /// Whether there is a line, and each line fits; the first may be a `header` instead.
    pub fn every_line(
        &self,
        header: impl Fn(&[u8]) -> bool,
        mut fits: impl FnMut(&[u8]) -> bool,
    ) -> bool {
        let mut lines = self.lines();
        let Some(first) = lines.next() else { return false };
        (header(first) || fits(first)) && lines.all(fits)
    }

    /// The whole records of `bytes` bytes each.
    pub fn records(&self, bytes: usize) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.bytes.chunks_exact(bytes)
    }

    /// Whether the trace may consist of records of `bytes` bytes each, at least two.
    pub fn is_records(&self, bytes: usize) -> bool {
        self.bytes.len() >= 2 * bytes && (!self.whole || self.bytes.len().is_multiple_of(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_line_is_not_looked_at_but_where_it_is_the_only_one() {
        let lines = |bytes: &'static [u8], whole| {
            let head = Head { bytes, whole };
            head.lines().map(|line| String::from_utf8_lossy(line).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(lines(b"a\r\n\nb\nc", false), ["a", "b"]);
        assert_eq!(lines(b"a\nb\nc", true), ["a", "b", "c"]);
        assert_eq!(lines(b"abc", false), ["abc"]);
        assert!(lines(b"", true).is_empty());
    }
}
