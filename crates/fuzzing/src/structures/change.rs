//! An input: changes of structures, after which every checksum above them is right.
use super::entries::Entry;
use super::{Field, Limits, Means, Scene, Sealed, Structure, journal, log, number, put};
use tantalum_base::PAGE_BYTES;

/// Bytes of one change: its way, the structure's name and its number, the field (two bytes), the choice of the new value, and an
/// operand (two bytes).
const CHANGE_BYTES: usize = 9;
/// The first byte of an input is for its reader.
const CHANGES_MAX: usize = 6;
/// The ways of changing a structure: numbers (most of all), two entries exchanged, one entry twice, the page of another one.
const WAYS: u8 = 8;
const EXCHANGED: u8 = 5;
const TWICE: u8 = 6;
const REPLACED: u8 = 7;
/// Choices of a value.
const CHOICES: u8 = 12;
const PARTS: usize = 5;

/// How far the changed structures speak for themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Says {
    /// Nothing says that a page has another content than one that it had.
    Truth,
    /// A structure says that a page has the content of another one.
    OtherPage,
    /// A structure gives the checksum of a content, or says of a page what it is.
    OtherContent,
}

/// The stores after the changes of an input.
pub(crate) struct Changed {
    pub stores: Vec<Vec<u8>>,
    pub says: Says,
    /// Whether a count is at its limit, so that the device can be opened once more at most.
    pub is_exhausted: bool,
    /// The names of the changed structures.
    pub names: Vec<&'static str>,
}

/// Inputs that change each field of each kind of structure once by each choice, and each kind in each other way; `first` is their
/// first byte.
pub(crate) fn seeds(scene: &Scene, first: u8) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (kind, (_, same)) in scene.named.iter().enumerate() {
        let newest = &same[0];
        let mut names: Vec<&str> = Vec::new();
        let parts = if newest.packed.is_some() { PARTS } else { 0 };
        for at in 0..newest.fields.len() + parts {
            let name = newest.fields.get(at).map(|field| field.name);
            if name.is_some_and(|name| names.contains(&name)) {
                continue;
            }
            names.extend(name);
            for choice in 0..CHOICES {
                let [low, high] = (at as u16).to_le_bytes();
                seeds.push(vec![first, 0, kind as u8, 0, low, high, choice, choice, 1, 0]);
            }
        }
        for way in EXCHANGED..WAYS {
            seeds.push(vec![first, way, kind as u8, 0, 0, 0, 1, 2, 1, 0]);
        }
    }
    seeds
}

impl Changed {
    /// Applies `changes` to the stores of `scene`.
    pub fn new(scene: &Scene, changes: &[u8]) -> Self {
        let (stores, names) = (scene.stores.clone(), Vec::new());
        let mut changed = Changed { stores, says: Says::Truth, is_exhausted: false, names };
        let mut touched: Vec<(&Structure, Vec<u8>)> = Vec::new();
        for change in changes.chunks_exact(CHANGE_BYTES).take(CHANGES_MAX) {
            let (name, same) = &scene.named[usize::from(change[1]) % scene.named.len()];
            let structure = &same[usize::from(change[2]) % same.len()];
            let before = changed.stores[structure.store][structure.page..][..512].to_vec();
            changed.names.push(name);
            changed.apply(scene, structure, same, change);
            touched.push((structure, before));
        }
        // Checksums above others after these.
        for (structure, before) in &touched {
            changed.repair(structure, before);
        }
        for (structure, _) in &touched {
            changed.repair_above(structure);
        }
        changed
    }

