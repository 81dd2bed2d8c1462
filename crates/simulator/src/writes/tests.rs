use super::*;
use tantalum_base::{PageBuf, PageNo, Payload};

const HOST: u8 = 0;
const META: u8 = 2;

/// As on a file: a header page precedes the pages of an append.
const FILE: ZoneGeometry = ZoneGeometry {
    zones: 4,
    slots_per_zone: 16,
    append_unit_slots: 1,
    append_overhead_slots: 1,
    append_pages_max: 8,
};
/// As on flash: two slots in a flash page, and what a header says beside each.
const FLASH: ZoneGeometry = ZoneGeometry { append_unit_slots: 2, append_overhead_slots: 0, ..FILE };

/// A list made by hand; contents are numbers.
struct List {
    writes: Writes<u64>,
    next: [u32; 4],
    mark: u64,
}

/// One page of an append: its kind, its page number, its version, and its content.
type Page = (SlotKind, u64, u64, u64);

fn data(version: u64, content: u64) -> Page {
    (SlotKind::Data, content, version, content)
}

impl List {
    fn new(geometry: ZoneGeometry) -> Self {
        List { writes: Writes::new(geometry), next: [0; 4], mark: 0 }
    }

    fn begin(&mut self, zone: u32, stream: u8, durable: u64, pages: &[Page]) -> u64 {
        self.mark += 1;
        let header = AppendHeader {
            stream,
            durable: Version(durable),
            batch_first: Version(if stream == HOST { pages[0].2 } else { 0 }),
            batch_len: pages.len() as u32,
            ..AppendHeader::default()
        };
        let (spares, bodies): (Vec<_>, Vec<_>) = pages
            .iter()
            .map(|(kind, page, version, content)| {
                let (page, version) = (PageNo(*page), Version(*version));
                let spare = Spare { kind: *kind, page, version, checksum: 0 };
                // For a checkpoint's page the content is its kind.
                let mut bytes = PageBuf::zero();
                bytes.make_mut()[PIECE_KIND_AT] = *content as u8;
                let body = match kind {
                    SlotKind::Data | SlotKind::Copy => Body::Data(*content),
                    _ => Body::Meta(bytes),
                };
                (spare, body)
            })
            .unzip();
        self.writes.begin(ZoneNo(zone), &header, &spares, &bodies, self.mark)
    }

    /// The append's first page has this slot.
    fn returned(&mut self, zone: u32, begun: u64, pages: u32, is_durable: bool) -> SlotNo {
        let geometry = self.writes.geometry;
        let next = &mut self.next[zone as usize];
        let first = geometry.slot(ZoneNo(zone), *next + geometry.append_overhead_slots);
        *next += geometry.append_slots(pages);
        self.writes.returned(begun, first, is_durable);
        first
    }

    fn append(&mut self, zone: u32, stream: u8, durable: u64, pages: &[Page]) -> SlotNo {
        let begun = self.begin(zone, stream, durable, pages);
        self.returned(zone, begun, pages.len() as u32, true)
    }

    /// A checkpoint of everything up to version `durable`, in zone 3: the slots of its two pages.
    fn checkpoint(&mut self, number: u64, durable: u64) -> [SlotNo; 2] {
        let page =
            |kind| (SlotKind::Checkpoint, u64::from(kind == FOOTER), number, u64::from(kind));
        [1, FOOTER].map(|kind| self.append(3, META, durable, &[page(kind)]))
    }

    fn lose(&mut self, slot: SlotNo) {
        self.writes.lose(slot, ALL);
    }

    /// Lost contents, whether opening may be refused, and the contents of the end that may be missing.
    fn judged(&self) -> (Vec<u64>, bool, Option<Vec<u64>>) {
        let tail = self.writes.tail().map(|tail| tail.contents);
        (self.writes.lost(), self.writes.may_refuse(), tail)
    }
}

fn before(slot: SlotNo) -> SlotNo {
    SlotNo(slot.0 - 1)
}

const NOTHING: (Vec<u64>, bool, Option<Vec<u64>>) = (Vec::new(), false, None);

#[test]
fn a_damaged_page_is_lost_and_no_other() {
    for geometry in [FILE, FLASH] {
        let mut list = List::new(geometry);
        let first = list.append(0, HOST, 0, &[data(1, 11), data(2, 12), data(3, 13)]);
        list.append(0, HOST, 3, &[data(4, 14)]);
        assert_eq!(list.judged(), NOTHING);
        list.writes.lose(SlotNo(first.0 + 1), Gone { content: true, spare: false });
        assert_eq!(list.judged(), (vec![12], false, None));
    }
}

