//! A home as its cache sees it: the content under the claim.
use super::{Change, Claim, Extent, OPERATION_BYTES};
use crate::fault_points::Fault;
use std::cell::Cell;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_media::BlockStore;
use tantalum_media::block_store::{IoBuf, StoreLayer};

/// The evidence that a home is the volume's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// It shows the volume's claim, and no other program wrote over that.
    Own,
    /// It shows no claim. None was expected, or a claim could not be seen on this home.
    Unseen,
    /// It shows the volume's claim, but another program wrote to some of the claimed sectors.
    Torn,
    /// It differs from its last known state, and may be another disk. Nothing may be written to it.
    Doubted,
}

/// A home that may have a claim on it. All reads, writes and zeroing through it work as on a home
/// without a claim.
pub struct Claimed<S> {
    inner: S,
    claim: Cell<Option<(Claim, Extent)>>,
    trust: Cell<Trust>,
    /// The claim that it should show.
    missing: Cell<Option<Claim>>,
    /// Whether it may be written to although it is doubted.
    may_write: Cell<bool>,
    /// A change of the claim that was interrupted; nothing may be written then.
    unfinished: Option<Change>,
}

impl<S> Claimed<S> {
    /// A home without a claim.
    pub fn plain(inner: S) -> Self {
        let (claim, trust) = (Cell::new(None), Cell::new(Trust::Unseen));
        let (missing, may_write) = (Cell::new(None), Cell::new(false));
        Claimed { inner, claim, trust, missing, may_write, unfinished: None }
    }

    /// A home in the middle of `change`, for reading only.
    pub(super) fn unfinished(inner: S, change: Change) -> Self {
        Claimed { unfinished: Some(change), ..Self::plain(inner) }
    }

    /// The claim.
    pub fn claim(&self) -> Option<Claim> {
        self.claim.get().map(|(claim, _)| claim)
    }

    /// The evidence that the home is the volume's own.
    pub fn trust(&self) -> Trust {
        self.trust.get()
    }

    /// Records that evidence.
    pub(super) fn set_trust(&self, trust: Trust) {
        self.trust.set(trust);
    }

    /// Records that the home should show `claim`.
    pub(super) fn set_missing(&self, claim: Option<Claim>) {
        self.missing.set(claim);
    }

    /// Lets a doubted home be written to: its pages were compared with those of the flash.
    pub fn allow_writes(&self) {
        self.may_write.set(true);
    }

    fn refuse_if_doubted(&self) -> Result<()> {
        if self.trust.get() != Trust::Doubted || self.may_write.get() {
            return Ok(());
        }
        let context = "the home is not known to be the volume's own, so nothing is written to it \
                       (put its own home back, or correct home.path)";
        Err(Error::new(ErrorKind::Corrupt, context))
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
    /// The claim and its bytes on the home, if some of these bytes may be stored with the claim and
    /// others without it.
    ///
    /// # Errors
    /// `Corrupt` if the home is shorter than when it was claimed.
    pub fn mixed(&self) -> Result<Option<(Claim, Extent)>> {
        match (self.trust.get(), self.missing.get()) {
            (Trust::Torn, _) => Ok(self.claim.get()),
            (Trust::Doubted, Some(claim)) => {
                Ok(Some((claim, Extent::of_claim(&claim, &self.inner)?)))
            }
            _ => Ok(None),
        }
    }

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
        self.refuse_if_doubted()?;
        self.toggle(offset, &mut buf);
        let mut buf = self.inner.write(offset, buf, durable).await?;
        self.toggle(offset, &mut buf);
        Ok(buf)
    }

    async fn zero(&self, offset: u64, bytes: u64) -> Result<()> {
        self.refuse_if_doubted()?;
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
