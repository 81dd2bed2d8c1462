//! Pages that TPC-C's transactions read and change.
//!
//! After Leutenegger and Dias, "A Modeling Study of the TPC-C Benchmark", SIGMOD 1993: relations of fixed-size tuples
//! packed into pages of 4 KiB, the benchmark's NURand skew, updates in place, inserts at the end of a relation in the
//! order of time, no index pages. The shares of the five transactions are those of the TPC-C specification
//! (clause 5.2.3), at its minimum for all but new-order.
use super::transactions::{Source, Touched};
use std::collections::VecDeque;
use tantalum_base::{Result, Rng, Spec};

const DISTRICTS: u64 = 10;
/// Customers per district.
const CUSTOMERS: u64 = 3_000;
/// Items, and stock tuples per warehouse.
const ITEMS: u64 = 100_000;
/// Orders per district at the start; the last 900 are not delivered.
const ORDERS: u64 = 3_000;
const UNDELIVERED: u64 = 900;
/// Lines per order at the start: the mean of 5 to 15.
const ORDER_LINES: u64 = 10;
/// Orders whose lines stock-level reads.
const RECENT_ORDERS: usize = 20;

/// A relation: its position, and the number of its tuples per page (Leutenegger and Dias, table 1: pages of 4 KiB).
#[derive(Clone, Copy, Debug)]
struct Relation {
    first_page: u64,
    page_tuples: u64,
    tuples: u64,
}

impl Relation {
    fn page(&self, tuple: u64) -> u64 {
        self.first_page + tuple % self.tuples / self.page_tuples
    }

    fn pages(&self) -> u64 {
        self.tuples.div_ceil(self.page_tuples)
    }
}

/// Assigns page numbers to relations, one after the other.
struct Layout {
    next_page: u64,
}

impl Layout {
    /// A relation of `tuples` tuples of `bytes` bytes.
    fn relation(&mut self, tuples: u64, bytes: u64) -> Relation {
        let relation = Relation { first_page: self.next_page, page_tuples: 4096 / bytes, tuples };
        self.next_page += relation.pages();
        relation
    }
}

/// The properties of an order that delivery and stock-level need.
#[derive(Clone, Copy, Debug)]
struct Order {
    number: u64,
    first_line: u64,
    lines: u64,
    customer: u64,
}

#[derive(Clone, Debug, Default)]
struct District {
    /// Orders of the start that have been delivered.
    delivered: u64,
    /// Orders since the start that have not been delivered.
    waiting: VecDeque<Order>,
    recent: VecDeque<Order>,
}

/// A database with its clients.
#[derive(Clone, Debug)]
pub(super) struct Tpcc {
    warehouses: u64,
    /// Whether reads are generated, or only writes.
    reads: bool,
    warehouse: Relation,
    district: Relation,
    customer: Relation,
    stock: Relation,
    item: Relation,
    order: Relation,
    new_order: Relation,
    order_line: Relation,
    history: Relation,
    districts: Vec<District>,
    orders: u64,
    order_lines: u64,
    histories: u64,
    /// NURand's constants, drawn once per run (clause 2.1.6).
    customer_c: u64,
    item_c: u64,
    pages: u64,
    rng: Rng,
}

impl Tpcc {
    /// Accepts `warehouses` (28) and `reads` (`on`, `off`); reserves space for the inserts of `transactions`.
    pub(super) fn of(spec: &mut Spec<'_>, transactions: u64, seed: u64) -> Result<Tpcc> {
        let warehouses = spec.count("warehouses", 1..=10_000, 28)?;
        let reads = spec.word("reads", &["on", "off"])? == "on";
        let districts = warehouses * DISTRICTS;
        let orders = districts * ORDERS;
        let mut layout = Layout { next_page: 0 };
        let mut rng = Rng::split(seed, "tpcc");
        let customer_c = rng.below(1024);
        let item_c = rng.below(8192);
        Ok(Tpcc {
            warehouses,
            reads,
            warehouse: layout.relation(warehouses, 89),
            district: layout.relation(districts, 95),
            customer: layout.relation(districts * CUSTOMERS, 655),
            stock: layout.relation(warehouses * ITEMS, 306),
            item: layout.relation(ITEMS, 82),
            order: layout.relation(orders + transactions, 24),
            new_order: layout.relation(districts * UNDELIVERED + transactions, 8),
            order_line: layout.relation((orders + transactions) * 15, 54),
            history: layout.relation(districts * CUSTOMERS + transactions, 46),
            districts: vec![District::default(); districts as usize],
            orders,
            order_lines: orders * ORDER_LINES,
            histories: districts * CUSTOMERS,
            customer_c,
            item_c,
            pages: layout.next_page,
            rng,
        })
    }

    /// All pages are below this.
    pub(super) fn pages(&self) -> u64 {
        self.pages
    }

    /// Clause 2.1.6: NURand(a, 0, below - 1) with constant `c`.
    fn nu_rand(&mut self, a: u64, c: u64, below: u64) -> u64 {
        ((self.rng.below(a + 1) | self.rng.below(below)) + c) % below
    }

    fn any_district(&mut self) -> u64 {
        self.rng.below(self.warehouses * DISTRICTS)
    }

    fn any_customer(&mut self, district: u64) -> u64 {
        let customer = self.nu_rand(1023, self.customer_c, CUSTOMERS);
        district * CUSTOMERS + customer
    }

