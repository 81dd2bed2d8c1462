//! Decimal numbers, read and written byte by byte: traces consist of little else.

/// Reads the digits of `bytes` from `at`. Returns the number and its end, or `None` if there is no digit or the number
/// exceeds 64 bits.
#[inline]
pub(crate) fn read(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0u64;
    let mut end = at;
    while let Some(digit) = bytes.get(end).map(|byte| byte.wrapping_sub(b'0')).filter(|d| *d < 10) {
        // Up to 18 digits cannot overflow; only longer numbers need checked arithmetic.
        value = if end - at < 18 {
            value * 10 + u64::from(digit)
        } else {
            value.checked_mul(10)?.checked_add(u64::from(digit))?
        };
        end += 1;
    }
    if end == at { None } else { Some((value, end)) }
}

/// As [`read`], and faster for long numbers: eight digits at a time.
#[inline]
pub(crate) fn read_long(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let Some(first) = eight_digits(bytes, at) else { return read(bytes, at) };
    let (mut value, mut end) = (first, at + 8);
    if let Some(second) = eight_digits(bytes, end) {
        (value, end) = (value * 100_000_000 + second, end + 8);
    }
    while let Some(digit) = bytes.get(end).map(|byte| byte.wrapping_sub(b'0')).filter(|d| *d < 10) {
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        end += 1;
    }
    Some((value, end))
}

/// The number in the eight bytes at `at`, if all are digits. Pairs of neighbours are combined, then pairs of pairs, and
/// so on, each by one multiplication.
#[inline]
fn eight_digits(bytes: &[u8], at: usize) -> Option<u64> {
    let chunk = bytes.get(at..at + 8)?.first_chunk::<8>()?;
    let word = u64::from_le_bytes(*chunk);
    // Digits are 0x30 to 0x39: the upper half is 3, and stays 3 if 6 is added.
    let upper = word & 0xf0f0_f0f0_f0f0_f0f0;
    let carried = word.wrapping_add(0x0606_0606_0606_0606) & 0xf0f0_f0f0_f0f0_f0f0;
    if upper != 0x3030_3030_3030_3030 || carried != upper {
        return None;
    }
    let word = word & 0x0f0f_0f0f_0f0f_0f0f;
    let word = word.wrapping_mul(10 << 8 | 1) >> 8 & 0x00ff_00ff_00ff_00ff;
    let word = word.wrapping_mul(100 << 16 | 1) >> 16 & 0x0000_ffff_0000_ffff;
    Some(word.wrapping_mul(10_000 << 32 | 1) >> 32)
}

/// The number that `bytes` consists of.
pub(crate) fn whole(bytes: &[u8]) -> Option<u64> {
    read(bytes, 0).filter(|(_, end)| *end == bytes.len()).map(|(value, _)| value)
}

/// Appends `value` in decimal.
#[inline]
pub(crate) fn write(mut value: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_overflow_is_found() {
        for value in [0, 7, 10, 999, 1 << 40, u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            write(value, &mut out);
            assert_eq!(out, value.to_string().as_bytes());
            assert_eq!(whole(&out), Some(value));
        }
        assert_eq!(whole(b"18446744073709551616"), None);
        assert_eq!(whole(b""), None);
        assert_eq!(whole(b"12x"), None);
        assert_eq!(read(b"a12,3", 1), Some((12, 3)));
    }

    #[test]
    fn eight_digits_at_a_time_are_the_same_numbers() {
        let mut texts: Vec<String> =
            (0..200_u32).map(|at| format!("{}", 3_u64.wrapping_pow(at))).collect();
        texts.extend(
            ["00000000", "0000000000000000000000012", "99999999", "18446744073709551615"]
                .map(String::from),
        );
        texts.extend(
            ["18446744073709551616", "123456789012345678901234", "", "-1"].map(String::from),
        );
        for odd in [b'/', b':', b' ', 0x10, 0x2f, 0x3a, 0xff, 0x70, b'a', b','] {
            for at in 0..18 {
                let mut bytes = b"123456789012345678".to_vec();
                bytes[at] = odd;
                assert_eq!(read_long(&bytes, 0), read(&bytes, 0), "{bytes:?}");
            }
        }
        for text in texts {
            let line = format!("x{text},7");
            assert_eq!(read_long(line.as_bytes(), 1), read(line.as_bytes(), 1), "{text}");
            assert_eq!(read_long(text.as_bytes(), 0), read(text.as_bytes(), 0), "{text}");
        }
    }
}
