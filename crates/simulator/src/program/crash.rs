//! `tantalum crash`: power cuts at every operation, and every promise checked after each.
use anyhow::bail;
use std::collections::BTreeSet;
use tantalum_base::Spec;
use tantalum_base::size::Size;
use tantalum_console::Verdict;
use tantalum_console::interruption;
use tantalum_console::output::{OutputArgs, print_line, threads};
use tantalum_console::progress::Progress;
use tantalum_replay::side_by_side::cores;
use tantalum_report::{
    OutputFormat, Page, Plot, Report, Section, Table, Tone, Value, config_hash, number, schema,
};
use tantalum_runtime::supervision;
use tantalum_simulator::rig::LARGE_PAGES;
use tantalum_simulator::{
    Campaign, CampaignOptions, DEVICES, Exhaustive, Found, Outcome, Replay, Workload, campaign,
};

/// Smaller scenarios that are tried to shrink one that breaks a promise.
const SHRINK_TRIES: u32 = 4000;
/// Violations of one device on one medium after which the next is taken.
const VIOLATIONS_MAX: usize = 3;

/// Cut the power of simulated devices, in their recoveries too, and check every promise
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Devices under test, such as ssd:cache=durable,wal
    #[arg(long, value_name = "DEVICE,...")]
    device: Vec<String>,
    /// nand, nand-bytes or file
    #[arg(long, value_name = "MEDIA,...", value_delimiter = ',', default_values_t = ["nand".to_owned(), "file".to_owned()])]
    media: Vec<String>,
    /// What clients do between two cuts
    #[arg(long, value_name = "WORKLOAD", default_value = Workload::SYNTAX)]
    workload: String,
    /// Verified cuts of each device on each medium; a run ends with the scenario that reaches them
    #[arg(long, value_name = "N", value_parser = count, default_value = "1000", conflicts_with = "exhaustive")]
    cuts: u64,
    /// Every operation of one load and of its recoveries: cut with every fate, or one I/O error each
    #[arg(
        long,
        value_name = "BY",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "cuts"
    )]
    exhaustive: Option<By>,
    /// With --exhaustive: fill the device before, and write it over until it is cleaned
    #[arg(long, requires = "exhaustive")]
    age: bool,
    /// Seed of everything that is left to chance
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run one scenario, as a violation printed it
    #[arg(
        long,
        value_name = "TEXT",
        conflicts_with_all = ["device", "media", "workload", "cuts", "exhaustive", "age", "seed", "threads"]
    )]
    replay: Option<String>,
    /// Threads to use at most, all cores without it; the outcome does not depend on it
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<usize>,
    /// Say how many cuts a minute were made; reruns then differ in that
    #[arg(long)]
    timing: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// What befalls every operation of a load.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum By {
    /// Power cuts
    Cuts,
    /// I/O errors that pass
    Errors,
}

impl By {
    fn exhaustive(self) -> Exhaustive {
        match self {
            By::Cuts => Exhaustive::Cuts,
            By::Errors => Exhaustive::Errors,
        }
    }
}

const AFTER_HELP: &str = "Without --device, every device of the crash lab but those of the papers is taken; an unknown name \
lists all. docs/crash-lab.md says how to read a violation. Exit status 1 where a promise was broken. After \
Ctrl-C or SIGTERM it prints what was found by then, and exits with 130 or 143; a second one ends it at once.

Columns:
  lives         devices formatted and used until their last cut
  cuts          power cuts, each with the recovery after it and a check of every page
  in recovery   power cuts that fell into a recovery; not in cuts
  commands      commands that clients gave
  cleaned       zones that cleaning gave free
  checkpoints   checkpoints of the mapping that were written
  spilled       pages of open transactions that were moved out of a TxCache too small for them
  decayed       slots that were damaged or lost on the medium
  refused       openings that were refused, as damage hit what recovery needs; no violation
  I/O errors    operations that failed as I/O errors passed over flash, home or journal
  rescued       homes of a cache that were checked after its flash was lost
  violations    broken promises
  undecided     checks given up, as no order of the commands was found and not all were tried
  cuts/min      with --timing: cuts a minute, on the real clock

