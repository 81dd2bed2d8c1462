//! Power is cut at every operation of a journal and of its home. Whatever lands, vanishes or tears,
//! afterwards the two contain the image of one epoch, the last that was committed.
use crate::support::cuts::{Cut, STYLES, operations, survive};
use crate::support::epochs;
use tantalum_media::Fate;

#[test]
fn a_cut_at_any_operation_leaves_one_epoch_whole() {
    let nightly = std::env::var_os("TANTALUM_NIGHTLY").is_some();
    let mut survived = 0;
    for seed in 0..if nightly { 20 } else { 3 } {
        let epochs = epochs::made_up(seed, 6);
        for (at, operations) in operations(&epochs, seed) {
            for operation in 0..=operations {
                for (which, fate) in Fate::ALL.into_iter().enumerate() {
                    for (number, style) in STYLES.into_iter().enumerate() {
                        let due = (operation as usize + which + seed as usize) % STYLES.len();
                        if !nightly && number != due {
                            continue;
                        }
                        let cut = Cut { at, operation, fate, style, seed };
                        survive(&epochs, cut).unwrap_or_else(|wrong| panic!("{wrong}"));
                        survived += 1;
                    }
                }
            }
        }
    }
    println!("{survived} cuts");
    assert!(survived > 500, "{survived} cuts");
}
