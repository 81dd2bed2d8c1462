//! A page device as an export of bytes: implements the commands on pages.
use crate::client::Client;
use crate::holds::Holds;
use crate::options::ServerOptions;
use crate::pieces::{side_by_side, split};
use crate::protocol::handshake::{self, ExportInfo};
use crate::protocol::structured::Descriptor;
use crate::protocol::transmission::{
    CMD_FLAG_FUA, CMD_FLAG_NO_HOLE, CMD_FLAG_REQ_ONE, Command, Request,
};
use crate::range_lock::{Mode, RangeLock};
use crate::span::Span;
use crate::statistics::Counters;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use tantalum_base::{
    Durability, Error, ErrorKind, PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Payload,
    Result,
};
use tantalum_runtime::rounds::{Rounds, Seat};
use tantalum_runtime::sync::WaitQueue;
use tantalum_runtime::{Places, Runtime};

/// Smallest block size announced to clients.
const BLOCK_BYTES_MIN: u32 = 512;
/// Maximum zero pages in one write, if a client wants no holes and the device allows that many.
const ZERO_PAGES_MAX: u64 = 256;
/// Pages read in one step, as of one moment.
const READ_PAGES_MAX: u64 = 256;
/// Pieces of one long READ or WRITE in flight at once: they share the device's durable writes. More would only delay other
/// clients.
const PIECES_AT_ONCE: usize = 8;
/// Pages trimmed in one step, during which the device does nothing else.
const TRIM_PAGES_MAX: u64 = 8192;

/// The outcome of a request that was done.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Done {
    /// There is nothing to return.
    Changed,
    /// The covering pages of its range were read.
    Read,
    /// The status of the first bytes of its range.
    Status(Vec<Descriptor>),
}

/// One device, shared by all connections.
pub(crate) struct Export<D> {
    pub(crate) device: Rc<D>,
    locks: RangeLock,
    pub(crate) options: ServerOptions,
    pub(crate) info: ExportInfo,
    pub(crate) counters: Counters,
    /// The turns of all connections.
    pub(crate) rounds: Rounds,
    /// The seat of all TLS handshakes together, while there is one.
    handshakes: RefCell<Weak<Seat>>,
    holds: Holds,
    /// Set if a stop shall be quick.
    pub(crate) hurry: (Cell<bool>, WaitQueue),
    // Maximum pages of an atomic write; longer writes are split into pieces.
    atomic_pages: u64,
    // Whether FUA needs a flush. It needs none if completed writes survive a power cut anyway.
    fua_flushes: bool,
}

/// Size in bytes of the export of a device of `pages` pages: `asked`, which ends within the last page, or all of the
/// device.
fn export_bytes(pages: u64, asked: Option<u64>) -> Result<u64> {
    let page = PAGE_BYTES as u64;
    let refused = |what: String| Err(Error::new(ErrorKind::InvalidInput, what));
    let Some(bytes) = pages.checked_mul(page) else {
        return refused(format!("a device of {pages} pages is past 64-bit offsets"));
    };
    match asked {
        None => Ok(bytes),
        Some(asked)
            if asked.div_ceil(page) == pages && asked.is_multiple_of(BLOCK_BYTES_MIN.into()) =>
        {
            Ok(asked)
        }
        Some(asked) => refused(format!(
            "an export of {asked} bytes does not fit a device of {pages} pages: it must end within \
             the last page, at a multiple of {BLOCK_BYTES_MIN} bytes"
        )),
    }
}

impl<D: PageDevice<Page = PageBuf>> Export<D> {
    pub(crate) fn new(device: Rc<D>, options: ServerOptions, rounds: Rounds) -> Result<Self> {
        options.check()?;
        let limits = device.limits().clone();
        let bad = |what: String| Err(Error::new(ErrorKind::InvalidInput, what));
        if limits.page_bytes as usize != PAGE_BYTES {
            return bad(format!(
                "NBD serves pages of {PAGE_BYTES} bytes, not {}",
                limits.page_bytes
            ));
        }
        let size_bytes = export_bytes(limits.pages, options.size_bytes)?;
        let mut flags = handshake::EXPORT_HAS_FLAGS
            | handshake::EXPORT_SEND_FLUSH
            | handshake::EXPORT_SEND_FUA
            | handshake::EXPORT_SEND_TRIM
            | handshake::EXPORT_SEND_WRITE_ZEROES
            | handshake::EXPORT_SEND_FAST_ZERO
            // All connections share one device, so a flush on any of them covers the writes
            // acknowledged on all.
            | handshake::EXPORT_CAN_MULTI_CONN;
        if options.read_only {
            flags |= handshake::EXPORT_READ_ONLY;
        }
        let info = ExportInfo {
            size_bytes,
            flags,
            block_bytes_min: BLOCK_BYTES_MIN,
            block_bytes_preferred: PAGE_BYTES as u32,
            request_bytes_max: options.request_bytes_max,
        };
        Ok(Export {
            device,
            locks: RangeLock::new(),
            options,
            info,
            counters: Counters::default(),
            rounds,
            handshakes: RefCell::default(),
            holds: Holds::new(),
            hurry: (Cell::new(false), WaitQueue::new("haste")),
            atomic_pages: limits.atomic_write_pages_max.max(1).into(),
            fua_flushes: limits.durability != Durability::OnAck,
        })
    }

