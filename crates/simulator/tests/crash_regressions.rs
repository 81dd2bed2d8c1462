//! Earlier findings of the crash lab in shrunk form: each broke a promise and must not do so again.
use tantalum_base::fault_points::assert_noticed;
use tantalum_cache::fault_points::Fault as Cache;
use tantalum_ftl::fault_points::Fault as Ftl;
use tantalum_simulator::{Outcome, Replay, find};
use tantalum_ssd::fault_points::Fault as Device;

fn live(text: &str) -> Outcome {
    let replay = Replay::parse(text).unwrap();
    let lives = find(&replay.device, &replay.media).unwrap();
    let outcome = lives.live(&replay.life);
    assert_eq!(outcome, lives.live(&replay.life), "the same text twice is the same");
    outcome
}

/// A durable cache that survived held older content of the page, which was written back after the trim: nothing recorded that the
/// trim had to wait for it.
#[test]
fn a_trim_waits_for_what_survived_in_the_cache() {
    let text = "ssd:cache=durable; nand; pages=120; seed=14826776597221591277; \
                w24 -> dark; t24 -> dark";
    let outcome = live(text);
    assert_eq!(outcome.violations, []);
    assert_eq!(outcome.cuts, 2);
}

/// A write was accepted while a trim of the same pages was in progress: one of its pages reached the log before the trim and the
/// other after it, so that neither order explained the contents.
#[test]
fn a_write_does_not_fall_apart_around_a_trim() {
    let text = "ssd:cache=durable; nand; pages=24; seed=17534550087593906601;  -> dark;  -> dark; \
                 -> dark; w4 c3 w0 -> dark;  -> dark; w3+2 / t3+2 -> dark";
    assert_eq!(live(text).violations, []);
}

/// The first append of a zone had vanished under the header of an earlier opening, but a later one had not. The next opening saw
/// none of it and used its versions and its epoch again, and the one after that took the remains for the following appends: a
/// write that was gone came back.
#[test]
fn what_an_unseen_opening_left_stays_gone() {
    for text in [
        "ssd:cache=volatile; file; pages=24; seed=13856329082541623235; w8 -> close; t0 -> dark; \
         w6 f -> dark;  -> dark; w12 f -> dark; w16 f -> dark; w1+2 f -> dark;  -> dark;  -> dark; \
         w1 f -> dark;  -> dark;  -> dark; w9 t1 w7 t11 -> dark; w10 f -> dark",
        "ssd:cache=through; file; pages=120; seed=6925402746799341203; w22 -> dark; w117 w103 -> \
         dark; c116.47 c0.58 -> dark; w108 -> dark;  -> dark; c94.55 w105 w51+2 w70 w46 w83 t20 c18 \
         t88 s34<117 w87+3 c72.1 c97 w104 -> dark; c52 c74.53 c96.38 t48 w43 s86<103 c73.35 / s113<89 \
         w8+3 w25+3 w11 w119 t24 -> dark; w98 -> vanish@5; w9 / w109 -> land@5; w24 c0 -> tear@4",
    ] {
        assert_eq!(live(text).violations, [], "{text}");
    }
}

/// A zone could not be reset for a moment, just when acknowledged writes were to go to the log, and the trim after them reached
/// the log without them: it survived, although writes acknowledged before it did not, and readers still saw the write that it had
/// trimmed.
#[test]
fn no_change_outlives_acknowledged_ones_that_could_not_be_written() {
    let outlived = || {
        [
            "ssd:cache=ordered,transactions=staged; nand; pages=24; seed=7751072326043775237; c0 -> dark; w5 t0 \
             -> dark err@z2+1",
            "ssd:cache=ordered,transactions=staged; nand; pages=24; seed=17568545877690458847; w5 s2<8 -> dark; \
             w2 t2 -> dark err@z2+1",
        ]
        .into_iter()
        .find_map(|text| live(text).violations.first().map(|violation| format!("{text}: {violation}")))
    };
    assert_noticed(Ftl::LaterChangesOutlive, outlived);
}

