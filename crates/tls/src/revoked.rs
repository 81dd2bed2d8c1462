//! Reads from a list of revoked certificates, in DER, its issuer and the time at which it expires (RFC 5280, section 5.1).

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The time by which the CA publishes its next list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NextUpdate {
    /// Seconds since 1970.
    pub unix_seconds: u64,
    /// The same time as text.
    pub text: String,
}

/// The encoded name of the CA of `list`; `None` if it cannot be read.
pub(crate) fn issuer(list: &[u8]) -> Option<&[u8]> {
    issuer_and_times(list).map(|(issuer, _)| issuer)
}

/// The time at which `list` expires; `None` if it has none, or it cannot be read.
pub(crate) fn next_update(list: &[u8]) -> Option<NextUpdate> {
    let (_, times) = issuer_and_times(list)?;
    let (_, _, behind_this_update) = element(times)?;
    let (tag, digits, _) = element(behind_this_update)?;
    let digits = std::str::from_utf8(digits).ok()?.strip_suffix('Z')?;
    // UTCTime has two digits for the years from 1950 to 2049.
    let century = match (tag, digits.get(..2)?) {
        (UTC_TIME, year) if year < "50" => "20",
        (UTC_TIME, _) => "19",
        (GENERALIZED_TIME, _) => "",
        _ => return None,
    };
    time(&format!("{century}{digits}"))
}

/// The time of fourteen digits: year, month, day, hour, minute, second.
fn time(digits: &str) -> Option<NextUpdate> {
    if digits.len() != 14 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let number = |from: usize, to: usize| digits[from..to].parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
    let (hour, minute, second) = (number(8, 10)?, number(10, 12)?, number(12, 14)?);
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the leap day is the last of its year.
    let (year_from_march, months) =
        if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year_from_march / 4 - year_from_march / 100 + year_from_march / 400;
    let days = year_from_march * 365 + leap_days + (months * 153 + 2) / 5 + day - 1;
    const DAYS_BEFORE_1970: u64 = 719_468;
    let unix_seconds = (days - DAYS_BEFORE_1970) * 86_400 + hour * 3600 + minute * 60 + second;
    let text = format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC");
    Some(NextUpdate { unix_seconds, text })
}

/// The encoded name of the CA of `list`, and the bytes behind it, which begin with the list's times.
fn issuer_and_times(list: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, certificate_list, _) = element(list)?;
    let (_, to_be_signed, _) = element(certificate_list)?;
    let (tag, _, behind_version) = element(to_be_signed)?;
    // The version is optional. The signature's algorithm follows it.
    let (tag, _, rest) = match tag {
        INTEGER => element(behind_version)?,
        _ => (tag, &[][..], behind_version),
    };
    let (name_tag, name, times) = element(rest)?;
    (tag == SEQUENCE && name_tag == SEQUENCE).then_some((name, times))
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
        list_with(version, name, &[0x17, 1, 0])
    }

    /// The same with these times.
    fn list_with(version: &[u8], name: &[u8], times: &[u8]) -> Vec<u8> {
        let wrapped = |content: &[u8]| {
            let length = content.len() as u16;
            [&[SEQUENCE, 0x82], &length.to_be_bytes()[..], content].concat()
        };
        let parts = [version, &wrapped(b"algorithm"), &wrapped(name), times];
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

    #[test]
    fn the_end_is_found_in_both_forms_of_time() {
        let end = |tag: u8, digits: &str| {
            let length = digits.len() as u8;
            let this = [&[UTC_TIME, 13], &b"200101000000Z"[..]].concat();
            let next = [&[tag, length], digits.as_bytes()].concat();
            next_update(&list_with(&[], b"some CA", &[this, next].concat()))
        };
        for (tag, digits, unix_seconds, text) in [
            (UTC_TIME, "250201093015Z", 1_738_402_215, "2025-02-01 09:30 UTC"),
            (UTC_TIME, "000229000000Z", 951_782_400, "2000-02-29 00:00 UTC"),
            (UTC_TIME, "991231235959Z", 946_684_799, "1999-12-31 23:59 UTC"),
            (GENERALIZED_TIME, "19700101000000Z", 0, "1970-01-01 00:00 UTC"),
            (GENERALIZED_TIME, "21000301000000Z", 4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            let text = text.to_owned();
            assert_eq!(end(tag, digits), Some(NextUpdate { unix_seconds, text }), "{digits}");
        }
        for digits in ["", "Z", "250201093015", "2502010930Z", "25-201093015Z", "251301000000Z"] {
            assert_eq!(end(UTC_TIME, digits), None, "{digits}");
        }
        assert_eq!(end(UTC_TIME, "\u{e9}\u{e9}Z"), None);
        assert_eq!(end(SEQUENCE, "250201093015Z"), None);
        assert_eq!(next_update(&list(&[], b"some CA")), None, "there is none");
    }
}