    fn apply(&mut self, scene: &Scene, structure: &Structure, same: &[Structure], change: &[u8]) {
        let operand = u64::from(u16::from_le_bytes([change[6], change[7]]));
        let at = usize::from(u16::from_le_bytes([change[3], change[4]]));
        let bytes = &mut self.stores[structure.store];
        match (change[0] % WAYS, structure.entries) {
            (EXCHANGED | TWICE, Some(entries)) if entries.count > 1 => {
                let place = |number: usize| entries.first + number % entries.count * entries.bytes;
                let (one, other) = (place(at), place(operand as usize));
                let [first, second] =
                    [one, other].map(|from| bytes[from..from + entries.bytes].to_vec());
                bytes[one..one + entries.bytes].copy_from_slice(&second);
                if change[0] % WAYS == EXCHANGED {
                    bytes[other..other + entries.bytes].copy_from_slice(&first);
                }
            }
            (EXCHANGED | TWICE, None) if structure.packed.is_some() => {
                let is_exchange = change[0] % WAYS == EXCHANGED;
                self.with_entries(scene, structure, |entries| {
                    let (one, other) = (at % entries.len(), operand as usize % entries.len());
                    if is_exchange {
                        entries.swap(one, other)
                    } else {
                        entries[one] = entries[other]
                    }
                });
            }
            (REPLACED, _) if !matches!(structure.sealed, Sealed::Text { .. }) => {
                let other = &same[operand as usize % same.len()];
                let page = bytes[other.page..other.page + PAGE_BYTES].to_vec();
                bytes[structure.page..structure.page + PAGE_BYTES].copy_from_slice(&page);
                // What it says of pages was true before, and other changes may have come in between.
                self.says = self.says.max(Says::OtherPage);
            }
            _ => self.set(scene, structure, same, at, (change[5] % CHOICES, operand)),
        }
    }

    /// Changes the number `at` of `structure`: one of its fields, or of the numbers of its packed entries.
    fn set(
        &mut self,
        scene: &Scene,
        structure: &Structure,
        same: &[Structure],
        at: usize,
        (choice, operand): (u8, u64),
    ) {
        let limits = &scene.limits;
        let plain = structure.fields.len();
        let at = if structure.packed.is_some() { at } else { at % plain.max(1) };
        if let Some(field) = structure.fields.get(at) {
            let bytes = &mut self.stores[structure.store];
            let now = number(bytes, field.at, field.width);
            let another = another(bytes, field, structure, same, (choice, operand));
            let value = value(limits, field.means, (choice, operand), now, another);
            match &structure.sealed {
                Sealed::Text { .. } if field.width == 8 => {
                    let digits = format!("{:08x}", value as u32);
                    bytes[field.at..field.at + 8].copy_from_slice(digits.as_bytes());
                }
                _ => put(bytes, field.at, field.width, value),
            }
            self.said(limits, field.means, value);
            if structure.store == journal::HOME {
                // The text of a claim decides how the content under it reads.
                self.says = Says::OtherContent;
            }
            return;
        }
        let (index, part) = ((at - plain) / PARTS, (at - plain) % PARTS);
        let (mut means, mut given) = (Means::EntryKind, 0);
        self.with_entries(scene, structure, |entries| {
            let (entry, other) = (index % entries.len(), entries[operand as usize % entries.len()]);
            let entry = &mut entries[entry];
            means = match part {
                0 => Means::EntryKind,
                1 if entry.kind == 4 => Means::Emptied,
                1 => Means::Page,
                2 => Means::Version,
                3 if entry.kind == 4 => Means::EmptiedPages,
                3 => Means::Slot,
                _ => Means::Checksum,
            };
            let value = |now: u64, other: u64| value(limits, means, (choice, operand), now, other);
            let mut value = |now: u64, other: u64| {
                given = value(now, other);
                given
            };
            match part {
                0 => entry.kind = value(entry.kind.into(), other.kind.into()) as u8 % 16,
                1 => entry.page = value(entry.page.into(), other.page.into()) as u32,
                2 => entry.version = value(entry.version, other.version),
                3 => entry.place = value(entry.place.into(), other.place.into()) as u32,
                _ => entry.checksum = value(entry.checksum.into(), other.checksum.into()) as u32,
            }
        });
        self.said(limits, means, given);
    }

    /// Notes that a number with this meaning became `value`.
    fn said(&mut self, limits: &Limits, means: Means, value: u64) {
        self.says = self.says.max(says(limits, means));
        let counts = [Means::Version, Means::Epoch, Means::Sequence].contains(&means);
        self.is_exhausted |= counts && value >= end(limits, means) / 2;
    }

