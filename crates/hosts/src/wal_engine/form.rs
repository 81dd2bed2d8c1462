//! How pages and commits are written to the device, by form.
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, Result};
use tantalum_runtime::Runtime;

use crate::database::{BatchRules, DeviceNeed, Homed, Homes, Way};
use crate::fault_points::Fault;
use crate::records::Codec;

/// The protection against pages that a cut tears.
///
/// | form | a commit writes | a batch of pages writes | a checkpoint |
/// |---|---|---|---|
/// | `FullPages` | the log, with the whole content of pages that are changed first after a checkpoint's start; flush | homes | flush, header, flush |
/// | `NoFullPages` | the log; flush | homes | flush, header, flush |
/// | `Share` | the log; flush | an area, shared into the homes | header, flush |
/// | `Transactions` | the homes of all pages that it changes, in one transaction of the device | nothing | nothing |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalForm {
    /// Full-page writes on: the content of a home does not matter if the log has the whole page.
    FullPages,
    /// Full-page writes off: a torn page is detected, but cannot be repaired. A device that writes pages atomically has no torn pages.
    NoFullPages,
    /// Full-page writes off, and homes that change as a whole, by SHARE (SHARE, section 5.3.1).
    Share,
    /// No log at all (TxCache's comparison).
    Transactions,
}

impl WalForm {
    /// All forms.
    pub const ALL: [WalForm; 4] =
        [WalForm::FullPages, WalForm::NoFullPages, WalForm::Share, WalForm::Transactions];

    /// Its name in PostgreSQL and the papers.
    pub fn name(self) -> &'static str {
        match self {
            WalForm::FullPages => "FPW-On",
            WalForm::NoFullPages => "FPW-Off",
            WalForm::Share => "SHARE",
            WalForm::Transactions => "transactions",
        }
    }
}

impl Way for WalForm {
    const WAYS: &'static [WalForm] = &WalForm::ALL;

    fn name(self) -> &'static str {
        WalForm::name(self)
    }

    fn needs(self) -> DeviceNeed {
        match self {
            WalForm::FullPages | WalForm::NoFullPages => DeviceNeed::Nothing,
            WalForm::Share => DeviceNeed::Share,
            WalForm::Transactions => DeviceNeed::Transactions,
        }
    }

    fn has_area(self) -> bool {
        self == WalForm::Share
    }

    fn has_log(self) -> bool {
        self != WalForm::Transactions
    }

    fn logs_whole_pages(self) -> bool {
        self == WalForm::FullPages && !Fault::NoWholePages.is_planted()
    }

    /// Homes may still be lost or torn when this returns: the log keeps their changes until the next checkpoint.
    async fn bring<R, D, C, P, B>(
        self,
        homes: &Rc<Homes<R, D, C, P, B, Self>>,
        batch: &[(PageNo, P)],
    ) -> Result<()>
    where
        R: Runtime,
        D: PageDevice,
        P: Homed,
        C: Codec<Page = D::Page, Record = P::Record>,
        B: BatchRules,
    {
        match self {
            WalForm::FullPages | WalForm::NoFullPages => {
                homes.write_homes(batch).await?;
                homes.write_metadata(batch.len()).await
            }
            WalForm::Share => {
                homes.write_area(batch).await?;
                homes.write_metadata(batch.len()).await?;
                homes.share_homes(batch).await
            }
            // Their commit has already written them.
            WalForm::Transactions => Ok(()),
        }
    }

    async fn settle<R, D, C, P, B>(self, homes: &Rc<Homes<R, D, C, P, B, Self>>) -> Result<()>
    where
        R: Runtime,
        D: PageDevice,
        P: Homed,
        C: Codec<Page = D::Page, Record = P::Record>,
        B: BatchRules,
    {
        match self {
            WalForm::FullPages | WalForm::NoFullPages => {
                match Fault::NoFlushBeforeCheckpoint.is_planted() {
                    true => Ok(()),
                    false => homes.flush().await,
                }
            }
            WalForm::Share | WalForm::Transactions => Ok(()),
        }
    }
}
