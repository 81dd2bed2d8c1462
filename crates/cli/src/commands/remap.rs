//! Changes of a volume's pages by their numbers (`share`, `clone`, `trim`), made by the process that has the volume
//! open: this program, or the server of the volume, which receives the request as a line of text.
use anyhow::{Context, bail};
use std::fmt;
use std::str::FromStr;
use tantalum_base::size::Size;
use tantalum_base::{
    Error, ErrorKind, PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Payload, Result,
};
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::{LifeCycle, Live};
use tantalum_volume::asking::ask;
use tantalum_volume::config::Kind;
use tantalum_volume::{FlashVolume, OpenOptions, VolumeConfig, VolumeStore, open_volume};

/// Pages trimmed in one step; nothing else runs during a step.
const TRIM_PAGES: u64 = 8192;

/// Maximum pages of a clone, 64 GiB: each needs some 300 bytes of memory while the clone is made, and a server that runs
/// out of memory dies.
const CLONE_PAGES_MAX: u64 = 1 << 24;

/// The reason for which a tiered volume refuses a share or a clone.
const NOT_SHARED: &str = "pages at home cannot be shared";

/// The reason for which a tiered volume refuses a trim.
const NOT_TRIMMED: &str = "serve it, and give the pages up on the device (`blkdiscard --offset A --length LEN`, `fstrim`)";

/// The process that makes a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadeBy {
    /// This command: no other process has the volume open.
    Command,
    /// The volume's server: its clients go on meanwhile.
    Server,
}

/// A change of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remap {
    /// Pages get the content of others, all of which must have content.
    Share(Pages),
    /// Pages become equal to others; `None`: the upper half of the volume becomes equal to the lower one. They must be
    /// empty unless `replace` is set.
    Clone { pages: Option<Pages>, replace: bool },
    /// A range is discarded.
    Trim(PageRange),
}

/// The `count` pages from `to` on, and the `count` pages from `from` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    pub to: u64,
    pub from: u64,
    pub count: u64,
}

/// The result of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The pages that were changed.
    pub pages: Pages,
    /// Slots of the medium that are now shared by several pages.
    pub shared_slots: u64,
}

impl Pages {
    /// The pages that are changed.
    pub fn left(self) -> PageRange {
        PageRange::new(PageNo(self.to), self.count)
    }

    /// The pages that provide the content.
    pub fn right(self) -> PageRange {
        PageRange::new(PageNo(self.from), self.count)
    }

    /// The upper half of a volume of `capacity` pages, and the lower one.
    fn halves(capacity: u64) -> Pages {
        Pages { to: capacity / 2, from: 0, count: capacity / 2 }
    }
}

impl Remap {
    /// The reason for which a tiered volume refuses it.
    pub fn tiered_refusal(self) -> &'static str {
        match self {
            Remap::Share(_) | Remap::Clone { .. } => NOT_SHARED,
            Remap::Trim(_) => NOT_TRIMMED,
        }
    }

    /// Makes the change: on the volume that the server of `config` has open, or else on the volume opened here.
    pub fn run(self, config: &VolumeConfig) -> anyhow::Result<Done> {
        let path = config.path.display();
        if config.kind == Kind::Tiered {
            bail!("{path} is a tiered volume: {}", self.tiered_refusal());
        }
        let opened = {
            let live = Live::new(LiveOptions::default())?;
            let (handle, config) = (live.clone(), config.without_buffer());
            live.run(async move {
                let (volume, _) = open_volume(&handle, &config, OpenOptions::default()).await?;
                let done = self.apply(&volume, MadeBy::Command).await;
                // A refused change left the volume as it was. The volume must be closed in any case.
                let closed = volume.close().await;
                let done = done?;
                closed.map_err(|error| {
                    error.wrap("the change is made, but closing the volume failed")
                })?;
                Ok::<_, Error>(done)
            })
        };
        match opened {
            // Another process has it open: perhaps a server.
            Err(error) if error.kind() == ErrorKind::Locked => match self.ask(config)? {
                Some(done) => Ok(done),
                None => Err(error.into()),
            },
            done => Ok(done?),
        }
    }

    /// Requests the change from the server of the volume of `config`; `None` if there is no server.
    fn ask(self, config: &VolumeConfig) -> anyhow::Result<Option<Done>> {
        let path = config.path.display();
        let Some(mut lines) = ask(&config.path, &self.to_string())? else { return Ok(None) };
        let Some(line) = lines.next().transpose()? else {
            bail!(
                "{path}: the server ended before it answered: it is unknown whether the change was made"
            )
        };
        match line.split_once(' ') {
            Some(("done", done)) => Ok(Some(done.parse()?)),
            Some(("error", error)) => bail!("{path}: {error}"),
            _ => bail!("{path}: the server answers {line:?}"),
        }
    }

    /// Makes the change on `volume`.
    pub async fn apply(self, volume: &FlashVolume<VolumeStore>, by: MadeBy) -> Result<Done> {
        self.spare_the_database(volume, by).await?;
        let pages = match self {
            Remap::Share(pages) => {
                share(volume, pages).await?;
                pages
            }
            Remap::Clone { pages, replace } => {
                let pages = pages.unwrap_or_else(|| Pages::halves(volume.limits().pages));
                volume.limits().clone_ranges(PageNo(pages.to), PageNo(pages.from), pages.count)?;
                check_length(pages.count)?;
                if !replace
                    && let Err(refused) = refuse_content(volume, pages)
                    && !is_made(volume, pages).await?
                {
                    return Err(refused);
                }
                volume.clone_range(PageNo(pages.to), PageNo(pages.from), pages.count).await?;
                pages
            }
            Remap::Trim(range) => {
                volume.limits().check_range(range)?;
                let (first, end) = (range.first.0, range.end().0);
                for at in (first..end).step_by(TRIM_PAGES as usize) {
                    let part = PageRange::new(PageNo(at), TRIM_PAGES.min(end - at));
                    volume.trim(part).await?;
                }
                volume.flush().await?;
                Pages { to: first, from: first, count: range.pages }
            }
        };
        Ok(Done { pages, shared_slots: volume.device().statistics().ftl.shared_slots })
    }
}

