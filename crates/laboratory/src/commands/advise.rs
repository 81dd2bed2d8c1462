//! `tantalum advise TRACE --flash DEVICE --size ...`: recommends a policy and an amount of memory.
use crate::commands::device_size::{device_for, one_device};
use crate::common::{CLIENTS_MAX, CacheSize, TraceArgs};
use anyhow::{Context, ensure};
use std::sync::Arc;
use tantalum_console::Verdict;
use tantalum_console::interruption;
use tantalum_console::output::{OutputArgs, threads};
use tantalum_models::DeviceSpec;
use tantalum_policy::PolicySpec;
use tantalum_replay::advise::{self, Advice, AdviseOptions, Prices, Rule};
use tantalum_replay::cache_replay::CacheTrace;
use tantalum_replay::work::Work;
use tantalum_report::{Page, Plot, Report, Table, Value, config_hash, schema};

/// Recommend a cache policy and a memory size for a trace on a device, with the evidence
///
/// Every policy is counted with every size. Then the best policies of each size, and LRU, are tried: the trace runs
/// through the engine's buffer pool over the simulated device. By default the smallest size is advised from which no
/// larger one saves 10 % of the time for each doubling of the memory; --worth, --slack and the two prices select other
/// rules.
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// The simulated device, such as ssd-a:capacity=1GiB (docs/devices/README.md). By default its capacity just holds
    /// the pages of the trace
    #[arg(long, value_name = "DEVICE")]
    flash: String,
    /// Memory sizes: pages (4096, 4k), bytes (64MiB) or a share of the distinct pages (10%)
    #[arg(
        long,
        default_value = "1%,2%,5%,10%,20%",
        value_name = "SIZE,...",
        allow_negative_numbers = true
    )]
    size: Vec<String>,
    /// Policies to compare; by default those that a buffer manager could run
    #[arg(long, value_name = "POLICY,...")]
    policy: Vec<String>,
    /// Number of policies to try on the device for each size, besides LRU
    #[arg(long, default_value_t = 3, value_name = "N")]
    tries: usize,
    /// Percentage of the time that each doubling of the memory must save; by default 10
    #[arg(
        long,
        value_name = "PERCENT",
        value_parser = percent,
        conflicts_with_all = ["slack", "price_memory"]
    )]
    worth: Option<f64>,
    /// Instead, advise the smallest size that needs at most this percentage more time than the fastest
    #[arg(long, value_name = "PERCENT", value_parser = percent, conflicts_with = "price_memory")]
    slack: Option<f64>,
    /// Price of a GiB of memory per month, in any currency: advise the size with the least price times time
    #[arg(long, value_name = "PRICE", requires = "price_flash")]
    price_memory: Option<f64>,
    /// Price of a GiB of the device per month
    #[arg(long, value_name = "PRICE", requires = "price_memory")]
    price_flash: Option<f64>,
    /// Number of clients in the tries, each with one outstanding request, up to 65536
    #[arg(long, default_value_t = 1, value_name = "N")]
    clients: u32,
    /// Seed of the device
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    device_seed: u64,
    /// Number of threads to use at most; by default one per core. The result does not depend on it
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<usize>,
    #[command(flatten)]
    output: OutputArgs,
}

const AFTER_HELP: &str = "--flash help and --policy help print all names. After Ctrl-C or \
SIGTERM advise prints its counts and tries so far, advises nothing, and exits with 130 or 143; a \
second signal ends it at once.

Examples:
  tantalum advise tpcc.csv.zst --flash ssd-a
  tantalum advise tpcc.csv.zst --flash nvme-plp:capacity=8GiB --price-memory 3.5 --price-flash 0.1
  tantalum advise 'zipf:pages=100k,requests=1m,writes=0.3' --flash durassd --size 1%,10% --report advice.html";

