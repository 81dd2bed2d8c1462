//! Part 3: the recorded trace on simulated devices, in virtual time.
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use tantalum_console::output::print_line;
use tantalum_console::progress::Progress;
use tantalum_models::DeviceSpec;
use tantalum_replay::device_replay::{
    Age, DeviceReplayOptions, DeviceReplayRow, DeviceTrace, replay,
};
use tantalum_report::number;
use tantalum_trace::OpenOptions;

/// The devices: a DuraSSD, and an ordinary SSD with a volatile cache.
const DEVICES: [&str; 2] = ["durassd:capacity=256MiB", "ssd-a:capacity=256MiB"];

/// Replays `trace` on both devices and prints the results.
pub fn run(trace: &Path, seed: u64) -> anyhow::Result<()> {
    print_line("3. The recorded trace in virtual time: a commit point is a flush")?;
    let trace = Rc::new(DeviceTrace::load(trace, &OpenOptions::default())?);
    let progress = Progress::steps("devices");
    let options = DeviceReplayOptions { age: Some(Age::default()), seed, ..Default::default() };
    let mut rows = Vec::new();
    for (done, device) in DEVICES.iter().enumerate() {
        rows.push(replay(&trace, &DeviceSpec::parse(device)?, &options, &Arc::default())?);
        progress.step(done + 1, DEVICES.len());
    }
    progress.finish();
    print_line(&format!(
        "   {:<24} {:>12} {:>22} {:>22} {:>12} {:>6} {:>7}",
        "device (aged)",
        "requests/s",
        "write p50/p99/max",
        "commit p50/p99/max",
        "flash pages",
        "WA",
        "erases"
    ))?;
    for (row, device) in rows.iter().zip(DEVICES) {
        print_row(row, device)?;
    }
    print_line("")?;
    Ok(())
}

fn print_row(row: &DeviceReplayRow, device: &str) -> std::io::Result<()> {
    let three = |p50_ns: u64, p99_ns: u64, max_ns: u64| {
        let us = |ns: u64| format!("{:.0}", ns as f64 / 1000.0);
        format!("{}/{}/{} us", us(p50_ns), us(p99_ns), us(max_ns))
    };
    print_line(&format!(
        "   {:<24} {:>12} {:>22} {:>22} {:>12} {:>6.2} {:>7}",
        device,
        number::thousands(row.requests_per_s as u64),
        three(row.write.p50_ns, row.write.p99_ns, row.write.max_ns),
        three(row.commit.p50_ns, row.commit.p99_ns, row.commit.max_ns),
        number::thousands(row.physical_writes),
        row.write_amplification,
        number::thousands(row.erases),
    ))
}
