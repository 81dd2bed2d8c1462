//! Ctrl-C, or another signal that asks it to end, in the middle of a long run: it ends with what it has, says so, and exits with 128 and the
//! signal's number, as shells know it. The second one ends the program at once.
use crate::Verdict;
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use tantalum_report::{Report, number};
use tantalum_runtime::live::signal::ending;
use tantalum_runtime::supervision;

/// The field of a report that was interrupted.
const FIELD: &str = "interrupted";

static SIGNAL: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// From now on signals ask runs to end.
pub fn watch() -> std::io::Result<()> {
    for signal in ending() {
        // In this order: what the first one sets, the second one finds.
        flag::register_conditional_shutdown(signal, 128 + signal, supervision::stop_flag())?;
        flag::register(signal, supervision::stop_flag())?;
        flag::register_usize(signal, Arc::clone(&SIGNAL), signal as usize)?;
    }
    Ok(())
}

/// What the program exits with where it was interrupted.
pub fn exit_code() -> u8 {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => 128 + SIGINT as u8,
        signal => 128 + signal as u8,
    }
}

/// Says in `report` that it has `completed` of the `planned` `what`, where these are not all. `planned` is `None` where
/// nobody knows how many there are.
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

/// What a run came to of which `report` tells.
pub fn verdict(report: &Report) -> Verdict {
    if is_marked(report) { Verdict::Interrupted } else { Verdict::Good }
}
