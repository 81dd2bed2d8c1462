//! A program that runs once, with its time, memory and bytes.
use anyhow::{Context, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use tantalum_testing::rig::now;

/// How long a peak of memory may be and not be seen, as it is asked for so often.
const PERIOD: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// The costs of a program.
#[derive(Clone, Copy, Default)]
pub struct Spent {
    pub seconds: f64,
    /// Of all its threads, in the kernel too: other processes make this longer by far less.
    pub processor_seconds: f64,
    /// The most that was resident at once.
    pub memory_bytes: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

/// A program to run, whose output nobody reads.
pub fn command<A: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Runs `command`. All that was written before is on the disk first: it must not become a wait of this one.
pub fn run(command: &mut Command) -> anyhow::Result<Spent> {
    rustix::fs::sync();
    let began = now();
    let child = command.stderr(Stdio::piped()).spawn().with_context(|| format!("{command:?}"))?;
    let id = Pid::from_child(&child);
    let ended = pidfd_open(id, PidfdFlags::empty())?;
    let mut memory_bytes = 0;
    loop {
        // A process that has ended tells no memory any more.
        memory_bytes = peak_bytes(child.id()).unwrap_or(0).max(memory_bytes);
        if poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&PERIOD))? > 0 {
            break;
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    // It tells its bytes until it is waited for.
    let counted = Spent { seconds, memory_bytes, ..counters(child.id())? };
    let output = child.wait_with_output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}\n{told}", output.status);
    Ok(counted)
}

/// The most memory that process `id` has had resident.
fn peak_bytes(id: u32) -> anyhow::Result<u64> {
    Ok(field(&format!("/proc/{id}/status"), "VmHWM:")? * 1024)
}

/// The costs of process `id` so far, which took `seconds` for them.
pub fn so_far(id: u32, seconds: f64) -> anyhow::Result<Spent> {
    Ok(Spent { seconds, memory_bytes: peak_bytes(id)?, ..counters(id)? })
}

/// Processor time of process `id`, and its bytes from disks and to them.
fn counters(id: u32) -> anyhow::Result<Spent> {
    let file = format!("/proc/{id}/io");
    let (read_bytes, written_bytes) = (field(&file, "read_bytes:")?, field(&file, "write_bytes:")?);
    let processor_seconds = processor_seconds(id)?;
    Ok(Spent { processor_seconds, read_bytes, written_bytes, ..Spent::default() })
}

fn processor_seconds(id: u32) -> anyhow::Result<f64> {
    // The kernel tells them to programs in these, whatever its own are.
    const TICKS_PER_SECOND: f64 = 100.0;
    let text = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    // The program's name, in brackets, may have spaces. The times are fields 14 and 15, and the one behind the name is the third.
    let (_, fields) = text.rsplit_once(") ").context("no name of a program")?;
    let ticks =
        fields.split(' ').skip(11).take(2).map(str::parse::<f64>).sum::<Result<f64, _>>()?;
    Ok(ticks / TICKS_PER_SECOND)
}

/// The number behind `name` in a file of `/proc`.
fn field(file: &str, name: &str) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(file)?;
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    let value = value.and_then(|rest| rest.split_whitespace().next());
    Ok(value.with_context(|| format!("{name} in {file}"))?.parse()?)
}

/// Runs `tantalum`.
pub fn tantalum(arguments: &[&str]) -> anyhow::Result<Spent> {
    run(&mut command(tantalum_testing::built::tantalum(), arguments))
}

/// Reads the first `bytes` of `file` from the disk, as a copy does.
pub fn read(file: &Path, bytes: u64) -> anyhow::Result<Spent> {
    let from = format!("if={}", file.display());
    let count = format!("count={bytes}");
    run(&mut command("dd", [&from, "of=/dev/null", "bs=1M", "iflag=direct,count_bytes", &count]))
}

/// Copies `from` to `to`, durably, without shared extents.
pub fn copy(from: &Path, to: &Path) -> anyhow::Result<Spent> {
    forget(from)?;
    let (from, to) = (format!("if={}", from.display()), format!("of={}", to.display()));
    run(&mut command("dd", [&from, &to, "bs=1M", "conv=fsync"]))
}

/// Has the kernel drop `file` from memory.
pub fn forget(file: &Path) -> anyhow::Result<()> {
    let file = File::open(file)?;
    file.sync_all()?;
    Ok(rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?)
}

/// Writes `bytes` bytes of random content to a new `file`, durably.
pub fn fill(file: &Path, bytes: u64) -> anyhow::Result<()> {
    use std::io::Write;
    let mut content = vec![0; 1 << 20];
    tantalum_base::Rng::new(bytes).fill(&mut content);
    let mut file = File::create(file)?;
    for _ in 0..bytes >> 20 {
        file.write_all(&content)?;
    }
    Ok(file.sync_all()?)
}
