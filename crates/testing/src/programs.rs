//! Programs that tests and benches run, their output, and the results of `fio`.
use std::process::{Child, Command};

/// Runs `program` for at most two minutes; returns its output.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new("timeout")
        .arg("120")
        .arg(program)
        .args(arguments)
        .current_dir(std::env::temp_dir())
        .output()
        .expect("timeout starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}\n{text}\n{errors}",
        output.status
    );
    text
}

/// A child process that is killed when dropped.
pub struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `nbdkit memory` of `bytes` bytes on a Unix socket in a temporary folder.
pub struct Nbdkit {
    /// Its address.
    pub uri: String,
    _process: Ended,
    _folder: tempfile::TempDir,
}

impl Nbdkit {
    /// Starts the server, and waits for its socket.
    pub fn start(bytes: u64) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let socket = folder.path().join("nbdkit.sock");
        let mut process = Ended(
            Command::new("nbdkit")
                .args(["-f", "-U", &socket.to_string_lossy(), "memory", &bytes.to_string()])
                .spawn()
                .expect("nbdkit is installed"),
        );
        while !socket.exists() {
            assert!(process.0.try_wait().is_ok_and(|ended| ended.is_none()), "nbdkit ended early");
            std::thread::yield_now();
        }
        let uri = format!("nbd+unix:///?socket={}", socket.display());
        Nbdkit { uri, _process: process, _folder: folder }
    }
}

/// The result of fio's one job.
pub struct FioJob(serde_json::Value);

/// Runs fio with `arguments`, which describe one job.
pub fn fio(arguments: &[&str]) -> FioJob {
    let output = tempfile::NamedTempFile::new().expect("a temporary file");
    let path = output.path().to_string_lossy().into_owned();
    let output_to = format!("--output={path}");
    let common = ["--name=bench", "--output-format=json", &output_to];
    run("fio", &[&common, arguments].concat());
    let text = std::fs::read_to_string(&path).expect("fio's output");
    // fio may print notes before the JSON.
    let json = &text[text.find('{').expect("JSON in fio's output")..];
    let mut result: serde_json::Value = serde_json::from_str(json).expect("fio's JSON");
    FioJob(result["jobs"][0].take())
}

/// 4 KiB operations at depth 32 on the first `bytes` of an NBD export.
pub fn fio_nbd(uri: &str, rw: &str, bytes: u64, seconds: u32) -> FioJob {
    fio(&[
        "--ioengine=nbd",
        &format!("--uri={uri}"),
        &format!("--rw={rw}"),
        "--bs=4k",
        "--iodepth=32",
        &format!("--size={bytes}"),
        "--time_based",
        &format!("--runtime={seconds}"),
        "--ramp_time=1",
    ])
}

impl FioJob {
    /// Operations per second; `direction` is `"read"` or `"write"`.
    pub fn per_second(&self, direction: &str) -> f64 {
        self.0[direction]["iops"].as_f64().expect("a rate in fio's JSON")
    }

    /// Duration in seconds.
    pub fn seconds(&self, direction: &str) -> f64 {
        self.0[direction]["runtime"].as_f64().expect("a time in fio's JSON") / 1e3
    }

    /// The latency in microseconds at `percentile` (such as `"99.000000"`).
    pub fn latency_us(&self, direction: &str, percentile: &str) -> f64 {
        let latency = &self.0[direction]["clat_ns"]["percentile"][percentile];
        latency.as_f64().expect("a percentile in fio's JSON") / 1e3
    }
}

/// A number from the environment.
pub fn setting(name: &str, default: u32) -> u32 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The median.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