/// The flash failed a write while an epoch waited for the accepted writes, and readers still saw it: the epoch wrote it home, and
/// the flash dropped it at the next opening.
#[test]
fn no_epoch_has_a_write_that_the_flash_refused() {
    let text = "tiered:destage=ordered; nand; pages=120; seed=7083995638180524458; w78+4 w98+2 c3 a80 t41+2 t17+4 / c11.6.59 \
        c15 w79 w102 a107 / c43.86.97.95 w116 w114 w12+2 w7 w16 -> dark err@r0us+4908; c91.57.90 a41 c18 w64 c27.8 c6 -> \
        dark err@y3+1; c84.100 w85 w92+3 w24 w102 -> dark; w74 w33 / w112 w6+3 w105 -> vanish@13 err@hw0+5; w19 w45 \
        c20.22.52 c38 w12 w54 c78 w18 c71.36.37 w103 w76 w40+4 c5 -> dark err@hw0+16;  -> dark; c78 -> dark; w99 c66.84 / \
        w15 r96 t89 / t41 t6 w95+3 -> dark err@w3+1:136+41; w79 w20 c29 -> dark";
    let violation = || live(text).violations.first().map(ToString::to_string);
    assert_noticed(Device::FailedTakenForSettled, violation);
}

/// The flash had refused a write of a page, and another write of it and its neighbour was in progress when the page was to be
/// written home by itself: the home got the second one, one of its two pages, before the power was cut, and the flash refused
/// that, too.
#[test]
fn no_page_goes_home_that_the_flash_refused() {
    let text = "tiered:destage=dense; nand; pages=24; seed=14839152907269764076; c0.3 w12+2 c14.17 c4 -> dark err@z1+1;  -> \
        dark err@r1699us+1; a10 a3 c16 w15 w6 w12 c2.4.0 c11 w15+2 / w6 w15 w2 c19 w3 w20 -> dark err@z5378us+3309";
    let violation = || live(text).violations.first().map(ToString::to_string);
    assert_noticed(Cache::RefusedWritesGoHome, violation);
}

/// A list of pages that are only at home was reported as written but was not: nothing records any more that the home has them, and
/// an error reports that.
#[test]
fn pages_that_were_let_go_are_lost_with_the_list_of_them() {
    let text = "tiered:destage=dense; nand; pages=24; seed=14704605632150779635; w19 w7 w13 w10 c17 w3 c14 -> dark;  -> dark; c14 \
        w11 c2 w8 c23 c16 -> dark; w20 c7.18 -> dark; c15 w9 c21 -> dark; c4 w0 -> dark err@y2+1; c5 w1 c12 -> dark; w13 w22 w16 \
        w19 / w3 c15 c22 w2 / c23 -> dark lost@h15";
    assert_eq!(live(text).violations, []);
}

/// Some pages of a share were written again, and entered the mapping only later than the others: a concurrent share used one page
/// as it was before the first share and another as it was after it.
#[test]
fn shares_at_the_same_time_see_each_other_whole() {
    let text = "ssd:cache=through; nand; pages=60; seed=5409951330553684501; w23+2 -> dark; w12 -> dark; \
                 -> dark; w21 -> dark; w16 c58 -> dark;  -> dark; c5 c37 s27<21.3<12 -> dark;  -> dark; \
                c13 -> dark; w25 -> dark; w42 -> dark; s6<5.27<42 / w29 s46<6.35<27 -> dark";
    assert_eq!(live(text).violations, []);
}

/// A share built on an earlier one, whose append was still in progress when its own had returned. The dump took back the first
/// one, which had not been acknowledged, and left the second in force.
#[test]
fn a_share_that_builds_on_a_lost_one_is_lost_with_it() {
    for text in [
        "ssd:cache=durable; file; pages=24; seed=11712223107071933220; c19 w3 w5 w22 c10 w20 w17 w6 c2 -> \
         dark;  -> dark;  -> dark;  -> dark;  -> dark; c8 c21 -> dark; c11 s18<22 s0<3 w7 w12 s9<11 c23 \
         c16 -> dark;  -> dark; s19<7 / w21 s14<19 / r11 s13<18 -> vanish@6",
        "buffered:cache=durable; file; pages=60; seed=1910654844689393245;  -> dark;  -> dark;  -> dark; \
         w43 w53 -> dark; w24 c8.6.40.54 w44 -> dark; w29 -> dark;  -> dark; s8<31 / s31<40 / w35+4 w46 \
         w32+3 w17 a43 a29 w40 -> vanish@7",
    ] {
        assert_eq!(live(text).violations, [], "{text}");
    }
}

