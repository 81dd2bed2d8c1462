//! The advice of `tantalum check` on the problems that it found.
use tantalum_runtime::DevicePart;
use tantalum_volume::CheckReport;

/// One line of advice for each kind of problem in `report`.
pub fn advice(report: &CheckReport, is_tiered: bool) -> Vec<String> {
    let is_opened = report.recovery.is_some();
    let is_damaged = |part: DevicePart| {
        report.findings.iter().any(|found| !found.unanswered && found.part == part)
    };
    let mut lines = Vec::new();
    if report.findings.iter().any(|found| found.unanswered) {
        lines.push("errors of the medium may be temporary, and do not count as damage: try again, and check the medium");
    }
    if is_opened && is_damaged(DevicePart::Superblock) {
        lines.push(
            "the superblock has two copies: the next opening for writing mends the damaged one",
        );
    }
    if is_damaged(DevicePart::Page) {
        lines.push(
            "reads of a damaged page are errors until it is written again: restore it from a backup; all others are readable",
        );
    }
    if is_damaged(DevicePart::Log) || is_damaged(DevicePart::Zone) || !is_opened {
        lines.push(match (is_opened, is_tiered) {
            (true, _) => "save a copy of everything that can be read, and make the volume anew",
            (false, false) => {
                "restore a copy of the volume; without one, `--accept-loss` gives up the part that cannot be known, and tells which"
            }
            (false, true) => {
                "restore a copy of the flash; without one, `--accept-loss` gives up the part that cannot be known, and `tantalum \
                 rescue --force` brings the home to its last epoch without the flash"
            }
        });
    }
    lines.into_iter().map(|line| format!("to do: {line}")).collect()
}
