//! Media that are damaged at any place, appends that get lost, and files whose writes and syncs fail: random
//! lives in which no old content comes back, and protections switched off, which these lives notice.
use tantalum_base::fault_points::plant;
use tantalum_ftl::fault_points::Fault;
use tantalum_simulator::{Campaign, CampaignOptions, Replay, Workload, campaign, find};

/// Runs this many verified cuts of `device` on `media`; prints the violations.
fn cuts(workload: &str, device: &str, media: &str, cuts: u64, seed: u64) -> Campaign {
    let nightly = std::env::var_os("TANTALUM_NIGHTLY").is_some();
    let options = CampaignOptions {
        device: device.to_owned(),
        media: media.to_owned(),
        workload: Workload::parse(workload).unwrap(),
        cuts: if nightly { 20 * cuts } else { cuts },
        exhaustive: None,
        aged: false,
        seed,
        violations_max: 1,
        shrink_tries: 1000,
        threads: 1,
    };
    let done = campaign(&options, &mut |_, _| {}).unwrap();
    for found in &done.found {
        println!("{}\nreplay: {}", found.violation, found.replay.text());
    }
    assert!(done.found.is_empty(), "{device} on {media}, seed {seed}: a promise is broken");
    let Campaign { lives, cuts, decayed, refused, undecided, .. } = done;
    println!(
        "{device} on {media}: {lives} lives, {cuts} cuts, {decayed} damaged, {refused} refused"
    );
    // A missing end of the log leaves many possibilities on a device that acknowledges early.
    assert!(undecided * 100 < lives, "{undecided} checks were given up");
    done
}

/// Lives that all have damage: most continue.
fn damaged(workload: &str, device: &str, media: &str, seed: u64) {
    let done = cuts(workload, device, media, 1_500, seed);
    // A life that ends before the lost append loses nothing.
    assert!(done.decayed > done.lives / 3, "the medium is damaged");
    assert!(done.refused > 0 && done.refused * 2 < done.lives, "most devices stay in use");
}

const DAMAGE: &str = "mixed:decay=0,damage=1";
const LOST: &str = "mixed:decay=0,lost=1";

#[test]
fn files_that_are_damaged() {
    damaged(DAMAGE, "ssd:cache=through", "file", 1);
    damaged(DAMAGE, "ssd:cache=ordered", "file", 2);
    damaged(DAMAGE, "ssd:cache=volatile", "file", 3);
    damaged(DAMAGE, "ssd:cache=durable", "file", 4);
    damaged(DAMAGE, "txcache", "file", 5);
}

#[test]
fn nand_that_is_damaged() {
    damaged(DAMAGE, "ssd:cache=through", "nand", 6);
    damaged(DAMAGE, "ssd:cache=durable", "nand", 7);
    damaged(DAMAGE, "txcache", "nand", 8);
    damaged(DAMAGE, "atomic-log", "nand", 9);
    damaged(DAMAGE, "tx-flash", "nand", 10);
}

#[test]
fn appends_that_get_lost() {
    damaged(LOST, "ssd:cache=through", "file", 11);
    damaged(LOST, "ssd:cache=ordered", "file", 12);
    damaged(LOST, "ssd:cache=durable", "nand", 13);
    damaged(LOST, "txcache", "nand", 14);
}

/// A device latches when a write or a sync fails, and keeps everything that it acknowledged.
#[test]
fn files_that_fail() {
    let workload = "mixed:decay=0,io-faults=1";
    let devices = [
        "ssd:cache=through",
        "ssd:cache=ordered",
        "ssd:cache=volatile",
        "ssd:cache=durable",
        "buffered:cache=through",
        "txcache",
        "nvcache",
        "wal",
        "tx-flash",
        "atomic-log",
    ];
    for (device, seed) in devices.into_iter().zip(20..) {
        cuts(workload, device, "file", 300, seed);
    }
}

/// Runs the life `text` with `harm` after its end, with each number up to 30 in place of `N`: one of these
/// lives breaks a promise if `fault` is planted, and none without it. Without the harm nothing breaks.
fn is_noticed(fault: Fault, text: &str, harm: &str) {
    let live = |text: &str, planted: Option<Fault>| {
        let replay = Replay::parse(text).unwrap();
        let lives = find(&replay.device, &replay.media).unwrap();
        let _planted = planted.map(plant);
        lives.live(&replay.life).violations
    };
    assert_eq!(live(text, Some(fault)), []);
    let noticed = (0..30).find_map(|number| {
        let text = format!("{text} {}", harm.replace('N', &number.to_string()));
        let broken = live(&text, Some(fault)).into_iter().next()?;
        live(&text, None).is_empty().then_some((text, broken))
    });
    let (text, broken) =
        noticed.unwrap_or_else(|| panic!("{fault:?} is not noticed: {text} {harm}"));
    println!("{fault:?}: {text}: {broken}");
}

#[test]
fn a_damaged_page_that_is_served_is_noticed() {
    for how in ["wipe@N", "flip@N.9000"] {
        let text = "ssd:cache=through; file; pages=24; seed=1; w5 w9 -> close";
        is_noticed(Fault::NoChecksum, text, how);
    }
}

#[test]
fn a_trim_that_is_undone_by_damage_is_noticed() {
    for media in ["file", "nand"] {
        for how in ["wipe@N", "lost@N"] {
            let text =
                format!("ssd:cache=through; {media}; pages=24; seed=1; w5 w7 t5 w6 w8 -> dark");
            is_noticed(Fault::DamageTakenForEnd, &text, how);
        }
    }
}

#[test]
fn an_acknowledgement_of_what_then_fails_is_noticed() {
    for harm in ["eio@N", "enospc@N"] {
        let text = "ssd:cache=through; file; pages=24; seed=1; w5 w7 w5 w6 w5 -> close";
        is_noticed(Fault::EarlyAcknowledgement, text, harm);
    }
}

#[test]
fn copies_that_a_sync_dropped_and_that_are_read_are_noticed() {
    let text = "ssd:cache=ordered; file; pages=60; seed=15892125534648805738; c50 / w21 w35 -> dark; \
                c15 -> dark; c17.55.52 -> dark; c46 w42 s34<30 -> dark; w26 c31 -> dark; c13.39.14 \
                s5<26 c11.43 -> dark; c1.14.48 s27<1 s38<26 c8.49.45.20 s41<20 / w29+4 \
                c17.50.3.51.58 s25<46 w16+5 s7<42 -> dark; c44 / w57 -> dark; c59 r55 -> dark";
    is_noticed(Fault::CopiesNotTakenBack, text, "enospc@N");
}

/// The footer of the checkpoint that invalidates a dump's frames is damaged.
#[test]
fn frames_that_are_written_back_over_newer_content_are_noticed() {
    let text = "ssd:cache=durable; file; pages=120; seed=2241785586811318724; w24 w11 -> dark; \
                t24 t4 -> dark";
    is_noticed(Fault::FramesOverNewer, text, "spare@N");
}
