//! What a tier does to its media, one operation after the other, for those who carry it out.
use tantalum_base::PageNo;

/// What is done to one page, and in which slot of the flash. A slot keeps what was written to it last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The top tier gets `page` from flash.
    ReadFlash {
        /// Where it is.
        slot: u32,
        /// The page.
        page: PageNo,
    },
    /// What memory has of `page` is written to flash: what the top tier gives, or what was just read from home.
    WriteFlash {
        /// Where to; what was there is void.
        slot: u32,
        /// The page.
        page: PageNo,
    },
    /// The top tier gets `page` from home.
    ReadHome {
        /// The page.
        page: PageNo,
    },
    /// What the top tier gives of `page` is written home.
    WriteHome {
        /// The page.
        page: PageNo,
    },
    /// `page` is read from flash and written home. The top tier may have a newer one meanwhile, which stays there.
    Destage {
        /// Where it is.
        slot: u32,
        /// The page.
        page: PageNo,
    },
}

/// A list of operations, kept where somebody wants it.
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

    /// Moves what was told to `out`.
    pub(super) fn take(&mut self, out: &mut Vec<Operation>) {
        if let Some(list) = &mut self.0 {
            out.append(list);
        }
    }
}
