use super::*;
use tantalum_base::{PageBuf, PageNo, Stamp, Version};
use tantalum_media::zone::SlotKind;

/// Two channels with one package of two planes each; 8 KiB pages that take 100 ns to transfer.
fn options() -> NandOptions {
    NandOptions {
        geometry: NandGeometry {
            channels: 2,
            packages_per_channel: 1,
            planes_per_package: 2,
            blocks_per_plane: 3,
            pages_per_block: 4,
            page_bytes: 8192,
            spare_bytes: 0,
        },
        timing: NandTiming {
            read_ns: 30,
            program_ns: 1_000,
            program_upper_ns: 1_000,
            erase_ns: 5_000,
            channel_bytes_per_second: 81_920_000_000,
        },
        faults: NandFaults::default(),
        seed: 1,
    }
}

fn nand() -> Nand<Stamp> {
    Nand::new(&options()).unwrap()
}

fn at(plane: u32, block: u32, page: u32) -> PageAddr {
    BlockAddr { plane, block }.page(page)
}

fn page(count: u64) -> (Vec<Spare>, Vec<Body<Stamp>>) {
    (0..2)
        .map(|slot| {
            let number = PageNo(count * 2 + slot);
            let body = Body::Data(Stamp::new(number, count));
            let checksum = body.checksum();
            let version = Version(count);
            (Spare { kind: SlotKind::Data, page: number, version, checksum }, body)
        })
        .unzip()
}

fn program(nand: &Nand<Stamp>, now_ns: u64, to: PageAddr, count: u64) -> Result<u64> {
    let (spares, bodies) = page(count);
    nand.program(now_ns, to, &spares, &bodies)
}

fn holds(nand: &Nand<Stamp>, at: PageAddr) -> Vec<SlotRead<Stamp>> {
    nand.read(0, at).1
}

fn found(count: u64) -> Vec<SlotRead<Stamp>> {
    let (spares, bodies) = page(count);
    spares.into_iter().zip(bodies).map(|(spare, body)| SlotRead::Found(spare, body)).collect()
}

const BLANK: [SlotRead<Stamp>; 2] = [SlotRead::Blank, SlotRead::Blank];

#[test]
fn planes_of_one_channel_share_its_bus_and_program_together() {
    let nand = nand();
    // Planes 0 and 2 are on channel 0.
    assert_eq!(program(&nand, 0, at(0, 0, 0), 1).unwrap(), 1_100);
    assert_eq!(program(&nand, 0, at(2, 0, 0), 2).unwrap(), 1_200);
}

#[test]
fn channels_transfer_at_the_same_time() {
    let nand = nand();
    assert_eq!(program(&nand, 0, at(0, 0, 0), 1).unwrap(), 1_100);
    assert_eq!(program(&nand, 0, at(1, 0, 0), 2).unwrap(), 1_100);
}

#[test]
fn a_plane_does_one_thing_at_a_time() {
    let nand = nand();
    assert_eq!(program(&nand, 0, at(0, 0, 0), 1).unwrap(), 1_100);
    assert_eq!(program(&nand, 0, at(0, 0, 1), 2).unwrap(), 2_200);
    // Sensing starts at 2200 and takes 30 ns, then 100 ns of transfer.
    assert_eq!(nand.read(500, at(0, 0, 0)), (2_330, found(1)));
    assert_eq!(nand.erase(0, BlockAddr { plane: 0, block: 0 }).unwrap(), 7_330);
}

#[test]
fn a_read_behind_an_erase_leaves_the_bus_to_others_meanwhile() {
    let nand = nand();
    assert_eq!(nand.erase(0, BlockAddr { plane: 0, block: 0 }).unwrap(), 5_000);
    assert_eq!(nand.read(0, at(0, 1, 0)).0, 5_130);
    assert_eq!(program(&nand, 0, at(2, 0, 0), 2).unwrap(), 1_100);
}

#[test]
fn what_is_programmed_reads_back_and_is_counted() {
    let nand = nand();
    program(&nand, 0, at(3, 2, 0), 7).unwrap();
    let (spares, bodies) = page(8);
    nand.program(0, at(3, 2, 1), &spares[..1], &bodies[..1]).unwrap();
    assert_eq!(holds(&nand, at(3, 2, 0)), found(7));
    assert_eq!(holds(&nand, at(3, 2, 1)), [found(8)[0].clone(), SlotRead::Blank]);
    assert_eq!(holds(&nand, at(3, 2, 2)), BLANK);
    let counters = NandCounters {
        reads: 3,
        programs: 2,
        bytes_in: 16_384,
        bytes_out: 24_576,
        ..NandCounters::default()
    };
    assert_eq!(nand.counters(), counters);
    nand.erase(0, BlockAddr { plane: 3, block: 2 }).unwrap();
    assert_eq!(holds(&nand, at(3, 2, 0)), BLANK);
    let wear = nand.wear();
    assert_eq!((wear.min, wear.max), (0, 1));
    assert!((wear.mean - 1.0 / 12.0).abs() < 1e-9);
}