/// The content of the log was written home during recovery, which first had to make room; and nothing cleaned.
#[test]
fn a_redo_log_finds_room_when_it_recovers() {
    let text = "wal:commit=record; file; pages=60; seed=15975531445579089031; c31 c55 -> dark;  -> dark;  -> dark; \
                 -> dark;  -> dark; c22 w35 c27 t57 w14+6 -> dark; w0 -> dark;  -> dark;  -> dark; \
                w49 c2.30 -> dark;  -> dark;  -> dark;  -> dark; c9 t3 c5.1 -> dark; w10+4 w7+2 -> \
                dark;  -> dark; t14 / w14 w0 / c5 a0.0 w10 -> land@15; c0 -> dark";
    assert_eq!(live(text).violations, []);
}

/// A failing program latches a device whose log cannot continue elsewhere: everything that it had acknowledged is there when it is
/// opened again, and the lab accepts the refusals.
#[test]
fn a_device_that_latches_keeps_what_it_acknowledged() {
    for device in
        ["block-map", "bast:logs=2", "fast:logs=2", "dftl:cmt=5", "wal", "wal:commit=record"]
    {
        let text = format!(
            "{device}; nand; pages=24; seed=5; w1 w2 w3 w4 w5 w1 r2 w7 -> dark fail@4; r1 w1 w9 -> dark"
        );
        assert_eq!(live(&text).violations, [], "{device}");
        // A device that promises to survive the failure must not refuse.
        let text = text.replace(device, "ssd:cache=through");
        assert_eq!(live(&text).violations, []);
    }
}

/// All transaction headers were held by committed transactions, and a write outside replaced the last page of one: its header was
/// free, but the begin that waited for one was not woken.
#[test]
fn a_header_set_free_by_a_write_is_found_by_a_begin() {
    for text in [
        "txcache; nand; pages=60; seed=12169564217570577202;  -> dark; c36 c0 -> dark; c46 c11 c5 -> dark; \
         c13 c6 c7 -> dark; w7 / c3 -> dark",
        "txcache; nand; pages=120; seed=4794072196485855305;  -> dark;  -> dark;  -> dark; c22 -> dark; \
         c10 -> dark;  -> dark;  -> dark;  -> dark; c8 c25 c7 c11 c6 -> dark;  -> dark;  -> dark;  -> dark; \
         c15 -> dark; w13 / c25 / w7 -> dark",
    ] {
        assert_eq!(live(text).violations, [], "{text}");
    }
}

/// A program failed, the batch was written again in another zone, and a program failed there, too. The second zone was emptied
/// first, and one page of the batch was already dead in it: the only copy of that page was the one left by the first failing
/// program, and recovery took it for damage.
#[test]
fn what_a_failing_program_left_is_no_damage() {
    let text = "ssd:cache=through; nand; pages=60; seed=128224508670310693; c0 w1+3 -> dark; \
                w4+3 c9.0.5 t9 w2 w5 / s11<3 w13 t5 -> dark fail@10 fail@7";
    assert_eq!(live(text).violations, []);
}

/// A commit waited for a trim of one of its pages, and meanwhile its pages were moved to the extended cache to make room: it
/// committed them in both places.
#[test]
fn pages_do_not_move_while_their_commit_waits_for_a_trim() {
    let text = "txcache; file; pages=24; seed=1330734955971460371; t23 / w4 c23.10.4 / \
                c18.5.21.11.0.13 -> dark";
    assert_eq!(live(text).violations, []);
}

/// The pages of one read did not match the contents of any one moment: they had a part of a write, a commit, a trim or a share
/// that was in flight at the same time.
#[test]
fn a_read_of_several_pages_shows_them_as_they_were_at_one_time() {
    for text in TORN_READS {
        assert_eq!(live(text).violations, [], "{text}");
    }
}

