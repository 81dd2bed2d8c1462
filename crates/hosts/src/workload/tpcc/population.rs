//! The numbers of rows, and their content at the start (clause 4.3.3.1).
use tantalum_base::{Error, ErrorKind, Result, Rng};

use super::random::{any, derived, first_name, last_name, nu_rand};
use super::rows::{Customer, District, History, Order, OrderLine, Row, Stock, Warehouse};
use super::tables::{DISTRICTS, ORDER_MAX, Place, RowId, Table};

/// Amount that a customer has paid at the start, in cents.
const FIRST_PAYMENT: u64 = 1_000;

/// The size of a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Population {
    /// Number of warehouses.
    pub warehouses: u16,
    /// How often the specification's numbers of items, of customers and of last names are halved: 0 for a full-size
    /// database.
    pub halvings: u32,
}

impl Population {
    /// Maximum of [`halvings`](Self::halvings).
    pub const HALVINGS_MAX: u32 = 6;

    /// The specification's rows: about 100 MB per warehouse.
    pub fn new(warehouses: u16) -> Self {
        Population { warehouses, halvings: 0 }
    }

    /// Customers per district; each has one order at the start.
    pub fn customers(&self) -> u16 {
        3_000 >> self.halvings
    }

    /// Number of items, which is also the number of stock rows per warehouse.
    pub fn items(&self) -> u32 {
        100_000 >> self.halvings
    }

    /// Number of different last names per district.
    pub(super) fn names(&self) -> u64 {
        1_000 >> self.halvings
    }

    /// NURand's A for customers, last names and items (clause 2.1.6), in the proportion of a full-size database.
    pub(super) fn nu_rand_a(&self) -> [u64; 3] {
        [1_024, 256, 8_192].map(|a| (a >> self.halvings) - 1)
    }

    /// The first undelivered order of a district at the start.
    pub(super) fn first_undelivered(&self) -> u32 {
        u32::from(self.customers()) * 7 / 10 + 1
    }

    /// Number of rows of a table at the start; approximate for order lines.
    pub fn rows(&self, table: Table) -> u64 {
        let warehouses = u64::from(self.warehouses);
        let districts = warehouses * u64::from(DISTRICTS);
        let customers = districts * u64::from(self.customers());
        match table {
            Table::Warehouse => warehouses,
            Table::District => districts,
            Table::Customer
            | Table::CustomerName
            | Table::History
            | Table::Order
            | Table::CustomerOrder => customers,
            Table::NewOrder => {
                districts * u64::from(u32::from(self.customers()) + 1 - self.first_undelivered())
            }
            Table::OrderLine => 10 * customers,
            Table::Item => u64::from(self.items()),
            Table::Stock => warehouses * u64::from(self.items()),
        }
    }

    /// Approximate bytes of all values and keys at the start.
    pub fn bytes(&self) -> u64 {
        let of = |table: Table| {
            // Approximate for the keys of names.
            let key_bytes = if table == Table::CustomerName { 30 } else { 6 };
            self.rows(table) * (u64::from(table.value_bytes()) + key_bytes)
        };
        Table::ALL.into_iter().map(of).sum()
    }

    /// # Errors
    /// `InvalidInput`.
    pub(super) fn check(&self) -> Result<()> {
        if self.warehouses == 0 {
            return Err(Error::new(ErrorKind::InvalidInput, "a database without warehouses"));
        }
        if self.halvings > Self::HALVINGS_MAX {
            let problem = format!("{} halvings: {} at the most", self.halvings, Self::HALVINGS_MAX);
            return Err(Error::new(ErrorKind::InvalidInput, problem));
        }
        Ok(())
    }
}

/// The content of the rows at the start, derived from a seed.
#[derive(Debug)]
pub(super) struct Initial {
    pub(super) population: Population,
    seed: u64,
    /// NURand's C for last names.
    name_c: u64,
    /// Customers, from 1 on, in the order in which they ordered; each district begins at a different place in it.
    customers: Vec<u16>,
    /// The place of each customer in that order, from 0 on.
    places: Vec<u16>,
}

/// Uses of [`Initial::rng`].
const OF_ITS_NAME: u64 = 1;
const OF_ITS_COLUMNS: u64 = 2;
const OF_ITS_LINES: u64 = 3;

impl Initial {
    pub(super) fn new(population: Population, seed: u64) -> Self {
        let rng = &mut Rng::split(seed, "tpcc population");
        let mut customers: Vec<u16> = (1..=population.customers()).collect();
        rng.shuffle(&mut customers);
        let mut places = vec![0; customers.len()];
        for (place, customer) in (0..).zip(&customers) {
            places[usize::from(*customer) - 1] = place;
        }
        let name_c = rng.below(256);
        Initial { population, seed, name_c, customers, places }
    }

