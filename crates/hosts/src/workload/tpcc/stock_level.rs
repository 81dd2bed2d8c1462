//! Stock-Level (clause 2.8): the number of items of the last 20 orders of a district that are about
//! to run out.
use std::collections::BTreeSet;
use tantalum_base::{Error, ErrorKind, Result};

use super::rows::{District, OrderLine, Row, Stock};
use super::tables::{Place, RowId};
use super::work::Work;
use crate::workload::{Ending, RowTransaction};

/// Number of orders that it reads.
const ORDERS: u32 = 20;

/// Counts these items.
pub(super) async fn run<T: RowTransaction>(
    work: &mut Work<'_, T>,
    place: Place,
    threshold: u64,
) -> Result<Ending<u64>> {
    let district: District = work.read(place.row()).await?;
    let first = district.next_order.saturating_sub(ORDERS).max(1);
    let (from, to) = (place.order_line(first, 1), place.order_line(district.next_order - 1, 15));
    let lines = work.scan(from, to, usize::MAX).await?;
    let (mut orders, mut items) = (BTreeSet::new(), BTreeSet::new());
    for (row, columns) in &lines {
        orders.insert(row.number >> 8);
        items.insert(OrderLine::unpack(*columns).item);
    }
    // Each order was inserted together with its lines.
    if orders.len() as u64 != u64::from(district.next_order - first) {
        let context = format!("{place:?}: lines of {} orders from {first} on", orders.len());
        return Err(Error::new(ErrorKind::Corrupt, context));
    }
    let mut low = 0;
    for item in items {
        let stock: Stock = work.read(RowId::stock(place.warehouse, item)).await?;
        low += u64::from(stock.quantity < threshold);
    }
    Ok(Ending::Commit(low))
}
