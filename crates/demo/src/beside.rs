//! Runs the load on a volume and on plain files, for comparison.
use crate::compare::{CompareOptions, Load, compare};
use crate::load::{Transaction, create};
use std::path::Path;
use tantalum_console::output::print_line;
use tantalum_console::progress::Progress;
use tantalum_report::number;

/// Rounds of each system.
const ROUNDS: usize = 3;

/// Runs `transactions` transactions of the load of `seed` on each system in `folder`, and prints their figures.
pub fn run(
    folder: &Path,
    capacity: &'static str,
    seed: u64,
    transactions: i64,
) -> anyhow::Result<()> {
    print_line("4. The same load beside it, on plain files, synchronous=FULL, in turns")?;
    let load = Load {
        create: &create,
        run: &|connection, number| Transaction::new(seed, number).run(connection),
    };
    let transactions = (transactions / ROUNDS as i64).max(1);
    let options = CompareOptions { rounds: ROUNDS, transactions, capacity };
    let progress = Progress::steps("turns");
    let rows = compare(folder, &load, options, |done, of| progress.step(done, of))?;
    progress.finish();
    print_line(&format!(
        "   {:<16} {:>22} {:>22} {:>22}",
        "(of Tantalum's)", "transactions/s", "bytes/transaction", "syncs/transaction"
    ))?;
    for row in &rows {
        let [rate, bytes, syncs] = row.ratios;
        print_line(&format!(
            "   {:<16} {:>14} ({rate:>4.2}x) {:>14} ({bytes:>4.2}x) {:>14.2} ({syncs:>4.2}x)",
            row.system,
            number::thousands(row.transactions_per_second as u64),
            number::thousands(row.bytes_per_transaction as u64),
            row.syncs_per_transaction,
        ))?;
    }
    print_line(&format!(
        "   A rate is the median of {ROUNDS} turns; its ratio is the median of the ratios of turns of the same round."
    ))?;
    print_line("")?;
    Ok(())
}