#[test]
fn a_header_is_needed_until_a_checkpoint_has_what_it_says() {
    let mut list = List::new(FILE);
    let first = list.append(0, HOST, 0, &[data(1, 11), data(2, 12)]);
    list.append(1, HOST, 2, &[data(3, 13)]);
    list.lose(before(first));
    assert_eq!(list.judged(), (vec![11, 12], true, None));
    // A checkpoint that started before all of it was durable does not include it.
    list.checkpoint(1, 1);
    assert_eq!(list.judged(), (vec![11, 12], true, None));
    list.checkpoint(2, 2);
    assert_eq!(list.judged(), NOTHING);
    // Its pages themselves are read with the information in the checkpoint.
    list.lose(SlotNo(first.0 + 1));
    assert_eq!(list.judged(), (vec![12], false, None));
}

#[test]
fn what_stands_beside_pages_on_flash_says_which_they_are() {
    let mut list = List::new(FLASH);
    let first = list.append(0, HOST, 0, &[data(1, 11), data(2, 12), data(3, 13)]);
    list.append(1, HOST, 3, &[data(4, 14)]);
    list.writes.lose(SlotNo(first.0 + 2), Gone { content: false, spare: true });
    // The content cannot be checked any more, and the page cannot be identified.
    assert_eq!(list.judged(), (vec![13], true, None));
    // A checkpoint identifies the page.
    list.checkpoint(1, 4);
    assert_eq!(list.judged(), (vec![13], false, None));
}

#[test]
fn a_copy_takes_the_place_of_its_original() {
    let mut list = List::new(FILE);
    let original = list.append(0, HOST, 0, &[data(1, 11)]);
    list.checkpoint(1, 1);
    let begun = list.begin(1, CLEANING, 1, &[(SlotKind::Copy, 11, 1, 11)]);
    list.lose(original);
    assert_eq!(list.judged(), (vec![11], false, None), "nothing is copied yet");
    let copy = list.returned(1, begun, 1, true);
    assert_eq!(list.judged(), NOTHING);
    // Nothing started after it; but a copy is no change, and the original may be gone.
    list.lose(before(copy));
    assert_eq!(list.judged(), (vec![11], false, None), "the checkpoint says what is missing");
    list.append(2, HOST, 1, &[data(2, 12)]);
    let copy = list.append(2, CLEANING, 1, &[(SlotKind::Copy, 12, 2, 12)]);
    list.writes.reset_begins(ZoneNo(2));
    assert_eq!(list.writes.append_at(copy), []);
}

#[test]
fn a_copy_that_no_checkpoint_knows_is_missed_by_nobody() {
    let mut list = List::new(FILE);
    list.append(0, HOST, 0, &[data(1, 11)]);
    let copy = list.append(1, CLEANING, 1, &[(SlotKind::Copy, 11, 1, 11)]);
    list.writes.reset_begins(ZoneNo(0));
    list.lose(before(copy));
    assert_eq!(list.judged(), (vec![11], true, None));
}

#[test]
fn pages_that_share_a_copy_are_lost_with_what_says_so() {
    let mut list = List::new(FILE);
    list.append(0, HOST, 0, &[data(1, 11)]);
    let sharers = (SlotKind::Record, 0, Version::NEVER.0, 0);
    let copies = [(SlotKind::Copy, 11, 1, 11), (SlotKind::Copy, 12, 2, 12), sharers];
    let first = list.append(1, CLEANING, 1, &copies);
    list.lose(SlotNo(first.0 + 2));
    assert_eq!(list.judged(), (vec![11, 12], true, None));
    list.checkpoint(1, 2);
    assert_eq!(list.judged(), NOTHING);
}

/// The copy is there, but the record after it, which names the other pages with this content, is not.
#[test]
fn pages_that_share_stay_where_they_were_if_a_cut_left_out_what_says_so() {
    let mut list = List::new(FLASH);
    let original = list.append(0, HOST, 0, &[data(1, 11)]);
    list.checkpoint(1, 1);
    let sharers = (SlotKind::Record, 0, Version::NEVER.0, 0);
    list.begin(1, CLEANING, 1, &[(SlotKind::Copy, 11, 1, 11), sharers]);
    let append = list.writes.appends.last().unwrap();
    let (header, spares) = (append.header, vec![Some(append.spares[0]), None]);
    let found =
        ScannedAppend { header, first_offset: 0, end_offset: 2, spares, damaged: Vec::new() };
    list.writes.found(ZoneNo(1), 0, &[found]);
    list.writes.verified();
    list.lose(original);
    assert_eq!(list.judged(), (vec![11], false, None));
}

