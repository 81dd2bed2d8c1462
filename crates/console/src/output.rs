//! Options that several commands accept, and all printing and writing of results.
use crate::interruption;
use anyhow::{Context, bail};
use std::io::Write;
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
        check_file("--facts", self.facts.as_deref())?;
        Ok(OutputFormat::parse(&self.format)?)
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
            write_whole("--facts", path, &report.facts_json()?)?;
            eprintln!("{}: written", path.display());
        }
        // This comes last: if the page cannot be written, the result of a long run is not lost.
        self.page.write(report, page)
    }
}

impl PageArgs {
    /// Refuses a file that could not be written. Call this before any work is done.
    pub fn check(&self) -> anyhow::Result<()> {
        check_file("--report", self.report.as_deref())
    }

    /// Writes `page` around `report` if it is requested.
    pub fn write(&self, report: &Report, page: &Page) -> anyhow::Result<()> {
        if let Some(path) = &self.report {
            let mut page = Page { command: command_line(), ..page.clone() };
            if interruption::is_marked(report) {
                page.paragraphs.extend(report.notes.first().cloned());
            }
            write_whole("--report", path, &page.render(report)?)?;
            eprintln!("{}: written", path.display());
        }
        Ok(())
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Refuses a file of the option `option` that could not be written.
fn check_file(option: &str, path: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    // The file is replaced as a whole, so a device or a link would be lost.
    let there = path.symlink_metadata();
    if there.is_ok_and(|there| !there.is_file()) || !folder_of(path).is_dir() {
        bail!(
            "{option}: {} cannot be written as a file: name a new or ordinary file in a folder that exists",
            path.display()
        );
    }
    Ok(())
}

/// Writes a file of the option `option` atomically: afterwards it is complete, or as before.
fn write_whole(option: &str, path: &Path, text: &str) -> anyhow::Result<()> {
    let context = || format!("{option}: {}", path.display());
    let mut file = tempfile::Builder::new();
    let mut file = file.prefix(".report-").tempfile_in(folder_of(path)).with_context(context)?;
    file.write_all(text.as_bytes()).with_context(context)?;
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(readable).with_context(context)?;
    file.persist(path).with_context(context)?;
    Ok(())
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

/// Removes an incomplete output, so that nobody mistakes it for a complete one.
pub fn discard_unfinished(path: &Path) {
    if path.is_file() {
        // If it cannot be removed, the error that follows says enough.
        let _ = std::fs::remove_file(path);
    }
}
