//! How a device behind a buffer is made and opened.
use std::rc::Rc;
use tantalum_base::{Limits, PageDevice, Result};
use tantalum_policy::Policy;
use tantalum_runtime::{DeviceKind, Opening, Runtime};

use crate::buffered::Buffered;

/// Makes the policy for the buffer of a device with these limits; `None` for no buffer.
type MakePolicy = dyn Fn(&Limits) -> Result<Option<Box<dyn Policy>>>;

/// A [`Buffered`] device of kind `K`.
pub struct BufferedKind<K> {
    below: K,
    policy: Box<MakePolicy>,
}

impl<K> BufferedKind<K> {
    /// A device of kind `below` behind a buffer with the policy that `policy` makes.
    pub fn new(
        below: K,
        policy: impl Fn(&Limits) -> Result<Option<Box<dyn Policy>>> + 'static,
    ) -> Self {
        BufferedKind { below, policy: Box::new(policy) }
    }

    fn before<D: PageDevice>(&self, device: Rc<D>) -> Result<Rc<Buffered<D>>> {
        let policy = (self.policy)(device.limits())?;
        Ok(Rc::new(Buffered::new(device, policy)))
    }
}

impl<R: Runtime, M, K: DeviceKind<R, M>> DeviceKind<R, M> for BufferedKind<K> {
    type Device = Buffered<K::Device>;
    type Kept = K::Kept;
    type Report = K::Report;

    const HAS_STORED_ENERGY: bool = K::HAS_STORED_ENERGY;

    async fn format(&self, on: Opening<R, M, K::Kept>) -> Result<Rc<Self::Device>> {
        self.before(self.below.format(on).await?)
    }

    async fn open(&self, on: Opening<R, M, K::Kept>) -> Result<(Rc<Self::Device>, K::Report)> {
        let (device, report) = self.below.open(on).await?;
        Ok((self.before(device)?, report))
    }

    async fn on_stored_energy(
        &self,
        device: Rc<Self::Device>,
        on: Opening<R, M, K::Kept>,
    ) -> Result<()> {
        self.below.on_stored_energy(Rc::clone(device.device()), on).await
    }
}
