//! Consistency conditions of the specification (clause 3.3.2): 1 to 10, as far as their columns are stored.
use std::collections::BTreeMap;
use tantalum_base::{Error, ErrorKind, Result};

use super::rows::{Customer, District, History, Order, OrderLine, Row, Warehouse};
use super::run::Tpcc;
use super::tables::{ORDER_MAX, Place, RowId, Table, columns};
use crate::values::Key;
use crate::workload::RowStore;

/// Number of rows that are read at a time.
const ROWS_AT_A_TIME: usize = 1_000;

/// The content that was found in a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Audit {
    /// Number of orders.
    pub orders: u64,
    /// Number of these that are not delivered.
    pub undelivered: u64,
    /// Number of order lines.
    pub order_lines: u64,
    /// Number of payments.
    pub payments: u64,
}

/// Sums over all districts: a customer may pay in any district.
#[derive(Default)]
struct Sums {
    /// Delivered less paid, by customer.
    balances: BTreeMap<RowId, i64>,
    /// Paid, by district.
    paid: BTreeMap<Place, u64>,
}

fn violated(condition: u32, place: Place, what: String) -> Error {
    let Place { warehouse, district } = place;
    let context = format!(
        "consistency condition {condition} does not hold in warehouse {warehouse}, district {district}: {what}"
    );
    Error::new(ErrorKind::Corrupt, context)
}

impl Tpcc {
    /// Checks that the database is consistent, has every acknowledged change, and has each change that was being committed at a crash
    /// as a whole or not at all. No client may run meanwhile. Runs may follow, also after a crash.
    ///
    /// Conditions 1 to 7 as they stand; of 8 to 10 the parts whose columns are stored: W_YTD and D_YTD are the sums of their payments,
    /// and a customer's balance is the delivered amount less the paid one. Both indexes have exactly the entries for their tables.
    ///
    /// # Errors
    /// `Corrupt`, which names the violated condition; those of the engine.
    pub async fn check<S: RowStore>(&self, store: &S) -> Result<Audit> {
        self.expected.settle(store).await?;
        let (mut audit, mut sums) = (Audit::default(), Sums::default());
        for warehouse in 1..=self.population().warehouses {
            audit.payments += payments(store, warehouse, &mut sums).await?;
        }
        let mut districts_ytd = BTreeMap::<u16, u64>::new();
        for place in self.expected.initial.places() {
            let row = place.row();
            let district: District = read(store, row).await?;
            *districts_ytd.entry(place.warehouse).or_default() += district.ytd;
            let paid = sums.paid.get(&place).copied().unwrap_or(0);
            if district.ytd != paid {
                return Err(violated(9, place, format!("D_YTD {}, paid {paid}", district.ytd)));
            }
            self.orders(store, place, district, &mut audit, &mut sums).await?;
            self.names(store, place).await?;
        }
        for (warehouse, districts) in districts_ytd {
            let Warehouse { ytd } = read(store, RowId::warehouse(warehouse)).await?;
            if ytd != districts {
                let place = Place { warehouse, district: 0 };
                return Err(violated(1, place, format!("W_YTD {ytd}, sum of D_YTD {districts}")));
            }
        }
        for place in self.expected.initial.places() {
            self.balances(store, place, &sums).await?;
        }
        Ok(audit)
    }

    /// Conditions 2 to 7, and the index of orders by customer.
    async fn orders<S: RowStore>(
        &self,
        store: &S,
        place: Place,
        district: District,
        audit: &mut Audit,
        sums: &mut Sums,
    ) -> Result<()> {
        let orders = all(store, place.order(0), place.order(ORDER_MAX)).await?;
        let lines = all(store, place.order_line(0, 0), place.order_line(ORDER_MAX, 0)).await?;
        let waiting = all(store, place.new_order(0), place.new_order(ORDER_MAX)).await?;
        let waiting: Vec<u64> =
            waiting.iter().map(|(row, _)| row.number & u64::from(ORDER_MAX)).collect();
        let newest = orders.last().map_or(0, |(row, _)| row.number as u32 & ORDER_MAX);
        if newest + 1 != district.next_order || orders.len() as u32 != newest {
            let what = format!(
                "D_NEXT_O_ID {}, {} orders, the newest {newest}",
                district.next_order,
                orders.len()
            );
            return Err(violated(2, place, what));
        }
        if let (Some(first), Some(last)) = (waiting.first(), waiting.last())
            && (last - first + 1 != waiting.len() as u64 || *last != u64::from(newest))
        {
            let what = format!("{} rows of NEW-ORDER from {first} to {last}", waiting.len());
            return Err(violated(3, place, what));
        }
        let mut rest = &lines[..];
        let mut by_customer = Vec::with_capacity(orders.len());
        for (row, columns) in &orders {
            let order = Order::unpack(*columns);
            let number = row.number as u32 & ORDER_MAX;
            let (own, others) = rest.split_at(usize::from(order.lines).min(rest.len()));
            rest = others;
            check_order(place, number, order, own)?;
            let is_waiting = waiting.binary_search(&u64::from(number)).is_ok();
            if is_waiting != (order.carrier == 0) {
                return Err(violated(5, place, format!("order {number}: {order:?}")));
            }
            if order.carrier > 0 {
                let amounts = own.iter().map(|(_, columns)| OrderLine::unpack(*columns).amount);
                let customer = place.customer(order.customer);
                *sums.balances.entry(customer).or_default() += amounts.sum::<u64>() as i64;
            }
            by_customer.push(place.customer_order(order.customer, number));
        }
        if !rest.is_empty() {
            return Err(violated(4, place, format!("{} lines without an order", rest.len())));
        }
        by_customer.sort_unstable();
        let last = place.customer_order(u16::MAX, 0);
        let index = all(store, place.customer_order(0, ORDER_MAX), last).await?;
        let indexed: Vec<RowId> = index.iter().map(|(row, _)| *row).collect();
        if indexed != by_customer {
            let context =
                format!("{place:?}: the index of orders by customer is not as the orders");
            return Err(Error::new(ErrorKind::Corrupt, context));
        }
        audit.orders += orders.len() as u64;
        audit.undelivered += waiting.len() as u64;
        audit.order_lines += lines.len() as u64;
        Ok(())
    }

