//! A terminal: the choice of its transactions and their inputs (clauses 2.4.1 to 2.8.1, 5.2).
use tantalum_base::Rng;

use super::population::{Initial, Population};
use super::random::{any, nu_rand};
use super::tables::{DISTRICTS, Place};

/// A kind of transaction, in the order of clause 2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A customer orders items.
    NewOrder,
    /// A customer pays.
    Payment,
    /// A customer requests the last order.
    OrderStatus,
    /// The oldest order of each district is delivered.
    Delivery,
    /// The number of items of the last orders that are about to run out.
    StockLevel,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] =
        [Kind::NewOrder, Kind::Payment, Kind::OrderStatus, Kind::Delivery, Kind::StockLevel];

    /// Its name in the specification.
    pub fn name(self) -> &'static str {
        match self {
            Kind::NewOrder => "New-Order",
            Kind::Payment => "Payment",
            Kind::OrderStatus => "Order-Status",
            Kind::Delivery => "Delivery",
            Kind::StockLevel => "Stock-Level",
        }
    }

    /// Share of all transactions, in percent: the minimum of clause 5.2.3 for all kinds except new orders.
    pub fn percent(self) -> u64 {
        match self {
            Kind::NewOrder => 45,
            Kind::Payment => 43,
            Kind::OrderStatus | Kind::Delivery | Kind::StockLevel => 4,
        }
    }

    /// Its keying time and its mean think time, in seconds (clause 5.2.5.7).
    pub(super) fn pause_seconds(self) -> (u64, f64) {
        match self {
            Kind::NewOrder => (18, 12.0),
            Kind::Payment => (3, 12.0),
            Kind::OrderStatus => (2, 10.0),
            Kind::Delivery | Kind::StockLevel => (2, 5.0),
        }
    }
}

/// Selects a customer of a district.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Who {
    Number(u16),
    /// By the number of the last name.
    Name(u64),
}

/// A line of a new order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Line {
    pub(super) item: u32,
    pub(super) supply_warehouse: u16,
    pub(super) quantity: u8,
}

/// A transaction's input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Input {
    NewOrder { place: Place, customer: u16, lines: Vec<Line> },
    Payment { place: Place, customers: Place, who: Who, amount: u64 },
    OrderStatus { place: Place, who: Who },
    Delivery { warehouse: u16, carrier: u8 },
    StockLevel { place: Place, threshold: u64 },
}

/// NURand's constants of a run (clause 2.1.6.1).
#[derive(Clone, Copy, Debug)]
struct Constants {
    customer: u64,
    name: u64,
    item: u64,
}

/// A terminal of a warehouse.
#[derive(Debug)]
pub(super) struct Terminal {
    warehouse: u16,
    /// The district of its stock levels.
    district: u8,
    population: Population,
    constants: Constants,
    rng: Rng,
}

impl Constants {
    /// The constant for last names differs by this much from the one with which the database was made.
    fn new(initial: &Initial, seed: u64) -> Self {
        let rng = &mut Rng::split(seed, "tpcc constants");
        let (customer, item) = (rng.below(1_024), rng.below(8_192));
        loop {
            let name = rng.below(256);
            let apart = name.abs_diff(initial.name_c());
            if (65..=119).contains(&apart) && apart != 96 && apart != 112 {
                return Constants { customer, name, item };
            }
        }
    }
}

impl Terminal {
    /// Terminal number `number`, from 0 on; terminals are assigned to the warehouses in turn.
    pub(super) fn new(initial: &Initial, number: u32, seed: u64) -> Self {
        let population = initial.population;
        let warehouses = u32::from(population.warehouses);
        Terminal {
            warehouse: (number % warehouses) as u16 + 1,
            district: (number / warehouses % u32::from(DISTRICTS)) as u8 + 1,
            population,
            constants: Constants::new(initial, seed),
            rng: Rng::split(seed, &format!("terminal {number}")),
        }
    }