const TORN_READS: [&str; 10] = [
    "ssd:cache=durable; nand; pages=24; seed=1813845993304250547; w16+4 -> dark;  -> dark; \
     w9 r9+11 / c6.2.4.19.5.1 w10+10 -> dark",
    "ssd:cache=durable; file; pages=24; seed=1036254807867860403; c2 -> dark; w5 r0+6 / s0<2.3<2 -> dark",
    "ssd:cache=through; file; pages=24; seed=5528560350378019164; w7+2 w1 -> dark; c16.22.21 -> dark; \
     w19 s22<8.19<1 / s7<22 r19+4 -> dark",
    "ssd:cache=ordered; nand; pages=24; seed=3383983895544475290; c3 w0+3 s3<2 -> dark; w5+5 / w4 r2+4 / \
     w1+3 -> dark",
    "buffered:cache=durable; nand; pages=24; seed=630046528081714668; w6 -> dark; r6+3 / w7+2 -> dark",
    "buffered:cache=through; nand; pages=24; seed=1350315776965021224;  -> dark; w4 -> dark;  -> dark; \
     r4 w3+2 / s10<4 r3+2 -> dark",
    "buffered:cache=ordered; file; pages=24; seed=17958530336638355763; c4 -> dark; r3+2 / c4 / w3 -> dark",
    "wal:commit=record; nand; pages=24; seed=10696482260200681134; w2+3 -> dark; w4+2 / r3+3 -> dark",
    "wal:commit=record; file; pages=24; seed=12071019982737110898; c5 -> dark; t0 w0 c4 w11 / w12 t0 w2 c3.9 w1 w19 w6 -> \
     dark; r4+3 / w5+2 -> dark",
    "txcache; nand; pages=60; seed=14007084452537807092;  -> dark; w7 c11.5.14 c0.1 w10 c6.4.2.9 -> dark; \
     c2.1.12 / c6.5 c11 w12 / c7.39.8.10 r11+2 -> dark",
];

/// The slot that is read first, second and so on in the last power-on period decays; returns the number of damaged slots.
fn decays_at(life: &str, read: u64) -> u64 {
    let text = format!("{life} decay@{read}");
    let outcome = live(&text);
    assert_eq!(outcome.violations, [], "{text}");
    outcome.decayed
}

/// A page of a checkpoint decayed on a file after the scan that found it: a flipped bit was accepted as it was read, and the pages
/// that it had mapped were gone. Here each of the first reads of an opening decays in turn.
#[test]
fn a_checkpoint_that_decays_behind_its_scan_is_noticed() {
    let mut decayed = 0;
    for life in [
        "ssd:cache=ordered; file; pages=24; seed=10341034174608627147; c5 -> dark;  -> dark;  -> dark",
        "txcache; file; pages=120; seed=12939472662719523659; w26 -> dark;  -> close;  -> dark;  -> dark; \
          -> dark;  -> dark",
    ] {
        decayed += (0..60).map(|read| decays_at(life, read)).sum::<u64>();
    }
    assert!(decayed > 0);
}

/// A committed page in TxCache's extended cache decayed: the device latched, although only that page is lost.
#[test]
fn a_decayed_page_of_the_extended_cache_is_lost_alone() {
    for text in [
        "txcache; file; pages=60; seed=12388286289083094874; w43 w48 w16+2 w10+6 w48 w47 w17+4 \
         c9.5.35.1.26 t45 w36+3 c19.25.34.35.43 c12.4.9.9 a55.47.58.43.27.56.24.14.20 / w44+4 \
         c2.43.56 c13.3.1.2.55.41.20.13.5.3 w33 w5 c30.17.14.29.12.5.13.40.54.19 -> dark",
        "txcache; nand; pages=120; seed=6565338052197517115; a113.42.35.33.78 / c9.49.34.8 \
         -> dark; w11 -> dark;  -> dark; w2 w26+5 w71 / w74 w3+3 -> dark;  -> dark;  -> dark; \
         w6 w63 c92.91.68 c81 w16 w66 c69.21.33.55.12 c76.15.108.111.45 c49 w96+3 -> dark; \
         w1 c33 w73 w53 w48 c92.75.61.76.88 -> dark; w17+5 c58.109.56.47 w115 c108.21.105.16 \
         w100 w10 / w83 w6+2 c94.66.5.26.74 w38 w39+3 -> dark; w23+3 w57 -> dark;  -> dark; \
         w13 c45.32.77 w22 r17 t79 w94 c52.51.29.102 t85 / w43 c47.56.107.79 c19.116.31.33.53 \
         -> dark;  -> dark;  -> dark",
    ] {
        let decayed: u64 = (0..250).map(|read| decays_at(text, read)).sum();
        assert!(decayed > 10, "{decayed}");
    }
}

