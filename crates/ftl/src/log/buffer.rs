//! Buffers for appends, which are reused.
use std::cell::RefCell;
use tantalum_base::{PageBuf, PageNo, Payload, Version};
use tantalum_media::{Body, SlotKind, Spare};

/// The content of one append.
pub(crate) struct AppendBuffer<P> {
    pub spares: Vec<Spare>,
    pub bodies: Vec<Body<P>>,
}

impl<P: Payload> AppendBuffer<P> {
    /// Adds a host's page; its version is assigned with its place.
    pub fn push_data(&mut self, page: PageNo, content: P) {
        self.push_page(SlotKind::Data, page, content);
    }

    /// Adds a page of `kind`; its version is assigned with its place.
    pub fn push_page(&mut self, kind: SlotKind, page: PageNo, content: P) {
        let (version, checksum) = (Version::NEVER, content.checksum());
        self.spares.push(Spare { kind, page, version, checksum });
        self.bodies.push(Body::Data(content));
    }

    /// Adds a record page.
    pub fn push_record(&mut self, body: PageBuf, version: Version) {
        self.push_own(SlotKind::Record, PageNo(0), version, body);
    }

    /// Adds a metadata page.
    pub fn push_own(&mut self, kind: SlotKind, page: PageNo, version: Version, body: PageBuf) {
        let checksum = body.checksum();
        self.spares.push(Spare { kind, page, version, checksum });
        self.bodies.push(Body::Meta(body));
    }
}

/// Unused buffers.
pub(crate) struct Buffers<P>(RefCell<Vec<AppendBuffer<P>>>);

impl<P> Default for Buffers<P> {
    fn default() -> Self {
        Buffers(RefCell::default())
    }
}

impl<P> Buffers<P> {
    /// An empty buffer for an append.
    pub fn take(&self) -> AppendBuffer<P> {
        let used = self.0.borrow_mut().pop();
        used.unwrap_or_else(|| AppendBuffer { spares: Vec::new(), bodies: Vec::new() })
    }

    /// Returns a buffer for later appends.
    pub fn give(&self, mut buffer: AppendBuffer<P>) {
        buffer.spares.clear();
        buffer.bodies.clear();
        self.0.borrow_mut().push(buffer);
    }
}
