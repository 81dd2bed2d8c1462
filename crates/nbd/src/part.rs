//! Parts of an export with names such as `@1GiB+1GiB`: a clone in another part of a volume can be inspected and copied
//! on its own.
use tantalum_base::PAGE_BYTES;
use tantalum_base::size::Size;

/// Consecutive bytes of the device, in whole pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Part {
    /// First byte.
    pub(crate) first_byte: u64,
    /// Its length.
    pub(crate) bytes: u64,
}

const UNKNOWN: &str = "no export of that name";
const FORM: &str = "a part is named as @FIRST+LENGTH, both with a unit, such as @1GiB+512MiB";

impl Part {
    /// The part that a client requests by `name`, from an export called `export` of `size_bytes`: the export's name or
    /// the empty name is all of it; either of them followed by `@FIRST+LENGTH`, both with a unit, is a part.
    ///
    /// # Errors
    /// The reason why the name is invalid, for the user of the client.
    pub(crate) fn named(name: &[u8], export: &str, size_bytes: u64) -> Result<Part, &'static str> {
        if name.is_empty() || name == export.as_bytes() {
            return Ok(Part { first_byte: 0, bytes: size_bytes });
        }
        let part = std::str::from_utf8(name).ok().and_then(|name| name.rsplit_once('@'));
        let (of, place) = part.ok_or(UNKNOWN)?;
        if !of.is_empty() && of != export {
            return Err(UNKNOWN);
        }
        let (first, length) = place.split_once('+').ok_or(FORM)?;
        let bytes = |text| Size::parse_bytes(text).map_err(|_| FORM);
        let (first_byte, bytes) = (bytes(first)?, bytes(length)?);
        if bytes == 0 || ![first_byte, bytes].iter().all(|it| it.is_multiple_of(PAGE_BYTES as u64))
        {
            return Err("a part is of whole pages of 4 KiB");
        }
        match first_byte.checked_add(bytes) {
            Some(end) if end <= size_bytes => Ok(Part { first_byte, bytes }),
            _ => Err("the part is past the end of the export"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_named_by_its_place_and_length() {
        let named = |name: &str| {
            let part = Part::named(name.as_bytes(), "vol@home", 1 << 20)?;
            Ok((part.first_byte, part.bytes))
        };
        for name in ["", "vol@home"] {
            assert_eq!(named(name), Ok((0, 1 << 20)), "{name}");
        }
        for name in ["@512KiB+256KiB", "vol@home@512KiB+256KiB", "@524288B+0.25MiB"] {
            assert_eq!(named(name), Ok((512 << 10, 256 << 10)), "{name}");
        }
        assert_eq!(named("@0B+1MiB"), Ok((0, 1 << 20)));
        let pages = "a part is of whole pages of 4 KiB";
        let past = "the part is past the end of the export";
        for (why, names) in [
            (UNKNOWN, &["vol", "other@0B+4KiB"][..]),
            (FORM, &["@", "@1KiB", "@4+4"]),
            (pages, &["@0B+0B", "@0B+1KiB", "@2KiB+4KiB", "@512KiB+513KiB"]),
            (past, &["@512KiB+516KiB", "@16777215TiB+16777215TiB"]),
        ] {
            for name in names {
                assert_eq!(named(name), Err(why), "{name}");
            }
        }
        assert_eq!(Part::named(b"\xff@0B+4KiB", "", 1 << 20), Err(UNKNOWN));
    }
}
