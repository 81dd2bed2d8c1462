//! Numbers for people.

/// `1234567` as `1,234,567`.
pub fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of any size, with enough decimals for about four digits: `14,484`, `196.5`, `3.14`, `0.125`.
pub fn figures(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if size.fract() == 0.0 || size >= 999.5 => 0,
        _ if size >= 99.95 => 1,
        _ if size >= 0.9995 => 2,
        _ => 3,
    };
    if size < 1e15 && decimals == 0 {
        let sign = if value.round() < 0.0 { "-" } else { "" };
        return format!("{sign}{}", thousands(size.round() as u64));
    }
    format!("{value:.decimals$}")
}

/// A duration in a readable unit: `17 ns`, `3.21 us`, `4.50 ms`, `2.10 s`.
pub fn duration(ns: f64) -> String {
    for (unit, factor) in [("s", 1e9), ("ms", 1e6), ("us", 1e3)] {
        // A value that would be rounded up to 1000 of the smaller unit gets the larger one.
        if ns >= factor * 0.999_995 {
            return format!("{:.2} {unit}", ns / factor);
        }
    }
    format!("{ns:.0} ns")
}

/// A large number, abbreviated: `987`, `12.3 k`, `174.2 M`.
pub fn short(value: f64) -> String {
    for (unit, factor) in [("G", 1e9), ("M", 1e6), ("k", 1e3)] {
        if value >= factor * 0.999_95 {
            return format!("{:.1} {unit}", value / factor);
        }
    }
    format!("{value:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        let texts: Vec<String> = [0, 999, 1000, 12_345, 1_234_567].map(thousands).into();
        assert_eq!(texts, ["0", "999", "1,000", "12,345", "1,234,567"]);
        assert_eq!(thousands(u64::MAX), "18,446,744,073,709,551,615");
        let texts: Vec<String> = [17.0, 3210.0, 999_999.0, 4.5e6, 2.1e9].map(duration).into();
        assert_eq!(texts, ["17 ns", "3.21 us", "1.00 ms", "4.50 ms", "2.10 s"]);
        let texts: Vec<String> = [987.0, 12_300.0, 174.2e6].map(short).into();
        assert_eq!(texts, ["987", "12.3 k", "174.2 M"]);
        let texts =
            [14_484.4, 999.5, 196.54, 99.96, 3.0, 3.1366, 0.9996, 0.1254, -2000.5].map(figures);
        let expected =
            ["14,484", "1,000", "196.5", "100.0", "3", "3.14", "1.00", "0.125", "-2,001"];
        assert_eq!(texts, expected);
    }
}