    /// The places of connections.
    pub(crate) fn places(&self) -> Places {
        let ServerOptions { connections_max, handshakes_max, .. } = self.options;
        Places { served_max: connections_max, silent_max: handshakes_max }
    }

    /// The seat of all TLS handshakes together: many strangers wait for each other, and delay no other client.
    pub(crate) fn handshake_seat<R: Runtime>(&self, runtime: &R) -> Rc<Seat> {
        let mut handshakes = self.handshakes.borrow_mut();
        handshakes.upgrade().unwrap_or_else(|| {
            let seat = Rc::new(self.rounds.seat(runtime));
            *handshakes = Rc::downgrade(&seat);
            seat
        })
    }

    /// Performs a checked request. `pages` holds a write's payload (at its place in the covering
    /// pages) and receives a read's covering pages. A long command takes turns with those of other clients, and ends
    /// early if its `client` has gone.
    pub(crate) async fn perform(
        &self,
        request: &Request,
        pages: &mut Vec<PageBuf>,
        client: &Client,
    ) -> Result<Done> {
        let span = Span { offset: request.offset, length: u64::from(request.length) };
        let counters = &self.counters;
        let whole = self.to_end_of_page(span);
        match request.command {
            Command::Read => {
                counters.reads.add(1);
                counters.bytes_read.add(span.length);
                self.read(span, pages, client).await?;
                return Ok(Done::Read);
            }
            Command::BlockStatus => {
                counters.block_statuses.add(1);
                let one = request.has(CMD_FLAG_REQ_ONE);
                return Ok(Done::Status(self.block_status(span, one, pages, client).await?));
            }
            Command::Write => {
                counters.writes.add(1);
                counters.bytes_written.add(span.length);
                self.write(whole, pages, client).await?;
            }
            Command::Flush => {
                counters.flushes.add(1);
                self.device.flush().await?;
                return Ok(Done::Changed);
            }
            Command::Trim => {
                counters.trims.add(1);
                counters.bytes_trimmed.add(span.length);
                self.trim(whole.whole(), client).await?;
            }
            Command::WriteZeroes => {
                counters.write_zeroes.add(1);
                counters.bytes_zeroed.add(span.length);
                self.write_zeroes(whole, request.has(CMD_FLAG_NO_HOLE), client).await?;
            }
            Command::Disconnect | Command::Unknown(_) => return Ok(Done::Changed),
        }
        if request.has(CMD_FLAG_FUA) && self.fua_flushes {
            self.device.flush().await?;
        }
        Ok(Done::Changed)
    }

    /// Extends a span that reaches the end of the export to the end of the last page. The bytes after the export's end
    /// are zeros and stay zeros, so a change of the last page need not read it first.
    fn to_end_of_page(&self, span: Span) -> Span {
        match span.length > 0 && span.offset + span.length == self.info.size_bytes {
            true => {
                let end = self.info.size_bytes.next_multiple_of(PAGE_BYTES as u64);
                Span { length: end - span.offset, ..span }
            }
            false => span,
        }
    }

    async fn read(&self, span: Span, pages: &mut Vec<PageBuf>, client: &Client) -> Result<()> {
        let range = span.covering();
        pages.clear();
        pages.resize_with(range.pages as usize, PageBuf::zero);
        if pages.is_empty() {
            return Ok(());
        }
        let read = async |piece: PageRange, pages: &mut [PageBuf]| {
            let _step = client.step(piece.pages).await?;
            self.device.read(piece.first, pages, None).await
        };
        if range.pages <= READ_PAGES_MAX {
            return read(range, pages).await;
        }
        let pieces = split(range, READ_PAGES_MAX).zip(pages.chunks_mut(READ_PAGES_MAX as usize));
        side_by_side(PIECES_AT_ONCE, pieces.map(|(piece, pages)| read(piece, pages))).await
    }

