//! The records, and the operations on them.
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_trace::ycsb::{Kind, Mix, Requests, SCAN_RECORDS_MAX, Workload};

/// The records that are loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordOptions {
    /// Number of records.
    pub records: u64,
    /// Number of fields of a record.
    pub fields: u32,
    /// Bytes of a field.
    pub field_bytes: u32,
    /// Minimum length of a key in bytes: shorter ones are padded with zeros.
    pub key_bytes_min: usize,
}

impl RecordOptions {
    /// YCSB's records of ten fields with 100 bytes each.
    pub fn new(records: u64) -> Self {
        RecordOptions { records, fields: 10, field_bytes: 100, key_bytes_min: 0 }
    }

    /// Length of a value in bytes: all fields of a record.
    pub fn value_bytes(&self) -> u32 {
        self.fields * self.field_bytes
    }

    pub(super) fn check(&self, value_bytes_min: u32) -> Result<()> {
        if self.records == 0 || self.records >= 1 << 40 {
            let problem = format!("{} records: there are 1 to 2^40", self.records);
            return Err(Error::new(ErrorKind::InvalidInput, problem));
        }
        let bytes = self.fields.checked_mul(self.field_bytes);
        if bytes.is_none_or(|bytes| bytes < value_bytes_min) {
            let problem = format!(
                "{} fields of {} bytes: a record has at least {value_bytes_min} bytes, and fewer than 2^32",
                self.fields, self.field_bytes
            );
            return Err(Error::new(ErrorKind::InvalidInput, problem));
        }
        Ok(())
    }
}

/// The operations on the records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct YcsbOptions {
    /// The share of each kind of operation.
    pub mix: Mix,
    /// The distribution of the requested records.
    pub requests: Requests,
    /// Maximum number of records that a scan reads; the number is uniform from 1 to this.
    pub scan_records_max: u64,
    /// Number of clients; each has one operation in progress.
    pub clients: u32,
    /// Operations before the measured ones (warm-up).
    pub warm_up: u64,
    /// Operations that are measured.
    pub operations: u64,
    /// Seed of all random choices.
    pub seed: u64,
}

impl YcsbOptions {
    /// A core workload with one client and `operations` measured operations.
    pub fn new(workload: Workload, operations: u64, seed: u64) -> Self {
        YcsbOptions {
            mix: workload.mix(),
            requests: workload.requests(),
            scan_records_max: SCAN_RECORDS_MAX,
            clients: 1,
            warm_up: 0,
            operations,
            seed,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let shares: u64 = Kind::ALL.iter().map(|kind| self.mix.percent(*kind)).sum();
        if shares != 100 {
            let problem = format!("shares of operations add up to {shares} %");
            return Err(Error::new(ErrorKind::InvalidInput, problem));
        }
        if self.clients == 0 || self.operations == 0 || self.scan_records_max == 0 {
            let problem = format!("a load of nothing: {self:?}");
            return Err(Error::new(ErrorKind::InvalidInput, problem));
        }
        Ok(())
    }
}
