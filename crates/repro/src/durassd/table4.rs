//! Table 4: TPC-C on a commercial database system that requests a write barrier with each page write.
//!
//! 1,000 warehouses and 100 GB on a drive of 480 GB, with a buffer of 2 GB, are scaled down as a whole: warehouses keep the
//! specification's rows, as their hot part does not shrink with the rest. Not stated in the paper and chosen: the number of terminals,
//! and of pages written at a time.
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, Result};
use tantalum_hosts::double_write::{DoubleWrite, DoubleWriteOptions, Drives, Form, PageOptions};
use tantalum_hosts::records::Remembered;
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::ValueStamp;
use tantalum_hosts::workload::tpcc::{Population, TREES, Tpcc, TpccOptions};
use tantalum_models::DeviceSpec;
use tantalum_replay::device_replay::Device;
use tantalum_runtime::Virtual;

use super::super::{Progress, Row, Scale};
use super::synced::{Barrier, Synced};

/// Device pages of 4 KiB in a page, the paper's name, and its tpmC with barriers on and off.
const SIZES: [(u32, &str, Cells); 3] = [
    (4, "16 KiB", [4_291.0, 65_809.0]),
    (2, "8 KiB", [4_845.0, 110_400.0]),
    (1, "4 KiB", [7_729.0, 150_815.0]),
];

const BARRIERS: [&str; 2] = ["on", "off"];

/// Number of pages that the database writes at a time, each with its own barrier; the barriers of pages written together share one
/// program of the mapping. Not stated: set by the cells with barriers on.
const WRITERS: u32 = 2;

/// Database over buffer: 100 GB over 2 GB.
const DATABASE_OVER_BUFFER: u64 = 50;

type Codec = Remembered<Block<ValueStamp>>;

/// Sizes of a run.
struct Size {
    /// The capacity of each of the two drives.
    capacity: &'static str,
    population: Population,
    database_over_buffer: u64,
    terminals: u32,
    /// With barriers on and off; the warm-up has the same number.
    transactions: [u64; 2],
}

impl Size {
    fn of(scale: Scale) -> Size {
        match scale {
            // With the paper's proportion, a buffer in pages of 16 KiB would have fewer pages than one transaction reads.
            Scale::Small => Size {
                capacity: "1GiB",
                population: Population { warehouses: 2, halvings: 2 },
                database_over_buffer: DATABASE_OVER_BUFFER / 8,
                terminals: 8,
                transactions: [300, 1_500],
            },
            Scale::Full | Scale::Paper => Size {
                capacity: "2GiB",
                population: Population::new(8),
                database_over_buffer: DATABASE_OVER_BUFFER,
                terminals: 16,
                transactions: [1_000, 6_000],
            },
        }
    }

    /// A new order adds half a kilobyte, and the same again when a page is split.
    fn database_bytes(&self) -> u64 {
        let [on, off] = self.transactions;
        self.population.bytes() * 13 / 10 + 2 * (on + off) * 1_024
    }

    fn options(&self, device_pages_per_page: u32) -> DoubleWriteOptions {
        let page_bytes = u64::from(device_pages_per_page) * PAGE_BYTES as u64;
        let buffer_bytes = self.population.bytes() / self.database_over_buffer;
        let pages = PageOptions {
            form: Form::Off,
            database_pages: self.database_bytes() / page_bytes,
            device_pages_per_page,
            pool_pages: (buffer_bytes / page_bytes) as u32,
            batch_pages: WRITERS,
            metadata_per_page: 0.0,
            metadata_pages: 0,
        };
        // Three files of 4 GB over a database of 100 GB.
        let log_pages = self.population.bytes() * 12 / 100 / PAGE_BYTES as u64;
        DoubleWriteOptions { pages, log_pages, trees: TREES }
    }
}

/// The tpmC of the paper, or ours, for one page size with barriers on and off.
type Cells = [f64; 2];

/// Measures every cell, and the ratios that the table is meant to show.
pub(super) fn run(scale: Scale, seed: u64, progress: Progress, rows: &mut Vec<Row>) -> Result<()> {
    let mut ours = Vec::new();
    for (device_pages, size, paper) in SIZES {
        progress(&format!("TPC-C, pages of {size}"));
        let measured = measure(device_pages, scale, seed)?;
        for (at, barrier) in BARRIERS.into_iter().enumerate() {
            let (case, what) =
                (format!("TPC-C, barrier {barrier}, {size}"), ("throughput", "tpmC"));
            let row = Row::new("Table 4", case, what, Some(paper[at]), measured[at]);
            let row = row.at("", format!("barrier {barrier}"), ("page", size));
            rows.push(Row { calibrated: barrier == "on", ..row });
        }
        let off_over_on = |[on, off]: Cells| off / on;
        let case = format!("TPC-C, {size}, barrier off over on");
        let row = times(case, off_over_on(paper), off_over_on(measured));
        rows.push(Row { calibrated: true, ..row });
        ours.push(measured);
    }
    for (at, barrier) in BARRIERS.into_iter().enumerate() {
        let case = format!("TPC-C, barrier {barrier}, 4 KiB over 16 KiB");
        let [(.., large), _, (.., small)] = SIZES;
        rows.push(times(case, small[at] / large[at], ours[2][at] / ours[0][at]));
    }
    Ok(())
}

fn times(case: String, paper: f64, measured: f64) -> Row {
    Row::new("Table 4", case, ("throughput", "times"), Some(paper), measured)
}

/// Throughput with barriers on and off, over one database.
fn measure(device_pages: u32, scale: Scale, seed: u64) -> Result<Cells> {
    Virtual::alone("TPC-C", move |runtime| async move {
        let size = Size::of(scale);
        let options = size.options(device_pages);
        let spec = DeviceSpec::parse(&format!("durassd:capacity={},barrier=on", size.capacity))?;
        let mut drives = Vec::new();
        for (barrier, seed) in [(Barrier::EachWrite, seed + 1), (Barrier::EachFlush, seed)] {
            let device: Rc<Device> = spec.build(&runtime, seed).await?.device;
            drives.push((Rc::new(Synced::new(device, barrier)), Rc::new(Codec::default())));
        }
        let [(data, data_codec), (log, log_codec)] = &drives[..] else { unreachable!("two") };
        let both = Drives::new(data, data_codec).with_log_on(log, log_codec, seed);
        let engine = DoubleWrite::create_on(&runtime, &both, options).await?;
        let tpcc = Tpcc::new(size.population, seed)?;
        tpcc.load(&engine).await?;
        engine.checkpoint().await?;
        let mut measured = [0.0; 2];
        for on in [false, true] {
            drives.iter().for_each(|(drive, _)| drive.set_barriers(on));
            let at = usize::from(!on);
            let transactions = size.transactions[at];
            let load = TpccOptions::new(size.terminals, transactions, seed + at as u64);
            let load = TpccOptions { warm_up: transactions, ..load };
            let report = tpcc.run(&runtime, &engine, load).await?;
            measured[at] = report.new_orders_per_minute();
        }
        Ok(measured)
    })
}
