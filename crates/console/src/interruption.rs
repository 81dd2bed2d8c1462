//! Interruption of a long run by Ctrl-C or another ending signal: the run ends with the results so far, says so, and
//! exits with 128 plus the signal's number, as shells expect. A second signal ends the program at once.
use crate::Verdict;
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use tantalum_report::{Report, number};
use tantalum_runtime::live::signal::ending;
use tantalum_runtime::supervision;

/// The field that marks the report of an interrupted run.
const FIELD: &str = "interrupted";

static SIGNAL: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// Makes signals request the end of runs, from now on.
pub fn watch() -> std::io::Result<()> {
    for signal in ending() {
        // The order matters: the first handler acts only if the second has set the flag at an earlier signal.
        flag::register_conditional_shutdown(signal, 128 + signal, supervision::stop_flag())?;
        flag::register(signal, supervision::stop_flag())?;
        flag::register_usize(signal, Arc::clone(&SIGNAL), signal as usize)?;
    }
    Ok(())
}

/// The exit code of an interrupted program.
pub fn exit_code() -> u8 {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => 128 + SIGINT as u8,
        signal => 128 + signal as u8,
    }
}

/// Notes in `report` that it has `completed` of the `planned` `what`, if the run was stopped before all were done.
/// `planned` is `None` if the total is unknown.
pub fn mark(report: &mut Report, completed: u64, planned: Option<u64>, what: &str) {
    if planned.is_some_and(|planned| completed >= planned) || !supervision::is_stopped() {
        return;
    }
    report.fields.extend([(FIELD, true.into()), ("completed", completed.into())]);
    let completed = number::thousands(completed);
    let told = match planned {
        Some(planned) => {
            report.fields.push(("planned", planned.into()));
            let planned = number::thousands(planned);
            format!("interrupted: {completed} of {planned} {what} are done")
        }
        None => format!("interrupted after {completed} {what}"),
    };
    report.notes.insert(0, told.clone());
    eprintln!("tantalum: {told}");
}

/// Whether `report` is of a run that was interrupted.
pub fn is_marked(report: &Report) -> bool {
    report.fields.iter().any(|(key, _)| *key == FIELD)
}

/// The verdict on the run of `report`.
pub fn verdict(report: &Report) -> Verdict {
    if is_marked(report) { Verdict::Interrupted } else { Verdict::Good }
}
