//! How a batch is written to its homes, by form. Recovery relies on the order of the steps.
use std::collections::BTreeMap;
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, Result};
use tantalum_runtime::Runtime;

use crate::database::{BatchRules, DeviceNeed, Homed, Homes, RestoreReport, Way};
use crate::fault_points::Fault;
use crate::records::Codec;

/// How a batch of dirty pages is written to its homes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Write the area, flush, write the homes, flush: each page twice.
    On,
    /// Write the area, share the area's pages into the homes: each page once.
    Share,
    /// Write the homes, flush: each page once. A cut leaves torn pages if the device tears a write of a page.
    Off,
    /// Write the homes in transactions of the device: each page once.
    Transactions,
}

impl Form {
    /// All forms.
    pub const ALL: [Form; 4] = [Form::On, Form::Share, Form::Off, Form::Transactions];

    /// Its name in the papers.
    pub fn name(self) -> &'static str {
        match self {
            Form::On => "DWB-On",
            Form::Off => "DWB-Off",
            Form::Share => "SHARE",
            Form::Transactions => "transactions",
        }
    }
}

impl Way for Form {
    const WAYS: &'static [Form] = &Form::ALL;

    fn name(self) -> &'static str {
        Form::name(self)
    }

    fn needs(self) -> DeviceNeed {
        match self {
            Form::On | Form::Off => DeviceNeed::Nothing,
            Form::Share => DeviceNeed::Share,
            Form::Transactions => DeviceNeed::Transactions,
        }
    }

    /// The area exists in every form, so that the homes have the same place.
    fn has_area(self) -> bool {
        true
    }

    /// Each batch is durable at its homes when this returns, so a checkpoint need not do more.
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
            Form::On => {
                homes.write_area(batch).await?;
                if !Fault::NoFlushBeforeHomes.is_planted() {
                    homes.flush().await?;
                }
                homes.write_homes(batch).await?;
                homes.write_metadata(batch.len()).await?;
                if !Fault::NoFlushAfterHomes.is_planted() {
                    homes.flush().await?;
                }
                Ok(())
            }
            Form::Off => {
                homes.write_homes(batch).await?;
                homes.write_metadata(batch.len()).await?;
                homes.flush().await
            }
            Form::Share => {
                homes.write_area(batch).await?;
                homes.write_metadata(batch.len()).await?;
                homes.share_homes(batch).await
            }
            Form::Transactions => {
                homes.write_metadata(batch.len()).await?;
                homes.write_in_transactions(batch).await
            }
        }
    }

    /// With a double-write area each torn home is written again from its newest whole copy in the area. A torn copy needs no
    /// repair: its home was not written yet. By SHARE and in transactions homes change as a whole. With double write off
    /// nothing can be done.
    async fn restore<R, D, C, P, B>(
        self,
        homes: &Rc<Homes<R, D, C, P, B, Self>>,
    ) -> Result<RestoreReport>
    where
        R: Runtime,
        D: PageDevice,
        P: Homed,
        C: Codec<Page = D::Page, Record = P::Record>,
        B: BatchRules,
    {
        let mut report = RestoreReport::default();
        if self != Form::On {
            return Ok(report);
        }
        let mut copies = BTreeMap::<PageNo, P>::new();
        for copy in homes.read_area().await? {
            report.area_whole += 1;
            if copies.get(&copy.number()).is_none_or(|other| other.lsn() < copy.lsn()) {
                copies.insert(copy.number(), copy);
            }
        }
        for copy in copies.values() {
            if homes.try_read(copy.number()).await?.is_none() {
                homes.write_home(copy).await?;
                report.restored += 1;
            }
        }
        homes.flush().await?;
        Ok(report)
    }
}
