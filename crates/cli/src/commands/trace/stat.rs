//! `tantalum trace stat TRACE`.
use crate::Verdict;
use crate::common::{OutputArgs, TraceArgs};
use crate::progress::Progress;
use anyhow::bail;
use tantalum_base::PageNo;
use tantalum_report::{Report, Table, Value, config_hash, schema};
use tantalum_trace::{AnyReader, BlockStat, PageStat, open};

/// Count what a trace holds
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// Count the calls and bytes of a block trace by kind of file, instead of its pages
    #[arg(long)]
    blocks: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let format = args.output.format()?;
    let seed = args.trace.seed()?;
    let table = if args.blocks { blocks(args)? } else { pages(args)? };
    let mut parts = args.trace.config();
    parts.push(format!("stat=blocks:{}", args.blocks));
    args.output.print(&Report::new(seed, config_hash(parts), table), format)?;
    Ok(Verdict::Good)
}

fn pages(args: &Args) -> anyhow::Result<Table> {
    let stat = PageStat::of(args.trace.events("events counted")?)?;
    let mut table = Table::new(schema::PAGE_STAT);
    table.push_named([
        ("trace", args.trace.name().into()),
        ("requests", stat.requests().into()),
        ("reads", stat.reads.into()),
        ("writes", stat.writes.into()),
        ("commits", stat.commits.into()),
        ("trims", stat.trims.into()),
        ("write_share", rounded(stat.write_share())),
        ("distinct_pages", stat.distinct_pages().into()),
        ("written_pages", stat.written_pages.into()),
        ("max_page", stat.max_page.map(|PageNo(page)| page).into()),
        ("reuse_share", rounded(stat.reuse_share())),
        ("reuse_distance_p50", stat.reuse_distance_at(0.5).into()),
        ("reuse_distance_p90", stat.reuse_distance_at(0.9).into()),
    ]);
    Ok(table)
}

fn blocks(args: &Args) -> anyhow::Result<Table> {
    let path = &args.trace.trace;
    let AnyReader::Block(mut reader) = open(path, &args.trace.options())? else {
        bail!("{} has pages; --blocks counts the calls of a block trace", path.display());
    };
    let progress = Progress::counter("events counted");
    let mut stat = BlockStat::default();
    for event in progress.count(&mut reader) {
        stat.add(event?);
    }
    let mut table = Table::new(schema::BLOCK_STAT);
    for (kind, op, count) in stat.rows() {
        table.push_named([
            ("trace", args.trace.name().into()),
            ("file_kind", reader.names()[usize::from(kind.0)].as_str().into()),
            ("op", char::from(op.letter()).to_string().into()),
            ("calls", count.calls.into()),
            ("bytes", count.bytes.into()),
        ]);
    }
    Ok(table)
}

/// Six decimals: as many as a share means, and few enough to read.
fn rounded(share: f64) -> Value {
    Value::Real((share * 1e6).round() / 1e6)
}