/// Damage to pages that the checkpoint of a recovery covers, when the power was cut before the anchor named that checkpoint:
/// opening was refused because of it. And a damaged host's page in a dump: the whole dump was refused.
#[test]
fn damage_to_what_is_known_elsewhere_refuses_nothing() {
    for text in [
        "ssd:cache=through; file; pages=60; seed=14662537066768532152; w56 -> dark;  -> land@7; \
          -> vanish@0 spare@5",
        "ssd:cache=durable; nand; pages=24; seed=17918934622962171105; c8.3 w14 w12 w11 w20+2 w22 \
         -> dark flip@8.747",
        "ssd:cache=durable; file; pages=60; seed=16035118905894326056; w44+2 -> dark wipe@4",
    ] {
        let outcome = live(text);
        assert_eq!((outcome.violations, outcome.refused), (vec![], 0), "{text}");
    }
}

/// The end of the log was damaged, and nothing was written after it; the contents that it replaced had been given up.
#[test]
fn what_a_damaged_end_replaced_may_be_gone() {
    for text in [
        "ssd:cache=through; nand; pages=24; seed=5372675373513749307; c4 -> dark; c4.5 -> dark; \
          -> land@0 wipe@0",
        "ssd:cache=through; nand; pages=24; seed=5372675373513749307; c4 -> dark; s2<4 -> dark; \
         c4 s2<5 / w5 -> dark;  -> land@0 wipe@0",
        "txcache; nand; pages=120; seed=10011065675795684174; w68 -> dark; w118 c74.85.95 -> dark; \
          -> dark;  -> dark;  -> dark;  -> dark;  -> dark; c44.38.17 c29.108.37 w40+2 / c84.22 -> dark; \
         w110+4 w87 c13.56.27 t110+2 / c92.74.62 / w64 w17 w24+2 w60 -> dark lost@7",
    ] {
        assert_eq!(live(text).violations, [], "{text}");
    }
}

/// Two shares of one page were in progress and both appends failed, the earlier one first: the later one fell back to the earlier
/// one's content of that page, and the dump kept half a share.
#[test]
fn a_share_that_fails_falls_back_on_no_other_that_failed() {
    let text = "ssd:cache=durable; file; pages=24; seed=7068129398997074643; c4 c18 -> dark;  -> dark;  -> \
                dark; s2<4 w19 -> dark; c0.1.5 -> dark; w5 s1<3 t5 w5 s1<4 / w0 c4 s2<4 / s0<2.4<23 s5<22 c2 \
                s1<5.2<4 -> dark eio@14";
    assert_eq!(live(text).violations, []);
}

/// The checkpoint that invalidated a dump was damaged, a recovery left out the dump's frames, and was cut while it wrote its own
/// checkpoint. The next recovery replaced newer content by the frames.
#[test]
fn frames_that_were_written_back_stay_out_of_every_later_recovery() {
    let text = "ssd:cache=durable; file; pages=120; seed=7870999049769613436; w27+3 w5 t27 w21 w15+3 w22 c25 \
                s15<3 / c16 w26+3 w60 c12.11 c15 w2 w23 c8 w3 -> dark; c23.14.107 -> dark; c24.20.3.16 t29 -> \
                dark;  -> vanish@4; w12+2 c18.10 w24+2 w20+4 s16<2 c5.16 w13+2 c9 w17 c0.18.3 -> close;  -> \
                land@3; w23+2 w26+2 w5+3 c28.13 c14.23 -> close;  -> vanish@0; w10 w13 s20<24 w15 s6<11 \
                c22.27.12 c3.29.17 / w37+2 w25+3 w19 c21.17.12 w3 c11 -> dark; w6+2 c27 c5.2.20.1 w9+4 t5 w25 \
                w9 s7<13 -> dark; c5.14 c6.16.21 -> dark; w98 w3 w8 t20 w24 c12.9.10 w25+2 w5 w16+4 -> dark; \
                w7 t13 s2<6 c5.22.4.19 c28.13 w0 c25.8 w26+2 w3 w11 a29 w19 -> dark; s23<16 s13<26 -> dark";
    for place in 0..20 {
        let text = format!("{text} wipe@{place};  -> vanish@1;  -> land@3");
        assert_eq!(live(&text).violations, [], "{text}");
    }
    for read in 0..300 {
        let text = format!("{text};  -> vanish@1 decay@{read};  -> land@3");
        assert_eq!(live(&text).violations, [], "{text}");
    }
}