    /// Its next transaction.
    pub(super) fn next(&mut self) -> (Kind, Input) {
        let mut drawn = self.rng.below(100);
        let mut of_it = Kind::ALL.into_iter().filter(|kind| {
            let is = drawn < kind.percent();
            drawn = drawn.wrapping_sub(kind.percent());
            is
        });
        let kind = of_it.next().unwrap_or(Kind::NewOrder);
        let input = match kind {
            Kind::NewOrder => self.new_order(),
            Kind::Payment => self.payment(),
            Kind::OrderStatus => {
                let place = self.place();
                Input::OrderStatus { place, who: self.who() }
            }
            Kind::Delivery => {
                let carrier = any(&mut self.rng, 1, 10) as u8;
                Input::Delivery { warehouse: self.warehouse, carrier }
            }
            Kind::StockLevel => {
                let place = Place { warehouse: self.warehouse, district: self.district };
                Input::StockLevel { place, threshold: any(&mut self.rng, 10, 20) }
            }
        };
        (kind, input)
    }

    /// Keying and think time, in nanoseconds; the think time is at most ten times its mean.
    pub(super) fn pause_ns(&mut self, kind: Kind) -> u64 {
        let (keying, thinking) = kind.pause_seconds();
        let thought = -(1.0 - self.rng.unit()).ln() * thinking;
        keying * 1_000_000_000 + (thought.min(10.0 * thinking) * 1e9) as u64
    }

    /// A random district of the warehouse.
    fn place(&mut self) -> Place {
        let district = any(&mut self.rng, 1, u64::from(DISTRICTS)) as u8;
        Place { warehouse: self.warehouse, district }
    }

    /// Another warehouse with this probability, if there are others.
    fn other_warehouse(&mut self, probability: f64) -> u16 {
        let others = u64::from(self.population.warehouses) - 1;
        if others == 0 || !self.rng.chance(probability) {
            return self.warehouse;
        }
        let other = any(&mut self.rng, 1, others) as u16;
        if other >= self.warehouse { other + 1 } else { other }
    }

    fn customer(&mut self) -> u16 {
        let [a, ..] = self.population.nu_rand_a();
        let customers = u64::from(self.population.customers());
        nu_rand(&mut self.rng, a, self.constants.customer, customers) as u16
    }

    fn who(&mut self) -> Who {
        if !self.rng.chance(0.6) {
            return Who::Number(self.customer());
        }
        let ([_, a, _], names) = (self.population.nu_rand_a(), self.population.names());
        Who::Name(nu_rand(&mut self.rng, a, self.constants.name, names) - 1)
    }

    fn line(&mut self) -> Line {
        let [.., a] = self.population.nu_rand_a();
        let items = u64::from(self.population.items());
        let item = nu_rand(&mut self.rng, a, self.constants.item, items) as u32;
        let supply_warehouse = self.other_warehouse(0.01);
        Line { item, supply_warehouse, quantity: any(&mut self.rng, 1, 10) as u8 }
    }

    /// Its lines are in the order of the stock rows, so that orders lock them in the same order. In one order of a hundred the last
    /// item is not used (clause 2.4.1.5).
    fn new_order(&mut self) -> Input {
        let (place, customer) = (self.place(), self.customer());
        let count = any(&mut self.rng, 5, 15);
        let mut lines: Vec<Line> = (0..count).map(|_| self.line()).collect();
        lines.sort_unstable_by_key(|line| (line.supply_warehouse, line.item));
        if self.rng.chance(0.01) {
            let last = lines.len() - 1;
            lines[last].item = self.population.items() + 1;
        }
        Input::NewOrder { place, customer, lines }
    }

    fn payment(&mut self) -> Input {
        let place = self.place();
        let warehouse = self.other_warehouse(0.15);
        let district = any(&mut self.rng, 1, u64::from(DISTRICTS)) as u8;
        let remote = warehouse != place.warehouse;
        let customers = if remote { Place { warehouse, district } } else { place };
        let who = self.who();
        Input::Payment { place, customers, who, amount: any(&mut self.rng, 100, 500_000) }
    }
}
