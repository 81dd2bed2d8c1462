//! Checkpoints: two places at the beginning of the device, written in turn, so that one of them is always whole.
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, Result};

use super::HEADER_PAGES;
use super::block::{Block, Header};
use crate::fault_points::Fault;
use crate::records::{Codec, Draft, Place, RecordDevice};
use crate::values::Value;

/// The headers of a database.
pub(crate) struct Headers {
    newest: Cell<Header>,
}

impl Headers {
    /// The newest header on the device, if there is a whole one.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) async fn read<D, C, V>(device: &RecordDevice<D, C>) -> Result<Option<Headers>>
    where
        D: PageDevice,
        V: Value,
        C: Codec<Page = D::Page, Record = Block<V>>,
    {
        let mut newest: Option<Header> = None;
        for page in 0..HEADER_PAGES {
            let found = device.try_read(Place::of_pages(PageNo(page), 1)).await?;
            if let Some(Block::Header(header)) = found.as_deref()
                && newest.is_none_or(|newest| newest.number < header.number)
            {
                newest = Some(*header);
            }
        }
        Ok(newest.map(|newest| Headers { newest: Cell::new(newest) }))
    }

    /// The headers of a new database.
    pub(crate) fn new(first: Header) -> Headers {
        Headers { newest: Cell::new(first) }
    }

    pub(crate) fn newest(&self) -> Header {
        self.newest.get()
    }

    /// Writes `header` over the older of the two; it is durable when this returns.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) async fn write<D, C, V>(
        &self,
        device: &RecordDevice<D, C>,
        header: Header,
    ) -> Result<()>
    where
        D: PageDevice,
        V: Value,
        C: Codec<Page = D::Page, Record = Block<V>>,
    {
        let mut draft = Draft::new(PageNo(header.number % HEADER_PAGES));
        draft.align(Rc::new(Block::Header(header)));
        device.write(&draft).await?;
        // After this the log before it is overwritten, and the previous header by the next one.
        if !Fault::NoFlushAfterCheckpoint.is_planted() {
            device.flush().await?;
        }
        self.newest.set(header);
        Ok(())
    }
}
