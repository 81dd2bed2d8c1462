//! Lives as text: printed for a violation, and accepted by `--replay`.
//!
//! `DEVICE; MEDIUM; pages=30; seed=7; POWER-ON; POWER-ON; …`. A power-on is `CLIENT / CLIENT -> END`, a client is
//! commands separated by blanks, and
//!
//! | | |
//! |---|---|
//! | `w3`, `w3+4` | write page 3; pages 3 to 6 as one command |
//! | `c3.9.4`, `a3.9` | a transaction over these pages that commits; that aborts |
//! | `r3`, `r3+4` | read page 3; pages 3 to 6 as one command |
//! | `t3+4`, `s3<9.4<1`, `f` | trim; share (page 3 gets page 9's content, 4 gets 1's); flush |
//! | `dark`, `close` | power is cut when all clients are done; after the device was closed |
//! | `land@5`, `vanish@5`, `tear@5` | power is cut at media operation 5, which meets that fate |
//! | `land@n5`, `land@h5`, `land@j5` | the same at NVRAM store 5; at operation 5 of the home, of the journal |
//! | `fail@3` | after the end: program 3 fails |
//! | `decay@7` | after the end: slot 7 decays as it is read, or the first one after it that may |
//! | `lost@4`, `lost@h4` | after the end: append 4 is reported as done but not written; its header |
//! | `eio@6`, `enospc@6` | after the end: write or sync 6 fails |
//! | `err@r5+3`, `err@hw200us+1000` | after the end: reads 5 to 7 fail, and pass; writes of the home for a time |
//! | `flip@3.77`, `wipe@3`, `spare@3` | after the end: damage to place 3 while the power is off |
use std::fmt::Write;
use std::str::FromStr;
use tantalum_base::{Error, ErrorKind, PageNo, PageRange, Result};
use tantalum_media::Fate;
use tantalum_media::block_store::{IoFaultKind, LostBlocks};
use tantalum_models::rig::IoFault;

use super::command::Command;
use super::life::{Cut, CutAt, End, How, Life, LostWrite, PowerOn, SLOT_BITS, Strike};
use super::passing::Passing;

/// The syntax of additions to an end.
const BEHIND_ENDS: &str = "fail@N, decay@N, lost@N, lost@hN, eio@N, enospc@N, err@CLASSES.., flip@N.BIT, wipe@N or spare@N";

/// A life with its device and its medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The device, in the form that `--device` accepts.
    pub device: String,
    /// The medium, in the form that `--media` accepts.
    pub media: String,
    /// The events.
    pub life: Life,
}

impl Replay {
    /// The text.
    pub fn text(&self) -> String {
        let Life { seed, pages, power_ons } = &self.life;
        let mut text = format!("{}; {}; pages={pages}; seed={seed}", self.device, self.media);
        for power_on in power_ons {
            let clients: Vec<String> = power_on
                .clients
                .iter()
                .map(|client| client.iter().map(command_text).collect::<Vec<_>>().join(" "))
                .collect();
            // `write!` to a string cannot fail.
            let _ = write!(text, "; {} -> {}", clients.join(" / "), end_text(power_on.end));
            for program in &power_on.failing_programs {
                let _ = write!(text, " fail@{program}");
            }
            for read in &power_on.decaying_reads {
                let _ = write!(text, " decay@{read}");
            }
            damage_text(&mut text, power_on);
        }
        text
    }

    /// Reads the text.
    ///
    /// # Errors
    /// `InvalidInput` with the part that is not valid.
    pub fn parse(text: &str) -> Result<Replay> {
        let mut parts = text.split(';').map(str::trim);
        let mut head = |what: &str| {
            parts.next().filter(|part| !part.is_empty()).ok_or_else(|| bad(text, what))
        };
        let (device, media) = (head("a device")?.to_owned(), head("a medium")?.to_owned());
        let pages = head("pages=N")?.strip_prefix("pages=").and_then(number);
        let pages = pages.filter(|pages| *pages > 0).ok_or_else(|| bad(text, "pages=N"))?;
        let seed = head("seed=N")?.strip_prefix("seed=").and_then(number);
        let seed = seed.ok_or_else(|| bad(text, "seed=N"))?;
        let power_ons = parts.map(|part| power_on(part, pages)).collect::<Result<Vec<_>>>()?;
        Ok(Replay { device, media, life: Life { seed, pages, power_ons } })
    }
}