#[test]
#[should_panic(expected = "next slot 0")]
fn pages_are_programmed_in_order() {
    let _ = program(&nand(), 0, at(0, 0, 1), 1);
}

#[test]
#[should_panic(expected = "next slot 2")]
fn a_page_is_programmed_once_between_erases() {
    let nand = nand();
    program(&nand, 0, at(0, 0, 0), 1).unwrap();
    let _ = program(&nand, 0, at(0, 0, 0), 2);
}

#[test]
fn shapes_and_durations_without_sense_are_refused() {
    let mut shape = options();
    shape.geometry.page_bytes = 6_000;
    assert_eq!(Nand::<Stamp>::new(&shape).err().unwrap().kind(), ErrorKind::InvalidInput);
    let mut shape = options();
    shape.geometry.channels = 0;
    assert_eq!(Nand::<Stamp>::new(&shape).err().unwrap().kind(), ErrorKind::InvalidInput);
    let mut timing = options();
    timing.timing.program_ns = 0;
    assert_eq!(Nand::<Stamp>::new(&timing).err().unwrap().kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_failed_program_is_unreadable_and_makes_the_block_bad() {
    let nand = nand();
    nand.fail_program(1);
    program(&nand, 0, at(0, 0, 0), 1).unwrap();
    let error = program(&nand, 0, at(0, 0, 1), 2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ProgramFailed);
    assert!(nand.is_bad(BlockAddr { plane: 0, block: 0 }));
    assert_eq!(holds(&nand, at(0, 0, 0)), found(1), "what was there stays readable");
    assert_eq!(holds(&nand, at(0, 0, 1)), [SlotRead::Unreadable, SlotRead::Unreadable]);
    assert!(program(&nand, 0, at(0, 0, 2), 3).is_err(), "a bad block programs no more");
    assert_eq!(nand.counters().program_failures, 2);
    assert_eq!(nand.wear().grown_bad_blocks, 1);
}

#[test]
fn blocks_fail_past_their_endurance() {
    let mut options = options();
    options.faults.endurance_erases = 3;
    options.faults.worn_erase_fail = 1.0;
    let nand = Nand::<Stamp>::new(&options).unwrap();
    let block = BlockAddr { plane: 1, block: 1 };
    for _ in 0..3 {
        nand.erase(0, block).unwrap();
    }
    assert!(nand.erase(0, block).is_err());
    assert!(nand.is_bad(block));
}

#[test]
fn factory_bad_blocks_come_from_the_seed() {
    let bad = |seed| {
        let mut options = options();
        options.geometry.blocks_per_plane = 500;
        options.faults.factory_bad = 0.05;
        options.seed = seed;
        let nand = Nand::<Stamp>::new(&options).unwrap();
        (0..500).filter(|&block| nand.is_bad(BlockAddr { plane: 0, block })).collect::<Vec<_>>()
    };
    assert_eq!(bad(1), bad(1));
    assert_ne!(bad(1), bad(2));
    assert!((5..60).contains(&bad(1).len()), "{} of 500 at 5 %", bad(1).len());
}

#[test]
fn a_decayed_page_stays_unreadable() {
    let nand = nand();
    program(&nand, 0, at(0, 0, 0), 1).unwrap();
    nand.fail_read(1);
    assert_eq!(holds(&nand, at(0, 0, 0)), found(1));
    assert_eq!(holds(&nand, at(0, 0, 0)), [SlotRead::Unreadable, SlotRead::Unreadable]);
    assert_eq!(holds(&nand, at(0, 0, 0)), [SlotRead::Unreadable, SlotRead::Unreadable]);
}

/// Three programs on plane 0: at 1500 one is done, one is in progress and one waits.
fn three_programs() -> Nand<Stamp> {
    let nand = nand();
    for page in 0..3 {
        program(&nand, 0, at(0, 0, page), u64::from(page)).unwrap();
    }
    nand
}

#[test]
fn a_power_cut_asks_only_for_what_is_in_progress() {
    for (fate, kept) in [(Fate::Land, 2), (Fate::Vanish, 1)] {
        let nand = three_programs();
        let mut asked = Vec::new();
        nand.power_cut(1_500, |info| {
            asked.push(*info);
            fate
        });
        let operation = Operation::Program;
        let expected = InFlight { operation, at: at(0, 0, 1), start_ns: 1_200, end_ns: 2_200 };
        assert_eq!(asked, [expected]);
        for page in 0..3 {
            let expected = if page < kept { found(page) } else { BLANK.to_vec() };
            assert_eq!(holds(&nand, at(0, 0, page as u32)), expected, "page {page} after {fate:?}");
        }
    }
}

#[test]
fn a_torn_page_is_an_error_or_does_not_match_its_checksum() {
    let nand = nand_with_torn(0);
    assert_eq!(holds(&nand, at(0, 0, 0)), [SlotRead::Unreadable, SlotRead::Unreadable]);
    let nand = nand_with_torn(1);
    for slot in holds(&nand, at(1, 0, 0)) {
        let SlotRead::Found(spare, body) = slot else { panic!("{slot:?}") };
        assert_ne!(spare.checksum, body.checksum());
    }
}

fn nand_with_torn(plane: u32) -> Nand<Stamp> {
    let nand = nand();
    program(&nand, 0, at(plane, 0, 0), 1).unwrap();
    nand.power_cut(600, |_| Fate::Tear);
    nand
}

#[test]
fn an_interrupted_erase_lands_vanishes_or_needs_another() {
    let block = BlockAddr { plane: 0, block: 0 };
    for fate in [Fate::Land, Fate::Vanish, Fate::Tear] {
        let nand = nand();
        program(&nand, 0, at(0, 0, 0), 4).unwrap();
        nand.erase(2_000, block).unwrap();
        nand.power_cut(3_000, |info| {
            assert_eq!(info.operation, Operation::Erase);
            fate
        });
        let expected = match fate {
            Fate::Land => BLANK.to_vec(),
            Fate::Vanish => found(4),
            Fate::Tear => vec![SlotRead::Unreadable, SlotRead::Unreadable],
        };
        assert_eq!(holds(&nand, at(0, 0, 0)), expected, "{fate:?}");
        assert_eq!(nand.wear().max, u32::from(fate != Fate::Vanish));
        nand.erase(0, block).unwrap();
        program(&nand, 0, at(0, 0, 0), 5).unwrap();
        assert_eq!(holds(&nand, at(0, 0, 0)), found(5));
    }
}

#[test]
#[should_panic(expected = "HalfErased")]
fn a_torn_erase_leaves_nothing_to_program() {
    let nand = nand();
    nand.erase(0, BlockAddr { plane: 0, block: 0 }).unwrap();
    nand.power_cut(100, |_| Fate::Tear);
    let _ = program(&nand, 0, at(0, 0, 0), 1);
}

#[test]
fn a_vanished_erase_of_a_torn_block_leaves_it_torn() {
    let nand = nand();
    let block = BlockAddr { plane: 0, block: 0 };
    nand.erase(0, block).unwrap();
    nand.power_cut(100, |_| Fate::Tear);
    nand.erase(0, block).unwrap();
    nand.power_cut(100, |_| Fate::Vanish);
    assert_eq!(holds(&nand, at(0, 0, 0)), [SlotRead::Unreadable, SlotRead::Unreadable]);
}

#[test]
fn real_bytes_survive_erase_and_undo() {
    let nand = Nand::<PageBuf>::new(&options()).unwrap();
    let body = Body::Data(PageBuf::copy_from(&[9; 4096]));
    let checksum = body.checksum();
    let spare = Spare { kind: SlotKind::Data, page: PageNo(3), version: Version(4), checksum };
    nand.program(0, at(0, 0, 0), &[spare], std::slice::from_ref(&body)).unwrap();
    nand.erase(2_000, BlockAddr { plane: 0, block: 0 }).unwrap();
    nand.power_cut(3_000, |_| Fate::Vanish);
    assert_eq!(nand.read(0, at(0, 0, 0)).1[0], SlotRead::Found(spare, body));
}

#[test]
fn upper_pages_take_longer_every_second_of_a_block() {
    let timing = NandTiming { program_upper_ns: 4_000, ..options().timing };
    let nand: Nand<Stamp> = Nand::new(&NandOptions { timing, ..options() }).unwrap();
    let mut now_ns = 0;
    for (plane, page) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (3, 0)] {
        let end_ns = program(&nand, now_ns, at(plane, 0, page), 1).unwrap();
        let pulse_ns = if (plane + page) % 2 == 1 { 4_000 } else { 1_000 };
        assert_eq!(end_ns - now_ns, 100 + pulse_ns, "plane {plane}, page {page}");
        now_ns = end_ns;
    }
}

#[test]
fn the_mapping_table_goes_round_the_planes_and_takes_their_time() {
    let nand = nand();
    let mut ends = Vec::new();
    for nth in 0..16 {
        ends.push(nand.array().program_mapping(0, nth));
    }
    // Four planes, two on each channel: the second pair is done one transfer later.
    assert_eq!(ends[..4], [1_100, 1_100, 1_200, 1_200]);
    assert!(ends[4..8].iter().all(|end_ns| (2_200..=2_400).contains(end_ns)), "{ends:?}");
    // Blocks of four pages: the last page of each is followed by its erase.
    let counters = nand.counters();
    assert_eq!((counters.programs, counters.erases), (16, 4));
    let end_ns = program(&nand, 0, at(0, 0, 0), 1).unwrap();
    assert!(end_ns > ends[12] + 5_000, "the plane is erased first: {end_ns}, {ends:?}");
}
