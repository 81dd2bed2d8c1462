//! `tantalum trace generate SPEC OUT`.
use crate::Verdict;
use crate::common::{discard_unfinished, tell_written};
use crate::progress::Progress;
use std::path::PathBuf;
use tantalum_report::config_hash;
use tantalum_trace::{Generator, writer};

/// Make a trace up, such as zipf:pages=1m,requests=10m,theta=1.0,writes=0.3,commit=8,seed=1
#[derive(clap::Args, Debug)]
pub struct Args {
    /// uniform, zipf, self_similar, scan, fileserver, varmail, webproxy, tpcc or link_bench, with
    /// parameters (docs/traces.md)
    spec: String,
    /// Where to: .zst and .gz compress, - is the standard output
    out: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let generator = Generator::parse(&args.spec)?;
    let seed = generator.seed();
    let progress = Progress::counter("events generated");
    let events = progress.count(generator).map(Ok);
    let events =
        writer::write_pages(&args.out, events).inspect_err(|_| discard_unfinished(&args.out))?;
    let config = config_hash(["generate".to_owned(), format!("spec={}", args.spec)]);
    tell_written(&args.out, events, seed, &config);
    Ok(Verdict::Good)
}