/// The last page of a checkpoint that was never finished decayed after the scan that found it: opening was refused, although the
/// same damage found by the scan does not cause a refusal.
#[test]
fn a_page_of_an_unfinished_checkpoint_is_not_needed() {
    let text = "ssd:cache=durable; file; pages=60; seed=7782955268374213654; w2 c14.0.45.27.7 -> dark; w9 \
                c11.1.10 w12+3 c2.3 c8 w7 -> dark; c11.1.8.10 -> dark; w1 t5 t3 -> dark; w0 c5.4 -> dark; w6+2 \
                s3<31.7<14 w14 c34.9 c13.10 c56 s13<0 c10.0.1.19.3 s12<0 -> dark;  -> tear@1;  -> dark";
    assert!((0..150).map(|read| decays_at(text, read)).sum::<u64>() > 50);
}

/// A read of several pages met damage at the old place of one of them, which cleaning had moved meanwhile.
#[test]
fn a_read_of_several_pages_goes_where_cleaning_moved_them() {
    let text = "ssd:cache=ordered; nand; pages=120; seed=16916583014400099944; c27 / w19 w10 -> dark; s28<19 \
                c12 w8 c1 -> dark; c22 s6<27 -> dark;  -> dark; c22 / w3 w98 -> dark; w25 w24 c93 w23 c15 -> \
                dark;  -> dark;  -> dark; c11 -> dark; w9 c16 -> dark; s7<28 -> dark;  -> dark; w27 s118<10 \
                -> dark; c21 c99 -> dark; c16 t29 -> dark; w17 s101<12 s1<25 c0 -> dark; w14 c26 / c28 -> \
                dark; s29<2 r21+2 / w8 r10+3 / c15 -> dark";
    assert!((0..350).map(|read| decays_at(text, read)).sum::<u64>() > 10);
}

/// The file was full when a page was written back, and a later trim of that page was in the log: the trim was acknowledged,
/// although the log had failed before it, and reads returned the old page from the cache.
#[test]
fn a_trim_behind_a_log_that_failed_is_not_acknowledged() {
    let text = "ssd:cache=ordered; file; pages=24; seed=6597974924091090807; c22 c1 s3<1.2<22 w4 s19<1.5<4 -> \
                dark; w1 c4 t5 r5 / c3 / f w5 -> dark enospc@11";
    assert_eq!(live(text).violations, []);
}

/// The write-back of a page found the file full while a trim waited after it in the log. The cache had given up the trimmed page
/// and took the error for "no room, nothing done". So after the power cut the home's much older content of the page was visible.
#[test]
fn a_trim_that_fails_behind_a_full_file_is_not_forgotten() {
    let text = "txcache; file; pages=120; seed=15248162773277052332;  -> dark;  -> dark;  -> dark; c109.10 -> \
                dark; c26 w2+2 c29 -> dark;  -> dark;  -> dark;  -> dark; w19 c24 w17 w5 w16 w14 w28 -> dark;  \
                -> dark;  -> dark;  -> dark; w23+2 w11 w18 w53+2 w9 c20 w26+2 -> dark; w17 c14 w21 w11 / w3 \
                w14 c9 w20 t26 -> dark";
    for write in 0..24 {
        let text = format!("{text} enospc@{write}");
        assert_eq!(live(&text).violations, [], "{text}");
    }
}

/// A page got another one's content, cleaning copied it, and the power was cut before the record of the other page with that
/// content was written: the other page keeps its old place, and when that decays it is lost, although the copy is there.
#[test]
fn a_copy_whose_other_pages_are_not_named_is_a_copy_of_one_page() {
    let text = "ssd:cache=through; nand; pages=120; seed=18248617616940701669; c57 c19 -> dark; w102 w45 -> \
                dark; c115 t64 w104 c80 c14 c53 c38 c27 -> dark;  -> dark; c76 w23 w2 c57 w97 -> dark; w88 c6 \
                w75 t50 c56 -> dark; s59<56 c70 s37<53 -> dark; w92 w105 c43 w107 / w0 w52 r80 w54 s119<45 c19 \
                t6 w117 w25 -> dark;  -> dark; w34 w68 w40 w107 -> dark; c79 -> dark;  -> dark; w3 -> dark; w44 \
                w73 w64 w75 / w6 w1 / w8 -> dark; t36 w72 w114 w96 w116 w51 c117 w53 w15 c104 w100 -> dark;  -> \
                dark decay@73";
    assert_eq!(live(text).violations, []);
}

