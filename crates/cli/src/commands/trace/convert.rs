//! `tantalum trace convert IN OUT`.
use crate::Verdict;
use crate::common::{TraceArgs, discard_unfinished, refuse_same_file, tell_written};
use std::path::PathBuf;
use tantalum_report::config_hash;
use tantalum_trace::{AnyFormat, writer};

/// Rewrite a trace in another format or compression, or its bytes as pages
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// Where to: .zst and .gz compress, - is the standard output
    out: PathBuf,
    /// Format to write
    #[arg(long, default_value = "page_csv", value_name = "FORMAT")]
    to: String,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let to = AnyFormat::by_name(&args.to)?;
    let seed = args.trace.seed()?;
    refuse_same_file(&args.trace.trace, &args.out)?;
    let events = match to {
        AnyFormat::Page(format) => {
            let events = args.trace.events("converting")?;
            writer::write_all(&args.out, format, events)
        }
        AnyFormat::Block(_) => {
            writer::convert(&args.trace.trace, &args.trace.options(), &args.out, to)
        }
    };
    let events = events.inspect_err(|_| discard_unfinished(&args.out))?;
    let mut parts = args.trace.config();
    parts.push(format!("to={}", args.to));
    tell_written(&args.out, events, seed, &config_hash(parts));
    Ok(Verdict::Good)
}