fn bad(part: &str, wanted: &str) -> Error {
    let context = format!("replay: {part:?}: {wanted} is missing or not understood");
    Error::new(ErrorKind::InvalidInput, context)
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn range_text(range: PageRange) -> String {
    match range.pages {
        1 => range.first.to_string(),
        pages => format!("{}+{pages}", range.first),
    }
}

fn list_text(pages: &[PageNo]) -> String {
    pages.iter().map(PageNo::to_string).collect::<Vec<_>>().join(".")
}

pub(super) fn command_text(command: &Command) -> String {
    match command {
        Command::Write(range) => format!("w{}", range_text(*range)),
        Command::Commit(pages) => format!("c{}", list_text(pages)),
        Command::Abort(pages) => format!("a{}", list_text(pages)),
        Command::Trim(range) => format!("t{}", range_text(*range)),
        Command::Share(pairs) => {
            let pairs: Vec<String> =
                pairs.iter().map(|(to, from)| format!("{to}<{from}")).collect();
            format!("s{}", pairs.join("."))
        }
        Command::Flush => "f".to_owned(),
        Command::Read(range) => format!("r{}", range_text(*range)),
    }
}

fn end_text(end: End) -> String {
    match end {
        End::Dark => "dark".to_owned(),
        End::Close => "close".to_owned(),
        End::Cut(Cut { at, after, fate }) => {
            format!("{}@{}{after}", fate.name(), at.letter())
        }
    }
}

/// Appends losses, failures and damage.
fn damage_text(text: &mut String, power_on: &PowerOn) {
    for LostWrite { append, part } in &power_on.lost_writes {
        let part = if *part == LostBlocks::First { "h" } else { "" };
        let _ = write!(text, " lost@{part}{append}");
    }
    for IoFault { operation, kind } in &power_on.io_faults {
        let what = if *kind == IoFaultKind::Io { "eio" } else { "enospc" };
        let _ = write!(text, " {what}@{operation}");
    }
    for passing in &power_on.passing {
        let _ = write!(text, " err@{}", passing.text());
    }
    for Strike { place, how } in &power_on.strikes {
        let _ = match how {
            How::Flip(bit) => write!(text, " flip@{place}.{bit}"),
            How::Wipe => write!(text, " wipe@{place}"),
            How::Spare => write!(text, " spare@{place}"),
        };
    }
}

/// Parses an addition to an end; `None` if it is not valid.
fn add_damage(power_on: &mut PowerOn, what: &str, at: &str) -> Option<()> {
    let strike = |place: &str, how: How| Some(Strike { place: number(place)?, how });
    let fault = |kind| Some(IoFault { operation: number(at)?, kind });
    match what {
        "fail" => power_on.failing_programs.push(number(at)?),
        "decay" => power_on.decaying_reads.push(number(at)?),
        "lost" => {
            let (part, append) = match at.strip_prefix('h') {
                Some(append) => (LostBlocks::First, append),
                None => (LostBlocks::All, at),
            };
            power_on.lost_writes.push(LostWrite { append: number(append)?, part });
        }
        "eio" => power_on.io_faults.push(fault(IoFaultKind::Io)?),
        "enospc" => power_on.io_faults.push(fault(IoFaultKind::NoSpace)?),
        "err" => power_on.passing.push(Passing::parse(at)?),
        "flip" => {
            let (place, bit) = at.split_once('.')?;
            let bit = number(bit).filter(|bit| *bit < SLOT_BITS)?;
            power_on.strikes.push(strike(place, How::Flip(bit))?);
        }
        "wipe" => power_on.strikes.push(strike(at, How::Wipe)?),
        "spare" => power_on.strikes.push(strike(at, How::Spare)?),
        _ => return None,
    }
    Some(())
}

fn power_on(part: &str, pages: u64) -> Result<PowerOn> {
    let (clients, ends) = part.split_once("->").ok_or_else(|| bad(part, "\"-> END\""))?;
    let clients = clients
        .split('/')
        .map(|client| {
            let words = client.split_whitespace();
            words
                .map(|word| {
                    let wanted = || format!("a command on pages 0 to {}", pages - 1);
                    command(word, pages).ok_or_else(|| bad(word, &wanted()))
                })
                .collect::<Result<Vec<_>>>()
        })
        .filter(|client| client.as_ref().map_or(true, |client| !client.is_empty()))
        .collect::<Result<Vec<_>>>()?;
    let mut words = ends.split_whitespace();
    let end = words.next().and_then(end).ok_or_else(|| bad(part, "an end"))?;
    let mut power_on = PowerOn { clients, end, ..PowerOn::default() };
    for word in words {
        let (what, at) = word.split_once('@').unwrap_or((word, ""));
        add_damage(&mut power_on, what, at).ok_or_else(|| bad(word, BEHIND_ENDS))?;
    }
    Ok(power_on)
}

fn end(word: &str) -> Option<End> {
    let (fate, after) = match word {
        "dark" => return Some(End::Dark),
        "close" => return Some(End::Close),
        _ => word.split_once('@')?,
    };
    let fate = Fate::ALL.into_iter().find(|known| known.name() == fate)?;
    let beside = CutAt::ALL.into_iter().filter(|at| !at.letter().is_empty());
    let mut beside = beside.filter_map(|at| Some((at, after.strip_prefix(at.letter())?)));
    let (at, after) = beside.next().unwrap_or((CutAt::Media, after));
    Some(End::Cut(Cut { at, after: number(after)?, fate }))
}

fn command(word: &str, pages: u64) -> Option<Command> {
    let page = |text: &str| number(text).filter(|page| *page < pages).map(PageNo);
    let range = |text: &str| {
        let (first, len) = text.split_once('+').unwrap_or((text, "1"));
        let (first, len) = (page(first)?, number::<u64>(len)?);
        (len > 0 && first.0.checked_add(len)? <= pages).then_some(PageRange::new(first, len))
    };
    let list = |text: &str| text.split('.').map(page).collect::<Option<Vec<_>>>();
    let kind = word.chars().next()?;
    let rest = &word[kind.len_utf8()..];
    Some(match kind {
        'w' => Command::Write(range(rest)?),
        'c' => Command::Commit(list(rest)?),
        'a' => Command::Abort(list(rest)?),
        't' => Command::Trim(range(rest)?),
        's' => {
            let pair = |pair: &str| {
                let (to, from) = pair.split_once('<')?;
                Some((page(to)?, page(from)?))
            };
            Command::Share(rest.split('.').map(pair).collect::<Option<Vec<_>>>()?)
        }
        'f' if rest.is_empty() => Command::Flush,
        'r' => Command::Read(range(rest)?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "ssd:cache=durable; nand; pages=30; seed=7; w3 w5+4 f / c1.9.1 r3 -> \
                        tear@12 fail@3 fail@9;  -> land@h7;  -> tear@j0;  -> vanish@2 lost@4 lost@h0 eio@6 enospc@7 err@r5+3 err@jwy200us+70:%4.2.1 flip@3.77 wipe@0 spare@9; a3.4 t0+4 s3<9.4<1 -> land@n5 decay@7; \
                        r0 r4+9 -> close; w0 -> dark";

    #[test]
    fn text_and_life_say_the_same() {
        let replay = Replay::parse(TEXT).unwrap();
        assert_eq!(replay.text(), TEXT);
        assert_eq!(Replay::parse(&replay.text()).unwrap(), replay);
        let life = &replay.life;
        assert_eq!((life.commands(), life.clients(), life.cuts()), (11, 2, 5));
        assert_eq!(life.power_ons[0].failing_programs, [3, 9]);
        assert_eq!(life.power_ons[4].decaying_reads, [7]);
        assert_eq!(
            life.power_ons[3],
            PowerOn {
                end: Cut::media(2, Fate::Vanish),
                lost_writes: vec![
                    LostWrite { append: 4, part: LostBlocks::All },
                    LostWrite { append: 0, part: LostBlocks::First },
                ],
                io_faults: vec![
                    IoFault { operation: 6, kind: IoFaultKind::Io },
                    IoFault { operation: 7, kind: IoFaultKind::NoSpace },
                ],
                passing: ["r5+3", "jwy200us+70:%4.2.1"]
                    .map(|text| Passing::parse(text).unwrap())
                    .to_vec(),
                strikes: vec![
                    Strike { place: 3, how: How::Flip(77) },
                    Strike { place: 0, how: How::Wipe },
                    Strike { place: 9, how: How::Spare },
                ],
                ..PowerOn::default()
            }
        );
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (text, named) in [
            ("ssd; nand", "pages=N"),
            ("ssd; nand; pages=x; seed=1", "pages=N"),
            ("ssd; nand; pages=3; seed=1; w1", "-> END"),
            ("ssd; nand; pages=3; seed=1; w3 -> dark", "w3"),
            ("ssd; nand; pages=3; seed=1; w1+3 -> dark", "w1+3"),
            ("ssd; nand; pages=3; seed=1; r2+2 -> dark", "r2+2"),
            ("ssd; nand; pages=3; seed=1; c -> dark", "\"c\""),
            ("ssd; nand; pages=3; seed=1; w1 -> tear", "an end"),
            ("ssd; nand; pages=3; seed=1; w1 -> dark fail", "fail@N"),
            ("ssd; nand; pages=3; seed=1; w1 -> dark decay@x", "decay@N"),
            ("ssd; nand; pages=3; seed=1; w1 -> dark rust@3", "decay@N"),
            ("ssd; nand; pages=3; seed=1; w1 -> dark flip@3", "flip@N.BIT"),
            ("ssd; nand; pages=3; seed=1; w1 -> dark flip@3.32768", "flip@N.BIT"),
            ("ssd; nand; pages=3; seed=1; w1 -> dark lost@x4", "lost@hN"),
            ("ssd; nand; pages=3; seed=1; w1 -> dark err@5", "err@CLASSES"),
        ] {
            let error = Replay::parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(named), "{text}: {error}");
        }
    }
}
