//! The metrics of `--metrics`: the counters of the device and of the servers, and their properties.
use std::rc::Rc;
use tantalum_base::PageBuf;
use tantalum_metrics::{Endpoint, EndpointOptions};
use tantalum_nbd::Server;
use tantalum_runtime::live::net::{Listener, Stream};
use tantalum_runtime::metrics::{MetricKind, Readings};
use tantalum_runtime::{LifeCycle, Live, Runtime};

/// Reports the metrics of a server.
pub type Tell = Rc<dyn Fn(&mut Readings)>;

/// A description of the served device.
pub struct About {
    /// The volume's configuration, or the device's name.
    pub device: String,
    /// `flash` for a volume, or `simulated`.
    pub kind: &'static str,
    /// Its durability.
    pub durability: &'static str,
    /// Reports the metrics of local clients, if they are served.
    pub local: Option<Tell>,
}

impl About {
    fn tell(&self, out: &mut Readings) {
        let help = "The device that is served; always 1";
        let metric = out.metric(MetricKind::Gauge, "tantalum_device_info", help);
        let labels = [
            ("device", self.device.as_str()),
            ("kind", self.kind),
            ("durability", self.durability),
        ];
        metric.with(&labels, 1u64);
        let help = "Version of the program; always 1";
        let metric = out.metric(MetricKind::Gauge, "tantalum_build_info", help);
        metric.with(&[("version", env!("CARGO_PKG_VERSION"))], 1u64);
    }
}

/// Serves the metrics of `device` and `server` on `listener`.
pub fn start<D: LifeCycle<Page = PageBuf>>(
    live: &Live,
    listener: Listener,
    about: About,
    device: Rc<D>,
    server: Server<D>,
) -> Endpoint<Stream> {
    let clock = live.clone();
    Endpoint::start(live, listener, EndpointOptions::default(), move |out| {
        about.tell(out);
        let uptime_seconds = clock.now_ns() as f64 / 1e9;
        out.gauge("tantalum_uptime_seconds", "Time since the server was started", uptime_seconds);
        server.metrics(out);
        about.local.iter().for_each(|tell| tell(out));
        device.metrics(out);
    })
}
