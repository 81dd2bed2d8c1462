//! A device that makes changes durable before it acknowledges them, over one that is durable on flush.
//!
//! One volume may be served both to clients that flush, such as those of NBD, and to clients that need each acknowledged change to
//! be durable. Both kinds use one device below. This layer flushes it after each write and trim of the second kind. Concurrent
//! flushes share their appends, as commits do. Commits and shares are durable without a flush. A flush also covers other clients'
//! changes that the device below has acknowledged.
use std::rc::Rc;
use tantalum_base::{DeviceLayer, Durability, Limits, PageDevice, PageNo, PageRange, Result, TxId};
use tantalum_ftl::fault_points::Fault;

/// A device whose changes are all durable when they are acknowledged, whatever the durability of the device below. If the device
/// below has the same durability, this layer costs nothing. Clones of that device may be in use at the same time.
pub struct OnAck<D> {
    device: Rc<D>,
    limits: Limits,
    flushes: bool,
}

impl<D: PageDevice> OnAck<D> {
    /// A layer over `device`, whose durability must be [`Durability::OnAck`] or [`Durability::OnFlush`].
    pub fn over(device: Rc<D>) -> Self {
        let below = device.limits();
        assert!(
            below.durability != Durability::Volatile,
            "the device below does not keep the order of writes up to a flush"
        );
        let flushes = below.durability != Durability::OnAck;
        let limits = Limits { durability: Durability::OnAck, ..below.clone() };
        OnAck { device, limits, flushes }
    }

    /// Completes a change by making it durable.
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
            // The commit makes it durable.
            Some(_) => written,
        }
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        let trimmed = self.device.trim(range).await;
        self.kept(trimmed).await
    }
}
