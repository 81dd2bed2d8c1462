//! How a batch reaches its homes, by form. In the order of the steps lies what recovery relies on.
use std::collections::BTreeMap;
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, Result};
use tantalum_runtime::Runtime;

use crate::database::{BatchRules, DeviceNeed, Homed, Homes, RestoreReport, Way};
use crate::fault_points::Fault;
use crate::records::Codec;

/// How a batch of dirty pages reaches its homes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Write the area, flush, write the homes, flush: each page twice.
    On,
    /// Write the area, share the homes with the area: each page once.
    Share,
    /// Write the homes, flush: each page once, and torn pages after a cut where the device tears a write of a page.
    Off,
    /// Write the homes in transactions of the device: each page once.
    Transactions,
}

impl Form {
    /// All forms.
    pub const ALL: [Form; 4] = [Form::On, Form::Share, Form::Off, Form::Transactions];

    /// What the papers call it.
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

    /// It is there in every form, so that the homes lie in the same place.
    fn has_area(self) -> bool {
        true
    }

    /// Each batch is durable at its homes when this returns.
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

    /// With a double-write area each torn home is written again from its newest whole copy in the area. A torn copy
    /// needs nothing: its home was not written yet. By SHARE and in transactions homes change as a whole; with double write off
    /// there is nothing that could be done.
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