Examples:
  tantalum crash --cuts 100
  tantalum crash --device ssd:cache=durable --cuts 100k
  tantalum crash --device txcache --media nand --exhaustive --age
  tantalum crash --device tiered:destage=ordered --exhaustive=errors
  tantalum crash --device durassd --media nand
  tantalum crash --replay 'ssd:cache=through; file; pages=24; seed=7; w3 c4.5 -> tear@2; -> vanish@1'";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let format = args.output.format()?;
    // What panics in a device is a violation, which says what the panic said.
    std::panic::set_hook(Box::new(|_| {}));
    interruption::watch()?;
    let report = match &args.replay {
        Some(text) => replay(text)?,
        None => campaigns(args)?,
    };
    let _ = std::panic::take_hook();
    let violations = report.lists.iter().map(|(_, table)| table.rows().len()).sum::<usize>();
    args.output.print_page(&report, format, &page(&report))?;
    if format != OutputFormat::Json {
        tell(&report, format)?;
    }
    Ok(if violations == 0 { interruption::verdict(&report) } else { Verdict::FoundWrong })
}

/// Violations in words: below a table, and beside CSV, which has no place for them.
fn tell(report: &Report, format: OutputFormat) -> anyhow::Result<()> {
    for (_, table) in &report.lists {
        for row in table.rows() {
            let text = |key: &str| {
                let at = table.columns().iter().position(|column| column.key == key);
                at.map_or(String::new(), |at| row[at].plain())
            };
            let replay = text("replay").replace('\'', "'\\''");
            let violation = text("violation");
            let told =
                format!("violation: {violation}\n  replay: tantalum crash --replay '{replay}'");
            tell_line(&told, format)?;
        }
    }
    let mut told = sentence(&report.table);
    if interruption::is_marked(report) {
        told.push_str("; interrupted before all were made");
    }
    tell_line(&told, format)
}

fn tell_line(line: &str, format: OutputFormat) -> anyhow::Result<()> {
    if format == OutputFormat::Table {
        print_line(line)?;
    } else {
        eprintln!("{line}");
    }
    Ok(())
}

/// The page around the rows: what came of the cuts, what the loads reached, and what broke.
fn page(report: &Report) -> Page {
    let by_device = |title, y| Plot { panels: &["media"], ..Plot::new(title, "device", y, &[]) };
    let plots = [
        by_device("Violations", &["violations"]),
        by_device("Cuts, with a check of every page", &["cuts", "cuts_in_recovery"]),
        by_device("What the loads reached", &["zones_cleaned", "checkpoints"]),
        by_device(
            "Damage that devices met",
            &["slots_decayed", "openings_refused", "io_errors", "homes_rescued"],
        ),
    ];
    let rows = Section {
        drawn: plots.iter().flat_map(|plot| plot.draw(&report.table)).collect(),
        ..Section::new("Devices", report.table.clone())
    };
    let broken = report.lists.iter().filter(|(_, table)| !table.rows().is_empty());
    let broken = broken.map(|(_, table)| Section {
        paragraphs: vec!["tantalum crash --replay TEXT runs one of these again.".to_owned()],
        ..Section::new("Broken promises", table.clone())
    });
    let sections: Vec<Section> = broken.chain([rows]).collect();
    let is_good = sections.len() == 1;
    Page {
        title: "Power cuts".to_owned(),
        verdict: sentence(&report.table)
            .replace("; the commands above replay them", "")
            .replacen("every", "Every", 1)
            .replacen("promises", "Promises", 1),
        tone: if is_good { Tone::Good } else { Tone::Bad },
        sections,
        ..Page::default()
    }
}

/// What the rows come to, in words.
fn sentence(rows: &Table) -> String {
    let column = |key: &str| {
        let at = rows.columns().iter().position(|column| column.key == key).expect("one of CRASH");
        rows.rows().iter().map(move |row| row[at].plain())
    };
    let sum = |key: &str| column(key).filter_map(|number| number.parse::<u64>().ok()).sum::<u64>();
    let distinct = |key: &str| column(key).collect::<BTreeSet<_>>();
    let times = |count: u64, what: &str| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{} {what}{plural}", number::thousands(count))
    };
    let recoveries = number::thousands(sum("cuts_in_recovery"));
    let cuts = format!("{} and {recoveries} in recoveries", times(sum("cuts"), "cut"));
    let on = distinct("media").into_iter().collect::<Vec<_>>().join(" and ");
    let devices = times(distinct("device").len() as u64, "device");
    let mut told = match sum("violations") {
        0 => format!("every promise held in {cuts}, of {devices} on {on}"),
        violations => {
            let broken = column("device").zip(column("media")).zip(column("violations"));
            let broken = broken.filter(|(_, violations)| violations != "0");
            let broken = broken.map(|((device, media), _)| format!("{device} on {media}"));
            let broken = broken.collect::<Vec<_>>().join(", ");
            let found = times(violations, "violation");
            format!(
                "promises were broken: {found} in {cuts}, by {broken}; the commands above replay them"
            )
        }
    };
    let undecided = sum("undecided");
    if undecided > 0 {
        told.push_str(&format!("; {} undecided", times(undecided, "check")));
    }
    told
}