    /// Condition 10.
    async fn balances<S: RowStore>(&self, store: &S, place: Place, sums: &Sums) -> Result<()> {
        let customers = all(store, place.customer(0), place.customer(u16::MAX)).await?;
        if customers.len() != usize::from(self.population().customers()) {
            let context = format!("{place:?}: {} customers", customers.len());
            return Err(Error::new(ErrorKind::Corrupt, context));
        }
        for (row, columns) in customers {
            let Customer { balance, .. } = Customer::unpack(columns);
            let expected = sums.balances.get(&row).copied().unwrap_or(0);
            if balance != expected {
                let what = format!("{row:?}: C_BALANCE {balance}, delivered less paid {expected}");
                return Err(violated(10, place, what));
            }
        }
        Ok(())
    }

    /// The index of names never changes.
    async fn names<S: RowStore>(&self, store: &S, place: Place) -> Result<()> {
        let from = place.row().key();
        let to = RowId { number: place.row().number + 1, ..place.row() }.key();
        let tree = Table::CustomerName.tree();
        let found = store.scan(tree, from.as_slice(), Some(to.as_slice()), usize::MAX).await?;
        let entry =
            |(key, value): (Key, S::Value)| Ok((key, columns(Table::CustomerName, &value)?));
        let found: Vec<_> = found.into_iter().map(entry).collect::<Result<_>>()?;
        if found != self.expected.initial.names_of(place) {
            let context = format!("{place:?}: the index of names is not as it was made");
            return Err(Error::new(ErrorKind::Corrupt, context));
        }
        Ok(())
    }
}

/// Checks that an order has exactly its lines, and that they are delivered if it is: conditions 4, 6 and 7.
fn check_order(place: Place, number: u32, order: Order, own: &[(RowId, u64)]) -> Result<()> {
    let whole = own.len() == usize::from(order.lines)
        && (1..).zip(own).all(|(line, (row, _))| *row == place.order_line(number, line));
    if !whole {
        let what = format!("order {number}: {order:?}, its lines are not there");
        return Err(violated(6, place, what));
    }
    let delivered = |(_, columns): &(RowId, u64)| OrderLine::unpack(*columns).delivered;
    if own.iter().any(|line| delivered(line) != (order.carrier > 0)) {
        let what = format!("order {number}: {order:?}, and its lines not alike");
        return Err(violated(7, place, what));
    }
    Ok(())
}

/// Adds up the payments of a warehouse, whose sum must be its W_YTD (condition 8); returns their number.
async fn payments<S: RowStore>(store: &S, warehouse: u16, sums: &mut Sums) -> Result<u64> {
    let Warehouse { ytd } = read(store, RowId::warehouse(warehouse)).await?;
    let end = RowId::history(warehouse, (1 << 40) - 1);
    let payments = all(store, RowId::history(warehouse, 0), end).await?;
    let mut paid = 0;
    for (row, columns) in &payments {
        let history = History::unpack(*columns);
        paid += history.amount;
        if *row != RowId::history(warehouse, paid) {
            let place = Place { warehouse, district: history.district };
            return Err(violated(8, place, format!("{row:?}, where {paid} were paid by then")));
        }
        let place = Place { warehouse, district: history.district };
        *sums.paid.entry(place).or_default() += history.amount;
        let payer =
            Place { warehouse: history.customer_warehouse, district: history.customer_district };
        *sums.balances.entry(payer.customer(history.customer)).or_default() -=
            history.amount as i64;
    }
    if paid != ytd {
        let place = Place { warehouse, district: 0 };
        return Err(violated(8, place, format!("W_YTD {ytd}, paid {paid}")));
    }
    Ok(payments.len() as u64)
}

/// Reads a row, which must exist.
async fn read<R: Row, S: RowStore>(store: &S, row: RowId) -> Result<R> {
    let value = store.get(row.table.tree(), row.key().as_slice()).await?;
    let value = value.ok_or_else(|| super::work::missing(row))?;
    Ok(R::unpack(columns(row.table, &value)?))
}

/// All rows from `from` to `to`, both included.
async fn all<S: RowStore>(store: &S, from: RowId, to: RowId) -> Result<Vec<(RowId, u64)>> {
    let table = from.table;
    let end = RowId { number: to.number + 1, ..to }.key();
    let (mut rows, mut next) = (Vec::new(), from);
    loop {
        let from = next.key();
        let found =
            store.scan(table.tree(), from.as_slice(), Some(end.as_slice()), ROWS_AT_A_TIME).await?;
        for (key, value) in &found {
            rows.push((RowId::of(table, key)?, columns(table, value)?));
        }
        if found.len() < ROWS_AT_A_TIME {
            return Ok(rows);
        }
        let last = rows.last().map_or(next, |(row, _)| *row);
        next = RowId { number: last.number + 1, ..last };
    }
}
