//! Addresses and limits of a server.
use anyhow::{Context, bail};
use tantalum_base::Result;
use tantalum_metrics::EndpointOptions;
use tantalum_nbd::ServerOptions;
use tantalum_runtime::Live;
use tantalum_runtime::live::net::{Address, Listener};

use crate::encryption::{self, Encryption};
use crate::group::group_id;

/// Options of a command that serves.
#[derive(clap::Args, Clone, Debug)]
pub struct Listening {
    /// Address for NBD clients: unix:/path, 127.0.0.1:10809 or [::1]:10809
    #[arg(long, value_name = "ADDRESS")]
    nbd: Option<String>,
    /// Address for metrics over HTTP, at /metrics, for Prometheus and `tantalum top`; in the form of --nbd
    /// (docs/metrics.md)
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<String>,
    /// Refuse everything that would change the volume, and write nothing to it: after a killed writer, the volume is
    /// recovered in memory alone. Several read-only servers may serve a volume at the same time
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    encryption: Encryption,
    /// Also listen on addresses that other machines can reach without TLS: there is no authentication then
    #[arg(long)]
    allow_remote: bool,
    /// Let the members of this group, too, connect to the Unix sockets of this server: a name of /etc/group, or a number. By
    /// default socket_group of the configuration; without either only this user may connect
    #[arg(long, value_name = "GROUP")]
    socket_group: Option<String>,
    /// Number of connections served at once, for NBD and for local clients each; further clients are disconnected
    #[arg(long, value_name = "NUMBER", default_value_t = ServerOptions::default().connections_max)]
    connections_max: usize,
    /// Number of connections besides that have not finished their handshake, for NBD and for local clients each; one more
    /// replaces the oldest
    #[arg(long, value_name = "NUMBER", default_value_t = ServerOptions::default().handshakes_max)]
    handshakes_max: usize,
    /// Seconds for which a client may leave a request incomplete, or replies unread, before it is disconnected, such as
    /// a client on a suspended machine
    #[arg(long, value_name = "SECONDS", default_value_t = ServerOptions::default().stall_ms_max / 1000)]
    stall_seconds_max: u64,
    /// Seconds for which a server that was asked to stop waits until its clients have their replies
    #[arg(long, value_name = "SECONDS", default_value_t = ServerOptions::default().stop_ms_max / 1000)]
    stop_seconds_max: u64,
}

impl Listening {
    /// Whether there is an address for NBD clients.
    pub fn has_nbd(&self) -> bool {
        self.nbd.is_some()
    }

    /// The options of the NBD server, whose clients connect to an address of `outside`.
    ///
    /// # Errors
    /// If clients of other machines would be admitted although that was not allowed, or if the certificates cannot be used.
    pub fn options(&self, outside: &Outside) -> Result<ServerOptions> {
        let options = ServerOptions {
            read_only: self.read_only,
            allow_remote: self.allow_remote,
            tls: self.encryption.read(outside.nbd.as_ref())?,
            connections_max: self.connections_max,
            handshakes_max: self.handshakes_max,
            stop_ms_max: self.stop_seconds_max.saturating_mul(1000),
            stall_ms_max: self.stall_seconds_max.saturating_mul(1000),
            ..ServerOptions::default()
        };
        outside.nbd.iter().try_for_each(|address| options.check_address(address))?;
        Ok(options)
    }

    /// The id of the group whose members may connect: that of the option, or `configured`.
    ///
    /// # Errors
    /// If there is no such group.
    pub fn socket_group(&self, configured: Option<&str>) -> anyhow::Result<Option<u32>> {
        let (group, key) = match &self.socket_group {
            Some(group) => (Some(group.as_str()), "--socket-group"),
            None => (configured, "socket_group"),
        };
        group.map(|group| group_id(group).context(key)).transpose()
    }

    /// The parsed addresses.
    ///
    /// # Errors
    /// If one is invalid, or both are the same.
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

/// The addresses of a server.
pub struct Outside {
    nbd: Option<Address>,
    metrics: Option<Address>,
}

/// The sockets on which a server listens.
pub struct Listeners {
    /// NBD clients.
    pub nbd: Option<Listener>,
    /// Readers of metrics.
    pub metrics: Option<Listener>,
}

impl Outside {
    /// Listens at all addresses, or at none.
    ///
    /// # Errors
    /// If one of them is not available.
    pub fn listen(&self, live: &Live, options: &ServerOptions) -> Result<Listeners> {
        let nbd = self.nbd.as_ref().map(|nbd| options.listen(live, nbd)).transpose()?;
        nbd.iter().for_each(|nbd| encryption::warn(nbd.local_address(), options.tls.as_ref()));
        let metrics = self.metrics.as_ref().map(|address| {
            let metrics =
                EndpointOptions { allow_remote: options.allow_remote, ..Default::default() };
            metrics.listen(live, address)
        });
        Ok(Listeners { nbd, metrics: metrics.transpose()? })
    }
}
