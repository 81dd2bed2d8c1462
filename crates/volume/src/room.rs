//! Checks whether the store has room for more writes.
use std::cell::Cell;
use tantalum_base::Result;
use tantalum_media::BlockStore;

/// A check before each new write. A closure hides the type of the store, so that the nested types of devices do not
/// grow further.
pub(crate) struct Room {
    check: Box<dyn Fn() -> Result<()>>,
    was_full: Cell<bool>,
}

impl Room {
    /// The room of `store`, which reserves `spare_bytes` for writes that were accepted before the store is full.
    pub(crate) fn of(store: impl BlockStore, spare_bytes: u64) -> Room {
        store.keep_spare(spare_bytes);
        Room { check: Box::new(move || store.check_room()), was_full: Cell::new(false) }
    }

    /// # Errors
    /// `OutOfSpace` if there is no room now.
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
