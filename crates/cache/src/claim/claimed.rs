//! A home as its cache sees it: the content under the claim.
use super::{Change, Claim, Extent, OPERATION_BYTES};
use crate::fault_points::Fault;
use std::cell::Cell;
use tantalum_base::Result;
use tantalum_media::BlockStore;
use tantalum_media::block_store::{IoBuf, StoreLayer};

/// A home that may have a claim on it. All reads, writes and zeroing through it work as on a home
/// without a claim.
pub struct Claimed<S> {
    inner: S,
    claim: Cell<Option<(Claim, Extent)>>,
    /// A change of the claim that was interrupted; nothing may be written then.
    unfinished: Option<Change>,
}

impl<S> Claimed<S> {
    /// A home without a claim.
    pub fn plain(inner: S) -> Self {
        Claimed { inner, claim: Cell::new(None), unfinished: None }
    }

    /// A home in the middle of `change`, for reading only.
    pub(super) fn unfinished(inner: S, change: Change) -> Self {
        Claimed { unfinished: Some(change), ..Self::plain(inner) }
    }

    /// The claim.
    pub fn claim(&self) -> Option<Claim> {
        self.claim.get().map(|(claim, _)| claim)
    }

    /// Records the claim that the home has from now on.
    pub(super) fn set(&self, claim: Option<(Claim, Extent)>) {
        self.claim.set(claim);
    }

    fn toggle(&self, offset: u64, bytes: &mut [u8]) {
        if let Some((claim, extent)) = self.claim.get() {
            extent.parts(offset, bytes.len()).for_each(|(part, _)| claim.toggle(&mut bytes[part]));
        }
    }
}

impl<S: BlockStore> Claimed<S> {
    async fn write_zeros(&self, claim: &Claim, offset: u64, bytes: usize) -> Result<()> {
        let mut at = 0;
        while at < bytes {
            let length = (bytes - at).min(OPERATION_BYTES);
            let mut buf = self.inner.buffer(length);
            buf.fill(0);
            claim.toggle(&mut buf);
            let buf = self.inner.write(offset + at as u64, buf, false).await?;
            self.inner.recycle(buf);
            at += length;
        }
        Ok(())
    }
}

impl<S: BlockStore> StoreLayer for Claimed<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.inner
    }

    async fn read(&self, offset: u64, buf: IoBuf) -> Result<IoBuf> {
        let mut buf = self.inner.read(offset, buf).await?;
        self.toggle(offset, &mut buf);
        if let Some(change) = &self.unfinished {
            change.show(offset, &mut buf);
        }
        Ok(buf)
    }

    async fn write(&self, offset: u64, mut buf: IoBuf, durable: bool) -> Result<IoBuf> {
        self.toggle(offset, &mut buf);
        let mut buf = self.inner.write(offset, buf, durable).await?;
        self.toggle(offset, &mut buf);
        Ok(buf)
    }

    async fn zero(&self, offset: u64, bytes: u64) -> Result<()> {
        let claim = self.claim.get().filter(|_| !Fault::TrimsUnclaimed.is_planted());
        let Some((claim, extent)) = claim else {
            return self.inner.zero(offset, bytes).await;
        };
        let mut done = 0;
        for (part, _) in extent.parts(offset, bytes as usize) {
            if done < part.start {
                self.inner.zero(offset + done as u64, (part.start - done) as u64).await?;
            }
            self.write_zeros(&claim, offset + part.start as u64, part.len()).await?;
            done = part.end;
        }
        match bytes - done as u64 {
            0 => Ok(()),
            rest => self.inner.zero(offset + done as u64, rest).await,
        }
    }
}
