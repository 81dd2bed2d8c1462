//! Decimal numbers, read and written byte by byte: a trace is little else.

/// Reads the digits of `bytes` from `at`. Returns the number and where they end, or `None` where
/// there is no digit or the number is over 64 bits.
#[inline]
pub(crate) fn read(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0u64;
    let mut end = at;
    while let Some(digit) = bytes.get(end).map(|byte| byte.wrapping_sub(b'0')).filter(|d| *d < 10) {
        // Up to 18 digits cannot overflow; only a longer number is multiplied with care.
        value = if end - at < 18 {
            value * 10 + u64::from(digit)
        } else {
            value.checked_mul(10)?.checked_add(u64::from(digit))?
        };
        end += 1;
    }
    if end == at { None } else { Some((value, end)) }
}

/// The number that is all of `bytes`.
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
}
