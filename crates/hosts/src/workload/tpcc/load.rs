//! Loads the rows of the start, table by table, in the order of their keys.
use tantalum_base::Result;

use super::population::Initial;
use super::tables::{DISTRICTS, Place, RowId, Table, value};
use crate::values::Key;
use crate::workload::{RowStore, RowTransaction};

/// Bytes of the rows in one transaction.
const TRANSACTION_BYTES: usize = 16 << 10;

impl Initial {
    /// Inserts all rows.
    ///
    /// # Errors
    /// Those of the engine.
    pub(super) async fn load<S: RowStore>(&self, store: &S) -> Result<()> {
        for table in Table::ALL {
            let mut batch = Batch::new(store, table);
            for (key, columns) in self.rows(table) {
                batch.put(&key, columns).await?;
            }
            batch.commit().await?;
        }
        Ok(())
    }

    /// The rows of a table, in the order of their keys.
    fn rows(&self, table: Table) -> Box<dyn Iterator<Item = (Key, u64)> + '_> {
        if table == Table::CustomerName {
            return Box::new(self.places().flat_map(|place| self.names_of(place)));
        }
        let rows = self.numbered(table).filter_map(|row| {
            let columns = self.columns(row)?;
            Some((Key::from(row.key().as_slice()), columns))
        });
        Box::new(rows)
    }

    /// Every district.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> + use<> {
        let districts =
            |warehouse| (1..=DISTRICTS).map(move |district| Place { warehouse, district });
        (1..=self.population.warehouses).flat_map(districts)
    }

    /// The entries of a district in the index of names.
    pub(super) fn names_of(&self, place: Place) -> Vec<(Key, u64)> {
        let entry = |customer| {
            let key = Key::from(self.name_key(place, customer));
            (key, self.name_columns(place, customer))
        };
        let mut entries: Vec<_> = (1..=self.population.customers()).map(entry).collect();
        entries.sort();
        entries
    }

    /// The rows of a table that may exist, and a few more numbers.
    fn numbered(&self, table: Table) -> Box<dyn Iterator<Item = RowId> + '_> {
        let (customers, items) = (self.population.customers(), self.population.items());
        let warehouses = 1..=self.population.warehouses;
        let places = self.places();
        let orders = 1..=u32::from(customers);
        match table {
            Table::Warehouse => Box::new(warehouses.map(RowId::warehouse)),
            Table::District => Box::new(places.map(Place::row)),
            Table::Customer => Box::new(
                places.flat_map(move |place| (1..=customers).map(move |c| place.customer(c))),
            ),
            Table::CustomerName => Box::new(std::iter::empty()),
            Table::History => Box::new(warehouses.flat_map(move |warehouse| {
                self.first_payments().map(move |ytd| RowId::history(warehouse, ytd))
            })),
            Table::NewOrder => Box::new(
                places.flat_map(move |place| orders.clone().map(move |o| place.new_order(o))),
            ),
            Table::Order => {
                Box::new(places.flat_map(move |place| orders.clone().map(move |o| place.order(o))))
            }
            Table::CustomerOrder => Box::new(places.flat_map(move |place| {
                (1..=customers).map(move |customer| {
                    place.customer_order(customer, self.order_of(place, customer))
                })
            })),
            Table::OrderLine => Box::new(places.flat_map(move |place| {
                orders.clone().flat_map(move |order| {
                    let lines = self.order(place, order).map_or(0, |order| order.lines);
                    (1..=lines).map(move |line| place.order_line(order, line))
                })
            })),
            Table::Item => Box::new((1..=items).map(RowId::item)),
            Table::Stock => Box::new(warehouses.flat_map(move |warehouse| {
                (1..=items).map(move |item| RowId::stock(warehouse, item))
            })),
        }
    }
}

/// Collects the rows of one transaction, then of the next.
struct Batch<'a, S: RowStore> {
    store: &'a S,
    table: Table,
    transaction: Option<S::Transaction>,
    bytes: usize,
}

impl<'a, S: RowStore> Batch<'a, S> {
    fn new(store: &'a S, table: Table) -> Self {
        Batch { store, table, transaction: None, bytes: 0 }
    }

    async fn put(&mut self, key: &[u8], columns: u64) -> Result<()> {
        let transaction = self.transaction.get_or_insert_with(|| self.store.begin());
        transaction.put(self.table.tree(), key, value(self.table, columns)).await?;
        self.bytes += key.len() + self.table.value_bytes() as usize;
        if self.bytes >= TRANSACTION_BYTES { self.commit().await } else { Ok(()) }
    }

    async fn commit(&mut self) -> Result<()> {
        self.bytes = 0;
        match self.transaction.take() {
            Some(transaction) => transaction.commit().await,
            None => Ok(()),
        }
    }
}