impl Remap {
    /// Fails if the volume holds a SQLite database that the change could damage. SQLite does not know of clones: the database
    /// may grow into any page, even during the change.
    async fn spare_the_database(self, volume: &FlashVolume<VolumeStore>, by: MadeBy) -> Result<()> {
        let mut front = [PageBuf::zero()];
        // If the first page cannot be read, no database is recognized, and the page may be trimmed.
        let read = volume.read(PageNo(0), &mut front, None).await;
        let Some(database) = tantalum_sqlite::pages_of_database(&front[0]).filter(|_| read.is_ok())
        else {
            return Ok(());
        };
        let advice = match self {
            Remap::Trim(range) if range.first.0 >= database && by == MadeBy::Command => {
                return Ok(());
            }
            Remap::Trim(range) if range.first.0 >= database => {
                "the server's clients may let it grow into these pages: stop the server first"
            }
            Remap::Trim(_) => {
                "to give it up, run `tantalum create --force`; to make it smaller, run VACUUM in \
                 SQLite"
            }
            Remap::Share(_) | Remap::Clone { .. } => {
                "for a copy as of one moment, run VACUUM INTO in SQLite, or `tantalum sqlite \
                 export`"
            }
        };
        let context = format!("pages 0 to {} hold a SQLite database: {advice}", database - 1);
        Err(Error::new(ErrorKind::InvalidInput, context))
    }
}

async fn share(volume: &FlashVolume<VolumeStore>, pages: Pages) -> Result<()> {
    let most = u64::from(volume.limits().share_pairs_max);
    match split(most, pages) {
        Some(parts) => Err(Error::new(ErrorKind::TooLarge, parts)),
        None => volume.share_range(PageNo(pages.to), PageNo(pages.from), pages.count).await,
    }
}

/// Advice on how to share pages in parts, if one share accepts at most `most`; `None` if they fit.
fn split(most: u64, Pages { to, from, count }: Pages) -> Option<String> {
    if most == 0 || count <= most {
        return None;
    }
    let (whole, rest) = (count / most, count % most);
    let parts = count.div_ceil(most);
    let (last, at) = if rest > 0 { (rest, whole * most) } else { (most, (whole - 1) * most) };
    Some(format!(
        "a share of {count} pages is over the limit of {most}; use {parts} shares, each all or \
         nothing by itself: A {to} B {from} LEN {most}, then add {most} to A and B each time, up to A {} \
         B {} LEN {last}",
        to.saturating_add(at),
        from.saturating_add(at),
    ))
}

/// Fails if a clone would need too much memory.
fn check_length(count: u64) -> Result<()> {
    if count <= CLONE_PAGES_MAX {
        return Ok(());
    }
    let context = format!(
        "a clone of {count} pages is over the limit of {CLONE_PAGES_MAX}, for the memory that it \
         takes; use several clones with A, B and LEN, each shows its own moment"
    );
    Err(Error::new(ErrorKind::TooLarge, context))
}

/// Whether the clone exists already, and neither side has changed since. This happens if only the answer to the first
/// request was lost. Making the clone again changes nothing, and ensures that it is durable.
async fn is_made(volume: &FlashVolume<VolumeStore>, pages: Pages) -> Result<bool> {
    // Pages in the write cache are not yet in the mapping.
    volume.flush().await?;
    let (pairs, trims) = volume.device().ftl().differences(pages.left(), pages.right());
    Ok(pairs.is_empty() && trims.is_empty())
}

