//! Payment (clause 2.5): a customer pays.
use tantalum_base::Result;

use super::rows::{Customer, District, History, Warehouse};
use super::tables::{Place, RowId};
use super::terminals::Who;
use super::work::Work;
use crate::workload::{Ending, RowTransaction};

/// Counts nothing. The warehouse, which every payment in it needs, is locked last and so for the shortest
/// time.
pub(super) async fn run<T: RowTransaction>(
    work: &mut Work<'_, T>,
    place: Place,
    (customers, who): (Place, Who),
    amount: u64,
) -> Result<Ending<u64>> {
    let number = work.customer(customers, who).await?;
    let row = customers.customer(number);
    let customer: Customer = work.hold(row).await?;
    let balance = customer.balance - amount as i64;
    let paid = Customer { balance, payments: customer.payments + 1, ..customer };
    work.put(row, &paid).await?;

    let row = place.row();
    let district: District = work.hold(row).await?;
    work.put(row, &District { ytd: district.ytd + amount, ..district }).await?;

    let row = RowId::warehouse(place.warehouse);
    let warehouse: Warehouse = work.hold(row).await?;
    let ytd = warehouse.ytd + amount;
    work.put(row, &Warehouse { ytd }).await?;

    let history = History {
        amount,
        district: place.district,
        customer_warehouse: customers.warehouse,
        customer_district: customers.district,
        customer: number,
    };
    work.put(RowId::history(place.warehouse, ytd), &history).await?;
    Ok(Ending::Commit(0))
}
