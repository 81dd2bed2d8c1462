//! The journal with one protection switched off: the tests must notice.
use crate::support::cuts::{Cut, STYLES, Where, operations, survive};
use crate::support::damage;
use crate::support::epochs;
use tantalum_base::fault_points::assert_noticed;
use tantalum_cache::fault_points::Fault;
use tantalum_media::Fate;

/// Cuts at every operation of the journal.
fn cuts() -> Option<String> {
    let epochs = epochs::made_up(1, 3);
    let [(at, operations), _] = operations(&epochs, 1);
    assert_eq!(at, Where::Journal);
    // The first operations are those of formatting.
    (3..operations).find_map(|operation| {
        STYLES.into_iter().find_map(|style| {
            let cut = Cut { at, operation, fate: Fate::Tear, style, seed: 1 };
            survive(&epochs, cut).err()
        })
    })
}

fn damages() -> Option<String> {
    (0..2).find_map(damage::damage_everywhere)
}

#[test]
fn an_epoch_is_durable_before_it_is_committed() {
    assert_noticed(Fault::NoSyncBeforeCommit, cuts);
}

#[test]
fn an_epoch_is_given_up_before_it_is_written_over() {
    assert_noticed(Fault::CommittedWrittenOver, cuts);
}

#[test]
fn one_copy_of_the_head_is_durable_before_the_other_is_touched() {
    assert_noticed(Fault::HeadsWrittenTogether, cuts);
}

#[test]
fn an_index_is_compared_with_what_was_committed() {
    assert_noticed(Fault::IndexUnchecked, damages);
}

#[test]
fn contents_that_are_read_back_are_checked() {
    assert_noticed(Fault::ContentsUnchecked, damages);
}
