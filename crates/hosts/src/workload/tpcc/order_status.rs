//! Order-Status (clause 2.6): a customer requests the last order.
use tantalum_base::{Error, ErrorKind, Result};

use super::rows::{Customer, Order};
use super::tables::Place;
use super::terminals::Who;
use super::work::Work;
use crate::workload::{Ending, RowTransaction};

/// Counts the lines of the order.
pub(super) async fn run<T: RowTransaction>(
    work: &mut Work<'_, T>,
    place: Place,
    who: Who,
) -> Result<Ending<u64>> {
    let customer = work.customer(place, who).await?;
    work.read::<Customer>(place.customer(customer)).await?;
    let number = work.newest_order(place, customer).await?;
    let order: Order = work.read(place.order(number)).await?;
    let (first, last) = (place.order_line(number, 1), place.order_line(number, u8::MAX - 1));
    let lines = work.scan(first, last, usize::MAX).await?;
    if lines.len() != usize::from(order.lines) || order.customer != customer {
        let context = format!("{place:?}, customer {customer}: {order:?}, {} lines", lines.len());
        return Err(Error::new(ErrorKind::Corrupt, context));
    }
    Ok(Ending::Commit(u64::from(order.lines)))
}