/// Fails if a page that a clone would change has content.
fn refuse_content(volume: &FlashVolume<VolumeStore>, pages: Pages) -> Result<()> {
    let mut rest = pages.left();
    while rest.pages > 0 {
        let extent = volume.extent(rest);
        if !extent.is_hole {
            let context = format!(
                "page {} holds something, which the clone would replace: `tantalum clone \
                 --replace` replaces it, and `tantalum trim` gives it up",
                rest.first
            );
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        rest = PageRange::new(PageNo(rest.first.0 + extent.pages), rest.pages - extent.pages);
    }
    Ok(())
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.to, self.from, self.count)
    }
}

/// The request to a server, as text.
impl fmt::Display for Remap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remap::Share(pages) => write!(f, "share {pages}"),
            Remap::Clone { pages, replace } => {
                write!(f, "{}", if *replace { "clone-over" } else { "clone" })?;
                pages.map_or(Ok(()), |pages| write!(f, " {pages}"))
            }
            Remap::Trim(range) => write!(f, "trim {} {}", range.first, range.pages),
        }
    }
}

impl FromStr for Remap {
    type Err = Error;

    fn from_str(line: &str) -> Result<Self> {
        let wrong = || {
            let context = format!(
                "a request is stat, mode [NAME], share A B LEN, clone [A B LEN], clone-over [A B LEN] or trim A LEN, not {line:?}"
            );
            Error::new(ErrorKind::InvalidInput, context)
        };
        let (name, numbers) = line.split_once(' ').unwrap_or((line, ""));
        let numbers: std::result::Result<Vec<u64>, _> =
            numbers.split_whitespace().map(str::parse).collect();
        let three = |numbers: &[u64]| match *numbers {
            [to, from, count] => Ok(Pages { to, from, count }),
            _ => Err(wrong()),
        };
        match (name, numbers.map_err(|_| wrong())?.as_slice()) {
            ("share", numbers) => Ok(Remap::Share(three(numbers)?)),
            ("clone" | "clone-over", numbers) => {
                let all = numbers.is_empty();
                let pages = if all { None } else { Some(three(numbers)?) };
                Ok(Remap::Clone { pages, replace: name == "clone-over" })
            }
            ("trim", &[first, pages]) => Ok(Remap::Trim(PageRange::new(PageNo(first), pages))),
            _ => Err(wrong()),
        }
    }
}

/// The answer of a server, as text.
impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pages, self.shared_slots)
    }
}

impl FromStr for Done {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let numbers: std::result::Result<Vec<u64>, _> =
            text.split_whitespace().map(str::parse).collect();
        match numbers.context("the server's answer")?.as_slice() {
            &[to, from, count, shared_slots] => {
                Ok(Done { pages: Pages { to, from, count }, shared_slots })
            }
            _ => bail!("the server answers \"done {text}\""),
        }
    }
}

/// Parses a position or a length in whole pages: a count of them, or bytes.
pub fn pages(name: &str, text: &str) -> anyhow::Result<u64> {
    match Size::parse(text).with_context(|| name.to_owned())? {
        Size::Count(pages) => Ok(pages),
        Size::Bytes(bytes) if bytes.is_multiple_of(PAGE_BYTES as u64) => {
            Ok(bytes / PAGE_BYTES as u64)
        }
        Size::Bytes(_) => bail!("{name}: {text} is not a multiple of {PAGE_BYTES} bytes"),
        Size::Share(_) => bail!("{name}: {text} is neither a count of pages nor a size in bytes"),
    }
}

/// Parses a length in the same way; zero is refused.
pub fn length(name: &str, text: &str) -> anyhow::Result<u64> {
    match pages(name, text)? {
        0 => bail!("{name}: {text} pages are not a range"),
        pages => Ok(pages),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_that_would_take_too_much_memory_is_refused() {
        check_length(CLONE_PAGES_MAX).unwrap();
        let refused = check_length(CLONE_PAGES_MAX + 1).unwrap_err();
        assert!(refused.kind() == ErrorKind::TooLarge && refused.to_string().contains("16777216"));
    }

    #[test]
    fn requests_and_answers_come_back_from_their_lines() {
        let pages = Pages { to: 100, from: 0, count: 7 };
        for remap in [
            Remap::Share(pages),
            Remap::Clone { pages: None, replace: false },
            Remap::Clone { pages: Some(pages), replace: false },
            Remap::Clone { pages: Some(pages), replace: true },
            Remap::Trim(PageRange::new(PageNo(3), 4)),
        ] {
            assert_eq!(remap.to_string().parse::<Remap>().unwrap(), remap);
        }
        for line in ["", "share", "share 1 2", "clone 1", "trim 1", "trim 1 x", "drop 1 2 3"] {
            assert!(line.parse::<Remap>().is_err(), "{line:?}");
        }
        let done = Done { pages, shared_slots: 9 };
        assert_eq!(done.to_string().parse::<Done>().unwrap(), done);
    }
}
