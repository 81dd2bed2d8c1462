//! Parts of an export by their names, such as `@1GiB+1GiB`: a clone of a volume in another place of it is looked at, and copied
//! out, beside the rest.
use tantalum_base::PAGE_BYTES;
use tantalum_base::size::Size;

/// Consecutive bytes of the device, in whole pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Part {
    /// Where it begins.
    pub(crate) first_byte: u64,
    /// Its length.
    pub(crate) bytes: u64,
}

impl Part {
    /// What a client asks for by `name`, of an export called `export` of `size_bytes`: all of it by that name or the empty one, a
    /// part of it by either with `@FIRST+LENGTH` behind it, both with a unit. `None` where there is no such thing.
    pub(crate) fn named(name: &[u8], export: &str, size_bytes: u64) -> Option<Part> {
        if name.is_empty() || name == export.as_bytes() {
            return Some(Part { first_byte: 0, bytes: size_bytes });
        }
        let (of, place) = std::str::from_utf8(name).ok()?.rsplit_once('@')?;
        if !of.is_empty() && of != export {
            return None;
        }
        let (first, length) = place.split_once('+')?;
        let (first_byte, bytes) = (Size::parse_bytes(first).ok()?, Size::parse_bytes(length).ok()?);
        let is_whole = [first_byte, bytes].iter().all(|it| it.is_multiple_of(PAGE_BYTES as u64));
        let is_there = first_byte.checked_add(bytes).is_some_and(|end| end <= size_bytes);
        (is_whole && is_there && bytes > 0).then_some(Part { first_byte, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_named_by_its_place_and_length() {
        let named = |name: &str| {
            let part = Part::named(name.as_bytes(), "vol@home", 1 << 20);
            part.map(|part| (part.first_byte, part.bytes))
        };
        for name in ["", "vol@home"] {
            assert_eq!(named(name), Some((0, 1 << 20)), "{name}");
        }
        for name in ["@512KiB+256KiB", "vol@home@512KiB+256KiB", "@524288B+0.25MiB"] {
            assert_eq!(named(name), Some((512 << 10, 256 << 10)), "{name}");
        }
        assert_eq!(named("@0B+1MiB"), Some((0, 1 << 20)));
        for name in [
            "vol",
            "@",
            "@1KiB",
            "@0B+0B",
            "@0B+1KiB",
            "@2KiB+4KiB",
            "@512KiB+513KiB",
            "other@0B+4KiB",
            "@4+4",
            "@8EiB+16EiB",
        ] {
            assert_eq!(named(name), None, "{name}");
        }
        assert_eq!(Part::named(b"\xff@0B+4KiB", "", 1 << 20), None);
    }
}