    fn read(&self, page: u64, touched: &mut Touched) {
        if self.reads {
            touched.reads.push(page);
        }
    }

    fn update(&self, page: u64, touched: &mut Touched) {
        self.read(page, touched);
        touched.written.insert(page);
    }

    /// The customer of a payment or an order-status: in 60 % of cases by name, the middle one of three customers with
    /// that name (clauses 2.5.1.2, 2.5.2.2).
    fn customer_by_name_or_number(&mut self, district: u64, touched: &mut Touched) -> u64 {
        if self.rng.chance(0.6) {
            for _ in 0..2 {
                let namesake = district * CUSTOMERS + self.rng.below(CUSTOMERS);
                self.read(self.customer.page(namesake), touched);
            }
        }
        self.any_customer(district)
    }

    fn new_order(&mut self, touched: &mut Touched) {
        let district = self.any_district();
        let home = district / DISTRICTS;
        let customer = self.any_customer(district);
        self.read(self.warehouse.page(home), touched);
        self.update(self.district.page(district), touched);
        self.read(self.customer.page(customer), touched);
        let lines = 5 + self.rng.below(11);
        let order = Order { number: self.orders, first_line: self.order_lines, lines, customer };
        for line in 0..lines {
            let item = self.nu_rand(8191, self.item_c, ITEMS);
            let remote = self.warehouses > 1 && self.rng.chance(0.01);
            let warehouse = if remote { self.rng.below(self.warehouses) } else { home };
            self.read(self.item.page(item), touched);
            self.update(self.stock.page(warehouse * ITEMS + item), touched);
            touched.written.insert(self.order_line.page(order.first_line + line));
        }
        touched.written.insert(self.order.page(order.number));
        let place = self.new_order_place(order.number);
        touched.written.insert(self.new_order.page(place));
        self.orders += 1;
        self.order_lines += lines;
        let state = &mut self.districts[district as usize];
        state.waiting.push_back(order);
        state.recent.push_back(order);
        if state.recent.len() > RECENT_ORDERS {
            state.recent.pop_front();
        }
    }

    /// The position of the new-order tuple of an order made since the start.
    fn new_order_place(&self, number: u64) -> u64 {
        let districts = self.warehouses * DISTRICTS;
        districts * UNDELIVERED + (number - districts * ORDERS)
    }

    fn payment(&mut self, touched: &mut Touched) {
        let district = self.any_district();
        let remote = self.warehouses > 1 && self.rng.chance(0.15);
        let customers = if remote { self.any_district() } else { district };
        let customer = self.customer_by_name_or_number(customers, touched);
        self.update(self.warehouse.page(district / DISTRICTS), touched);
        self.update(self.district.page(district), touched);
        self.update(self.customer.page(customer), touched);
        touched.written.insert(self.history.page(self.histories));
        self.histories += 1;
    }

    fn order_status(&mut self, touched: &mut Touched) {
        let district = self.any_district();
        let customer = self.customer_by_name_or_number(district, touched);
        self.read(self.customer.page(customer), touched);
        let order = self.rng.below(self.orders);
        self.read(self.order.page(order), touched);
        self.read(self.order_line.page(order * ORDER_LINES), touched);
    }

    /// Delivers the oldest order of each district of a warehouse.
    fn delivery(&mut self, touched: &mut Touched) {
        let warehouse = self.rng.below(self.warehouses);
        for district in warehouse * DISTRICTS..(warehouse + 1) * DISTRICTS {
            let delivered = self.districts[district as usize].delivered;
            let (order, place) = if delivered < UNDELIVERED {
                self.districts[district as usize].delivered += 1;
                let number = district * ORDERS + (ORDERS - UNDELIVERED) + delivered;
                let customer = district * CUSTOMERS + self.rng.below(CUSTOMERS);
                let first_line = number * ORDER_LINES;
                let order = Order { number, first_line, lines: ORDER_LINES, customer };
                (order, district * UNDELIVERED + delivered)
            } else {
                let waiting = self.districts[district as usize].waiting.pop_front();
                let Some(order) = waiting else { continue };
                (order, self.new_order_place(order.number))
            };
            self.update(self.new_order.page(place), touched);
            self.update(self.order.page(order.number), touched);
            for line in order.first_line..order.first_line + order.lines {
                self.update(self.order_line.page(line), touched);
            }
            self.update(self.customer.page(order.customer), touched);
        }
    }

    fn stock_level(&mut self, touched: &mut Touched) {
        let district = self.any_district();
        self.read(self.district.page(district), touched);
        for at in 0..self.districts[district as usize].recent.len() {
            let order = self.districts[district as usize].recent[at];
            for line in order.first_line..order.first_line + order.lines {
                self.read(self.order_line.page(line), touched);
                let item = self.nu_rand(8191, self.item_c, ITEMS);
                self.read(self.stock.page(district / DISTRICTS * ITEMS + item), touched);
            }
        }
    }
}

impl Source for Tpcc {
    fn next(&mut self, touched: &mut Touched) {
        match self.rng.below(100) {
            0..45 => self.new_order(touched),
            45..88 => self.payment(touched),
            88..92 => self.order_status(touched),
            92..96 => self.delivery(touched),
            _ => self.stock_level(touched),
        }
    }
}
