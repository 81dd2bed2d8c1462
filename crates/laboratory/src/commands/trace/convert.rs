//! `tantalum trace convert IN OUT`.
use super::out::{Out, format_of};
use crate::common::{TraceArgs, tell_written};
use std::path::PathBuf;
use tantalum_console::Verdict;
use tantalum_report::{config_hash, number};
use tantalum_runtime::supervision;
use tantalum_trace::{AnyFormat, OpenOptions, PageEvent, Rescue, writer};

/// Rewrite a trace in another format or compression, cut its bytes into pages, or join several traces
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// Output file: .zst and .gz compress, - is the standard output
    out: PathBuf,
    /// Format to write: page_csv, page_binary (16 bytes per event, lossless), plain_text (page numbers), csv
    /// (time,obj_id,obj_size,op), oracle_general (libCacheSim), lis (ARC), block_csv. By default the one that the name
    /// of the output ends in; page_csv for .csv and for no ending
    #[arg(long, value_name = "FORMAT")]
    to: Option<String>,
    /// Convert the complete part of a trace that was cut off, such as by a kill of its recorder; report the place, and
    /// exit with 1
    #[arg(long)]
    rescue: bool,
}

const AFTER_HELP: &str = "Examples:
  tantalum trace convert usr_0.csv.gz usr_0.bin.zst --to page_binary --page-size 8KiB
  tantalum trace convert sda.txt pages.csv --trace-format blkparse:action=C --volume 8:0
  tantalum trace convert --rescue killed.csv.zst whole.csv.zst
  tantalum trace convert 'concat:oltp.csv@50%+dss.csv@50%+oltp.csv@50%+dss.csv@50%' mixed.csv.zst";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let (to, text) = format_of(args.to.as_deref(), &args.out)?;
    let seed = args.trace.seed()?;
    let inputs = args.trace.files()?;
    let rescue = args.rescue.then(Rescue::default);
    let options = OpenOptions { rescue: rescue.clone(), ..args.trace.options() };
    let mut lost = Lost::default();
    let out = Out::begin(&args.out, &inputs)?;
    let written = match to {
        AnyFormat::Page(format) => {
            let events = args.trace.events_as(&options, "converting")?;
            let events = events.inspect(|event| lost.note(event.as_ref().ok()));
            writer::write_all(out.writer(format, text)?, events)
        }
        AnyFormat::Block(format) => {
            let reader = writer::open_blocks(&args.trace.trace, &options)?;
            let to = out.writer(format, text)?;
            writer::write_blocks(to, reader, &options, supervision::check_stop)
        }
    };
    let events = out.end(written)?;
    let mut parts = args.trace.config();
    parts.push(format!("to={text}"));
    let pages = (lost.pages > lost.ranges).then_some(lost.pages);
    tell_written(&args.out, events, pages, seed, &config_hash(parts));
    if let Some(told) = args.trace.left_out() {
        eprintln!("{}: {told}", args.out.display());
    }
    if let Some(told) = lost.told(to.name()) {
        eprintln!("{}: {told}", args.out.display());
    }
    Ok(verdict(rescue.as_ref()))
}

/// Prints the place where the trace was cut off, if it was.
fn verdict(rescue: Option<&Rescue>) -> Verdict {
    let told = rescue.map(Rescue::told).unwrap_or_default();
    told.iter().for_each(|place| eprintln!("tantalum: {place}; the trace before it was taken"));
    if told.is_empty() { Verdict::Good } else { Verdict::FoundWrong }
}

/// Counts of a converted trace, and of its properties that some formats cannot hold.
#[derive(Default)]
struct Lost {
    writes: u64,
    trims: u64,
    commits: u64,
    /// Reads, writes and trims, and their pages.
    ranges: u64,
    pages: u64,
}

impl Lost {
    fn note(&mut self, event: Option<&PageEvent>) {
        if let Some((_, pages)) = event.and_then(PageEvent::range) {
            self.ranges += 1;
            self.pages += u64::from(pages);
        }
        match event {
            Some(PageEvent::Write { .. }) => self.writes += 1,
            Some(PageEvent::Trim { .. }) => self.trims += 1,
            Some(PageEvent::Commit) => self.commits += 1,
            Some(PageEvent::Read { .. }) | None => {}
        }
    }

    /// The properties that a trace of `format` lacks, in words; `None` if it has all of them.
    fn told(&self, format: &str) -> Option<String> {
        let count = |count: u64, what: &str| {
            let plural = if count == 1 { "" } else { "s" };
            (count > 0).then(|| format!("{} {what}{plural}", number::thousands(count)))
        };
        let (forgets_writes, forgets_others) = match format {
            "lis" | "plain_text" | "oracle_general" => (true, true),
            "csv" => (false, true),
            _ => (false, false),
        };
        let (trims, commits) = (count(self.trims, "trim"), count(self.commits, "commit point"));
        let gone: Vec<String> =
            [trims, commits].into_iter().flatten().filter(|_| forgets_others).collect();
        let gone = (!gone.is_empty()).then(|| format!("without {}", gone.join(" and ")));
        let changed = count(self.writes, "write").filter(|_| forgets_writes);
        let changed = changed.map(|writes| format!("with {writes} that look like reads"));
        let told: Vec<String> = gone.into_iter().chain(changed).collect();
        (!told.is_empty()).then(|| format!("{}, as {format} has no place for it", told.join(", ")))
    }
}