fn campaigns(args: &Args) -> anyhow::Result<Report> {
    let workload = Workload::parse(&args.workload)?;
    let devices: Vec<String> = if args.device.is_empty() {
        DEVICES.iter().map(|device| (*device).to_owned()).collect()
    } else {
        let given = Spec::list(&args.device.join(" "));
        given.iter().map(|device| tantalum_simulator::spelled(device)).collect()
    };
    if args.cuts == 0 {
        bail!("--cuts: 0 cuts find nothing; accepted: 1 or more");
    }
    let mut runs = Vec::new();
    for device in &devices {
        for media in &args.media {
            if args.device.is_empty() && !tantalum_simulator::carries(media, device) {
                continue;
            }
            // What can be refused is refused before anything runs.
            tantalum_simulator::check(device, media)?;
            runs.push(CampaignOptions {
                device: device.clone(),
                media: media.clone(),
                workload: workload.clone(),
                cuts: args.cuts,
                exhaustive: args.exhaustive.map(By::exhaustive),
                aged: args.age,
                seed: args.seed,
                violations_max: VIOLATIONS_MAX,
                shrink_tries: SHRINK_TRIES,
                threads: args.threads.unwrap_or_else(cores),
            });
        }
    }
    let progress = Progress::steps("cuts, in hundredths of all");
    let (mut rows, mut violations) = (Table::new(schema::CRASH), violation_table());
    let (mut cuts, mut seconds, mut whole) = (0, 0.0, 0);
    for (number, options) in runs.iter().enumerate() {
        let (done, took) = timed(|| {
            campaign(options, &mut |done, of| {
                let part = (done * 100 / of.max(1)).min(100) as usize;
                progress.step(number * 100 + part, runs.len() * 100);
            })
        });
        let done = done?;
        let is_stopped = supervision::is_stopped();
        if is_stopped && done.lives == 0 {
            break;
        }
        whole += u64::from(!is_stopped);
        cuts += done.cuts;
        seconds += took;
        let per_minute = args.timing.then(|| (done.cuts as f64 * 60.0 / took).round());
        push(&mut rows, &done, per_minute);
        done.found.iter().for_each(|found| push_found(&mut violations, found));
        if is_stopped {
            break;
        }
    }
    drop(progress);
    eprintln!(
        "{} cuts in {seconds:.1} s, {} a minute",
        number::thousands(cuts),
        number::thousands((cuts as f64 * 60.0 / seconds.max(1e-9)) as u64),
    );
    let exhaustive = match args.exhaustive {
        None => "false",
        Some(By::Cuts) => "true",
        Some(By::Errors) => "errors",
    };
    let mut parts = vec![
        format!("workload={}", workload.text()),
        format!("cuts={}", if args.exhaustive.is_some() { 0 } else { args.cuts }),
        format!("exhaustive={exhaustive}"),
        format!("age={}", args.age),
        format!("timing={}", args.timing),
    ];
    parts.extend(runs.iter().map(|run| format!("{} on {}", run.device, run.media)));
    let mut report = Report::new(args.seed, config_hash(parts), rows);
    report.fields.push(("cuts", cuts.into()));
    report.lists.push(("violations", violations));
    let what = "devices, each on one medium,";
    interruption::mark(&mut report, whole, Some(runs.len() as u64), what);
    Ok(report)
}

/// One scenario.
fn replay(text: &str) -> anyhow::Result<Report> {
    let replay = Replay::parse(text)?;
    let lives = tantalum_simulator::find(&replay.device, &replay.media)?;
    // What the device cannot be asked for is no violation.
    replay.life.check(&lives.limits(replay.life.pages)?)?;
    let outcome = lives.live(&replay.life);
    let Outcome { cuts, cuts_in_recovery, commands, coverage, undecided, decayed, refused, .. } =
        &outcome;
    let found = outcome.violations.iter().map(|violation| Found {
        seed: replay.life.seed,
        violation: violation.0.clone(),
        replay: replay.clone(),
        commands_before: replay.life.commands(),
        after_cuts: *cuts,
    });
    let done = Campaign {
        device: lives.device(),
        media: lives.media().to_owned(),
        lives: 1,
        lives_large: u64::from(replay.life.pages == LARGE_PAGES),
        cuts: *cuts,
        cuts_in_recovery: *cuts_in_recovery,
        commands: *commands,
        coverage: *coverage,
        undecided: *undecided,
        decayed: *decayed,
        refused: *refused,
        io_errors: outcome.io_errors,
        rescued: outcome.rescued,
        rescued_newer: outcome.rescued_newer,
        found: found.collect(),
    };
    let (mut rows, mut violations) = (Table::new(schema::CRASH), violation_table());
    push(&mut rows, &done, None);
    done.found.iter().for_each(|found| push_found(&mut violations, found));
    let config = config_hash([format!("replay={}", replay.text())]);
    let mut report = Report::new(replay.life.seed, config, rows);
    report.fields.push(("cuts", done.cuts.into()));
    report.lists.push(("violations", violations));
    Ok(report)
}

