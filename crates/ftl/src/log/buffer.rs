//! What one append holds; buffers are used again.
use std::cell::RefCell;
use tantalum_base::{PageBuf, PageNo, Payload, Version};
use tantalum_media::{Body, SlotKind, Spare};

/// What one append holds.
pub(crate) struct AppendBuffer<P> {
    pub spares: Vec<Spare>,
    pub bodies: Vec<Body<P>>,
}

impl<P: Payload> AppendBuffer<P> {
    /// Adds a page that a host writes; its version comes with its place.
    pub fn push_data(&mut self, page: PageNo, content: P) {
        let (version, checksum) = (Version::NEVER, content.checksum());
        self.spares.push(Spare { kind: SlotKind::Data, page, version, checksum });
        self.bodies.push(Body::Data(content));
    }

    /// Adds a page of records.
    pub fn push_record(&mut self, body: PageBuf, version: Version) {
        self.push_own(SlotKind::Record, PageNo(0), version, body);
    }

    /// Adds a page of the FTL's own.
    pub fn push_own(&mut self, kind: SlotKind, page: PageNo, version: Version, body: PageBuf) {
        let checksum = body.checksum();
        self.spares.push(Spare { kind, page, version, checksum });
        self.bodies.push(Body::Meta(body));
    }
}

/// Buffers to use again.
pub(crate) struct Buffers<P>(RefCell<Vec<AppendBuffer<P>>>);

impl<P> Default for Buffers<P> {
    fn default() -> Self {
        Buffers(RefCell::default())
    }
}

impl<P> Buffers<P> {
    /// A buffer for an append, empty.
    pub fn take(&self) -> AppendBuffer<P> {
        let used = self.0.borrow_mut().pop();
        used.unwrap_or_else(|| AppendBuffer { spares: Vec::new(), bodies: Vec::new() })
    }

    /// Gives a buffer back for the next append.
    pub fn give(&self, mut buffer: AppendBuffer<P>) {
        buffer.spares.clear();
        buffer.bodies.clear();
        self.0.borrow_mut().push(buffer);
    }
}
