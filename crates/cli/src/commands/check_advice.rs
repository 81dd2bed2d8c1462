//! The advice of `tantalum check` on the problems that it found.
use tantalum_volume::CheckReport;

/// One line of advice for each kind of problem in `report`.
pub fn advice(report: &CheckReport, is_tiered: bool) -> Vec<String> {
    let is_opened = report.recovery.is_some();
    let any = |of: &dyn Fn(&str) -> bool| {
        report.findings.iter().any(|found| !found.unanswered && of(&found.place))
    };
    let mut lines = Vec::new();
    if report.findings.iter().any(|found| found.unanswered) {
        lines.push("errors of the medium may pass: nothing was concluded from them; try again, and look at the medium");
    }
    if is_opened && any(&|place| place.starts_with("superblock")) {
        lines.push(
            "the superblock has two copies: the next opening for writing mends the damaged one",
        );
    }
    if any(&|place| place.starts_with("page ")) {
        lines.push(
            "reads of a damaged page are errors until it is written again: restore it from a backup; all others are readable",
        );
    }
    let known = ["superblock", "page ", "journal"];
    if any(&|place| !known.iter().any(|known| place.starts_with(known))) || !is_opened {
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
