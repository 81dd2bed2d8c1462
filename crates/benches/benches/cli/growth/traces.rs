//! Traces replayed, read into a curve, and written in another format, by their length.
use crate::measured::{Spent, command, run, tantalum};
use crate::table::Row;
use std::fs::File;
use std::path::Path;

const BASE_KILO: u64 = 256;
/// One page for so many requests, however long a trace is.
const REQUESTS_PER_PAGE: u64 = 10;

/// `replay`, `curve` and `convert`.
pub fn measure(folder: &Path, factor: u64) -> anyhow::Result<Vec<Row>> {
    let (trace, out) = (folder.join("trace.csv"), folder.join("trace.bin"));
    let (trace, out) = (trace.to_string_lossy(), out.to_string_lossy());
    let requests = BASE_KILO * factor * 1024;
    let pages = requests / REQUESTS_PER_PAGE;
    let generator = format!("zipf:pages={pages},requests={requests},writes=0.3");
    tantalum(&["trace", "generate", &generator, &trace])?;
    let replay = tantalum(&["replay", &trace, "--policy", "lru", "--size", "10%"])?;
    let curve = tantalum(&["curve", &trace])?;
    let convert = tantalum(&["trace", "convert", &trace, &out, "--to", "page_binary"])?;
    let counted = awk("{ count[$2]++ } END { for (page in count) pages++; print pages }", &trace)?;
    let rewritten = awk("{ print $2, $1 }", &trace)?;
    let row = |operation, ours, peer, peer_name| {
        let (size, unit) = (requests, "requests");
        Row { operation, size, unit, ours, peer, peer_name }
    };
    Ok(vec![
        row("replay", replay, counted, "awk, counting pages"),
        row("curve", curve, counted, "awk, counting pages"),
        row("convert", convert, rewritten, "awk, rewriting the lines"),
    ])
}

/// Runs a program of awk over `trace`, into a file.
fn awk(program: &str, trace: &str) -> anyhow::Result<Spent> {
    let out = File::create(format!("{trace}.awk"))?;
    run(command("awk", ["-F,", program, trace]).stdout(out))
}
