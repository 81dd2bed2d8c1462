//! I/O errors that pass, of the medium, a home or its journal. While they last operations fail and change nothing;
//! afterwards all earlier content is there.
use std::fmt::Write;
use std::ops::Range;
use tantalum_base::{PAGE_BYTES, Rng};
use tantalum_media::{Episode, IoClass, Reach};

use super::life::CutAt;

/// Errors that pass in one power-on period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passing {
    /// The part that they affect.
    pub at: CutAt,
    /// The operations that fail.
    pub classes: Vec<IoClass>,
    /// The time at which they fail.
    pub span: Span,
    /// The place: slots of the medium, pages of a home or a journal.
    pub reach: Reach,
}

/// The time of passing errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// These of the operations that they can affect, counted since the power came on.
    Operations(Range<u64>),
    /// This span since the power came on, in microseconds.
    TimeUs(Range<u64>),
}

impl Span {
    fn range(&self) -> &Range<u64> {
        match self {
            Span::Operations(range) | Span::TimeUs(range) => range,
        }
    }
}

impl Passing {
    /// The episode if the power comes on at `now_ns`. For a home and a journal it is in bytes.
    pub(super) fn episode(&self, now_ns: u64) -> Episode {
        let reach = match (&self.reach, self.at) {
            (reach, CutAt::Media | CutAt::Nvram) => reach.clone(),
            (reach, CutAt::Home | CutAt::Journal) => in_bytes(reach),
        };
        let at_ns = |us: u64| now_ns + us.min(LAST_US) * 1000;
        let (operations, time_us) = match &self.span {
            Span::Operations(range) => (range.clone(), 0..LAST_US),
            Span::TimeUs(range) => (0..u64::MAX, range.clone()),
        };
        let episode = Episode::of(&self.classes).reaching(reach).operations(operations);
        episode.during(at_ns(time_us.start)..at_ns(time_us.end))
    }

    /// Its text after an end: `r5+3`, `hw200us+1000`, `rs0:64+32`, `y7:%4.2.1`.
    pub(super) fn text(&self) -> String {
        let mut text = self.at.letter().to_owned();
        text.extend(self.classes.iter().map(|class| letter(*class)));
        let (Range { start, end }, unit) = match &self.span {
            Span::Operations(range) => (range, ""),
            Span::TimeUs(range) => (range, "us"),
        };
        // `write!` to a string cannot fail.
        let _ = write!(text, "{start}{unit}");
        if *end < u64::MAX {
            let _ = write!(text, "+{}", end - start);
        }
        let _ = match &self.reach {
            Reach::Everything => Ok(()),
            Reach::Range(range) => write!(text, ":{}+{}", range.start, range.end - range.start),
            Reach::Member { unit, members, member } => write!(text, ":%{unit}.{members}.{member}"),
        };
        text
    }

    /// Reads that text; `None` if it is not valid.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (when, reach) = match text.split_once(':') {
            Some((when, reach)) => (when, parse_reach(reach)?),
            None => (text, Reach::Everything),
        };
        let (letters, numbers) = when.split_at(when.find(|it: char| it.is_ascii_digit())?);
        let beside = [CutAt::Home, CutAt::Journal].into_iter();
        let mut beside = beside.filter_map(|at| Some((at, letters.strip_prefix(at.letter())?)));
        let (at, letters) = beside.next().unwrap_or((CutAt::Media, letters));
        let classes: Vec<IoClass> = letters.chars().map(class).collect::<Option<_>>()?;
        if classes.is_empty() {
            return None;
        }
        let (start, count) = match numbers.split_once('+') {
            Some((start, count)) => (start, Some(count.parse::<u64>().ok()?)),
            None => (numbers, None),
        };
        let (start, is_time) = match start.strip_suffix("us") {
            Some(start) => (start, true),
            None => (start, false),
        };
        let start: u64 = start.parse().ok()?;
        let range = start..count.map_or(u64::MAX, |count| start.saturating_add(count));
        let span = if is_time { Span::TimeUs(range) } else { Span::Operations(range) };
        Some(Passing { at, classes, span, reach })
    }

    /// Random errors of the medium.
    pub(super) fn random(rng: &mut Rng) -> Self {
        use IoClass::{Read, Reset, Scan, Sync, Write};
        let classes = match rng.below(12) {
            0..=4 => vec![Read, Scan],
            5 | 6 => vec![Read],
            7 | 8 => vec![Write],
            9 => vec![Sync],
            10 => vec![Reset],
            _ => IoClass::ALL.to_vec(),
        };
        // Many occur during an opening.
        let is_early = rng.chance(0.4);
        let mut start = |most: u64| rng.below(if is_early { most / 8 } else { most });
        let (operation, us) = (start(OPERATIONS), start(TIME_US));
        let span = match rng.below(20) {
            0..=9 => {
                let most = 1 << rng.below(8);
                Span::Operations(operation..operation + 1 + rng.below(most))
            }
            10..=16 => Span::TimeUs(us..us + 100 + rng.below(TIME_US / 3)),
            // To the end of this power-on period.
            _ => Span::Operations(operation..u64::MAX),
        };
        let reach = match rng.below(10) {
            0..=5 => Reach::Everything,
            6 | 7 => {
                let first = rng.below(SLOTS);
                Reach::Range(first..first + 1 + rng.below(64))
            }
            _ => {
                let members = 2 + rng.below(3);
                let (unit, member) = (1 << rng.below(4), rng.below(members));
                Reach::Member { unit, members, member }
            }
        };
        Passing { at: CutAt::Media, classes, span, reach }
    }

    /// The continuation, in the next power-on period and for some operations, of errors that last to the end of a
    /// period.
    pub(super) fn continued(&self, rng: &mut Rng) -> Option<Self> {
        let goes_on = self.span.range().end == u64::MAX && rng.chance(0.6);
        let span = Span::Operations(0..1 + rng.below(OPERATIONS));
        goes_on.then(|| Passing { span, ..self.clone() })
    }

    /// Simpler errors in place of these: everywhere, of one class, shorter.
    pub(super) fn plainer(&self) -> Vec<Self> {
        let mut plainer = vec![Passing { reach: Reach::Everything, ..self.clone() }];
        if self.classes.len() > 1 {
            let one = |class: &IoClass| Passing { classes: vec![*class], ..self.clone() };
            plainer.extend(self.classes.iter().map(one));
        }
        let Range { start, end } = *self.span.range();
        let spans = [start..start + 1, start..start + (end - start) / 2, start / 2..end];
        for range in spans.into_iter().filter(|range| !range.is_empty()) {
            let span = match self.span {
                Span::Operations(_) => Span::Operations(range),
                Span::TimeUs(_) => Span::TimeUs(range),
            };
            plainer.push(Passing { span, ..self.clone() });
        }
        plainer.retain(|one| one != self);
        plainer
    }
}

