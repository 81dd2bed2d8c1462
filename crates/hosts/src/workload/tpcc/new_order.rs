//! New-Order (clause 2.4): a customer orders 5 to 15 items.
use tantalum_base::{Error, ErrorKind, Result};

use super::rows::{Customer, District, Order, OrderLine, Stock, Warehouse};
use super::tables::{ORDER_MAX, Place, RowId};
use super::terminals::Line;
use super::work::Work;
use crate::workload::{Ending, RowTransaction};

/// Returns 1 if the order is rolled back because an item does not exist. The district, which every order in it needs, is locked
/// last and so for the shortest time.
pub(super) async fn run<T: RowTransaction>(
    work: &mut Work<'_, T>,
    place: Place,
    customer: u16,
    lines: &[Line],
) -> Result<Ending<u64>> {
    // These have the tax and the discount.
    work.read::<Warehouse>(RowId::warehouse(place.warehouse)).await?;
    work.read::<Customer>(place.customer(customer)).await?;
    let mut ordered = Vec::with_capacity(lines.len());
    for line in lines {
        if work.find(RowId::item(line.item)).await?.is_none() {
            return Ok(Ending::GiveUp(1));
        }
        take_from_stock(work, place, line).await?;
        let amount = u64::from(line.quantity) * work.initial().price(line.item);
        ordered.push(OrderLine {
            item: line.item,
            supply_warehouse: line.supply_warehouse,
            quantity: line.quantity,
            amount,
            delivered: false,
        });
    }
    let district: District = work.hold(place.row()).await?;
    let number = district.next_order;
    if number >= ORDER_MAX {
        return Err(Error::new(ErrorKind::TooLarge, format!("{place:?} had all its orders")));
    }
    work.put(place.row(), &District { next_order: number + 1, ..district }).await?;
    let order = Order { customer, lines: lines.len() as u8, carrier: 0 };
    work.put(place.order(number), &order).await?;
    work.put_told(place.new_order(number)).await?;
    work.put_told(place.customer_order(customer, number)).await?;
    for (at, line) in (1..).zip(&ordered) {
        work.put(place.order_line(number, at), line).await?;
    }
    Ok(Ending::Commit(0))
}

/// If the stock would fall below ten, 91 are added (clause 2.4.2.2).
async fn take_from_stock<T: RowTransaction>(
    work: &mut Work<'_, T>,
    place: Place,
    line: &Line,
) -> Result<()> {
    let row = RowId::stock(line.supply_warehouse, line.item);
    let stock: Stock = work.hold(row).await?;
    let taken = u64::from(line.quantity);
    let enough = stock.quantity >= taken + 10;
    let remote = line.supply_warehouse != place.warehouse;
    let stock = Stock {
        quantity: if enough { stock.quantity - taken } else { stock.quantity + 91 - taken },
        ytd: stock.ytd + taken,
        orders: stock.orders + 1,
        remotes: stock.remotes + u64::from(remote),
    };
    work.put(row, &stock).await
}