    /// NURand's C for last names.
    pub(super) fn name_c(&self) -> u64 {
        self.name_c
    }

    /// Columns of a row that never changes: they identify it.
    pub(super) fn told(&self, row: RowId) -> u64 {
        derived([self.seed, row.table as u64, row.number])
    }

    /// The generator for the random part of a row.
    fn rng(&self, row: RowId, of: u64) -> Rng {
        Rng::new(derived([self.told(row), of, 0]))
    }

    /// The columns of a row at the start, if there is one.
    pub(super) fn columns(&self, row: RowId) -> Option<u64> {
        let number = row.number;
        let customers = u64::from(self.population.customers());
        let packed = match row.table {
            Table::Warehouse => {
                let all = u64::from(DISTRICTS) * customers;
                self.has_warehouse(number).then(|| Warehouse { ytd: all * FIRST_PAYMENT }.pack())
            }
            Table::District => self.has(row.place(0)).then(|| {
                let next_order = customers as u32 + 1;
                District { ytd: customers * FIRST_PAYMENT, next_order }.pack()
            }),
            Table::Customer => {
                let is = (1..=customers).contains(&(number & 0xffff)) && self.has(row.place(16));
                let balance = -(FIRST_PAYMENT as i64);
                is.then(|| Customer { balance, payments: 1, deliveries: 0 }.pack())
            }
            Table::History => self.history(number).map(|history| history.pack()),
            Table::NewOrder => {
                let order = self.order(row.place(24), number as u32 & ORDER_MAX);
                order.filter(|order| order.carrier == 0).map(|_| Ok(self.told(row)))
            }
            Table::Order => {
                let order = self.order(row.place(24), number as u32 & ORDER_MAX);
                order.map(|order| order.pack())
            }
            Table::CustomerOrder => {
                let order = ORDER_MAX - (number as u32 & ORDER_MAX);
                let of = self.order(row.place(40), order);
                let same = of.is_some_and(|of| u64::from(of.customer) == number >> 24 & 0xffff);
                same.then(|| Ok(self.told(row)))
            }
            Table::OrderLine => self.order_line(row).map(|line| line.pack()),
            Table::Item => self.has_item(number).then(|| Ok(self.told(row))),
            Table::Stock => {
                let is = self.has_item(number & 0xff_ffff) && self.has_warehouse(number >> 24);
                let quantity = any(&mut self.rng(row, OF_ITS_COLUMNS), 10, 100);
                is.then(|| Stock { quantity, ytd: 0, orders: 0, remotes: 0 }.pack())
            }
            Table::CustomerName => None,
        };
        packed.and_then(Result::ok)
    }

    fn has_warehouse(&self, warehouse: u64) -> bool {
        (1..=u64::from(self.population.warehouses)).contains(&warehouse)
    }

    fn has(&self, place: Place) -> bool {
        self.has_warehouse(u64::from(place.warehouse)) && (1..=DISTRICTS).contains(&place.district)
    }

    fn has_item(&self, item: u64) -> bool {
        (1..=u64::from(self.population.items())).contains(&item)
    }

    /// One payment of each customer.
    fn history(&self, number: u64) -> Option<History> {
        let (warehouse, ytd) = (number >> 40, number & ((1 << 40) - 1));
        let customers = u64::from(self.population.customers());
        let all = FIRST_PAYMENT * customers * u64::from(DISTRICTS);
        if !self.has_warehouse(warehouse) || !ytd.is_multiple_of(FIRST_PAYMENT) {
            return None;
        }
        let before = (1..=all).contains(&ytd).then(|| ytd / FIRST_PAYMENT - 1)?;
        let district = (before / customers) as u8 + 1;
        Some(History {
            amount: FIRST_PAYMENT,
            district,
            customer_warehouse: warehouse as u16,
            customer_district: district,
            customer: (before % customers) as u16 + 1,
        })
    }

    /// The total payments of a warehouse after each payment of the start.
    pub(super) fn first_payments(&self) -> impl Iterator<Item = u64> + use<> {
        let payments = u64::from(self.population.customers()) * u64::from(DISTRICTS);
        (1..=payments).map(|payment| payment * FIRST_PAYMENT)
    }

