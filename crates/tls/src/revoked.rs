//! The issuer of a list of revoked certificates, as far as DER must be read for it (RFC 5280, section 5.1).

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;

/// The encoded name of the CA of `list`; `None` if it cannot be read.
pub(crate) fn issuer(list: &[u8]) -> Option<&[u8]> {
    let (_, certificate_list, _) = element(list)?;
    let (_, to_be_signed, _) = element(certificate_list)?;
    let (tag, _, behind_version) = element(to_be_signed)?;
    // The version is optional. The signature's algorithm follows it.
    let (tag, _, rest) = match tag {
        INTEGER => element(behind_version)?,
        _ => (tag, &[][..], behind_version),
    };
    let (name_tag, name, _) = element(rest)?;
    (tag == SEQUENCE && name_tag == SEQUENCE).then_some(name)
}

/// Tag and content of the first element of `bytes`, and the bytes behind it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    let (content, behind) = rest.split_at_checked(length)?;
    Some((tag, content, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list whose issuer is `name`, padded so that lengths take two bytes.
    fn list(version: &[u8], name: &[u8]) -> Vec<u8> {
        let wrapped = |content: &[u8]| {
            let length = content.len() as u16;
            [&[SEQUENCE, 0x82], &length.to_be_bytes()[..], content].concat()
        };
        let parts = [version, &wrapped(b"algorithm"), &wrapped(name), &[0x17, 1, 0]];
        wrapped(&[wrapped(&parts.concat()), wrapped(&[0; 300])].concat())
    }

    #[test]
    fn the_issuer_is_found_with_and_without_a_version() {
        for version in [&[INTEGER, 1, 1][..], &[]] {
            assert_eq!(issuer(&list(version, b"some CA")), Some(&b"some CA"[..]));
        }
    }

    #[test]
    fn bytes_that_are_no_list_have_no_issuer() {
        let whole = list(&[INTEGER, 1, 1], b"some CA");
        assert!((0..20).all(|length| issuer(&whole[..length]).is_none()));
        assert_eq!(issuer(&[SEQUENCE, 0x85, 0, 0, 0, 0, 0]), None);
    }
}
