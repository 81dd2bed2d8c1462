//! Options that several commands take, and all that is printed or written besides.
use crate::interruption;
use anyhow::{Context, bail};
use std::io::Write;
use std::path::{Path, PathBuf};
use tantalum_report::{OutputFormat, Page, Report};

/// How to print.
#[derive(clap::Args, Debug)]
pub struct OutputArgs {
    /// table, csv or json (fields: docs/output.md)
    #[arg(long, default_value = "table")]
    format: String,
    /// Write seed, configuration and the other facts beside the rows as JSON besides: CSV has rows alone
    #[arg(long, value_name = "FILE.json")]
    facts: Option<PathBuf>,
    #[command(flatten)]
    page: PageArgs,
}

/// Where to write a page.
#[derive(clap::Args, Debug)]
pub struct PageArgs {
    /// Write the outcome as one HTML page with charts, which needs no network, besides
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

impl OutputArgs {
    /// The format; a refusal lists the names. To be asked for before any work is done.
    pub fn format(&self) -> anyhow::Result<OutputFormat> {
        self.page.check()?;
        check_file("--facts", self.facts.as_deref())?;
        Ok(OutputFormat::parse(&self.format)?)
    }

    /// Prints `report` on the standard output, and writes `page` around it where one is asked for.
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
        // Last: where the page cannot be written, the outcome of a long run is not lost with it.
        self.page.write(report, page)
    }
}

impl PageArgs {
    /// Refuses what could not be written. To be asked before any work is done.
    pub fn check(&self) -> anyhow::Result<()> {
        check_file("--report", self.report.as_deref())
    }

    /// Writes `page` around `report` where one is asked for.
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

/// Refuses a file, of the option `option`, that could not be written.
fn check_file(option: &str, path: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    // It is replaced as a whole: a device or a link would be lost.
    let there = path.symlink_metadata();
    if there.is_ok_and(|there| !there.is_file()) || !folder_of(path).is_dir() {
        bail!("{option}: {} cannot be a file in a folder that is there", path.display());
    }
    Ok(())
}

/// Writes a file, of the option `option`, that is there whole or, as before, not at all.
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

/// `word` as a shell takes it.
pub fn quoted(word: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@".contains(c);
    if !word.is_empty() && word.chars().all(is_safe) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The command as it could be typed again.
fn command_line() -> String {
    let words = std::env::args().skip(1).map(|word| quoted(&word));
    std::iter::once("tantalum".to_owned()).chain(words).collect::<Vec<String>>().join(" ")
}

/// Prints a line on the standard output. Unlike `println!` it does not panic where nobody reads.
pub fn print_line(line: &str) -> std::io::Result<()> {
    print_text(&format!("{line}\n"))
}

/// Prints `text` on the standard output. An error says where it could not be written, and keeps its kind.
fn print_text(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    printed.map_err(|error| {
        std::io::Error::new(error.kind(), format!("writing the standard output: {error}"))
    })
}

/// A number of threads.
pub fn threads(text: &str) -> anyhow::Result<usize> {
    match text.parse() {
        Ok(threads @ 1..) => Ok(threads),
        _ => bail!("accepted: 1 or more"),
    }
}

/// Removes an output that was not finished, so that nobody takes it for whole.
pub fn discard_unfinished(path: &Path) {
    if path.is_file() {
        // Where it cannot be removed, the error that is about to be told says enough.
        let _ = std::fs::remove_file(path);
    }
}
