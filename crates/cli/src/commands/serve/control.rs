//! Answers `tantalum stat`, `mode`, `share`, `clone` and `trim` of a served volume, over a Unix socket beside the
//! configuration.
//!
//! A request is one line. The answer is several lines, the last of which may be `error TEXT`:
//!
//! - `stat`: a line `field NAME VALUE` for each field that has a value, then `end`.
//! - `mode`, or `mode NAME`, of a tiered volume: `left PAGES` twice a second while pages are destaged, then
//!   `mode NAME`.
//! - `share A B LEN`, `clone [A B LEN]`, `clone-over [A B LEN]`, `trim A LEN`, in pages, of a volume of kind flash: `done A B LEN SHARED_SLOTS`.
//!
//! Every process that may write to the socket's file may send requests.
use crate::commands::remap::{MadeBy, Remap};
use crate::commands::told_counters::tell_holder;
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_cache::Mode;
use tantalum_runtime::live::net::{Address, Listener, Stream};
use tantalum_runtime::sync::WaitQueue;
use tantalum_runtime::{
    Admission, First, JoinHandle, Live, Places, Runtime, Stage, accept_each, first,
};
use tantalum_volume::asking::control_path;
use tantalum_volume::{FlashVolume, Stat, TieredDevice, TieredVolume, VolumeStore};

/// Length limit of a request.
const REQUEST_BYTES_MAX: usize = 256;
/// Time limit for a client to send its request.
const REQUEST_NS_MAX: u64 = 10_000_000_000;
/// Time between two lines that report the pages left.
const TELL_NS: u64 = 500_000_000;
/// Time limit for reading the first pages.
const CONTENT_NS_MAX: u64 = 2_000_000_000;
/// Maximum number of requests served at once, and of clients that have not sent theirs.
const PLACES: Places = Places { served_max: 8, silent_max: 8 };
/// Time limit for a client to take its answer.
const ANSWER_NS_MAX: u64 = 10_000_000_000;

/// The volume that is served.
pub enum Served {
    Flash(Rc<FlashVolume<VolumeStore>>),
    Tiered(Rc<TieredVolume<Live, VolumeStore>>),
}

/// Answers requests until it is stopped.
pub struct Control {
    shared: Rc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    live: Live,
    stat: Box<dyn Fn() -> Stat>,
    served: Served,
    stopping: Cell<bool>,
    /// In order of arrival.
    clients: RefCell<Vec<Rc<Client>>>,
    changed: WaitQueue,
}

/// A connected client.
struct Client {
    stream: Stream,
    stage: Cell<Stage>,
}

impl Control {
    /// Listens at the socket that belongs to the configuration at `config`.
    ///
    /// # Errors
    /// `Io` if it cannot listen: the path is too long, or the folder is not writable.
    pub fn start(
        live: &Live,
        config: &Path,
        stat: impl Fn() -> Stat + 'static,
        served: Served,
    ) -> Result<Control> {
        let listener = Listener::bind(live, &Address::Unix(control_path(config)))?;
        let shared = Rc::new(Shared {
            live: live.clone(),
            stat: Box::new(stat),
            served,
            stopping: Cell::new(false),
            clients: RefCell::default(),
            changed: WaitQueue::new("the end of the control socket"),
        });
        let accepted = Rc::clone(&shared);
        let accepting = live.spawn("control", async move { accepted.accept(listener).await });
        Ok(Control { shared, accepting })
    }

    /// Stops listening, and waits until no client is being answered any more.
    pub async fn stop(self) {
        self.shared.stopping.set(true);
        self.shared.changed.wake_all();
        self.accepting.await;
        let idle = || self.shared.clients.borrow().is_empty().then_some(());
        self.shared.changed.until(idle).await;
    }
}

impl Shared {
    fn device(&self) -> Result<&TieredDevice<Live, VolumeStore>> {
        match &self.served {
            Served::Tiered(volume) => Ok(volume.device().device()),
            Served::Flash(_) => {
                Err(Error::new(ErrorKind::Unsupported, "only a tiered volume has modes"))
            }
        }
    }

    /// All fields for `tantalum stat`.
    async fn stat(&self) -> Stat {
        let mut stat = (self.stat)();
        let mut content = stat.clone();
        let told = async {
            match &self.served {
                Served::Flash(volume) => content.put_content(&**volume).await,
                Served::Tiered(volume) => content.put_content(&**volume).await,
            }
        };
        // A home may take long to answer, or never answer. The other fields are reported anyway.
        if let First::Other(()) = first(self.live.sleep(CONTENT_NS_MAX), told).await {
            stat = content;
        }
        tell_holder(&mut stat, std::process::id());
        stat
    }