fn push(table: &mut Table, done: &Campaign, cuts_per_minute: Option<f64>) {
    table.push_named([
        ("device", done.device.as_str().into()),
        ("media", done.media.as_str().into()),
        ("lives", done.lives.into()),
        ("cuts", done.cuts.into()),
        ("cuts_in_recovery", done.cuts_in_recovery.into()),
        ("commands", done.commands.into()),
        ("zones_cleaned", done.coverage.cleaned.into()),
        ("checkpoints", done.coverage.checkpoints.into()),
        ("pages_spilled", done.coverage.spilled.into()),
        ("slots_decayed", done.decayed.into()),
        ("openings_refused", done.refused.into()),
        ("io_errors", done.io_errors.into()),
        ("homes_rescued", done.rescued.into()),
        ("violations", (done.found.len() as u64).into()),
        ("undecided", done.undecided.into()),
        ("cuts_per_minute", cuts_per_minute.map_or(Value::Null, |rate| (rate as u64).into())),
    ]);
}

fn violation_table() -> Table {
    Table::new(schema::CRASH_VIOLATIONS)
}

fn push_found(table: &mut Table, found: &Found) {
    table.push_named([
        ("device", found.replay.device.as_str().into()),
        ("media", found.replay.media.as_str().into()),
        ("seed", found.seed.into()),
        ("violation", found.violation.as_str().into()),
        ("replay", found.replay.text().into()),
        ("commands", (found.replay.life.commands() as u64).into()),
        ("commands_before", (found.commands_before as u64).into()),
        ("after_cuts", found.after_cuts.into()),
    ]);
}

/// A number, as `1000` or `100k`.
fn count(text: &str) -> Result<u64, String> {
    match Size::parse(text) {
        Ok(Size::Count(count)) => Ok(count),
        Ok(_) => Err("a number is wanted, such as 1000 or 100k".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// What `work` gives, and the seconds it took.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    #[expect(clippy::disallowed_methods, reason = "how fast the lab is, on the real clock")]
    let start = std::time::Instant::now();
    let done = work();
    (done, start.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use tantalum_base::fault_points::plant;
    use tantalum_ftl::fault_points::Fault;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn a_broken_promise_is_told_with_its_replay() {
        let text = "ssd:cache=through; nand; pages=24; seed=7; w3 s4<3 -> dark;  -> dark";
        let line = Line::parse_from(["crash", "--replay", text]);
        let run = || (replay(text).unwrap(), run(&line.args).unwrap());
        let (report, verdict) = run();
        assert!(report.lists[0].1.rows().is_empty() && verdict == Verdict::Good);
        let _planted = plant(Fault::SharesNotLogged);
        let (report, verdict) = run();
        assert!(verdict == Verdict::FoundWrong);
        let (name, violations) = &report.lists[0];
        assert_eq!((*name, violations.rows().len()), ("violations", 1));
        for column in schema::CRASH_VIOLATIONS {
            assert!(violations.columns().iter().any(|known| known.key == column.key));
        }
        let told = violations.rows()[0].iter().map(Value::plain).collect::<Vec<_>>().join("; ");
        assert!(told.contains("power-on 1") && told.contains(text), "{told}");
        let told = sentence(&report.table);
        assert!(told.starts_with("promises were broken: 1 violation in "), "{told}");
        assert!(
            told.ends_with("by ssd:cache=through on nand; the commands above replay them"),
            "{told}"
        );
    }

    #[test]
    fn the_help_says_what_each_column_means() {
        for column in schema::CRASH.iter().skip(2) {
            let line = format!("\n  {} ", column.heading);
            assert!(AFTER_HELP.contains(&line), "{} is missing", column.heading);
        }
    }
}
