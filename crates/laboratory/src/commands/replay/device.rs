//! Replay on simulated devices, in virtual time.
use crate::commands::device_size;
use crate::common::{TraceArgs, clients};
use std::rc::Rc;
use std::sync::Arc;
use tantalum_base::{ErrorKind, Spec};
use tantalum_console::interruption;
use tantalum_models::DeviceSpec;
use tantalum_replay::device_replay::{
    Age, DeviceReplayOptions, DeviceReplayRow, DeviceTrace, Latency, replay,
};
use tantalum_replay::work::Work;
use tantalum_report::{Report, Table, Value, config_hash, schema};
use tantalum_runtime::DumpCounters;

/// Columns of the table for people; the other formats have all columns.
const SHOWN: [&str; 13] = [
    "device",
    "requests",
    "seconds",
    "requests_per_s",
    "read_p99_ns",
    "write_p50_ns",
    "write_p99_ns",
    "write_max_ns",
    "commit_p50_ns",
    "commit_p99_ns",
    "physical_writes",
    "write_amplification",
    "erases",
];

/// The devices to replay on.
#[derive(clap::Args, Debug)]
pub struct DeviceArgs {
    /// Simulated devices, such as durassd,ssd-a:capacity=1GiB (docs/devices/README.md). By default the capacity just
    /// holds the pages of the trace
    #[arg(long, value_name = "DEVICE,...")]
    pub device: Vec<String>,
    /// Number of clients, each with one outstanding request, up to 65536
    #[arg(long, default_value_t = 1, value_name = "N", requires = "device", value_parser = clients)]
    pub clients: u32,
    /// Make the writes up to a commit point one device transaction, instead of writes and a flush
    #[arg(long, requires = "device")]
    pub transactions: bool,
    /// Replay on fresh devices, instead of devices filled and overwritten until cleaning is steady
    #[arg(long, requires = "device")]
    fresh: bool,
    /// Seed of the devices and of their aging
    #[arg(long, default_value_t = 1, requires = "device", value_name = "SEED")]
    pub device_seed: u64,
}

impl DeviceArgs {
    /// The devices for a trace of `pages` pages, in the order given. Prints the size of those that get a default size.
    pub fn devices_for(&self, pages: u64) -> tantalum_base::Result<Vec<DeviceSpec>> {
        let named = self.named();
        if let Some(told) = device_size::told(&named, pages) {
            eprintln!("{told}");
        }
        named.iter().map(|text| device_size::device_for(text, pages)).collect()
    }

    /// Parses the devices as named, to refuse invalid ones early.
    pub fn devices(&self) -> tantalum_base::Result<Vec<DeviceSpec>> {
        self.named().iter().map(|text| DeviceSpec::parse(text)).collect()
    }

    /// The texts of the devices, in the order given: separated by commas, or in several options.
    fn named(&self) -> Vec<String> {
        Spec::list(&self.device.join(" "))
    }

    /// The aging of the devices; `None` if they are fresh.
    pub fn age(&self) -> Option<Age> {
        (!self.fresh).then(Age::default)
    }
}

/// Replays `trace` on every device.
pub fn run(trace: &TraceArgs, args: &DeviceArgs) -> anyhow::Result<Report> {
    args.devices()?;
    let options = DeviceReplayOptions {
        clients: args.clients,
        transactions: args.transactions,
        age: args.age(),
        seed: args.device_seed,
    };
    let loaded =
        Rc::new(DeviceTrace::collect(&trace.name(), trace.events_for_pages("events read")?)?);
    let devices = args.devices_for(loaded.pages)?;
    let work = Arc::new(Work::default());
    work.begin("replaying", devices.len(), loaded.events.len());
    let progress = crate::work::follow(&work);
    let mut table = Table::new(schema::DEVICE_REPLAY);
    let mut warnings = Vec::new();
    for device in &devices {
        let row = match replay(&loaded, device, &options, &work) {
            Err(error) if error.kind() == ErrorKind::Interrupted => break,
            row => row?,
        };
        work.end_run();
        warnings.extend(warning_of_folding(loaded.pages, device));
        if row.transactions_split > 0 {
            warnings.push(warning_of_split(&row));
        }
        table.push_named(values(&row, loaded.pages, device));
    }
    drop(progress);
    warnings.iter().for_each(|warning| eprintln!("{warning}"));
    let mut parts = trace.config();
    parts.extend(devices.iter().map(|device| format!("device={}", device.name())));
    parts.push(format!("options={options:?}"));
    let mut report = Report::new(args.device_seed, config_hash(parts), table);
    report.shown = SHOWN.to_vec();
    let completed = report.table.rows().len() as u64;
    interruption::mark(&mut report, completed, Some(devices.len() as u64), "devices");
    Ok(report)
}

