//! Measurements as lines of text.
use crate::measured::Spent;

/// A larger power of the size than this, of time or memory, is a finding.
const POWER_MAX: f64 = 1.15;
/// Falling further behind the peer from the smallest to the largest size than this is one, too.
const DRIFT_MAX: f64 = 1.5;

/// One operation at one size.
pub struct Row {
    pub operation: &'static str,
    /// A count of `unit`.
    pub size: u64,
    pub unit: &'static str,
    pub ours: Spent,
    /// The same by another program, or the nearest to it.
    pub peer: Spent,
    pub peer_name: &'static str,
}

impl Row {
    /// Each side as it was in the round in which it was faster.
    pub fn take_faster(&mut self, other: Row) {
        let faster =
            |one: Spent, other: Spent| if other.seconds < one.seconds { other } else { one };
        self.ours = faster(self.ours, other.ours);
        self.peer = faster(self.peer, other.peer);
    }

    fn ratio(&self) -> f64 {
        self.ours.seconds / self.peer.seconds
    }

    pub fn print(&self) {
        let Row { operation, size, unit, ours, peer, .. } = self;
        let mb = |bytes: u64| bytes as f64 / 1e6;
        println!(
            "{operation:8} {size:9} {unit:13} {:8.3} s {:8.2} s {:6.0} MB {:7.0} MB {:7.0} MB {:9.3} s {:7.2}",
            ours.seconds,
            ours.processor_seconds,
            mb(ours.memory_bytes),
            mb(ours.read_bytes),
            mb(ours.written_bytes),
            peer.seconds,
            self.ratio()
        );
    }
}

pub fn print_head() {
    println!(
        "{:8} {:>9} {:13} {:>10} {:>10} {:>9} {:>10} {:>10} {:>11} {:>7}",
        "", "size", "", "time", "processor", "memory", "read", "written", "peer", "ratio"
    );
}

/// How each operation grows from its first size to its last.
pub fn print_growth(rows: &[Row]) {
    println!("\n{:8} as size to the power of; the ratio, last to first; the peer", "");
    println!(
        "{:8} {:>6} {:>9} {:>6} {:>6} {:>6}",
        "", "time", "processor", "peer's", "memory", "ratio"
    );
    // Rows of a group come by size, so one operation's are not beside each other.
    let mut told: Vec<&str> = Vec::new();
    for first in rows {
        if !told.contains(&first.operation) {
            told.push(first.operation);
            let last = rows.iter().rfind(|row| row.operation == first.operation);
            last.into_iter().for_each(|last| print_powers(first, last));
        }
    }
}

fn print_powers(first: &Row, last: &Row) {
    if first.size == last.size {
        return;
    }
    let larger = (last.size as f64 / first.size as f64).ln();
    let power = |of: fn(&Row) -> f64| (of(last) / of(first)).ln() / larger;
    let time = power(|row| row.ours.seconds);
    // One tick at least: the least that is told.
    let processor = power(|row| row.ours.processor_seconds.max(0.01));
    let memory = power(|row| row.ours.memory_bytes as f64);
    let drift = last.ratio() / first.ratio();
    let mut found = String::new();
    if time > POWER_MAX || memory > POWER_MAX {
        found += "  grows faster than its work";
    }
    if drift > DRIFT_MAX {
        found += "  falls behind";
    }
    let peer = power(|row| row.peer.seconds);
    let (name, peer_name) = (first.operation, first.peer_name);
    println!(
        "{name:8} {time:6.2} {processor:9.2} {peer:6.2} {memory:6.2} {drift:6.2}  {peer_name}{found}"
    );
}
