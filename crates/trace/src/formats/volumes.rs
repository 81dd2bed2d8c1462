//! Maps names of volumes (disks, devices, kinds of file) to numbers, in the order of first occurrence.
use crate::event::FileKind;
use tantalum_base::FastMap;

/// Longest name accepted, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The volumes of a trace seen so far.
#[derive(Debug)]
pub(crate) struct Volumes {
    names: Vec<String>,
    numbers: FastMap<Box<[u8]>, FileKind>,
    /// The previous lookup: traces stay with one volume for a while.
    last_key: Vec<u8>,
    last: FileKind,
    volumes_max: usize,
}

impl Volumes {
    /// No volumes so far, and at most `volumes_max` (65536 at most: their numbers have 16 bits).
    pub(crate) fn new(volumes_max: usize) -> Self {
        assert!(volumes_max <= 1 << 16, "numbers of volumes have 16 bits");
        Volumes {
            names: Vec::new(),
            numbers: FastMap::default(),
            last_key: Vec::new(),
            last: FileKind(0),
            volumes_max,
        }
    }

    /// As many volumes as there are numbers.
    pub(crate) fn any_number() -> Self {
        Volumes::new(1 << 16)
    }

    /// The names, by number.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of the volume that the bytes `key` of a line denote.
    #[inline]
    pub(crate) fn of(&mut self, key: &[u8]) -> Result<FileKind, String> {
        if key == self.last_key && !key.is_empty() {
            return Ok(self.last);
        }
        self.look_up(key)
    }

    fn look_up(&mut self, key: &[u8]) -> Result<FileKind, String> {
        let number = match self.numbers.get(key) {
            Some(&number) => number,
            None => self.add(key)?,
        };
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.last = number;
        Ok(number)
    }

    /// Adds a volume. Commas are not allowed in names, so that they can be in a CSV: `usr,0` becomes `usr_0`.
    fn add(&mut self, key: &[u8]) -> Result<FileKind, String> {
        let name = std::str::from_utf8(key).map_err(|_| "the volume's name is not UTF-8")?;
        let parts: Vec<&str> = name.split(',').map(str::trim).collect();
        if parts.iter().any(|part| part.is_empty()) || name.len() > NAME_BYTES_MAX {
            return Err(format!("the volume is not a name of 1 to {NAME_BYTES_MAX} bytes"));
        }
        if self.names.len() == self.volumes_max {
            return Err(format!("more than {} volumes", self.volumes_max));
        }
        let number = FileKind(self.names.len() as u16);
        self.names.push(parts.join("_"));
        self.numbers.insert(key.into(), number);
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_get_numbers_in_the_order_of_appearance() {
        let mut volumes = Volumes::new(2);
        assert_eq!(volumes.of(b"usr,0").unwrap(), FileKind(0));
        assert_eq!(volumes.of(b"7").unwrap(), FileKind(1));
        assert_eq!(volumes.of(b"usr,0").unwrap(), FileKind(0));
        assert_eq!(volumes.of(b"usr,0").unwrap(), FileKind(0));
        assert_eq!(volumes.names(), ["usr_0", "7"]);
        assert!(volumes.of(b"8").unwrap_err().contains("more than 2"));
        assert!(volumes.of(b"").unwrap_err().contains("1 to 64 bytes"));
        assert!(volumes.of(b"\xff").unwrap_err().contains("UTF-8"));
    }
}
