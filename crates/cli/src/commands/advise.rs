//! `tantalum advise TRACE --flash DEVICE --size ...`: which policy and how much memory.
use crate::Verdict;
use crate::commands::device_size::device_for;
use crate::common::{CLIENTS_MAX, CacheSize, OutputArgs, TraceArgs, threads};
use crate::interruption;
use crate::progress::Progress;
use anyhow::ensure;
use std::sync::Arc;
use tantalum_models::DeviceSpec;
use tantalum_policy::PolicySpec;
use tantalum_replay::advise::{self, Advice, AdviseOptions};
use tantalum_replay::cache_replay::CacheTrace;
use tantalum_replay::work::Work;
use tantalum_report::{Page, Plot, Report, Table, Value, config_hash, schema};

/// Say which policy and how many pages of memory suit a trace on a device, with the evidence
///
/// Every policy is counted with every size; the best of each size, and LRU, are then tried: the trace
/// goes through the engine's buffer pool over the simulated device. Advised is the smallest size whose
/// fastest policy is nearly as fast as that of any.
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// The simulated device, such as ssd-a:capacity=1GiB (docs/devices/README.md). Without a capacity it
    /// is just large enough for the trace's pages
    #[arg(long, value_name = "DEVICE")]
    flash: String,
    /// Sizes: pages (4096, 4k), bytes (64MiB) or a share of the distinct pages (10%)
    #[arg(long, default_value = "1%,2%,5%,10%,20%", value_name = "SIZE,...")]
    size: Vec<String>,
    /// Policies to look at; those that a buffer manager could run where nothing is said
    #[arg(long, value_name = "POLICY,...")]
    policy: Vec<String>,
    /// Policies of each size that are tried on the device, besides LRU
    #[arg(long, default_value_t = 3, value_name = "N")]
    tries: usize,
    /// How much longer than the fastest the advised one may take
    #[arg(long, default_value_t = 5.0, value_name = "PERCENT")]
    slack: f64,
    /// Clients of the tries, each with one request outstanding, up to 65536
    #[arg(long, default_value_t = 1, value_name = "N")]
    clients: u32,
    /// Seed of the device
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    device_seed: u64,
    /// Threads to use at most, all cores without it; the outcome does not depend on it
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<usize>,
    #[command(flatten)]
    output: OutputArgs,
}

const AFTER_HELP: &str = "An unknown device or policy lists those there are. After Ctrl-C or SIGTERM it prints \
what was counted and tried by then, advises nothing, and exits with 130 or 143; a second one ends it at once.

Examples:
  tantalum advise tpcc.csv.zst --flash ssd-a
  tantalum advise 'zipf:pages=100k,requests=1m,writes=0.3' --flash durassd --size 1%,10% --report advice.html";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let format = args.output.format()?;
    // What can be refused is refused before a long trace is read.
    let policies = match &args.policy[..] {
        [] => PolicySpec::parse_list(&advise::POLICIES.join(" "))?,
        given => PolicySpec::parse_list(&given.join(" "))?,
    };
    let sizes = CacheSize::parse_list(&args.size.join(","))?;
    ensure!((0.0..=1000.0).contains(&args.slack), "--slack: accepted: 0 to 1000 percent");
    let clients = 1..=CLIENTS_MAX;
    ensure!(clients.contains(&args.clients), "--clients: accepted: 1 to {CLIENTS_MAX}");
    DeviceSpec::parse(&args.flash)?;
    args.trace.seed()?;

    interruption::watch()?;
    let events = args.trace.events("events read")?;
    let trace = Arc::new(CacheTrace::collect(&args.trace.name(), events)?);
    let cache_pages = args.trace.cache_pages(&sizes, trace.distinct_pages())?;
    let options = AdviseOptions {
        device: device_for(&args.flash, trace.pages_end)?,
        cache_pages,
        policies,
        tries: args.tries,
        slack: args.slack / 100.0,
        clients: args.clients,
        seed: args.device_seed,
        threads: args.threads.unwrap_or_else(tantalum_replay::side_by_side::cores),
    };
    let work = Arc::new(Work::default());
    let progress = Progress::of(&work);
    let advice = advise::advise(&trace, &options, &work)?;
    drop(progress);

    let mut parts = args.trace.config();
    parts.push(format!("device={}", options.device.name()));
    parts.extend(options.policies.iter().map(|policy| format!("policy={}", policy.text())));
    parts.extend(options.cache_pages.iter().map(|pages| format!("cache_pages={pages}")));
    parts.push(format!("tries={}, slack={}, clients={}", args.tries, args.slack, args.clients));
    let asked: Vec<&str> = sizes.iter().map(CacheSize::text).collect();
    let config = config_hash(parts);
    let mut report = report(args.device_seed, config, &trace.name, (&options, &asked), &advice);
    args.trace.tell(&mut report);
    let done = work.done();
    let what = format!("runs of {}", done.doing);
    if advice.advised().is_none() {
        interruption::mark(&mut report, done.runs, Some(done.runs_in_all), &what);
    }
    args.output.print_page(&report, format, &page(&trace.name, &options, &advice))?;
    Ok(interruption::verdict(&report))
}