/// All errors have passed this long after the power came on, so that no wait for that is endless.
const LAST_US: u64 = 300_000;

/// Operations and time of one power-on period, and slots of a medium, among which errors start.
const OPERATIONS: u64 = 160;
const TIME_US: u64 = 30_000;
const SLOTS: u64 = 448;

fn in_bytes(pages: &Reach) -> Reach {
    let bytes = |pages: u64| pages * PAGE_BYTES as u64;
    match pages {
        Reach::Everything => Reach::Everything,
        Reach::Range(range) => Reach::Range(bytes(range.start)..bytes(range.end)),
        Reach::Member { unit, members, member } => {
            Reach::Member { unit: bytes(*unit), members: *members, member: *member }
        }
    }
}

fn letter(class: IoClass) -> char {
    match class {
        IoClass::Read => 'r',
        IoClass::Write => 'w',
        IoClass::Sync => 'y',
        IoClass::Reset => 'z',
        IoClass::Scan => 's',
    }
}

fn class(of: char) -> Option<IoClass> {
    IoClass::ALL.into_iter().find(|class| letter(*class) == of)
}

fn parse_reach(text: &str) -> Option<Reach> {
    if let Some(stripe) = text.strip_prefix('%') {
        let numbers = stripe.split('.').map(|number| number.parse().ok());
        let numbers = numbers.collect::<Option<Vec<u64>>>()?;
        let [unit, members, member] = numbers[..] else { return None };
        return (unit > 0 && member < members).then_some(Reach::Member { unit, members, member });
    }
    let (first, count) = text.split_once('+')?;
    let (first, count): (u64, u64) = (first.parse().ok()?, count.parse().ok()?);
    Some(Reach::Range(first..first.checked_add(count)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_errors_say_the_same() {
        let read = Passing::parse("r5+3").unwrap();
        assert_eq!((read.at, &read.classes[..]), (CutAt::Media, &[IoClass::Read][..]));
        assert_eq!(read.span, Span::Operations(5..8));
        for text in ["r5+3", "hw200us+1000", "rs0:64+32", "jy7:%4.2.1", "rwyzs9us"] {
            assert_eq!(Passing::parse(text).unwrap().text(), text);
        }
        for text in ["", "r", "5", "x5", "r5+", "r5:3", "r5:%4.2.2", "r5:%0.2.1", "nr5"] {
            assert_eq!(Passing::parse(text), None, "{text}");
        }
        let mut rng = Rng::new(1);
        for _ in 0..1000 {
            let random = Passing::random(&mut rng);
            assert_eq!(Passing::parse(&random.text()).as_ref(), Some(&random));
        }
    }

    #[test]
    fn plainer_errors_come_to_an_end() {
        let mut passing = Passing::parse("rwyzs40us+4000:%4.2.1").unwrap();
        for _ in 0..100 {
            match passing.plainer().pop() {
                Some(plainer) => passing = plainer,
                None => return,
            }
        }
        panic!("{}", passing.text());
    }
}
