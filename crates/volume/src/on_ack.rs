//! A device that keeps what it acknowledges, over one that keeps what is flushed.
//!
//! One volume may be served to clients that flush, as those of NBD do, and to others that count on each reply. Below is one
//! device, which is flushed behind each write and trim of the latter; flushes at one time share their appends, as commits do. Commits and
//! shares are durable as they are, and a flush also covers what others were acknowledged by the device below.
use std::rc::Rc;
use tantalum_base::{DeviceLayer, Durability, Limits, PageDevice, PageNo, PageRange, Result, TxId};
use tantalum_ftl::fault_points::Fault;

/// A device of which every change is durable when it is acknowledged, whatever the device below promises; where
/// that promises as much it costs nothing. Clones of the device below may be in use beside it.
pub struct OnAck<D> {
    device: Rc<D>,
    limits: Limits,
    flushes: bool,
}

impl<D: PageDevice> OnAck<D> {
    /// Over `device`, which must keep a prefix of its changes: [`Durability::OnAck`] or [`Durability::OnFlush`].
    pub fn over(device: Rc<D>) -> Self {
        let below = device.limits();
        assert!(below.durability != Durability::Volatile, "a flush of it does not keep an order");
        let flushes = below.durability != Durability::OnAck;
        let limits = Limits { durability: Durability::OnAck, ..below.clone() };
        OnAck { device, limits, flushes }
    }

    /// Ends a change: makes it durable.
    async fn kept(&self, changed: Result<()>) -> Result<()> {
        changed?;
        match self.flushes && !Fault::EarlyAcknowledgement.is_planted() {
            true => self.device.flush().await,
            false => Ok(()),
        }
    }
}

impl<D: PageDevice> DeviceLayer for OnAck<D> {
    type Inner = D;

    fn inner(&self) -> &D {
        &self.device
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn write(&self, first: PageNo, pages: &[D::Page], tx: Option<TxId>) -> Result<()> {
        let written = self.device.write(first, pages, tx).await;
        match tx {
            None => self.kept(written).await,
            // Its commit makes it durable.
            Some(_) => written,
        }
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        let trimmed = self.device.trim(range).await;
        self.kept(trimmed).await
    }
}
