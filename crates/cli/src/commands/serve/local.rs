//! `tantalum serve --socket`: serves the volume to local processes.
use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use tantalum_base::{PageBuf, PageDevice, Result};
use tantalum_local::{Place, Server, ServerOptions, Tracked};
use tantalum_runtime::metrics::Readings;
use tantalum_runtime::rounds::Rounds;
use tantalum_runtime::sync::WaitQueue;
use tantalum_runtime::{JoinHandle, Live, Runtime};
use tantalum_serving::Tell;
use tantalum_volume::{OnAck, Origin, VolumeConfig};

/// Serves until it is stopped.
pub struct Local {
    place: Place,
    tell: Tell,
    hasten: Rc<dyn Fn()>,
    stop: Rc<(Cell<bool>, WaitQueue)>,
    serving: Cell<Option<JoinHandle<Result<()>>>>,
}

impl Local {
    /// Listens for local clients of the volume of `config`, at `path` or beside the configuration.
    ///
    /// # Errors
    /// `Io` if it cannot listen.
    pub fn start<D: PageDevice<Page = PageBuf>>(
        live: &Live,
        config: &VolumeConfig,
        path: Option<&Path>,
        volume: Rc<Tracked<D>>,
        (nbd, transaction_idle_ms_max): (&tantalum_nbd::ServerOptions, u64),
        rounds: Rounds,
    ) -> Result<Local> {
        let (mut place, listener) = Place::claim(live, &config.path, path)?;
        if let Err(error) = place.link(&config.path) {
            eprintln!(
                "tantalum: local clients must name the path of the socket, as the link beside the configuration could not be created: {error}"
            );
        }
        let options = ServerOptions {
            clients_max: nbd.connections_max,
            handshakes_max: nbd.handshakes_max,
            stop_ms_max: nbd.stop_ms_max,
            rounds,
            stall_ms_max: nbd.stall_ms_max,
            transaction_idle_ms_max,
            read_only: nbd.read_only,
            file: Origin::of(config).map(|origin| origin.file()),
            ..ServerOptions::default()
        };
        // For local clients each change is durable when it is acknowledged, whatever durability NBD clients are promised.
        let changes = Rc::clone(volume.changes());
        let server = Server::new(Rc::new(OnAck::over(volume)), changes, options);
        let told = server.clone();
        let tell = Rc::new(move |out: &mut Readings| told.metrics(out));
        let hastened = server.clone();
        let hasten = Rc::new(move || hastened.hasten());
        let stop = Rc::new((Cell::new(false), WaitQueue::new("the end of the local server")));
        let (handle, stopped) = (live.clone(), Rc::clone(&stop));
        let serving = live.spawn("local server", async move {
            let stopped = stopped.1.until(|| stopped.0.get().then_some(()));
            server.serve(&handle, listener, stopped).await
        });
        Ok(Local { place, tell, hasten, stop, serving: Cell::new(Some(serving)) })
    }

    /// The address that clients connect to.
    pub fn place(&self) -> String {
        format!("unix:{}", self.place.socket().display())
    }

    /// Reports the metrics of local clients.
    pub fn tell(&self) -> Tell {
        Rc::clone(&self.tell)
    }

    /// Shortens the stop, now or later.
    pub fn hasten(&self) {
        (self.hasten)();
    }

    /// Accepts no more clients; connected clients are closed when they have their answers.
    pub fn begin_to_stop(&self) {
        self.stop.0.set(true);
        self.stop.1.wake_all();
    }

    /// Waits until all clients are closed.
    ///
    /// # Errors
    /// As [`Server::serve`].
    pub async fn stop(&self) -> Result<()> {
        self.begin_to_stop();
        match self.serving.take() {
            Some(serving) => serving.await,
            None => Ok(()),
        }
    }
}
