//! Makes text from outside safe to print on a terminal.
use std::borrow::Cow;
use std::fmt::Write;

/// Returns `text` without control characters. Each of them, and each character that changes the direction of text or
/// separates lines, is replaced by its number, as in `\\u001b`. Line feeds and tabs stay. JSON stays valid JSON.
///
/// Names, labels and messages may come from servers, clients and files that are not trusted. All output of the
/// programs, and all errors, pass through here.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_obeyed(character) {
            // Writing to a string cannot fail. Each of these characters has at most four digits.
            let _ = write!(shown, "\\u{:04x}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Whether this character may control a terminal instead of being shown by it.
fn is_obeyed(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        other => other.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_that_a_terminal_obeys_is_left() {
        let cases = [
            ("plain \u{e9}\u{4e2d}\n\ttext", "plain \u{e9}\u{4e2d}\n\ttext"),
            ("\u{1b}[2J\u{7}", r"\u001b[2J\u0007"),
            ("\u{9b}31m\u{7f}\r\0", r"\u009b31m\u007f\u000d\u0000"),
            ("a\u{202e}b", r"a\u202eb"),
        ];
        for (text, shown) in cases {
            assert_eq!(plain(text), shown);
            assert_eq!(plain(shown), shown);
        }
    }
}
