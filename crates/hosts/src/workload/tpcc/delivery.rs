//! Delivery (clause 2.7): delivers the oldest undelivered order of each district of a warehouse.
use tantalum_base::Result;

use super::rows::{Customer, Order, OrderLine};
use super::tables::{DISTRICTS, ORDER_MAX, Place};
use super::work::Work;
use crate::workload::{Ending, RowTransaction};

/// Counts the delivered orders: a district may have none.
pub(super) async fn run<T: RowTransaction>(
    work: &mut Work<'_, T>,
    warehouse: u16,
    carrier: u8,
) -> Result<Ending<u64>> {
    let mut delivered = 0;
    for district in 1..=DISTRICTS {
        let place = Place { warehouse, district };
        if let Some(order) = take_oldest(work, place).await? {
            deliver(work, place, order, carrier).await?;
            delivered += 1;
        }
    }
    Ok(Ending::Commit(delivered))
}

/// Removes the oldest order from the undelivered ones.
async fn take_oldest<T: RowTransaction>(
    work: &mut Work<'_, T>,
    place: Place,
) -> Result<Option<u32>> {
    let (first, last) = (place.new_order(1), place.new_order(ORDER_MAX - 1));
    loop {
        let found = work.scan(first, last, 1).await?;
        let Some((row, _)) = found.first().copied() else { return Ok(None) };
        // Another delivery may have taken it meanwhile.
        if work.try_hold(row).await?.is_some() {
            work.delete(row).await?;
            return Ok(Some(row.number as u32 & ORDER_MAX));
        }
    }
}

async fn deliver<T: RowTransaction>(
    work: &mut Work<'_, T>,
    place: Place,
    number: u32,
    carrier: u8,
) -> Result<()> {
    let order: Order = work.hold(place.order(number)).await?;
    work.put(place.order(number), &Order { carrier, ..order }).await?;
    let mut amount = 0;
    for line in 1..=order.lines {
        let row = place.order_line(number, line);
        let line: OrderLine = work.hold(row).await?;
        amount += line.amount;
        work.put(row, &OrderLine { delivered: true, ..line }).await?;
    }
    let row = place.customer(order.customer);
    let customer: Customer = work.hold(row).await?;
    let balance = customer.balance + amount as i64;
    work.put(row, &Customer { balance, deliveries: customer.deliveries + 1, ..customer }).await
}
