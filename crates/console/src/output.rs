//! Options that several commands accept, and all printing and writing of results.
use crate::interruption;
use crate::whole_file::{WholeFile, folder_of, is_same_file, no_folder};
use anyhow::{Context, bail};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use tantalum_base::plain;
use tantalum_report::{OutputFormat, Page, Report};

/// The format of the output.
#[derive(clap::Args, Debug)]
pub struct OutputArgs {
    /// table, csv or json (fields: docs/output.md)
    #[arg(long, default_value = "table")]
    format: String,
    /// Also write seed, configuration and other facts to this JSON file: CSV output has only the rows
    #[arg(long, value_name = "FILE.json")]
    facts: Option<PathBuf>,
    #[command(flatten)]
    page: PageArgs,
}

/// The HTML page of the result.
#[derive(clap::Args, Debug)]
pub struct PageArgs {
    /// Also write the result as one HTML page with charts, which needs no network
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

impl OutputArgs {
    /// The format; an unknown one is refused with a list. Call this before any work is done.
    pub fn format(&self) -> anyhow::Result<OutputFormat> {
        self.page.check()?;
        FACTS.check(self.facts.as_deref())?;
        if let Some((facts, page)) = self.facts.as_ref().zip(self.page.report.as_ref())
            && is_same_file(facts, page)
        {
            bail!(
                "--facts and --report: both would be written to {}: name two files",
                page.display()
            );
        }
        Ok(OutputFormat::parse(&self.format)?)
    }

    /// As [`format`](Self::format), for a command that reads the files `inputs`, which are not replaced.
    pub fn format_beside(&self, inputs: &[PathBuf]) -> anyhow::Result<OutputFormat> {
        let outputs = [(FACTS, &self.facts), (PAGE, &self.page.report)];
        for (kind, path) in outputs {
            let Some(path) = path else { continue };
            if inputs.iter().any(|input| is_same_file(input, path)) {
                let option = kind.option;
                bail!("{option}: {} is the input: name another file", path.display());
            }
        }
        self.format()
    }

    /// Prints `report` on the standard output, and writes `page` around it if it is requested.
    pub fn print_page(
        &self,
        report: &Report,
        format: OutputFormat,
        page: &Page,
    ) -> anyhow::Result<()> {
        let text = report.render(format)?;
        print_text(&text)?;
        if format == OutputFormat::Csv {
            eprintln!("tantalum: {}", report.facts());
        }
        if let Some(path) = &self.facts {
            FACTS.write(path, &report.facts_json()?)?;
        }
        // This comes last: if the page cannot be written, the result of a long run is not lost.
        self.page.write(report, page)
    }
}

impl PageArgs {
    /// Refuses a file that could not be written. Call this before any work is done.
    pub fn check(&self) -> anyhow::Result<()> {
        PAGE.check(self.report.as_deref())
    }

    /// Writes `page` around `report` if it is requested.
    pub fn write(&self, report: &Report, page: &Page) -> anyhow::Result<()> {
        if let Some(path) = &self.report {
            let mut page = Page { command: command_line(), ..page.clone() };
            if interruption::is_marked(report) {
                page.paragraphs.extend(report.notes.first().cloned());
            }
            PAGE.write(path, &page.render(report)?)?;
        }
        Ok(())
    }
}

/// A kind of file that a command writes besides its output.
#[derive(Clone, Copy)]
struct Kind {
    option: &'static str,
    /// The first bytes of such a file, in upper or lower case. An existing file that begins otherwise is not replaced.
    beginning: &'static str,
    name: &'static str,
}

const FACTS: Kind = Kind { option: "--facts", beginning: "{", name: "a JSON file" };
const PAGE: Kind = Kind { option: "--report", beginning: "<!doctype html>", name: "an HTML page" };

impl Kind {
    /// Refuses a file that could not be written, and one that holds other data, which would be lost.
    fn check(self, path: Option<&Path>) -> anyhow::Result<()> {
        let Kind { option, name, .. } = self;
        let Some(path) = path else { return Ok(()) };
        if let Some(why) = no_folder(path) {
            bail!("{option}: {} cannot be written: {why}", path.display());
        }
        // The file is replaced as a whole, so a device or a link would be lost.
        let there = path.symlink_metadata();
        if there.as_ref().is_ok_and(|there| !there.is_file()) || !folder_of(path).is_dir() {
            bail!(
                "{option}: {} cannot be written as a file: name a new or ordinary file in a folder that exists",
                path.display()
            );
        }
        if there.is_ok() && !self.is_replaced(path) {
            bail!(
                "{option}: {} exists and is not {name}: name a new file, or remove this one",
                path.display()
            );
        }
        Ok(())
    }

    /// Whether the file at `path` is empty, or of this kind.
    fn is_replaced(self, path: &Path) -> bool {
        let mut head = Vec::new();
        let length = self.beginning.len();
        let opened = std::fs::File::open(path);
        let read = opened.and_then(|file| file.take(length as u64).read_to_end(&mut head));
        read.is_ok() && (head.is_empty() || head.eq_ignore_ascii_case(self.beginning.as_bytes()))
    }

    /// Writes `text` to the file at `path`. Afterwards it is complete, or as before.
    fn write(self, path: &Path, text: &str) -> anyhow::Result<()> {
        let context = || format!("{}: {}", self.option, path.display());
        let file = WholeFile::begin(path).with_context(context)?;
        let mut sink = file.sink().with_context(context)?;
        sink.write_all(text.as_bytes()).with_context(context)?;
        file.complete().with_context(context)?;
        eprintln!("{}: written", path.display());
        Ok(())
    }
}

/// `word`, quoted for a shell if necessary.
pub fn quoted(word: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@".contains(c);
    if !word.is_empty() && word.chars().all(is_safe) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The command line, in a form that can be typed again.
fn command_line() -> String {
    let words = std::env::args().skip(1).map(|word| quoted(&word));
    std::iter::once("tantalum".to_owned()).chain(words).collect::<Vec<String>>().join(" ")
}

/// Prints a line on the standard output. Unlike `println!` it does not panic if the reader has gone.
pub fn print_line(line: &str) -> std::io::Result<()> {
    print_text(&format!("{line}\n"))
}

/// Prints `text` on the standard output, as [`plain`] text. An error keeps its kind, and names the standard output.
pub fn print_text(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let printed = out.write_all(plain(text).as_bytes()).and_then(|()| out.flush());
    printed.map_err(|error| {
        std::io::Error::new(error.kind(), format!("writing the standard output: {error}"))
    })
}

/// Parses a number of threads.
pub fn threads(text: &str) -> anyhow::Result<usize> {
    match text.parse() {
        Ok(threads @ 1..) => Ok(threads),
        _ => bail!("accepted: 1 or more"),
    }
}

/// Removes an incomplete output, so that it is not mistaken for a complete one.
pub fn discard_unfinished(path: &Path) {
    if path.is_file() {
        // If it cannot be removed, the error that is reported next is enough.
        let _ = std::fs::remove_file(path);
    }
}