/// It landed during the cut; the dump has the page at its previous place.
#[test]
fn a_copy_that_a_dump_does_not_know_stands_for_nothing() {
    for dumps in [false, true] {
        let mut list = List::new(FLASH);
        let original = list.append(0, HOST, 0, &[data(1, 11)]);
        list.checkpoint(1, 1);
        list.begin(1, CLEANING, 1, &[(SlotKind::Copy, 11, 1, 11)]);
        let append = list.writes.appends.last().unwrap();
        let (header, spares) = (append.header, vec![Some(append.spares[0])]);
        let found =
            ScannedAppend { header, first_offset: 0, end_offset: 1, spares, damaged: Vec::new() };
        if dumps {
            list.append(2, HOST, 1, &[(SlotKind::Dump, 0, 0, 0)]);
        }
        list.writes.found(ZoneNo(1), 0, &[found]);
        list.writes.verified();
        list.lose(original);
        assert_eq!(list.writes.lost(), if dumps { vec![11] } else { vec![] });
    }
}

#[test]
fn only_the_end_that_nothing_follows_may_look_like_a_cut() {
    let mut list = List::new(FILE);
    list.append(0, HOST, 0, &[data(1, 11)]);
    let second = list.begin(0, HOST, 1, &[data(2, 12)]);
    // In flight together with the second: it cannot say that the second was durable.
    let beside = list.begin(1, HOST, 1, &[data(3, 13)]);
    let second = list.returned(0, second, 1, true);
    list.returned(1, beside, 1, true);
    list.lose(second);
    let tail = list.writes.tail().expect("nothing follows");
    assert_eq!(
        tail,
        Tail { from: 2, contents: vec![12, 13], has_records: false, given_up: vec![] }
    );
    // Commands acknowledged before are not part of it.
    let behind = list.append(1, HOST, 3, &[data(4, 14)]);
    assert_eq!(list.judged(), (vec![12], false, None));
    // A following append that cannot be found does not count.
    list.lose(before(behind));
    assert_eq!(list.judged(), (vec![12, 14], true, Some(vec![12, 13, 14])));
    // A checkpoint is enough.
    list.checkpoint(1, 4);
    assert_eq!(list.judged(), (vec![12], false, None));
}

/// A recovery may reset a zone whose content the end replaced: without the end, nothing is left of that
/// page.
#[test]
fn what_the_end_replaced_may_be_given_up() {
    let mut list = List::new(FILE);
    list.append(2, HOST, 0, &[data(1, 11)]);
    list.append(0, HOST, 1, &[data(2, 12)]);
    let end = list.append(1, HOST, 2, &[data(3, 13)]);
    list.writes.reset_begins(ZoneNo(0));
    list.lose(end);
    let given_up = |list: &List| list.writes.tail().expect("nothing follows").given_up;
    assert_eq!(given_up(&list), vec![12]);
    // Not if the device was opened since: that made the content that it found durable.
    list.writes.verified();
    assert_eq!(given_up(&list), vec![]);
}

#[test]
fn a_record_cannot_be_missed() {
    let mut list = List::new(FILE);
    let record = list.append(0, HOST, 0, &[(SlotKind::Record, 0, 1, 0)]);
    list.append(0, HOST, 1, &[data(2, 12)]);
    list.lose(record);
    assert_eq!(list.judged(), (vec![], true, None));
    list.checkpoint(1, 2);
    assert_eq!(list.judged(), NOTHING);
}

#[test]
fn of_checkpoints_the_newest_that_is_whole_counts() {
    for piece in [0, 1] {
        let mut list = List::new(FILE);
        let first = list.checkpoint(1, 0);
        list.lose(first[piece]);
        assert_eq!(list.judged(), (vec![], true, None));
        let second = list.checkpoint(2, 0);
        assert_eq!(list.judged(), NOTHING);
        let third = list.append(3, META, 0, &[(SlotKind::Checkpoint, 0, 3, 1)]);
        list.lose(third);
        assert_eq!(list.judged(), NOTHING, "it has no footer yet");
        list.lose(before(second[piece]));
        assert_eq!(list.judged(), (vec![], true, None));
    }
}