    /// Changes the packed entries of a page, unless they do not fit afterwards.
    fn with_entries(
        &mut self,
        scene: &Scene,
        structure: &Structure,
        change: impl FnOnce(&mut Vec<Entry>),
    ) {
        let Some(packed) = structure.packed else { return };
        let page = structure.page..structure.page + PAGE_BYTES;
        let bytes = &mut self.stores[structure.store][page];
        let checksums = scene.limits.has_checksums;
        let Some(mut entries) = packed.decode(bytes, checksums).filter(|all| !all.is_empty())
        else {
            return;
        };
        change(&mut entries);
        let mut written = bytes.to_vec();
        if packed.encode(&entries, &mut written, checksums).is_some() {
            bytes.copy_from_slice(&written);
        }
    }

    fn repair(&mut self, structure: &Structure, before: &[u8]) {
        let bytes = &mut self.stores[structure.store];
        match &structure.sealed {
            Sealed::Page => log::repair_page(bytes, structure.page),
            Sealed::Spare { spare, .. } => log::repair_own_page(bytes, structure.page, *spare),
            Sealed::Heads { .. } => log::repair_page(bytes, structure.page),
            Sealed::Text { ranges } => journal::repair_text(bytes, structure.page, before, ranges),
        }
    }

    fn repair_above(&mut self, structure: &Structure) {
        let bytes = &mut self.stores[structure.store];
        match &structure.sealed {
            Sealed::Page => log::repair_page(bytes, structure.page),
            Sealed::Spare { header, .. } => log::repair_page(bytes, *header),
            Sealed::Heads { heads, pages } => journal::repair_heads(bytes, heads, pages),
            Sealed::Text { .. } if structure.store == journal::JOURNAL => {
                log::repair_page(bytes, structure.page / PAGE_BYTES * PAGE_BYTES);
            }
            Sealed::Text { .. } => {}
        }
    }
}

/// What a change of a number with this meaning says of the contents of pages.
fn says(limits: &Limits, means: Means) -> Says {
    match means {
        Means::Page | Means::Which => Says::OtherPage,
        Means::Version if limits.versions_tell => Says::OtherPage,
        Means::Checksum | Means::Kind => Says::OtherContent,
        _ => Says::Truth,
    }
}

/// A number that is valid in another place: that of the same field in another structure of its name, or of another field here.
fn another(
    bytes: &[u8],
    field: &Field,
    structure: &Structure,
    same: &[Structure],
    (choice, operand): (u8, u64),
) -> u64 {
    let from = if choice % 2 == 0 { structure } else { &same[operand as usize % same.len()] };
    let alike: Vec<&Field> =
        from.fields.iter().filter(|other| other.means == field.means).collect();
    let other = alike.get(operand as usize % alike.len().max(1));
    other.map_or(0, |other| number(bytes, other.at, other.width))
}

/// The number that `choice` makes of `now`; `another` is one that is valid elsewhere.
fn value(
    limits: &Limits,
    means: Means,
    (choice, operand): (u8, u64),
    now: u64,
    another: u64,
) -> u64 {
    let end = end(limits, means);
    match choice {
        0 => 0,
        1 => 1,
        2 => end.wrapping_sub(1),
        3 => end,
        4 => end.wrapping_add(1),
        5 => u64::MAX,
        6 => now.wrapping_add(1),
        7 => now.wrapping_sub(1),
        8 | 9 => another,
        10 => operand % end.max(1),
        _ => now ^ 1 << (operand % 64),
    }
}

/// The end of the numbers that are valid.
fn end(limits: &Limits, means: Means) -> u64 {
    match means {
        Means::Page | Means::Emptied | Means::EmptiedPages => limits.pages,
        Means::Slot => limits.zones * limits.slots_per_zone,
        Means::Zone => limits.zones,
        Means::Offset | Means::Place | Means::Which | Means::Count => limits.slots_per_zone,
        Means::Version | Means::Sequence => (1 << 46) - (1 << 40),
        Means::Epoch => 1 << 55,
        Means::Stream => 4,
        Means::State => 5,
        Means::Kind => 10,
        Means::EntryKind => 8,
        Means::Checksum | Means::Identity => 1 << 32,
        Means::Size => limits.pages * PAGE_BYTES as u64,
        Means::Time => 1 << 62,
    }
}