    /// Writes a span's covering pages, in pieces that are each atomic.
    async fn write(&self, span: Span, pages: &mut [PageBuf], client: &Client) -> Result<()> {
        let range = span.covering();
        if range.pages == 0 {
            return Ok(());
        }
        let aligned = span.is_aligned();
        let mode = if aligned { Mode::Shared } else { Mode::Exclusive };
        let _guard = self.locks.acquire(range, mode).await;
        if !aligned {
            self.counters.read_modify_writes.add(1);
        }
        let write = async |piece: PageRange, pages: &[PageBuf]| {
            let _step = client.step(piece.pages).await?;
            self.device.write(piece.first, pages, None).await
        };
        let change = async || {
            for (page, inside) in span.edges() {
                let old = self.read_page(page).await?;
                let new = pages[(page.0 - range.first.0) as usize].make_mut();
                new[..inside.start].copy_from_slice(&old[..inside.start]);
                new[inside.end..].copy_from_slice(&old[inside.end..]);
            }
            if range.pages <= self.atomic_pages {
                return write(range, pages).await;
            }
            let chunks = pages.chunks(self.atomic_pages as usize);
            let pieces = split(range, self.atomic_pages).zip(chunks);
            let writes = pieces.map(|(piece, pages)| write(piece, pages));
            side_by_side(PIECES_AT_ONCE, writes).await
        };
        self.holds.when_released(&*self.device, client, range, change).await
    }

    /// Ends all waits for pages that a transaction holds: these requests are refused.
    pub(crate) fn wait_no_longer(&self) {
        self.holds.wait_no_longer();
    }

    async fn trim(&self, range: PageRange, client: &Client) -> Result<()> {
        if range.pages == 0 {
            return Ok(());
        }
        let _shared = self.locks.acquire(range, Mode::Shared).await;
        self.trim_pieces(range, client).await
    }

    async fn write_zeroes(&self, span: Span, no_hole: bool, client: &Client) -> Result<()> {
        let whole = span.whole();
        let aligned = span.is_aligned();
        let mode = if aligned { Mode::Shared } else { Mode::Exclusive };
        let _guard = self.locks.acquire(span.covering(), mode).await;
        if !aligned {
            self.counters.read_modify_writes.add(1);
        }
        for (page, inside) in span.edges() {
            let edge = PageRange::new(page, 1);
            let write = async || {
                let mut content = self.read_page(page).await?;
                content.make_mut()[inside.clone()].fill(0);
                // A client may split a long range within a page. The second part then finds the zeros of the first, and
                // trims the page.
                match content == PageBuf::zero() && !no_hole {
                    true => self.device.trim(edge).await,
                    false => self.device.write(page, &[content], None).await,
                }
            };
            self.holds.when_released(&*self.device, client, edge, write).await?;
        }
        if whole.pages == 0 {
            return Ok(());
        }
        if !no_hole {
            return self.trim_pieces(whole, client).await;
        }
        let pages_max = ZERO_PAGES_MAX.min(self.atomic_pages);
        let zeros = vec![PageBuf::zero(); whole.pages.min(pages_max) as usize];
        let write = |piece: PageRange| {
            let zeros = &zeros[..piece.pages as usize];
            let write = async move || {
                let _step = client.step(piece.pages).await?;
                self.device.write(piece.first, zeros, None).await
            };
            self.holds.when_released(&*self.device, client, piece, write)
        };
        side_by_side(PIECES_AT_ONCE, split(whole, pages_max).map(write)).await
    }

    async fn read_page(&self, page: PageNo) -> Result<PageBuf> {
        let mut content = [PageBuf::zero()];
        self.device.read(page, &mut content, None).await?;
        let [content] = content;
        Ok(content)
    }

    /// Trims `range` in pieces that are each atomic; other requests run in between.
    async fn trim_pieces(&self, range: PageRange, client: &Client) -> Result<()> {
        for piece in split(range, TRIM_PAGES_MAX) {
            client.scan(piece.pages).await?;
            let trim = async || self.device.trim(piece).await;
            self.holds.when_released(&*self.device, client, piece, trim).await?;
        }
        Ok(())
    }
}