fn report(
    seed: u64,
    config: String,
    trace: &str,
    (options, asked): (&AdviseOptions, &[&str]),
    advice: &Advice,
) -> Report {
    let mut table = Table::new(schema::ADVISE);
    for row in &advice.rows {
        let verdict = match row {
            _ if row.is_advised => "advised",
            _ if row.is_fastest => "fastest",
            _ => "",
        };
        let size = options.cache_pages.iter().position(|pages| *pages == row.cache_pages);
        table.push_named([
            ("trace", trace.into()),
            ("device", options.device.name().into()),
            ("policy", row.policy.as_str().into()),
            ("cache_pages", row.cache_pages.into()),
            ("requests", row.requests.into()),
            ("physical_reads", row.physical_reads.into()),
            ("physical_writes", row.physical_writes.into()),
            ("estimated_seconds", Value::rounded(row.estimated_seconds, 1e6)),
            ("seconds", row.seconds.map_or(Value::Null, |seconds| Value::rounded(seconds, 1e9))),
            ("verdict", if verdict.is_empty() { Value::Null } else { verdict.into() }),
            ("cache_size", size.map(|at| asked[at]).into()),
        ]);
    }
    let mut report = Report::new(seed, config, table);
    if let Some(advised) = advice.advised() {
        report.fields.push(("advised_policy", advised.policy.as_str().into()));
        report.fields.push(("advised_pages", advised.cache_pages.into()));
    }
    for (key, ns) in [
        ("read_ns", advice.costs.read_ns),
        ("write_ns", advice.costs.write_ns),
        ("clustered_write_ns", advice.costs.clustered_write_ns),
    ] {
        report.fields.push((key, Value::rounded(ns, 1e1)));
    }
    report.shown = SHOWN.to_vec();
    report.notes = advice.sentences();
    report
}

/// Columns that people are shown as text: the device is in the advice, the trace was named.
const SHOWN: [&str; 7] = [
    "policy",
    "cache_pages",
    "physical_reads",
    "physical_writes",
    "estimated_seconds",
    "seconds",
    "verdict",
];

fn page(trace: &str, options: &AdviseOptions, advice: &Advice) -> Page {
    let against_size = |title, y| Plot::new(title, "cache_pages", y, &["policy"]);
    let mut sentences = advice.sentences();
    let verdict = if sentences.is_empty() { String::new() } else { sentences.remove(0) };
    Page {
        title: format!("{trace} on {}", options.device.name()),
        verdict,
        paragraphs: sentences,
        plots: vec![
            against_size("Virtual time of what was tried", &["seconds"]),
            against_size("Time estimated from counts and costs", &["estimated_seconds"]),
            against_size("Pages fetched", &["physical_reads"]),
            against_size("Pages written back", &["physical_writes"]),
        ],
        ..Page::default()
    }
}
