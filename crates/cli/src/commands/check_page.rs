//! The HTML page of `tantalum check`: the checked parts, and each problem with its place.
use tantalum_base::PAGE_BYTES;
use tantalum_base::size::human_bytes;
use tantalum_console::output::PageArgs;
use tantalum_report::html::Number;
use tantalum_report::{Page, Report, Section, Table, Tone, config_hash, number, schema};
use tantalum_runtime::DevicePart;
use tantalum_volume::CheckReport;

/// The parts of a volume, in the order in which they are checked, with their names.
const PARTS: [(&[DevicePart], &str); 4] = [
    (&[DevicePart::Superblock], "superblock"),
    (&[DevicePart::Log], "log and checkpoints"),
    (&[DevicePart::Page], "pages"),
    (&[DevicePart::Zone, DevicePart::Journal], "zones, tables and journal"),
];

/// Writes the page if it is requested. `told` is the verdict; `given_up` describes the losses that were accepted
/// before.
pub fn write(
    to: &PageArgs,
    report: &CheckReport,
    told: String,
    given_up: Option<String>,
) -> anyhow::Result<()> {
    let mut problems = Table::new(schema::CHECK);
    for found in report.findings.iter().chain(&report.not_in_force) {
        let (place, problem) = (found.place.as_str(), found.problem.as_str());
        let in_force = if found.in_force { "yes" } else { "no" };
        let row =
            [("place", place.into()), ("problem", problem.into()), ("in_force", in_force.into())];
        problems.push_named(row);
    }
    let is_whole = report.findings.is_empty() && report.not_in_force.is_empty();
    let is_sound = report.findings.is_empty();
    let mut sections = vec![Section::new("Checked parts", looked_at(report))];
    if !is_whole {
        sections.insert(0, Section::new("Problems", problems.clone()));
    }
    let page = Page {
        title: "Check of a volume".to_owned(),
        verdict: told,
        tone: if is_sound { Tone::Good } else { Tone::Bad },
        paragraphs: given_up.into_iter().collect(),
        numbers: numbers(report),
        sections,
        ..Page::default()
    };
    let identity = report.superblock.map_or(0, |superblock| superblock.volume_id);
    let config = config_hash([format!("check={identity:032x}")]);
    to.write(&Report::new(0, config, problems), &page)
}

fn numbers(report: &CheckReport) -> Vec<Number> {
    let count = |value: u64| number::thousands(value);
    let mut numbers = vec![Number::new("Problems", count(report.findings.len() as u64), "")];
    if let Some(superblock) = &report.superblock {
        let store = human_bytes(superblock.store_bytes());
        numbers.push(Number::new(
            "Store",
            store,
            format!("{} zones", count(superblock.zones.into())),
        ));
    }
    if let Some(recovery) = &report.recovery {
        let dropped = format!("{} dropped, as they were not whole", count(recovery.dropped));
        numbers.push(Number::new("Changes replayed, in memory", count(recovery.replayed), dropped));
        numbers.push(Number::new("Pages lost", count(recovery.pages_lost), "they read as errors"));
    }
    numbers
}

/// One row per part of the volume: its extent, and the number of its problems.
fn looked_at(report: &CheckReport) -> Table {
    let mut extents = vec!["both copies".to_owned()];
    extents.extend(report.recovery.as_ref().map(|recovery| {
        format!(
            "checkpoint {} and {} zones behind it",
            recovery.checkpoint,
            number::thousands(recovery.zones_scanned.into())
        )
    }));
    if let (Some(superblock), Some(_)) = (&report.superblock, &report.recovery) {
        extents.push(format!(
            "all that hold something, of {}",
            human_bytes(superblock.pages * PAGE_BYTES as u64)
        ));
        extents.push(format!("all {}", number::thousands(superblock.zones.into())));
    }
    let mut table = Table::new(schema::CHECKED);
    for (at, (parts, part)) in PARTS.iter().enumerate() {
        let problems = report.findings.iter().filter(|found| parts.contains(&found.part));
        let extent =
            extents.get(at).map_or("not checked, because it could not be opened", String::as_str);
        let problems = problems.count() as u64;
        let row =
            [("part", (*part).into()), ("extent", extent.into()), ("problems", problems.into())];
        table.push_named(row);
    }
    table
}