    async fn remap(&self, line: &str, stream: &Stream) -> Result<()> {
        let remap: Remap = line.trim().parse()?;
        let Served::Flash(volume) = &self.served else {
            return Err(Error::new(ErrorKind::Unsupported, remap.tiered_refusal()));
        };
        let done = remap.apply(volume, MadeBy::Server).await?;
        tracing::info!("request {}: done", line.trim());
        send(stream, &format!("done {done}\n")).await
    }

    async fn until_stopped(&self) {
        self.changed.until(|| self.stopping.get().then_some(())).await;
    }

    async fn accept(self: Rc<Self>, listener: Listener) {
        let accepting = accept_each(&self.live, &listener, |accepted| {
            // A failure may be temporary, such as too many open files.
            if let Ok(stream) = accepted {
                self.admit(stream);
            }
        });
        first(self.until_stopped(), accepting).await;
    }

    fn admit(self: &Rc<Self>, stream: Stream) {
        let admission = {
            let clients = self.clients.borrow();
            PLACES.admission(clients.iter().map(|client| (Rc::clone(client), client.stage.get())))
        };
        match admission {
            Admission::Full => return stream.shutdown(),
            Admission::Replaces(oldest) => {
                oldest.stage.set(Stage::Cut);
                oldest.stream.shutdown();
            }
            Admission::Free => {}
        }
        let client = Rc::new(Client { stream, stage: Cell::new(Stage::Silent) });
        self.clients.borrow_mut().push(Rc::clone(&client));
        let shared = Rc::clone(self);
        drop(self.live.spawn("control client", async move {
            let stream = &client.stream;
            if let First::Other(Err(error)) =
                first(shared.until_stopped(), shared.answer(&client)).await
            {
                // If this cannot be sent, the client has gone.
                let told = format!("error {error}\n");
                let late = first(shared.until_stopped(), shared.live.sleep(ANSWER_NS_MAX));
                let _ = first(late, send(stream, &told)).await;
            }
            stream.shutdown();
            shared.clients.borrow_mut().retain(|other| !Rc::ptr_eq(other, &client));
            shared.changed.wake_all();
        }));
    }

    async fn answer(&self, client: &Client) -> Result<()> {
        let stream = &client.stream;
        let request = receive(stream);
        let line = match first(self.live.sleep(REQUEST_NS_MAX), request).await {
            First::One(()) => return Ok(()),
            First::Other(line) => line?,
        };
        client.stage.set(Stage::Served);
        match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["stat"] => return send(stream, &told(&self.stat().await)).await,
            ["mode"] => {}
            ["mode", name] => self.change(Mode::parse(name)?, stream).await?,
            _ => return self.remap(&line, stream).await,
        }
        self.tell_left(stream).await?;
        send(stream, &format!("mode {}\n", self.device()?.mode().name())).await
    }

    /// Changes the mode, and reports the number of pages that are left to be destaged.
    async fn change(&self, mode: Mode, stream: &Stream) -> Result<()> {
        tracing::info!("changing to mode {}", mode.name());
        let mut changed = pin!(self.device()?.set_mode(mode));
        loop {
            match first(changed.as_mut(), self.live.sleep(TELL_NS)).await {
                First::One(changed) => return changed,
                First::Other(()) => self.tell_left(stream).await?,
            }
        }
    }

    async fn tell_left(&self, stream: &Stream) -> Result<()> {
        let left = self.device()?.statistics().dirty_or_trimmed_pages;
        send(stream, &format!("left {left}\n")).await
    }
}

fn told(stat: &Stat) -> String {
    let lines = stat.iter().map(|(name, figure)| format!("field {name} {figure}\n"));
    lines.chain(["end\n".to_owned()]).collect()
}

async fn receive(stream: &Stream) -> Result<String> {
    let mut bytes = [0; REQUEST_BYTES_MAX];
    let mut count = 0;
    while !bytes[..count].contains(&b'\n') {
        let received = stream.recv(&mut bytes[count..]).await?;
        if received == 0 {
            let context =
                format!("a request must be one line of at most {REQUEST_BYTES_MAX} bytes");
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        count += received;
    }
    Ok(String::from_utf8_lossy(&bytes[..count]).into_owned())
}

async fn send(stream: &Stream, text: &str) -> Result<()> {
    let mut left = text.as_bytes();
    while !left.is_empty() {
        left = &left[stream.send(left).await?..];
    }
    Ok(())
}
