//! The dump area: its zones, and the dump in it.
use tantalum_base::{Error, ErrorKind, PageNo, Result, ZoneNo};
use tantalum_media::ZoneMedia;

use crate::fault_points::Fault;
use crate::ftl::Ftl;

impl<M: ZoneMedia> Ftl<M> {
    /// The frames of the dump in force, in the order of the host's writes; the caller writes them
    /// back, durably, and then calls [`conclude_dump`](Self::conclude_dump).
    pub fn take_restored(&self) -> Vec<(PageNo, M::Page)> {
        let frames = self.dumper.as_ref().map(|dumper| dumper.frames.take());
        frames.unwrap_or_default()
    }

    fn dump_in_force(&self) -> Option<u64> {
        self.parts.borrow().dump.as_ref().and_then(|dump| dump.in_force)
    }

    /// Whether a dump waits to be written back.
    pub fn has_dump(&self) -> bool {
        self.dump_in_force().is_some()
    }

    /// Makes the dump in force void, since its content is durable elsewhere, and erases the dump
    /// area.
    pub async fn conclude_dump(&self) -> Result<()> {
        let Some(number) = self.dump_in_force() else { return Ok(()) };
        if !Fault::DumpNotMadeVoid.is_planted() {
            self.parts.borrow_mut().checkpoints.dumps_void.frames = number;
        }
        self.checkpoint().await?;
        if let Some(dump) = &mut self.parts.borrow_mut().dump {
            dump.in_force = None;
        }
        self.clear_dump_area().await
    }

    /// The zones of the dump area, in the order in which a dump fills them.
    pub fn dump_zones(&self) -> Vec<ZoneNo> {
        self.parts.borrow().space.dump_zones()
    }

    /// Takes free zones for the dump area, until it has enough.
    ///
    /// # Errors
    /// `OutOfSpace` if no zone is free.
    pub(crate) fn set_dump_zones_aside(&self) -> Result<()> {
        let parts = &mut *self.parts.borrow_mut();
        let Some(dump) = &parts.dump else { return Ok(()) };
        for _ in parts.space.dump_zones().len()..dump.layout.zones as usize {
            if !parts.space.set_aside() {
                let context = "no zone is free for the dump area";
                return Err(Error::new(ErrorKind::OutOfSpace, context));
            }
        }
        Ok(())
    }

    /// Erases the dump area for the next dump.
    pub(crate) async fn clear_dump_area(&self) -> Result<()> {
        let wanted = self.parts.borrow().dump.as_ref().map(|dump| dump.layout.zones);
        let Some(wanted) = wanted else { return Ok(()) };
        loop {
            let zones = self.dump_zones();
            for zone in &zones {
                // A zone that was retired is replaced by another.
                self.reset_if_needed(*zone).await?;
            }
            for zone in zones.iter().skip(wanted as usize) {
                self.parts.borrow_mut().space.give_back(*zone);
            }
            self.set_dump_zones_aside()?;
            let space = &self.parts.borrow().space;
            if space.dump_zones().iter().all(|zone| !space.get(*zone).needs_reset) {
                return Ok(());
            }
        }
    }
}