/// Default of `--worth`: the percentage of the time that a doubling of the memory must save.
const WORTH_PERCENT: f64 = 10.0;

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let format = args.output.format_beside(&args.trace.files()?)?;
    // Refuse what can be refused before a long trace is read.
    let policies = match &args.policy[..] {
        [] => PolicySpec::parse_list(&advise::POLICIES.join(" "))?,
        given => PolicySpec::parse_list(&given.join(" "))?,
    };
    let sizes = CacheSize::parse_list(&args.size.join(","))?;
    let clients = 1..=CLIENTS_MAX;
    ensure!(clients.contains(&args.clients), "--clients: accepted: 1 to {CLIENTS_MAX}");
    let device = one_device("--flash", &args.flash)?;
    rule(args, &device)?;
    args.trace.seed()?;
    args.trace.check_fits()?;

    interruption::watch()?;
    let events = args.trace.events("events read")?;
    let trace = Arc::new(CacheTrace::collect(&args.trace.name(), events)?);
    let cache_pages = args.trace.policy_pages(&sizes, trace.distinct_pages())?;
    let device = device_for(&args.flash, trace.pages_end)?;
    let options = AdviseOptions {
        rule: rule(args, &device)?,
        device,
        cache_pages,
        policies,
        tries: args.tries,
        clients: args.clients,
        seed: args.device_seed,
        threads: args.threads.unwrap_or_else(tantalum_replay::side_by_side::cores),
    };
    let work = Arc::new(Work::default());
    let progress = crate::work::follow(&work);
    let advice = advise::advise(&trace, &options, &work)?;
    drop(progress);

    let mut parts = args.trace.config();
    parts.push(format!("device={}", options.device.name()));
    parts.extend(options.policies.iter().map(|policy| format!("policy={}", policy.text())));
    parts.extend(options.cache_pages.iter().map(|pages| format!("cache_pages={pages}")));
    let rule = options.rule.text();
    parts.push(format!("tries={}, rule={rule}, clients={}", args.tries, args.clients));
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

/// Parses a percentage: `10` or `10%`.
fn percent(text: &str) -> anyhow::Result<f64> {
    let number = text.strip_suffix('%').unwrap_or(text);
    number.parse().ok().context("accepted: a number of percent, such as 10")
}

/// The requested rule, for `device`.
fn rule(args: &Args, device: &DeviceSpec) -> anyhow::Result<Rule> {
    if let Some((memory, flash)) = args.price_memory.zip(args.price_flash) {
        let rule = Rule::Price { prices: Prices { memory, flash }, device_pages: device.pages() };
        ensure!(
            rule.check().is_ok(),
            "--price-memory and --price-flash: accepted: 0 or more a GiB, not both 0"
        );
        return Ok(rule);
    }
    if let Some(slack) = args.slack {
        ensure!((0.0..=1000.0).contains(&slack), "--slack: accepted: 0 to 1000 percent");
        return Ok(Rule::Slack { slack: slack / 100.0 });
    }
    let worth = args.worth.unwrap_or(WORTH_PERCENT);
    ensure!((0.0..100.0).contains(&worth), "--worth: accepted: 0 to less than 100 percent");
    Ok(Rule::Doubling { least: worth / 100.0 })
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
            (
                "monthly_price",
                row.monthly_price.map_or(Value::Null, |price| Value::rounded(price, 1e9)),
            ),
        ]);
    }
    let mut report = Report::new(seed, config, table);
    if let Some(advised) = advice.advised() {
        report.fields.push(("advised_policy", advised.policy.as_str().into()));
        report.fields.push(("advised_pages", advised.cache_pages.into()));
    }
    report.fields.push(("rule", advice.rule.text().as_str().into()));
    for (key, ns) in [
        ("read_ns", advice.costs.read_ns),
        ("write_ns", advice.costs.write_ns),
        ("clustered_write_ns", advice.costs.clustered_write_ns),
    ] {
        report.fields.push((key, Value::rounded(ns, 1e1)));
    }
    report.shown = SHOWN.to_vec();
    if advice.rows.iter().any(|row| row.monthly_price.is_some()) {
        report.shown.insert(SHOWN.len() - 1, "monthly_price");
    }
    report.notes = advice.sentences();
    report
}

/// Columns of the table for people. The device is named in the advice, and the trace on the command line.
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
            against_size("Virtual time of the tries", &["seconds"]),
            against_size("Time estimated from counts and costs", &["estimated_seconds"]),
            against_size("Pages fetched", &["physical_reads"]),
            against_size("Pages written back", &["physical_writes"]),
        ],
        ..Page::default()
    }
}