/// A page was in the write cache when its write-back failed, and a trim of it and two more waited after that in the log: the trim
/// was in force, but reads still returned the page from the cache.
#[test]
fn a_trim_behind_a_write_back_that_failed_is_not_half_seen() {
    let text = "ssd:cache=ordered; file; pages=24; seed=47267252331658491;";
    for before in ["c4", "c4.0 c2.1"] {
        for write in 0..12 {
            for fault in ["eio", "enospc"] {
                let text =
                    format!("{text} {before} -> dark; t2+3 r2+3 / w2 -> dark {fault}@{write}");
                assert_eq!(live(&text).violations, [], "{text}");
            }
        }
    }
}

/// Cleaning's copy of a page landed during the cut, and the dump had the page at its old place; that decayed.
#[test]
fn a_copy_that_landed_beside_a_dump_is_not_known() {
    let text = "ssd:cache=durable; nand; pages=60; seed=8225058862372192660; w30 s0<29 w33+2 c37 / w29 c10 w18 \
                -> dark; c4 w37 -> dark; w38 w12+2 -> dark; w14 c46.16 w41 w20 t56 w25+2 w42 c22.29 w39 s32<29 \
                c25 -> dark; t29 c23 s57<25 c19 w11 s0<37 c24 / c15 c10 w6+2 c44 c42 c17 -> dark; w14 w53 c56 w2 \
                -> dark; w57 c8 w9 -> dark; w51 -> dark;  -> dark; w6 s3<51 s43<10 c42.44 c56 w21 r19+2 -> dark; \
                -> vanish@2;  -> dark decay@68";
    assert_eq!(live(text).violations, []);
}

/// Recovery repeated a trim, the medium lost the trim, and the power was cut before anything followed: a page that was written
/// again meanwhile, but not acknowledged, may have its content from before the trim.
#[test]
fn a_trim_that_was_done_over_and_lost_is_the_end_of_the_log() {
    let text = "nvcache; nand; pages=24; seed=6233514394709096451; w12 w4 w0+3 w11 w23 t9 w13+2 w10 -> dark; w21 \
                t22 t21 / w11+4 -> vanish@7; w19+3 / t19 -> vanish@6 lost@2";
    assert_eq!(live(text).violations, []);
}

/// The end of a cache's log was damaged after the power cut: the home had the whole transaction, and the flash an older content of
/// a part of it.
const END_OF_A_CACHES_LOG: &str = "tiered:destage=ordered,mode=write-through; nand; pages=120; \
     seed=12680517862265435825; c73.1.27.6 -> dark spare@4";

/// The same, but the flash had an older content of two of its pages.
const HALF_AT_HOME: &str = "tiered:destage=ordered,mode=write-through; file; pages=24; seed=2; w5 w6 -> dark; c5.6.9 -> dark spare@4";

/// The same, but the power was cut while the epoch was being written to the home: pages that the flash had lost were read there,
/// torn.
const EPOCH_TORN_AT_HOME: &str = "tiered:destage=ordered,mode=write-through; file; pages=120; \
     seed=2355773514020605769; w119 c95 r15+3 c58 c77 w9 -> dark;  -> dark decay@15 decay@81";

#[test]
fn a_cache_does_not_mix_what_home_has_with_what_it_lost() {
    for text in [END_OF_A_CACHES_LOG, HALF_AT_HOME, EPOCH_TORN_AT_HOME] {
        assert_eq!(live(text).violations, [], "{text}");
    }
}

/// One page of a transaction was lost before it was written home with the others, and was the end of the log: the home was ahead
/// and lacked it.
#[test]
fn a_page_that_neither_flash_nor_home_has_is_an_error() {
    let text = "tiered:destage=ordered,mode=write-through; nand; pages=60; seed=12913844488290751249;  -> dark; w12 -> dark; \
                c52 -> dark;  -> close; c14.10 r12 / c11 w0 c18 / w5 w8 -> dark decay@109";
    let outcome = live(text);
    assert_eq!((outcome.violations, outcome.refused), (vec![], 0));
}

