//! Tables and indexes: their trees, the lengths of their rows, and their keys.
use tantalum_base::{Error, ErrorKind, Result};

use super::rows::{Customer, District, Order, OrderLine, Row, Stock, Warehouse};
use crate::values::Tree;
use crate::workload::LoadValue;

/// Trees that a database needs: nine tables and two indexes.
pub const TREES: u32 = 11;

/// Districts per warehouse.
pub(super) const DISTRICTS: u8 = 10;

/// Minimum bytes of a value that holds a row's columns.
const VALUE_BYTES_MIN: u32 = 12;

/// A table or an index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Table {
    /// WAREHOUSE.
    Warehouse,
    /// DISTRICT.
    District,
    /// CUSTOMER.
    Customer,
    /// Customers of a district by their last and first name.
    CustomerName,
    /// HISTORY: payments of a warehouse, in order.
    History,
    /// NEW-ORDER.
    NewOrder,
    /// ORDER.
    Order,
    /// Orders of a customer, the newest first.
    CustomerOrder,
    /// ORDER-LINE.
    OrderLine,
    /// ITEM.
    Item,
    /// STOCK.
    Stock,
}

impl Table {
    /// All of them, in the order of their trees.
    pub const ALL: [Table; TREES as usize] = [
        Table::Warehouse,
        Table::District,
        Table::Customer,
        Table::CustomerName,
        Table::History,
        Table::NewOrder,
        Table::Order,
        Table::CustomerOrder,
        Table::OrderLine,
        Table::Item,
        Table::Stock,
    ];

    /// The tree of its rows.
    pub fn tree(self) -> Tree {
        Tree(self as u32)
    }

    /// Bytes of a row with its key (clause 4.2.2); for an index, only of an entry's value.
    fn row_bytes(self) -> u32 {
        match self {
            Table::Warehouse => 89,
            Table::District => 95,
            Table::Customer => 655,
            Table::History => 46,
            Table::NewOrder => 8,
            Table::Order => 24,
            Table::OrderLine => 54,
            Table::Item => 82,
            Table::Stock => 306,
            Table::CustomerName | Table::CustomerOrder => VALUE_BYTES_MIN,
        }
    }

    /// Bytes of a key; those of names vary.
    fn key_bytes(self) -> usize {
        match self {
            Table::Warehouse => 2,
            Table::District | Table::Item => 3,
            Table::Customer | Table::Stock => 5,
            Table::Order | Table::NewOrder => 6,
            Table::OrderLine | Table::History => 7,
            Table::CustomerOrder => 8,
            Table::CustomerName => 0,
        }
    }

    /// Bytes of a row without its key; at least enough for its columns.
    pub fn value_bytes(self) -> u32 {
        (self.row_bytes().saturating_sub(self.key_bytes() as u32)).max(VALUE_BYTES_MIN)
    }

    /// Approximate number of changes of a row with these columns: each change increases it. At least 1.
    pub(super) fn age(self, columns: u64) -> u64 {
        1 + match self {
            Table::Warehouse => Warehouse::unpack(columns).ytd,
            Table::District => {
                let district = District::unpack(columns);
                district.ytd + u64::from(district.next_order)
            }
            Table::Customer => {
                let customer = Customer::unpack(columns);
                customer.payments + customer.deliveries
            }
            Table::Stock => Stock::unpack(columns).orders,
            Table::Order => u64::from(Order::unpack(columns).carrier > 0),
            Table::OrderLine => u64::from(OrderLine::unpack(columns).delivered),
            Table::CustomerName
            | Table::CustomerOrder
            | Table::History
            | Table::Item
            | Table::NewOrder => 0,
        }
    }
}

/// The columns that an encoded value holds.
///
/// # Errors
/// `Corrupt` if it is not a row of this table.
pub(super) fn columns<V: LoadValue>(table: Table, value: &V) -> Result<u64> {
    let told = value.told(table.value_bytes());
    let (high, low) = told.ok_or_else(|| {
        Error::new(
            ErrorKind::Corrupt,
            format!("{table:?}: {} bytes that are no row", value.bytes()),
        )
    })?;
    Ok(high << 24 | u64::from(low))
}

/// The encoded value of a row.
pub(super) fn value<V: LoadValue>(table: Table, columns: u64) -> V {
    V::made(columns >> 24, (columns & 0xff_ffff) as u32, table.value_bytes())
}

/// A row of any table except the names, identified by its key, which is a number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct RowId {
    pub(super) table: Table,
    /// The columns of the key, the first one in the highest bits.
    pub(super) number: u64,
}

/// A key for an engine: the number's bytes, the highest first, so that keys sort as the columns do.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyBytes {
    bytes: [u8; 8],
    first: usize,
}

impl KeyBytes {
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[self.first..]
    }
}

