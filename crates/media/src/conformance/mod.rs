//! The contract of [`ZoneMedia`], as checks that run over any implementation (feature `testing`).
//!
//! Implement [`ZoneFactory`] for the medium and generate the tests with [`zone_conformance_tests!`]:
//!
//! ```ignore
//! tantalum_media::zone_conformance_tests!(MyFactory::new);
//! ```
//!
//! ```text
//! appends    appended content is read and scanned in its order and its zone
//! survival   content after power cuts and decay
//! misuse     misuse at which a medium must panic
//! ```
use crate::zone::{AppendHeader, Body, ScannedAppend, SlotKind, Spare, ZoneMedia};
use std::future::Future;
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo, Payload, Rng, SlotNo, Version, ZoneNo};
use tantalum_runtime::Virtual;

mod appends;
mod misuse;
mod survival;

pub use appends::*;
pub use misuse::*;
pub use survival::*;

/// Makes a medium, and reopens it after a power cut.
///
/// The medium has at least 3 zones. In each, 3 appends of the maximum size fit.
pub trait ZoneFactory {
    /// The medium under test.
    type Media: ZoneMedia<Page = PageBuf>;

    /// The executor on which everything runs.
    fn runtime(&self) -> &Virtual;

    /// Opens the medium. It is empty at first; later it holds the content that the last cut left.
    fn open(&mut self) -> Self::Media;

    /// Cuts power and decides the fate of writes that were not durable. The checks drop all tasks before this call.
    fn cut(&mut self, rng: &mut Rng);

    /// Damages the content of `slot`, as decay does.
    fn decay(&mut self, slot: SlotNo);
}

/// Generates a `#[test]` for each check. `$make` accepts a seed (`u64`) and returns a [`ZoneFactory`] whose medium
/// derives its delays from it.
#[macro_export]
macro_rules! zone_conformance_tests {
    ($make:expr) => {
        $crate::zone_conformance_tests!(@pass $make;
            append_sizes, meta_bodies, interleaved_zones, order_of_concurrent_appends,
            scan_from_offset, epochs_after_reset, peek_finds_the_first_header,
            reads_of_scattered_slots, durable_survives_a_cut, sync_makes_durable,
            decayed_page_is_dropped, cuts_at_random_moments);
        $crate::zone_conformance_tests!(@panic $make;
            append_without_reset, append_past_the_end, append_too_large, append_empty,
            spares_and_bodies_differ);
    };
    (@pass $make:expr; $($name:ident),*) => { $(
        #[test]
        fn $name() {
            $crate::conformance::$name($make);
        }
    )* };
    (@panic $make:expr; $($name:ident),*) => { $(
        #[test]
        #[should_panic]
        fn $name() {
            $crate::conformance::$name($make);
        }
    )* };
}

/// The content of page `number`, unique to it.
pub fn page(number: u64) -> PageBuf {
    let mut bytes = [0; PAGE_BYTES];
    Rng::new(number).fill(&mut bytes);
    PageBuf::copy_from(&bytes)
}

/// Spares and bodies for an append of the pages `first..first + count`.
pub fn batch(first: u64, count: u32) -> (Vec<Spare>, Vec<Body<PageBuf>>) {
    (first..first + u64::from(count))
        .map(|number| {
            let content = page(number);
            let spare = Spare {
                kind: SlotKind::Data,
                page: PageNo(number),
                version: Version(number + 1),
                checksum: content.checksum(),
            };
            (spare, Body::Data(content))
        })
        .unzip()
}

/// A header that differs from those of other batches.
pub fn header(epoch: u64, first: u64, count: u32) -> AppendHeader {
    AppendHeader {
        epoch,
        stream: (first % 5) as u8,
        durable: Version(first / 2),
        batch_first: Version(first + 1),
        batch_len: count,
    }
}

async fn append<M: ZoneMedia<Page = PageBuf>>(
    media: &M,
    zone: u32,
    epoch: u64,
    first: u64,
    count: u32,
    durable: bool,
) -> SlotNo {
    let (spares, bodies) = batch(first, count);
    let header = header(epoch, first, count);
    media.append(ZoneNo(zone), &header, &spares, &bodies, durable).await.expect("append")
}

fn run<F: ZoneFactory, T: 'static>(factory: &F, main: impl Future<Output = T> + 'static) -> T {
    factory.runtime().run(main).expect("no deadlock")
}

/// Checks that `found` is the whole append of `count` pages from `first` on.
fn assert_whole(found: &ScannedAppend, epoch: u64, first: u64, count: u32) {
    assert_eq!(found.header, header(epoch, first, count));
    let spares: Vec<_> = batch(first, count).0.into_iter().map(Some).collect();
    assert_eq!(found.spares, spares, "spares of the append of pages {first}+{count}");
}

/// The zones that are not retired, in ascending order.
fn usable<M: ZoneMedia>(media: &M) -> Vec<u32> {
    let retired = media.retired();
    assert!(retired.is_sorted());
    (0..media.geometry().zones).filter(|&zone| !retired.contains(&ZoneNo(zone))).collect()
}

fn opened<F: ZoneFactory>(factory: &mut F) -> (Rc<F::Media>, Vec<u32>) {
    let media = Rc::new(factory.open());
    let zones = usable(&*media);
    assert!(zones.len() >= 3, "the checks need 3 usable zones");
    (media, zones)
}
