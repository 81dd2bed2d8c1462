//! Misuse at which a medium must panic.
use super::{ZoneFactory, append, batch, header, opened, run};
use crate::zone::ZoneMedia;
use std::future::Future;
use std::rc::Rc;
use tantalum_base::ZoneNo;

/// Panics: an append to a zone that was not reset since opening.
pub fn append_without_reset<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    misuse(make, |media, zone| async move {
        append(&*media, zone.0, 1, 0, 1, false).await;
    });
}

/// Panics: an append that does not fit in the rest of the zone.
pub fn append_past_the_end<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    misuse(make, |media, zone| async move {
        media.reset(zone).await.unwrap();
        for _ in 0..=media.geometry().slots_per_zone {
            append(&*media, zone.0, 1, 0, 1, false).await;
        }
    });
}

/// Panics: an append of more pages than the medium accepts at once.
pub fn append_too_large<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    misuse(make, |media, zone| async move {
        media.reset(zone).await.unwrap();
        let count = media.geometry().append_pages_max + 1;
        append(&*media, zone.0, 1, 0, count, false).await;
    });
}

/// Panics: an empty append.
pub fn append_empty<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    misuse(make, |media, zone| async move {
        media.reset(zone).await.unwrap();
        append(&*media, zone.0, 1, 0, 0, false).await;
    });
}

/// Panics: more bodies than spares.
pub fn spares_and_bodies_differ<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    misuse(make, |media, zone| async move {
        media.reset(zone).await.unwrap();
        let (spares, bodies) = batch(0, 3);
        let _ = media.append(zone, &header(1, 0, 3), &spares[..2], &bodies, false).await;
    });
}

fn misuse<F, M, Fut>(make: impl Fn(u64) -> F, misuse: M)
where
    F: ZoneFactory,
    M: FnOnce(Rc<F::Media>, ZoneNo) -> Fut,
    Fut: Future<Output = ()> + 'static,
{
    let mut factory = make(9);
    let (media, zones) = opened(&mut factory);
    run(&factory, misuse(media, ZoneNo(zones[0])));
}
