//! Whether there is room for what a volume is asked to take.
use std::cell::Cell;
use tantalum_base::Result;
use tantalum_media::BlockStore;

/// Asked before anything new is accepted. The store below is not in its type, as a device's types are deep enough.
pub(crate) struct Room {
    check: Box<dyn Fn() -> Result<()>>,
    was_full: Cell<bool>,
}

impl Room {
    /// The room of `store`, which keeps `spare_bytes` aside for what was accepted when it turns out to be full.
    pub(crate) fn of(store: impl BlockStore, spare_bytes: u64) -> Room {
        store.keep_spare(spare_bytes);
        Room { check: Box::new(move || store.check_room()), was_full: Cell::new(false) }
    }

    /// # Errors
    /// `OutOfSpace` where there is none, now.
    pub(crate) fn check(&self) -> Result<()> {
        let checked = (self.check)();
        match (&checked, self.was_full.replace(checked.is_err())) {
            (Err(full), false) => tracing::warn!("{full}"),
            (Ok(()), true) => tracing::info!("there is room again: writes go on"),
            _ => {}
        }
        checked
    }
}