/// A copy made by cleaning was lost; its page had been written home after its version came into a checkpoint.
#[test]
fn a_page_that_is_lost_and_at_home_is_read_there() {
    let text = "tiered:destage=ordered; nand; pages=120; seed=11391366759744484457; w100 w100 w61 w91 w87 w108 w96 a31 r101 \
                w2 c93 w92 t95 w102 a59 c2 c20 -> dark; w72 / w70 -> dark; w13 c67 c83 w108 t80 w114 w86 c54 w79 w66 w8 -> \
                dark; w113 w61 -> dark; c17 c46 -> dark; w57 w80 c93 t28 w52 w116 / w53 c92 w15 w0 / c118 w59 w48 c74 c11 \
                w18 w110 -> dark;  -> dark; w25 / w34 -> dark; c81 w70 c76 / w20 w113 w89 -> dark; r89+6 w101 r23+4 t113 \
                r41 w78 / c34 c94 w38 -> dark lost@h8";
    assert_eq!(live(text).violations, []);
}

/// Cleaning could not read a page, which became clean meanwhile: it stayed in the zone that was to be reset.
#[test]
fn a_page_that_becomes_clean_while_cleaning_reads_it_is_given_up_too() {
    let text = "tiered:destage=ordered; nand; pages=60; seed=18047378514631383478;  -> dark; c53 w11 -> dark; w13 w12 c9 \
                w14 c2 c6 w7+2 c3 w3 w10 c0 -> dark;  -> dark; w11 w0 w10 c0 w7 w7 w8 w9 c9 t1 t12 w9 w8 w1 c7 c5 c5 w4 -> \
                dark; w5 c2 c6 w6 w11 w8 w6 / r52+3 w0 w9 w7 w13 w12 c2 / w6 w4 w0 r45 w7 w3 -> dark; c14.7 -> dark; c3.3 \
                c8 -> dark decay@100";
    assert_eq!(live(text).violations, []);
}

#[test]
fn a_cache_that_does_not_see_that_home_is_ahead_is_noticed() {
    let broken =
        || live(EPOCH_TORN_AT_HOME).violations.first().map(|violation| format!("{violation:?}"));
    assert_noticed(Ftl::HomeAheadUnnoticed, broken);
}

#[test]
fn a_cache_that_reads_a_home_before_it_has_its_epoch_is_noticed() {
    let broken =
        || live(EPOCH_TORN_AT_HOME).violations.first().map(|violation| format!("{violation:?}"));
    assert_noticed(Cache::HomeNotCaughtUp, broken);
}

/// Pages were written home one by one, and the home had a part of the lost end of the flash's log: torn, or half of a transaction.
const ENDS_THAT_HOME_HAS_IN_PART: [&str; 3] = [
    "tiered:destage=dense; nand-bytes; pages=120; seed=12241575614436783869; c23.1.9 c11 -> tear@h0 wipe@3",
    "tiered:destage=dense; nand; pages=60; seed=13940083053598789651; w40 w35 c3.48.28 w2 c29.57 w53 w33 c10.59.42.20 c0.50 \
     w6 -> dark; w37 w30 c8.46.45.43 w3 -> vanish@h20 wipe@4",
    "tiered:destage=dense; file; pages=24; seed=1468602692844397065; c5 w19+2 c18 w22+2 w13 -> dark; c21 w19 t19 w8 w19 t19 \
     t0 t5 c6.16 c23 -> tear@h6 lost@h5",
];

#[test]
fn a_cache_whose_home_has_part_of_a_lost_end_is_not_opened() {
    for text in ENDS_THAT_HOME_HAS_IN_PART {
        let outcome = live(text);
        assert_eq!((outcome.violations, outcome.refused), (vec![], 1), "{text}");
    }
}

#[test]
fn pages_that_go_home_one_by_one_without_a_word_are_noticed() {
    for text in ENDS_THAT_HOME_HAS_IN_PART {
        let broken = || live(text).violations.first().map(|violation| format!("{violation:?}"));
        assert_noticed(Cache::HomeNotForetold, broken);
    }
}

/// The flash lost a page that the home had, and the page was written while its other copies were being searched for: by then the
/// home's copy was no longer current, and the page was readable.
#[test]
fn a_page_that_is_written_while_its_loss_is_looked_into_can_be_read() {
    let text = "tiered:destage=dense; nand; pages=60; seed=884954316712143538; c1.13 w48 w19 -> dark; w51 r8+2 w14 / w28 w17 / c18.19.14 \
                -> dark decay@21";
    assert_eq!(live(text).violations, []);
}
