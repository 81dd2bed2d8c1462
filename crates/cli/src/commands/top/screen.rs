//! A terminal that is drawn on in place.
use console::{Term, truncate_str};
use std::io::Write;
use tantalum_base::plain;

/// Switches to the alternate screen and hides the cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
/// Restores the cursor and the normal screen.
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// The terminal of the standard output. Dropping this restores it.
pub struct Screen {
    terminal: Term,
    drawn: Option<(u16, u16)>,
}

impl Screen {
    /// Takes over the terminal; `None` if the standard output is not a terminal.
    pub fn take() -> std::io::Result<Option<Screen>> {
        let terminal = Term::stdout();
        if !terminal.is_term() {
            return Ok(None);
        }
        let screen = Screen { terminal, drawn: None };
        screen.write(ENTER)?;
        Ok(Some(screen))
    }

    /// Draws these lines, cut to the size of the terminal.
    pub fn draw(&mut self, lines: &[String]) -> std::io::Result<()> {
        let (rows, columns) = self.terminal.size();
        self.drawn = Some((rows, columns));
        let mut text = String::from("\x1b[H");
        for (at, line) in lines.iter().take(rows.into()).enumerate() {
            if at > 0 {
                text.push_str("\r\n");
            }
            text += &truncate_str(&plain(line), columns.into(), "");
            text.push_str("\x1b[K");
        }
        text.push_str("\x1b[J");
        self.write(&text)
    }

    /// Whether the size of the terminal has changed since the last drawing.
    pub fn is_resized(&self) -> bool {
        self.drawn.is_some_and(|drawn| drawn != self.terminal.size())
    }

    fn write(&self, text: &str) -> std::io::Result<()> {
        let mut terminal = &self.terminal;
        terminal.write_all(text.as_bytes())?;
        terminal.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A failure means that the terminal has gone.
        let _ = self.write(LEAVE);
    }
}
