//! The shrinker, on a planted fault: its result still fails, is smaller, and replays as text.
use tantalum_base::fault_points::plant;
use tantalum_ftl::fault_points::Fault;
use tantalum_simulator::{CampaignOptions, Replay, Workload, campaign, find};

fn options(shrink_tries: u32) -> CampaignOptions {
    CampaignOptions {
        device: "ssd:cache=through".to_owned(),
        media: "file".to_owned(),
        workload: Workload::parse("mixed").unwrap(),
        cuts: 2000,
        exhaustive: None,
        aged: false,
        seed: 1,
        violations_max: 1,
        shrink_tries,
        threads: 1,
    }
}

#[test]
fn a_shrunk_scenario_still_fails_is_smaller_and_replays_as_text() {
    let planted = plant(Fault::EarlyAcknowledgement);
    let whole = campaign(&options(0), &mut |_, _| {}).unwrap().found.remove(0);
    let shrunk = campaign(&options(2000), &mut |_, _| {}).unwrap().found.remove(0);
    println!("{} commands: {}", whole.replay.life.commands(), whole.replay.text());
    println!("{} commands: {}", shrunk.replay.life.commands(), shrunk.replay.text());
    let (large, small) = (&whole.replay.life, &shrunk.replay.life);
    assert_eq!((whole.seed, shrunk.commands_before), (shrunk.seed, large.commands()));
    assert!(small.commands() * 4 < large.commands(), "fewer commands");
    assert!(
        small.commands() <= 3 && small.clients() == 1,
        "one client and few commands are enough"
    );
    assert!(small.power_ons.len() <= 2 && small.cuts() <= large.cuts());
    // The text alone breaks the same promise in the same way, every time.
    let text = shrunk.replay.text();
    let replay = Replay::parse(&text).unwrap();
    assert_eq!(replay.text(), text);
    let lives = find(&replay.device, &replay.media).unwrap();
    for _ in 0..2 {
        let outcome = lives.live(&replay.life);
        assert_eq!(outcome.violations[0].0, shrunk.violation);
    }
    // And the fault is the cause.
    drop(planted);
    assert_eq!(lives.live(&replay.life).violations, []);
}

#[test]
fn the_same_seed_gives_the_same_on_any_number_of_threads() {
    let run = |threads| {
        let options = CampaignOptions { cuts: 300, threads, ..options(0) };
        campaign(&options, &mut |_, _| {}).unwrap()
    };
    let one = run(1);
    assert!(one.cuts >= 300 && one.found.is_empty());
    assert_eq!(one, run(1));
    assert_eq!(one, run(3));
}
