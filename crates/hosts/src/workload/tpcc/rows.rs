//! The columns that transactions use, in 64 bits per row. Money is in cents.
use tantalum_base::{Error, ErrorKind, Result};

use super::tables::Table;

/// Columns of a row.
pub(super) trait Row: Sized {
    const TABLE: Table;

    /// # Errors
    /// `TooLarge` if a column is.
    fn pack(&self) -> Result<u64>;

    fn unpack(columns: u64) -> Self;
}

/// Concatenates columns with these numbers of bits.
fn pack<R: Row, const N: usize>(columns: [u64; N], bits: [u32; N]) -> Result<u64> {
    let mut packed = 0;
    for (at, (column, bits)) in columns.into_iter().zip(bits).enumerate() {
        if column >> bits != 0 {
            let context = format!("{:?}: {column} in column {at} of {bits} bits", R::TABLE);
            return Err(Error::new(ErrorKind::TooLarge, context));
        }
        packed = packed << bits | column;
    }
    Ok(packed)
}

fn unpack<const N: usize>(mut packed: u64, bits: [u32; N]) -> [u64; N] {
    let mut columns = [0; N];
    for (column, bits) in columns.iter_mut().zip(bits).rev() {
        *column = packed & ((1 << bits) - 1);
        packed >>= bits;
    }
    columns
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Warehouse {
    pub(super) ytd: u64,
}

impl Warehouse {
    const BITS: [u32; 1] = [40];
}

impl Row for Warehouse {
    const TABLE: Table = Table::Warehouse;

    fn pack(&self) -> Result<u64> {
        pack::<Self, _>([self.ytd], Self::BITS)
    }

    fn unpack(columns: u64) -> Self {
        let [ytd] = unpack(columns, Self::BITS);
        Warehouse { ytd }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct District {
    pub(super) ytd: u64,
    pub(super) next_order: u32,
}

impl District {
    const BITS: [u32; 2] = [40, 24];
}

impl Row for District {
    const TABLE: Table = Table::District;

    fn pack(&self) -> Result<u64> {
        pack::<Self, _>([self.ytd, u64::from(self.next_order)], Self::BITS)
    }

    fn unpack(columns: u64) -> Self {
        let [ytd, next_order] = unpack(columns, Self::BITS);
        District { ytd, next_order: next_order as u32 }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Customer {
    pub(super) balance: i64,
    pub(super) payments: u64,
    pub(super) deliveries: u64,
}

impl Customer {
    const BITS: [u32; 3] = [36, 14, 14];
    /// Offset of a stored balance, so that it is never below 0.
    const BALANCE_ZERO: i64 = 1 << 35;
}

impl Row for Customer {
    const TABLE: Table = Table::Customer;

    fn pack(&self) -> Result<u64> {
        let balance = (self.balance + Self::BALANCE_ZERO) as u64;
        pack::<Self, _>([balance, self.payments, self.deliveries], Self::BITS)
    }

    fn unpack(columns: u64) -> Self {
        let [balance, payments, deliveries] = unpack(columns, Self::BITS);
        Customer { balance: balance as i64 - Self::BALANCE_ZERO, payments, deliveries }
    }
}

/// A payment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct History {
    pub(super) amount: u64,
    /// The district that was paid.
    pub(super) district: u8,
    /// The warehouse of the paying customer.
    pub(super) customer_warehouse: u16,
    pub(super) customer_district: u8,
    pub(super) customer: u16,
}

impl History {
    const BITS: [u32; 5] = [20, 4, 16, 4, 16];
}

impl Row for History {
    const TABLE: Table = Table::History;

    fn pack(&self) -> Result<u64> {
        let payer = [self.customer_warehouse, u16::from(self.customer_district), self.customer];
        let [warehouse, district, customer] = payer.map(u64::from);
        let columns = [self.amount, u64::from(self.district), warehouse, district, customer];
        pack::<Self, _>(columns, Self::BITS)
    }

    fn unpack(columns: u64) -> Self {
        let [amount, district, warehouse, customer_district, customer] =
            unpack(columns, Self::BITS);
        History {
            amount,
            district: district as u8,
            customer_warehouse: warehouse as u16,
            customer_district: customer_district as u8,
            customer: customer as u16,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Order {
    pub(super) customer: u16,
    pub(super) lines: u8,
    /// 0 until it is delivered.
    pub(super) carrier: u8,
}

impl Order {
    const BITS: [u32; 3] = [16, 4, 4];
}

impl Row for Order {
    const TABLE: Table = Table::Order;

    fn pack(&self) -> Result<u64> {
        let columns = [self.customer, u16::from(self.lines), u16::from(self.carrier)];
        pack::<Self, _>(columns.map(u64::from), Self::BITS)
    }

    fn unpack(columns: u64) -> Self {
        let [customer, lines, carrier] = unpack(columns, Self::BITS);
        Order { customer: customer as u16, lines: lines as u8, carrier: carrier as u8 }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OrderLine {
    pub(super) item: u32,
    pub(super) supply_warehouse: u16,
    pub(super) quantity: u8,
    pub(super) amount: u64,
    pub(super) delivered: bool,
}

impl OrderLine {
    const BITS: [u32; 5] = [19, 16, 4, 20, 1];
}

impl Row for OrderLine {
    const TABLE: Table = Table::OrderLine;

    fn pack(&self) -> Result<u64> {
        let (item, supply) = (u64::from(self.item), u64::from(self.supply_warehouse));
        let (quantity, delivered) = (u64::from(self.quantity), u64::from(self.delivered));
        pack::<Self, _>([item, supply, quantity, self.amount, delivered], Self::BITS)
    }

    fn unpack(columns: u64) -> Self {
        let [item, supply, quantity, amount, delivered] = unpack(columns, Self::BITS);
        OrderLine {
            item: item as u32,
            supply_warehouse: supply as u16,
            quantity: quantity as u8,
            amount,
            delivered: delivered > 0,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stock {
    pub(super) quantity: u64,
    pub(super) ytd: u64,
    pub(super) orders: u64,
    pub(super) remotes: u64,
}

impl Stock {
    const BITS: [u32; 4] = [8, 22, 18, 16];
}

impl Row for Stock {
    const TABLE: Table = Table::Stock;

    fn pack(&self) -> Result<u64> {
        pack::<Self, _>([self.quantity, self.ytd, self.orders, self.remotes], Self::BITS)
    }

    fn unpack(columns: u64) -> Self {
        let [quantity, ytd, orders, remotes] = unpack(columns, Self::BITS);
        Stock { quantity, ytd, orders, remotes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_kept_and_those_that_are_too_large_refused() {
        let customer = Customer { balance: -1_000, payments: 16_383, deliveries: 5 };
        assert_eq!(Customer::unpack(customer.pack().unwrap()), customer);
        let too_many = Customer { payments: 16_384, ..customer };
        assert_eq!(too_many.pack().unwrap_err().kind(), ErrorKind::TooLarge);
        let history = History {
            amount: 500_000,
            district: 10,
            customer_warehouse: 1_000,
            customer_district: 9,
            customer: 3_000,
        };
        assert_eq!(History::unpack(history.pack().unwrap()), history);
        let line = OrderLine {
            item: 100_000,
            supply_warehouse: 65_535,
            quantity: 10,
            amount: 999_999,
            delivered: true,
        };
        assert_eq!(OrderLine::unpack(line.pack().unwrap()), line);
        let stock = Stock { quantity: 100, ytd: 1_000_000, orders: 200_000, remotes: 2_000 };
        assert_eq!(Stock::unpack(stock.pack().unwrap()), stock);
        let order = Order { customer: 3_000, lines: 15, carrier: 10 };
        assert_eq!(Order::unpack(order.pack().unwrap()), order);
        let district = District { ytd: 3_000_000, next_order: 3_001 };
        assert_eq!(District::unpack(district.pack().unwrap()), district);
        let warehouse = Warehouse { ytd: 30_000_000 };
        assert_eq!(Warehouse::unpack(warehouse.pack().unwrap()), warehouse);
    }
}
