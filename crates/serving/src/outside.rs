//! Where a server is reached, and by how many.
use anyhow::{Context, bail};
use tantalum_base::Result;
use tantalum_metrics::EndpointOptions;
use tantalum_nbd::ServerOptions;
use tantalum_runtime::Live;
use tantalum_runtime::live::net::{Address, Listener};

/// Options of a command that serves.
#[derive(clap::Args, Clone, Debug)]
pub struct Listening {
    /// Where NBD clients connect: unix:/path, 127.0.0.1:10809 or [::1]:10809
    #[arg(long, value_name = "ADDRESS")]
    nbd: Option<String>,
    /// Where metrics are told over HTTP, at /metrics, to Prometheus and `tantalum top`: addresses as for
    /// --nbd (docs/metrics.md)
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<String>,
    /// Refuse everything that would change the volume, and write nothing to it: what a writer that was
    /// killed left is recovered in memory alone. Several may serve and read it so at once
    #[arg(long)]
    read_only: bool,
    /// Listen also on addresses that other machines reach: there is no authentication
    #[arg(long)]
    allow_remote: bool,
    /// Connections open at once, of NBD and of local clients each; further clients are turned away, but for those
    /// of NBD that take the place of one that has not finished negotiation
    #[arg(long, value_name = "NUMBER", default_value_t = ServerOptions::default().connections_max)]
    connections_max: usize,
    /// Seconds for which a client may leave a request half sent, or replies untaken; one whose machine
    /// is suspended is cut off after that
    #[arg(long, value_name = "SECONDS", default_value_t = ServerOptions::default().stall_ms_max / 1000)]
    stall_seconds_max: u64,
}

impl Listening {
    /// Whether NBD clients have an address.
    pub fn has_nbd(&self) -> bool {
        self.nbd.is_some()
    }

    /// As a server of NBD takes them.
    pub fn options(&self) -> ServerOptions {
        ServerOptions {
            read_only: self.read_only,
            allow_remote: self.allow_remote,
            connections_max: self.connections_max,
            stall_ms_max: self.stall_seconds_max.saturating_mul(1000),
            ..ServerOptions::default()
        }
    }

    /// The addresses.
    ///
    /// # Errors
    /// Where one is none, or both are the same.
    pub fn outside(&self) -> anyhow::Result<Outside> {
        let nbd = self.nbd.as_ref().map(|text| text.parse::<Address>()).transpose()?;
        let metrics =
            self.metrics.as_ref().map(|text| text.parse::<Address>().context("--metrics"));
        let metrics = metrics.transpose()?;
        if let (Some(nbd), Some(metrics)) = (&nbd, &metrics) {
            let any_port = matches!(nbd, Address::Tcp(address) if address.port() == 0);
            if nbd == metrics && !any_port {
                bail!("--nbd and --metrics are both {nbd}: each needs an address of its own");
            }
        }
        Ok(Outside { nbd, metrics })
    }
}

/// Where a server is reached, and whom it tells what.
pub struct Outside {
    nbd: Option<Address>,
    metrics: Option<Address>,
}

/// What a server listens at.
pub struct Listeners {
    /// NBD clients.
    pub nbd: Option<Listener>,
    /// Those who read metrics.
    pub metrics: Option<Listener>,
}

impl Outside {
    /// Listens at all of them, or at none.
    ///
    /// # Errors
    /// Where one cannot be had.
    pub fn listen(&self, live: &Live, options: &ServerOptions) -> Result<Listeners> {
        let nbd = self.nbd.as_ref().map(|nbd| options.listen(live, nbd)).transpose()?;
        let metrics = self.metrics.as_ref().map(|address| {
            let metrics =
                EndpointOptions { allow_remote: options.allow_remote, ..Default::default() };
            metrics.listen(live, address)
        });
        Ok(Listeners { nbd, metrics: metrics.transpose()? })
    }
}