/// Order numbers have 24 bits.
pub(super) const ORDER_MAX: u32 = 0xff_ffff;

/// A district.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Place {
    /// Warehouse, from 1 on.
    pub(super) warehouse: u16,
    /// District of it, from 1 on.
    pub(super) district: u8,
}

impl Place {
    /// Warehouse and district as the prefix of a key.
    fn number(self) -> u64 {
        u64::from(self.warehouse) << 8 | u64::from(self.district)
    }

    pub(super) fn row(self) -> RowId {
        RowId { table: Table::District, number: self.number() }
    }

    pub(super) fn customer(self, customer: u16) -> RowId {
        RowId { table: Table::Customer, number: self.number() << 16 | u64::from(customer) }
    }

    pub(super) fn order(self, order: u32) -> RowId {
        RowId { table: Table::Order, number: self.number() << 24 | u64::from(order) }
    }

    pub(super) fn new_order(self, order: u32) -> RowId {
        RowId { table: Table::NewOrder, number: self.number() << 24 | u64::from(order) }
    }

    pub(super) fn order_line(self, order: u32, line: u8) -> RowId {
        let number = (self.number() << 24 | u64::from(order)) << 8 | u64::from(line);
        RowId { table: Table::OrderLine, number }
    }

    /// The newest order has the lowest key.
    pub(super) fn customer_order(self, customer: u16, order: u32) -> RowId {
        let customer = self.number() << 16 | u64::from(customer);
        let number = customer << 24 | u64::from(ORDER_MAX - order);
        RowId { table: Table::CustomerOrder, number }
    }
}

impl RowId {
    pub(super) fn warehouse(warehouse: u16) -> RowId {
        RowId { table: Table::Warehouse, number: u64::from(warehouse) }
    }

    pub(super) fn item(item: u32) -> RowId {
        RowId { table: Table::Item, number: u64::from(item) }
    }

    pub(super) fn stock(warehouse: u16, item: u32) -> RowId {
        RowId { table: Table::Stock, number: u64::from(warehouse) << 24 | u64::from(item) }
    }

    /// The payment that increased the warehouse's total to `ytd`: the specification gives a payment no key, and this
    /// one needs no counter.
    pub(super) fn history(warehouse: u16, ytd: u64) -> RowId {
        RowId { table: Table::History, number: u64::from(warehouse) << 40 | ytd }
    }

    pub(super) fn key(self) -> KeyBytes {
        KeyBytes { bytes: self.number.to_be_bytes(), first: 8 - self.table.key_bytes() }
    }

    /// The row of a table that has this key.
    ///
    /// # Errors
    /// `Corrupt` if the table has no such key.
    pub(super) fn of(table: Table, key: &[u8]) -> Result<RowId> {
        if key.len() != table.key_bytes() {
            let context = format!("{table:?}: a key of {} bytes", key.len());
            return Err(Error::new(ErrorKind::Corrupt, context));
        }
        let number = key.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        Ok(RowId { table, number })
    }

    /// Warehouse and district of a row whose key begins with them; the rest of the key has `bits` bits.
    pub(super) fn place(self, bits: u32) -> Place {
        let place = self.number >> bits;
        Place { warehouse: (place >> 8) as u16, district: place as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::ValueStamp;

    #[test]
    fn keys_sort_as_their_columns_do_and_are_found_again() {
        let place = |warehouse, district| Place { warehouse, district };
        let rows = [
            place(1, 9).order_line(300, 15),
            place(1, 10).order_line(2, 1),
            place(1, 10).order_line(255, 2),
            place(1, 10).order_line(256, 1),
            place(256, 1).order_line(1, 1),
        ];
        assert!(rows.is_sorted_by(|a, b| a.key().as_slice() < b.key().as_slice()));
        for row in rows {
            assert_eq!(RowId::of(Table::OrderLine, row.key().as_slice()).unwrap(), row);
        }
        assert_eq!(rows[3].place(32), place(1, 10));
        let newest = place(1, 1).customer_order(7, 900);
        assert!(newest.key().as_slice() < place(1, 1).customer_order(7, 899).key().as_slice());
        assert!(RowId::of(Table::Order, &[1, 2]).is_err());
    }

    #[test]
    fn rows_are_as_long_as_the_specification_has_them_and_keep_their_columns() {
        for table in Table::ALL {
            let long = u64::MAX - 5;
            let kept = value::<ValueStamp>(table, long);
            assert_eq!(columns(table, &kept).unwrap(), long);
            assert_eq!(Table::ALL[table.tree().0 as usize], table);
        }
        assert_eq!(Table::Customer.value_bytes(), 650);
        assert_eq!(Table::NewOrder.value_bytes(), VALUE_BYTES_MIN);
        let other = value::<ValueStamp>(Table::Item, 1);
        assert_eq!(columns(Table::Stock, &other).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
