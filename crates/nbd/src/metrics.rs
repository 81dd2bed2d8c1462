//! The metrics of a server.
use crate::protocol::transmission::Command;
use crate::server::Server;
use crate::statistics::{Statistics, TIMED};
use tantalum_base::{ErrorKind, PageBuf, PageDevice};
use tantalum_runtime::metrics::{MetricKind, Readings};

impl<D: PageDevice<Page = PageBuf>> Server<D> {
    /// Reports the requests of clients, their durations, and failures.
    pub fn metrics(&self, out: &mut Readings) {
        let statistics = self.statistics();
        tell_requests(&statistics, out);
        self.tell_durations(&statistics, out);
        tell_errors(&statistics, out);
        tell_connections(&statistics, out);
        let help = "Whether clients get TLS (offered) or need it (required), as a label; always 1";
        let metric = out.metric(MetricKind::Gauge, "tantalum_nbd_tls_info", help);
        metric.with(&[("mode", self.options().tls_mode())], 1u64);
        let help = "Connections open in TLS";
        out.gauge("tantalum_nbd_tls_connections", help, statistics.tls_connections_open);
    }

    fn tell_durations(&self, statistics: &Statistics, out: &mut Readings) {
        let help = "Time from a whole request to its reply, ready to be sent, of requests that \
                    went to the device";
        let name = "tantalum_nbd_request_duration_seconds";
        let metric = out.metric(MetricKind::Histogram, name, help);
        let mut answered = 0;
        for (command, histogram) in TIMED.into_iter().zip(self.durations()) {
            let reading = histogram.read();
            answered += reading.count();
            metric.with(&[("command", label(command))], reading);
        }
        let asked: u64 = TIMED.into_iter().map(|command| requests(statistics, command).0).sum();
        let help = "Requests at the device, not answered yet";
        out.gauge("tantalum_nbd_requests_in_flight", help, asked.saturating_sub(answered));
    }
}

fn label(command: Command) -> &'static str {
    match command {
        Command::Read => "read",
        Command::Write => "write",
        Command::Flush => "flush",
        Command::Trim => "trim",
        Command::WriteZeroes => "write_zeroes",
        Command::BlockStatus => "block_status",
        Command::Disconnect | Command::Unknown(_) => "other",
    }
}

/// Requests of a command, and their bytes.
fn requests(statistics: &Statistics, command: Command) -> (u64, u64) {
    match command {
        Command::Read => (statistics.reads, statistics.bytes_read),
        Command::Write => (statistics.writes, statistics.bytes_written),
        Command::Flush => (statistics.flushes, 0),
        Command::BlockStatus => (statistics.block_statuses, 0),
        Command::Trim => (statistics.trims, statistics.bytes_trimmed),
        Command::WriteZeroes => (statistics.write_zeroes, statistics.bytes_zeroed),
        Command::Disconnect | Command::Unknown(_) => (0, 0),
    }
}

fn tell_requests(statistics: &Statistics, out: &mut Readings) {
    let help = "Requests that went to the device";
    let metric = out.metric(MetricKind::Counter, "tantalum_nbd_requests_total", help);
    for command in TIMED {
        metric.with(&[("command", label(command))], requests(statistics, command).0);
    }
    let help = "Bytes of these requests";
    let metric = out.metric(MetricKind::Counter, "tantalum_nbd_request_bytes_total", help);
    let is_for_bytes =
        |command: &Command| !matches!(command, Command::Flush | Command::BlockStatus);
    for command in TIMED.into_iter().filter(is_for_bytes) {
        metric.with(&[("command", label(command))], requests(statistics, command).1);
    }
    let help = "Requests that covered a page in part, so that it was read first";
    let partial = statistics.read_modify_writes;
    out.counter("tantalum_nbd_read_modify_writes_total", help, partial);
    let held = "Memory of requests in progress and of unsent replies";
    out.gauge("tantalum_nbd_held_bytes", held, statistics.bytes_held);
}

fn tell_errors(statistics: &Statistics, out: &mut Readings) {
    let help = "Requests that the device answered with an error, by kind";
    let metric = out.metric(MetricKind::Counter, "tantalum_nbd_errors_total", help);
    for (kind, count) in ErrorKind::ALL.into_iter().zip(statistics.errors_by_kind) {
        metric.with(&[("kind", kind.name())], count);
    }
    let help = "Requests refused before the device saw them: unknown, past the end, changes of a \
                read-only export";
    out.counter("tantalum_nbd_refused_requests_total", help, statistics.refused);
}

fn tell_connections(statistics: &Statistics, out: &mut Readings) {
    out.gauge("tantalum_nbd_connections", "Connections open", statistics.connections_open);
    for (name, help, count) in [
        (
            "tantalum_nbd_connections_accepted_total",
            "Connections accepted",
            statistics.connections_accepted,
        ),
        (
            "tantalum_nbd_connections_refused_total",
            "Connections refused at the limit",
            statistics.connections_refused,
        ),
        (
            "tantalum_nbd_connections_evicted_total",
            "Connections closed in negotiation, to make room for another at the limit",
            statistics.connections_evicted,
        ),
        (
            "tantalum_nbd_connections_failed_total",
            "Connections closed for breaking the protocol, stalling, or failing",
            statistics.connections_failed,
        ),
        (
            "tantalum_nbd_tls_connections_total",
            "Connections that completed a TLS handshake",
            statistics.tls_connections,
        ),
        (
            "tantalum_nbd_tls_handshakes_failed_total",
            "TLS handshakes that failed or did not end in time",
            statistics.tls_handshakes_failed,
        ),
    ] {
        out.counter(name, help, count);
    }
}