/// A warning that a row's figures are not those of the whole trace: the device is smaller than the trace's `pages`, so
/// several of these become one.
pub(super) fn warning_of_folding(pages: u64, device: &DeviceSpec) -> Option<String> {
    let held = device.pages();
    (pages > held).then(|| {
        format!(
            "warning: {}: the trace takes {pages} pages, the device has {held}: page numbers were folded \
             into it, so that several pages became one",
            device.name()
        )
    })
}

/// A warning that the row's figures are not those of whole transactions.
fn warning_of_split(row: &DeviceReplayRow) -> String {
    format!(
        "warning: {}: transactions of the trace are longer than the device allows: {} times a \
         transaction was split, so that its parts were not atomic together",
        row.device, row.transactions_split
    )
}

fn values(
    row: &DeviceReplayRow,
    trace_pages: u64,
    device: &DeviceSpec,
) -> Vec<(&'static str, Value)> {
    let latency = |latency: &Latency, ns: u64| {
        if latency.requests == 0 { Value::Null } else { ns.into() }
    };
    let of_dump = |value: fn(&DumpCounters) -> u64| {
        row.dump.as_ref().map_or(Value::Null, |dump| value(dump).into())
    };
    vec![
        ("trace", row.trace.as_str().into()),
        ("device", row.device.as_str().into()),
        ("trace_pages", trace_pages.into()),
        ("device_pages", device.pages().into()),
        ("policy", Value::Null),
        ("cache_pages", row.cache_pages.into()),
        ("clients", row.clients.into()),
        ("requests", row.requests.into()),
        ("misses", row.misses.into()),
        ("physical_reads", row.physical_reads.into()),
        ("physical_writes", row.physical_writes.into()),
        ("seconds", Value::rounded(row.seconds, 1e9)),
        ("requests_per_s", Value::rounded(row.requests_per_s, 1e3)),
        ("read_p50_ns", latency(&row.read, row.read.p50_ns)),
        ("read_p99_ns", latency(&row.read, row.read.p99_ns)),
        ("read_max_ns", latency(&row.read, row.read.max_ns)),
        ("write_p50_ns", latency(&row.write, row.write.p50_ns)),
        ("write_p99_ns", latency(&row.write, row.write.p99_ns)),
        ("write_max_ns", latency(&row.write, row.write.max_ns)),
        ("trim_p50_ns", latency(&row.trim, row.trim.p50_ns)),
        ("trim_p99_ns", latency(&row.trim, row.trim.p99_ns)),
        ("trim_max_ns", latency(&row.trim, row.trim.max_ns)),
        ("commits", row.commit.requests.into()),
        ("commit_p50_ns", latency(&row.commit, row.commit.p50_ns)),
        ("commit_p99_ns", latency(&row.commit, row.commit.p99_ns)),
        ("commit_max_ns", latency(&row.commit, row.commit.max_ns)),
        ("transactions", row.transactions.into()),
        ("transactions_split", row.transactions_split.into()),
        ("flushes", row.flushes.into()),
        ("write_amplification", Value::rounded(row.write_amplification, 1e6)),
        ("erases", row.erases.into()),
        ("zones_cleaned", row.zones_cleaned.into()),
        ("pages_moved", row.pages_moved.into()),
        ("dump_bytes_max", of_dump(|dump| dump.bytes_max)),
        ("dump_budget_bytes", of_dump(|dump| dump.budget_bytes)),
        ("delta_pages", of_dump(|dump| dump.delta_pages)),
    ]
}
