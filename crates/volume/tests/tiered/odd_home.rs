//! A home that ends within its last page: it survives kills and the loss of the flash like any other, and nothing is written
//! behind its end.
use super::rig::{Life, Rig, page};
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Rng};
use tantalum_runtime::Runtime;

/// Seven sectors of the last page.
const HELD_BYTES: usize = 3584;
const LAST: u64 = super::rig::PAGES - 1;

/// The content of the last page after write `count`.
fn last_page(count: u64) -> PageBuf {
    let mut content = page(LAST, count);
    content.make_mut()[HELD_BYTES..].fill(0);
    content
}

/// Whether these last bytes of a home come from a write up to `count`.
fn is_of(image: &[u8], count: u64) -> bool {
    let held = &image[LAST as usize * PAGE_BYTES..];
    (0..=count).any(|count| *held == last_page(count)[..HELD_BYTES])
}

async fn write_last(life: &Life, count: u64) {
    // Together with its neighbour, in one write or in a transaction.
    let pages = [page(LAST - 1, count), last_page(count)];
    let tx = match count % 2 {
        0 => Some(life.volume.begin().await.unwrap()),
        _ => None,
    };
    life.volume.write(PageNo(LAST - 1), &pages, tx).await.unwrap();
    if let Some(tx) = tx {
        life.volume.commit(tx).await.unwrap();
    }
}

#[test]
fn the_last_page_survives_kills_and_goes_home() {
    for destage in ["ordered", "dense"] {
        let rig = Rig::odd(destage);
        let mut rng = Rng::new(3);
        for count in 1..=30 {
            let sleep_ms = rng.below(200);
            let trims = count % 10 == 0;
            rig.live(move |life| async move {
                let before = if (count - 1) % 10 == 0 { 0 } else { count - 1 };
                assert_eq!(life.read(LAST).await.unwrap(), last_page(before), "before {count}");
                write_last(&life, count).await;
                if trims {
                    life.volume.trim(PageRange::new(PageNo(LAST - 1), 2)).await.unwrap();
                }
                life.runtime.sleep(sleep_ms * 1_000_000).await;
            });
            if destage == "ordered" {
                let image = Rig::rescued(rig.left());
                assert!(is_of(&image, count), "{count}: home without its flash");
            }
        }
        rig.live(|life| async move {
            write_last(&life, 31).await;
            life.write_home().await.unwrap();
        });
        let image = Rig::under_the_claim(&rig.home);
        assert_eq!(image[LAST as usize * PAGE_BYTES..], last_page(31)[..HELD_BYTES]);
    }
}

#[test]
fn what_has_no_place_at_home_is_refused_however_it_is_written() {
    Rig::odd("ordered").live(|life| async move {
        write_last(&life, 1).await;
        let volume = &life.volume;
        let too_long = || vec![page(LAST - 1, 2), page(LAST, 2)];
        let at_once = volume.write(PageNo(LAST - 1), &too_long(), None).await;
        let scattered = (LAST - 1..).map(PageNo).zip(too_long()).collect();
        let scattered = volume.write_scattered(scattered, || ()).await;
        let tx = volume.begin().await.unwrap();
        let staged = volume.write(PageNo(LAST - 1), &too_long(), Some(tx)).await;
        volume.commit(tx).await.unwrap();
        for refused in [at_once, scattered, staged] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::OutOfRange);
        }
        let found = [life.read(LAST - 1).await.unwrap(), life.read(LAST).await.unwrap()];
        assert_eq!(found, [page(LAST - 1, 1), last_page(1)], "nothing of it was done");
    });
}
