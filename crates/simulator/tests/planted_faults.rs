//! Protections that are switched off and that the crash lab's random lives notice. More of them are
//! in `planted_by_chance.rs`, and others in the tests of their own crates.
use tantalum_base::fault_points::assert_noticed;
use tantalum_ftl::fault_points::Fault;
use tantalum_simulator::{CampaignOptions, Exhaustive, Workload, campaign};

/// The crash lab's random lives, as `tantalum crash` runs them: at most this many verified cuts.
fn crash_lab(device: &str, media: &str, cuts: u64) -> impl Fn() -> Option<String> {
    lives_of("mixed", device, media, cuts)
}

/// The same with lives in which slots of the medium are damaged as they are read.
fn decaying_lives(device: &str, media: &str) -> impl Fn() -> Option<String> {
    lives_of("mixed:decay=1", device, media, 8000)
}

fn lives_of(
    workload: &str,
    device: &str,
    media: &str,
    cuts: u64,
) -> impl Fn() -> Option<String> + use<> {
    let options = CampaignOptions {
        device: device.to_owned(),
        media: media.to_owned(),
        workload: Workload::parse(workload).unwrap(),
        cuts,
        exhaustive: None,
        aged: false,
        seed: 1,
        violations_max: 1,
        shrink_tries: 0,
        threads: 1,
    };
    move || first_of(&options)
}

fn first_of(options: &CampaignOptions) -> Option<String> {
    let done = campaign(options, &mut |_, _| {}).unwrap();
    let found = done.found.first()?;
    Some(format!("after {} cuts: {}", found.after_cuts, found.violation))
}

#[test]
fn a_page_that_could_not_be_read_once_is_not_lost() {
    let options = CampaignOptions {
        device: "ssd:cache=through".to_owned(),
        media: "file".to_owned(),
        workload: Workload::parse("mixed:clients=1,commands=6").unwrap(),
        cuts: 0,
        exhaustive: Some(Exhaustive::Errors),
        aged: true,
        seed: 65,
        violations_max: 1,
        shrink_tries: 0,
        threads: 1,
    };
    assert_noticed(Fault::UnreadableTakenForLost, || first_of(&options));
}

#[test]
fn damage_is_not_the_end_of_the_log() {
    assert_noticed(Fault::DamageTakenForEnd, decaying_lives("ssd:cache=through", "nand"));
    assert_noticed(Fault::DamageTakenForEnd, decaying_lives("ssd:cache=through", "file"));
}

#[test]
fn acknowledgements_wait_on_files() {
    assert_noticed(Fault::EarlyAcknowledgement, crash_lab("ssd:cache=through", "file", 1000));
}