#[test]
fn in_a_zone_that_was_reset_nothing_is_in_force() {
    let mut list = List::new(FILE);
    let first = list.append(0, HOST, 0, &[data(1, 11), (SlotKind::Record, 0, 2, 0)]);
    list.append(1, HOST, 2, &[data(3, 13)]);
    list.writes.reset_begins(ZoneNo(0));
    for slot in [first.0 - 1, first.0, first.0 + 1, first.0 + 2] {
        list.lose(SlotNo(slot));
    }
    assert_eq!(list.judged(), NOTHING);
    // Slots that are overwritten are whole again.
    list.next[0] = 0;
    assert_eq!(list.append(0, HOST, 3, &[data(4, 14)]), first);
    list.append(1, HOST, 4, &[data(5, 15)]);
    assert_eq!(list.judged(), NOTHING);
    assert_eq!(list.writes.gone(SlotNo(first.0 + 1)), ALL, "and what lies behind is not");
}

#[test]
fn what_was_not_durable_counts_once_a_check_has_seen_it() {
    let pages = [data(1, 11), data(2, 12)];
    let mut list = List::new(FILE);
    let lands = list.begin(0, HOST, 0, &pages);
    let vanishes = list.begin(1, HOST, 0, &[data(3, 13)]);
    list.returned(1, vanishes, 1, false);
    assert_eq!(list.writes.uncertain(), [(ZoneNo(0), 0), (ZoneNo(1), 0)]);
    let append = &list.writes.appends[0];
    let spares = vec![None, Some(append.spares[1])];
    let (header, damaged) = (append.header, Vec::new());
    let found = ScannedAppend { header, first_offset: 1, end_offset: 3, spares, damaged };
    list.writes.found(ZoneNo(0), 0, &[found]);
    list.writes.found(ZoneNo(1), 0, &[]);
    assert_eq!(list.writes.appends.len(), 1);
    assert_eq!(list.writes.appends[0].begun, lands);
    // One page is not there; damage to the header leaves the same as a cut may.
    list.lose(SlotNo(0));
    assert_eq!(list.judged(), (vec![12], false, None));
    list.writes.verified();
    assert_eq!(list.judged(), (vec![12], true, Some(vec![11, 12])));
}

#[test]
fn a_sync_makes_durable_what_had_returned() {
    let mut list = List::new(FILE);
    let [first, second] = [1, 2].map(|version| {
        let begun = list.begin(0, HOST, 0, &[data(version, 10 + version)]);
        (begun, version)
    });
    list.returned(0, first.0, 1, false);
    let sync = list.writes.sync_begins();
    list.returned(0, second.0, 1, false);
    list.writes.synced(sync);
    let durable: Vec<bool> = list.writes.appends.iter().map(|one| one.durable.is_some()).collect();
    assert_eq!(durable, [true, false]);
}

#[test]
fn every_slot_is_a_place_and_the_newest_come_first() {
    for geometry in [FILE, FLASH] {
        let mut list = List::new(geometry);
        let old = list.append(0, HOST, 0, &[data(1, 11), data(2, 12)]);
        let new = list.append(1, HOST, 0, &[data(3, 13)]);
        let overhead = geometry.append_overhead_slots;
        assert_eq!(list.writes.place(0), SlotNo(new.0 - overhead));
        assert_eq!(list.writes.place(u64::from(2 * overhead) + 1), old);
        assert_eq!(list.writes.place(64), list.writes.place(0));
        let mut places: Vec<u32> = (0..64).map(|number| list.writes.place(number).0).collect();
        places.sort_unstable();
        assert_eq!(places, (0..64).collect::<Vec<u32>>());
    }
}

#[test]
fn a_dump_is_in_force_until_its_zones_are_reset() {
    const DUMP: u8 = 3;
    let mut list = List::new(FLASH);
    list.append(0, HOST, 0, &[data(1, 11)]);
    let header = list.append(1, DUMP, 1, &[(SlotKind::Dump, 0, 0, 0)]);
    list.checkpoint(1, 1);
    list.lose(header);
    assert_eq!(list.judged(), (vec![], true, None));
    list.writes.reset_begins(ZoneNo(1));
    list.writes.reset_done(ZoneNo(1));
    assert_eq!(list.judged(), NOTHING);
}