    /// An order of the start.
    pub(super) fn order(&self, place: Place, order: u32) -> Option<Order> {
        let customers = self.customers.len();
        if !self.has(place) || order == 0 || order as usize > customers {
            return None;
        }
        let customer = self.customers[(order as usize - 1 + self.first(place)) % customers];
        let rng = &mut self.rng(place.order(order), OF_ITS_COLUMNS);
        let (lines, carrier) = (any(rng, 5, 15) as u8, any(rng, 1, 10) as u8);
        let delivered = order < self.population.first_undelivered();
        Some(Order { customer, lines, carrier: if delivered { carrier } else { 0 } })
    }

    /// The order of a customer at the start.
    pub(super) fn order_of(&self, place: Place, customer: u16) -> u32 {
        let customers = self.customers.len();
        let at = usize::from(self.places[usize::from(customer) - 1]);
        ((at + customers - self.first(place)) % customers) as u32 + 1
    }

    /// The place in the order of customers at which a district begins.
    fn first(&self, place: Place) -> usize {
        (self.told(place.row()) % self.customers.len() as u64) as usize
    }

    fn order_line(&self, row: RowId) -> Option<OrderLine> {
        let (place, order) = (row.place(32), (row.number >> 8) as u32 & ORDER_MAX);
        let Order { lines, carrier, .. } = self.order(place, order)?;
        (1..=lines).contains(&(row.number as u8)).then(|| {
            let rng = &mut self.rng(row, OF_ITS_LINES);
            let delivered = carrier > 0;
            let item = any(rng, 1, u64::from(self.population.items())) as u32;
            let amount = if delivered { 0 } else { any(rng, 1, 999_999) };
            let supply_warehouse = place.warehouse;
            OrderLine { item, supply_warehouse, quantity: 5, amount, delivered }
        })
    }

    /// A price in cents.
    pub(super) fn price(&self, item: u32) -> u64 {
        any(&mut self.rng(RowId::item(item), OF_ITS_COLUMNS), 100, 10_000)
    }

    /// The key of a customer in the index of names: the district, the last name, the first name, the customer.
    pub(super) fn name_key(&self, place: Place, customer: u16) -> Vec<u8> {
        let rng = &mut self.rng(place.customer(customer), OF_ITS_NAME);
        let names = self.population.names();
        let [_, name_a, _] = self.population.nu_rand_a();
        let name = match u64::from(customer) <= names {
            true => u64::from(customer) - 1,
            false => nu_rand(rng, name_a, self.name_c, names) - 1,
        };
        let mut key = name_prefix(place, name);
        key.extend_from_slice(first_name(rng).as_bytes());
        key.extend_from_slice(&customer.to_be_bytes());
        key
    }

    /// The columns of an entry of that index.
    pub(super) fn name_columns(&self, place: Place, customer: u16) -> u64 {
        let told = self.told(RowId { table: Table::CustomerName, ..place.customer(customer) });
        told << 16 | u64::from(customer)
    }
}

/// The common key prefix of all customers of a district with this last name.
pub(super) fn name_prefix(place: Place, name: u64) -> Vec<u8> {
    let mut key = place.row().key().as_slice().to_vec();
    key.extend_from_slice(last_name(name).as_bytes());
    key.push(0);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_warehouse_has_the_rows_of_the_specification() {
        let whole = Population::new(2);
        assert_eq!(whole.rows(Table::Stock), 200_000);
        assert_eq!(whole.rows(Table::Customer), 60_000);
        assert_eq!(whole.rows(Table::NewOrder), 18_000);
        assert_eq!(whole.nu_rand_a(), [1_023, 255, 8_191]);
        assert_eq!(whole.first_undelivered(), 2_101);
        let mb = whole.bytes() as f64 / 2e6;
        assert!((70.0..100.0).contains(&mb), "{mb} MB a warehouse");
    }

    #[test]
    fn every_customer_has_one_order_and_the_order_its_customer() {
        let initial = Initial::new(Population { warehouses: 1, halvings: 5 }, 3);
        let place = Place { warehouse: 1, district: 7 };
        for customer in 1..=initial.population.customers() {
            let order = initial.order_of(place, customer);
            assert_eq!(initial.order(place, order).unwrap().customer, customer);
            assert!(initial.columns(place.customer_order(customer, order)).is_some());
            assert!(initial.columns(place.customer_order(customer, order + 1)).is_none());
        }
        let none = [
            place.order(0),
            place.order(94),
            RowId::stock(1, 3_126),
            RowId::stock(2, 1),
            place.order_line(1, 16),
            Place { warehouse: 1, district: 11 }.customer(1),
            RowId::history(1, 1_500),
        ];
        for row in none {
            assert_eq!(initial.columns(row), None, "{row:?}");
        }
        assert!(initial.columns(RowId::history(1, 930_000)).is_some());
        assert!(initial.columns(RowId::history(1, 931_000)).is_none());
    }
}
