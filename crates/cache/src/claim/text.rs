//! The text that a claimed home is XORed with.
//!
//! Lines of text that people can read on the disk; 512 bytes, none of them zero:
//!
//! ```text
//! Tantalum claim 1
//! volume 0123456789abcdef0123456789abcdef
//! bytes 0000000040000000                     of the home, in hexadecimal
//! journal /var/lib/tantalum/home.journal     a path that is too long begins with "..."
//! home /dev/sdb
//! This disk has a flash cache: do not mount or change it. ...
//! .....                                      as many as are needed
//! crc 89abcdef                               CRC-32C of everything before this line
//! ```
use std::path::Path;
use tantalum_base::checksum::crc32c;

/// Length of a text. A medium writes this many bytes completely or not at all.
pub const SECTOR_BYTES: usize = 512;

const MAGIC: &str = "Tantalum claim 1\n";
const SENTENCE: &str = "This disk has a flash cache: do not mount or change it. \
`tantalum stat` of it tells more; `tantalum detach` gives it back. \
Flash and journal are lost? `tantalum unclaim` does.\n";
const JOURNAL_CHARS_MAX: usize = 118;
const HOME_CHARS_MAX: usize = 80;
const CRC_LINE: &str = "\ncrc ";
const CRC_AT: usize = SECTOR_BYTES - CRC_LINE.len() - 9;

/// The claim on a home that has a cache.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Claim([u8; SECTOR_BYTES]);

impl Claim {
    /// The claim of this volume on a home of `home_bytes`, with these paths of journal and home.
    pub fn new(volume_id: u128, home_bytes: u64, journal: &Path, home: &Path) -> Self {
        let mut text = format!(
            "{MAGIC}volume {volume_id:032x}\nbytes {home_bytes:016x}\njournal {}\nhome {}\n{SENTENCE}",
            shown(journal, JOURNAL_CHARS_MAX),
            shown(home, HOME_CHARS_MAX)
        );
        text.extend(std::iter::repeat_n('.', CRC_AT - text.len()));
        let crc = crc32c(text.as_bytes());
        text.push_str(&format!("{CRC_LINE}{crc:08x}\n"));
        let mut bytes = [0; SECTOR_BYTES];
        bytes.copy_from_slice(text.as_bytes());
        Claim(bytes)
    }

    /// The claim in a sector; `None` if the sector is no claim.
    pub fn of_sector(sector: &[u8]) -> Option<Self> {
        if !sector.starts_with(MAGIC.as_bytes()) {
            return None;
        }
        let claim = Claim(sector.try_into().ok()?);
        let crc = format!("{CRC_LINE}{:08x}\n", crc32c(&sector[..CRC_AT]));
        let intact = sector[CRC_AT..] == *crc.as_bytes() && !sector.contains(&0);
        (intact && claim.volume().is_some() && claim.bytes_of_home().is_some()).then_some(claim)
    }

    /// The sector.
    pub fn sector(&self) -> &[u8; SECTOR_BYTES] {
        &self.0
    }

    /// Identity of the volume.
    pub fn volume_id(&self) -> u128 {
        self.volume().unwrap_or(0)
    }

    /// Bytes of the home when it was claimed, which gives the position of its end.
    pub fn home_bytes(&self) -> u64 {
        self.bytes_of_home().unwrap_or(0)
    }

    /// The path of the journal, or its end.
    pub fn journal(&self) -> &str {
        self.line("journal ").unwrap_or("")
    }

    /// The path of the home, or its end.
    pub fn home(&self) -> &str {
        self.line("home ").unwrap_or("")
    }

    /// The line that explains the claim to a reader.
    pub fn sentence(&self) -> &str {
        self.text().lines().nth(5).unwrap_or("")
    }

    /// Whether it was made for a home at `path`.
    pub fn is_of_home_at(&self, path: &Path) -> bool {
        self.home() == shown(path, HOME_CHARS_MAX)
    }

    /// XORs `bytes`, which begin at a sector boundary, in place.
    pub fn toggle(&self, bytes: &mut [u8]) {
        for sector in bytes.chunks_mut(SECTOR_BYTES) {
            sector.iter_mut().zip(&self.0).for_each(|(byte, text)| *byte ^= text);
        }
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("")
    }

    fn line(&self, name: &str) -> Option<&str> {
        self.text().lines().find_map(|line| line.strip_prefix(name))
    }

    fn volume(&self) -> Option<u128> {
        u128::from_str_radix(self.line("volume ")?, 16).ok()
    }

    fn bytes_of_home(&self) -> Option<u64> {
        u64::from_str_radix(self.line("bytes ")?, 16).ok()
    }
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Claim({:?})", self.text())
    }
}

/// A path as one line of ASCII with at most `most` characters.
fn shown(path: &Path, most: usize) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let plain = |char: char| if char == ' ' || char.is_ascii_graphic() { char } else { '?' };
    let text: String = path.to_string_lossy().chars().map(plain).collect();
    match text.len().checked_sub(most) {
        None | Some(0) => text,
        Some(more) => format!("...{}", &text[more + 3..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: u128 = 0x0123_4567_89ab_cdef_0000_0000_0000_0001;

    fn claim(journal: &str, home: &str) -> Claim {
        Claim::new(ID, 3 << 20, Path::new(journal), Path::new(home))
    }

    #[test]
    fn it_says_whose_the_home_is_and_no_byte_is_zero() {
        let long = format!("/{}/the.journal", "x".repeat(300));
        for (journal, home) in [("/a/b.journal", "/dev/sdb"), (&long[..], &long[..])] {
            let claim = claim(journal, home);
            assert!(claim.sector().iter().all(|byte| byte.is_ascii() && *byte != 0));
            let read = Claim::of_sector(claim.sector()).unwrap();
            assert_eq!((read.volume_id(), read.home_bytes(), read), (ID, 3 << 20, claim));
            assert!(journal.ends_with(read.journal().trim_start_matches("...")), "{read:?}");
            assert!(read.is_of_home_at(Path::new(home)) && !read.is_of_home_at(Path::new("/x")));
            assert!(read.sentence().contains("do not mount"), "{read:?}");
        }
        assert_eq!(claim("/a\nb/\u{fc}", "/h").journal(), "/a?b/?");
    }

    #[test]
    fn a_changed_sector_is_none() {
        let whole = *claim("/a/b.journal", "/dev/sdb").sector();
        for at in 0..SECTOR_BYTES {
            let mut sector = whole;
            sector[at] ^= 4;
            assert_eq!(Claim::of_sector(&sector), None, "byte {at}");
        }
        assert_eq!(Claim::of_sector(&[0; SECTOR_BYTES]), None);
        assert_eq!(Claim::of_sector(&whole[..500]), None);
    }

    #[test]
    fn no_byte_stays_and_twice_is_nothing() {
        let claim = claim("/a/b.journal", "/dev/sdb");
        let bytes: Vec<u8> = (0..2048).map(|at| (at * 7 % 251) as u8).collect();
        let mut toggled = bytes.clone();
        claim.toggle(&mut toggled);
        assert!(bytes.iter().zip(&toggled).all(|(one, other)| one != other));
        claim.toggle(&mut toggled);
        assert_eq!(bytes, toggled);
    }
}
