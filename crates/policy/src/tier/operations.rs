//! The operations of a tier on its media, in order, for a caller that carries them out.
use tantalum_base::PageNo;

/// An operation on one page and its slot in the flash. A slot keeps the content that was written last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The top tier gets `page` from flash.
    ReadFlash {
        /// The slot that holds it.
        slot: u32,
        /// The page.
        page: PageNo,
    },
    /// `page` is written from memory to flash: the version that the top tier wrote, or the one just read from
    /// home.
    WriteFlash {
        /// The target slot; its old content becomes invalid.
        slot: u32,
        /// The page.
        page: PageNo,
    },
    /// The top tier gets `page` from home.
    ReadHome {
        /// The page.
        page: PageNo,
    },
    /// The version of `page` that the top tier wrote is written home.
    WriteHome {
        /// The page.
        page: PageNo,
    },
    /// `page` is read from flash and written home. The top tier may have a newer version by then, which it keeps.
    Destage {
        /// The slot that holds it.
        slot: u32,
        /// The page.
        page: PageNo,
    },
}

/// The recorded operations; `None` unless recording was requested.
#[derive(Debug, Default)]
pub(super) struct Told(Option<Vec<Operation>>);

impl Told {
    pub(super) fn start(&mut self) {
        self.0.get_or_insert_default();
    }

    #[inline]
    pub(super) fn tell(&mut self, operation: Operation) {
        if let Some(list) = &mut self.0 {
            list.push(operation);
        }
    }

    /// Moves the recorded operations to `out`.
    pub(super) fn take(&mut self, out: &mut Vec<Operation>) {
        if let Some(list) = &mut self.0 {
            out.append(list);
        }
    }
}
