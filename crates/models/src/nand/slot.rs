//! A slot in 12 bytes, and side tables for data that does not fit in them.
use tantalum_base::{PageBuf, PageNo, Payload, Version};
use tantalum_media::zone::{Body, SlotKind, Spare};

/// A 4 KiB slot in packed form: kind, logical page, version and a stamp's token.
///
/// ```text
/// word 0   page 32
/// word 1   version 32, as the difference from the version of the block's first slot
/// word 2   token 24 | flags 8
/// ```
///
/// A token below 2^23 is stored as it is, otherwise as the difference from the version: a host that
/// counts all writes of a device stays close to the FTL's count.
#[derive(Clone, Copy, Default)]
pub(super) struct Slot([u32; 3]);

const KIND: u8 = 0b0000_0111;
/// The content is in the side tables: a host's page without a token.
const SIDE_BODY: u8 = 0b0000_1000;
/// The content is the FTL's own bytes, in the side tables.
const META: u8 = 0b0001_0000;
/// The spare is in the side tables: one of its values is out of range here.
const SIDE_SPARE: u8 = 0b0010_0000;
/// Reads as content that is neither old nor new.
const TORN: u8 = 0b0100_0000;
/// Reads as an uncorrectable error.
const UNREADABLE: u8 = 0b1000_0000;

/// Set in a token's 24 bits if the token is a difference from the version.
const TOKEN_RELATIVE: u32 = 1 << 23;
/// The largest token; also the largest difference of a token plus half of this.
const TOKEN_MASK: u32 = TOKEN_RELATIVE - 1;

impl Slot {
    /// The packed slot, and whether page and version fit in it.
    #[inline]
    fn pack(flags: u8, spare: &Spare, base: Version, token: u32) -> (Slot, bool) {
        let page = u32::try_from(spare.page.0);
        let version = i32::try_from(spare.version.0.wrapping_sub(base.0) as i64);
        let fits = page.is_ok() && version.is_ok();
        let flags = if fits { flags } else { flags | SIDE_SPARE };
        let words = [page.unwrap_or(0), version.unwrap_or(0) as u32];
        (Slot([words[0], words[1], token << 8 | u32::from(flags)]), fits)
    }

    #[inline]
    fn flags(self) -> u8 {
        self.0[2] as u8
    }

    #[inline]
    fn token(self) -> u32 {
        self.0[2] >> 8
    }

    #[inline]
    fn page(self) -> PageNo {
        PageNo(u64::from(self.0[0]))
    }

    #[inline]
    fn version(self, base: Version) -> Version {
        Version(base.0.wrapping_add_signed(i64::from(self.0[1] as i32)))
    }

    #[inline]
    fn set(&mut self, flag: u8) {
        self.0[2] |= u32::from(flag);
    }

    #[inline]
    fn has(self, flag: u8) -> bool {
        self.flags() & flag != 0
    }
}

/// The flags for a page of `kind`. Kinds that only caches use are rare in simulations: the side table stores
/// which one it is.
#[inline]
fn kind_flags(kind: SlotKind) -> u8 {
    match kind {
        SlotKind::Clean => SlotKind::Data as u8 | SIDE_SPARE,
        SlotKind::CleanCopy => SlotKind::Copy as u8 | SIDE_SPARE,
        other => other as u8,
    }
}

/// A stamp's token in 24 bits; `None` if it does not fit.
#[inline]
fn pack_token(token: u64, version: Version) -> Option<u32> {
    if token <= u64::from(TOKEN_MASK) {
        return Some(token as u32);
    }
    let distance = token.wrapping_sub(version.0).wrapping_add(u64::from(TOKEN_MASK / 2));
    (distance <= u64::from(TOKEN_MASK)).then_some(TOKEN_RELATIVE | distance as u32)
}

/// The inverse of [`pack_token`].
#[inline]
fn unpack_token(packed: u32, version: Version) -> u64 {
    if packed & TOKEN_RELATIVE == 0 {
        return u64::from(packed);
    }
    let distance = u64::from(packed & TOKEN_MASK);
    version.0.wrapping_add(distance).wrapping_sub(u64::from(TOKEN_MASK / 2))
}

/// Data that does not fit in a [`Slot`], by slot in the block, ascending.
struct Side<P> {
    // Contents with the checksums stored in their spares.
    bodies: Vec<(u32, (P, u32))>,
    metas: Vec<(u32, (PageBuf, u32))>,
    spares: Vec<(u32, Spare)>,
}

fn find<T>(items: &[(u32, T)], slot: u32) -> Option<&T> {
    items.binary_search_by_key(&slot, |(at, _)| *at).ok().map(|at| &items[at].1)
}

/// The result of reading a slot.
#[derive(Clone, Debug, PartialEq)]
pub enum SlotRead<P> {
    /// The slot was not programmed, or is padding.
    Blank,
    /// An uncorrectable error.
    Unreadable,
    /// Spare and content, which may not match each other.
    Found(Spare, Body<P>),
}

/// A version that is never written.
const UNSET: Version = Version(u64::MAX);

/// The programmed slots of one block.
pub(super) struct Content<P> {
    slots: Vec<Slot>,
    /// Version of the first slot that is not padding; until then `UNSET`.
    base: Version,
    side: Option<Box<Side<P>>>,
}

impl<P> Default for Content<P> {
    fn default() -> Self {
        Content { slots: Vec::new(), base: UNSET, side: None }
    }
}

impl<P: Payload> Content<P> {
    /// Empty content, which reuses the memory of an earlier one if there is one.
    pub(super) fn around(recycled: Option<Content<P>>, capacity: usize) -> Self {
        match recycled {
            Some(mut content) => {
                content.slots.clear();
                content.base = UNSET;
                content.side = None;
                content
            }
            None => Content { slots: Vec::with_capacity(capacity), ..Content::default() },
        }
    }

    /// Number of slots programmed so far, including padding.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn has_memory(&self) -> bool {
        self.slots.capacity() > 0
    }

    /// Programs the next slot.
    #[inline]
    pub(super) fn push(&mut self, spare: &Spare, body: &Body<P>) {
        if self.base == UNSET {
            self.base = spare.version;
        }
        let kind = kind_flags(spare.kind);
        let (flags, token) = match body {
            Body::Data(page) => {
                let token = page.token(spare.page);
                match token.and_then(|token| pack_token(token, spare.version)) {
                    Some(token) if page.checksum() == spare.checksum => (kind, token),
                    Some(token) => (kind | SIDE_SPARE, token),
                    None => (kind | SIDE_BODY, 0),
                }
            }
            Body::Meta(_) => (kind | META, 0),
        };
        let (slot, fits) = Slot::pack(flags, spare, self.base, token);
        if !fits || flags & (SIDE_BODY | META | SIDE_SPARE) != 0 {
            self.push_side(slot.flags(), spare, body);
        }
        self.slots.push(slot);
    }

    fn push_side(&mut self, flags: u8, spare: &Spare, body: &Body<P>) {
        let at = self.slots.len() as u32;
        let side = self.side.get_or_insert_with(|| {
            Box::new(Side { bodies: Vec::new(), metas: Vec::new(), spares: Vec::new() })
        });
        match body {
            Body::Data(page) if flags & SIDE_BODY != 0 => {
                side.bodies.push((at, (page.clone(), spare.checksum)));
            }
            Body::Data(_) => {}
            Body::Meta(bytes) => side.metas.push((at, (bytes.clone(), spare.checksum))),
        }
        if flags & SIDE_SPARE != 0 {
            side.spares.push((at, *spare));
        }
    }

    /// Programs padding.
    #[inline]
    pub(super) fn push_padding(&mut self) {
        self.slots.push(Slot::default());
    }

    /// Drops the slots from `len` on.
    pub(super) fn truncate(&mut self, len: u32) {
        self.slots.truncate(len as usize);
        if let Some(side) = &mut self.side {
            side.bodies.retain(|(at, _)| *at < len);
            side.metas.retain(|(at, _)| *at < len);
            side.spares.retain(|(at, _)| *at < len);
        }
    }

    /// From now on `slot` reads as an uncorrectable error.
    pub(super) fn mark_unreadable(&mut self, slot: u32) {
        if let Some(slot) = self.slots.get_mut(slot as usize) {
            slot.set(UNREADABLE);
        }
    }

    /// From now on `slot` reads as content that is neither old nor new.
    pub(super) fn mark_torn(&mut self, slot: u32) {
        if let Some(slot) = self.slots.get_mut(slot as usize) {
            slot.set(TORN);
        }
    }

    /// Whether the slot was programmed completely and can be read.
    pub(super) fn is_whole(&self, slot: u32) -> bool {
        self.slots.get(slot as usize).is_some_and(|slot| !slot.has(UNREADABLE | TORN))
    }

    /// A word of `slot`; 0 if there is none.
    #[inline]
    pub(super) fn word(&self, slot: u32) -> u32 {
        self.slots.get(slot as usize).map_or(0, |slot| slot.0[2])
    }

    /// Spare and content of `slot`.
    #[inline]
    pub(super) fn read(&self, slot: u32) -> SlotRead<P> {
        let Some(packed) = self.slots.get(slot as usize).copied() else { return SlotRead::Blank };
        if packed.has(UNREADABLE) {
            return SlotRead::Unreadable;
        }
        let Some(kind) = SlotKind::from_byte(packed.flags() & KIND) else {
            return SlotRead::Blank;
        };
        if packed.has(SIDE_BODY | META | SIDE_SPARE | TORN) {
            return self.read_aside(slot, packed, kind);
        }
        let (page, version) = (packed.page(), packed.version(self.base));
        match P::from_token(page, unpack_token(packed.token(), version)) {
            Some(body) => {
                let spare = Spare { kind, page, version, checksum: body.checksum() };
                SlotRead::Found(spare, Body::Data(body))
            }
            None => SlotRead::Unreadable,
        }
    }

    /// Spare and content of a slot that is torn or has data in the side tables.
    fn read_aside(&self, slot: u32, packed: Slot, kind: SlotKind) -> SlotRead<P> {
        let side = self.side.as_deref();
        let kept = side.and_then(|side| find(&side.spares, slot));
        let (page, version) = match kept {
            Some(spare) if packed.has(SIDE_SPARE) => (spare.page, spare.version),
            _ => (packed.page(), packed.version(self.base)),
        };
        let content = if packed.has(META) {
            let meta = side.and_then(|side| find(&side.metas, slot));
            meta.map(|(bytes, checksum)| (Body::Meta(bytes.clone()), *checksum))
        } else if packed.has(SIDE_BODY) {
            let body = side.and_then(|side| find(&side.bodies, slot));
            body.map(|(page, checksum)| (Body::Data(page.clone()), *checksum))
        } else {
            let body = P::from_token(page, unpack_token(packed.token(), version));
            body.map(|body| {
                let checksum = body.checksum();
                (Body::Data(body), checksum)
            })
        };
        let Some((body, checksum)) = content else { return SlotRead::Unreadable };
        let spare = match kept {
            Some(spare) if packed.has(SIDE_SPARE) => *spare,
            _ => Spare { kind, page, version, checksum },
        };
        let body = match body {
            Body::Data(page) if packed.has(TORN) => Body::Data(page.torn()),
            Body::Meta(bytes) if packed.has(TORN) => Body::Meta(bytes.torn()),
            body => body,
        };
        SlotRead::Found(spare, body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::Stamp;

    fn round_trip<P: Payload>(spare: Spare, body: Body<P>) {
        let mut content = Content::default();
        content.push_padding();
        content.push(&spare, &body);
        assert_eq!(content.read(0), SlotRead::Blank);
        assert_eq!(content.read(1), SlotRead::Found(spare, body.clone()));
        assert_eq!(content.read(2), SlotRead::Blank);
        content.mark_torn(1);
        let SlotRead::Found(kept, torn) = content.read(1) else { panic!("a torn slot is there") };
        assert_eq!(kept, spare);
        assert_ne!(torn.checksum(), body.checksum());
        content.mark_unreadable(1);
        assert_eq!(content.read(1), SlotRead::Unreadable);
        content.truncate(1);
        assert_eq!((content.read(1), content.len()), (SlotRead::Blank, 1));
    }

    fn spare<P: Payload>(page: u64, version: u64, body: &Body<P>) -> Spare {
        let checksum = body.checksum();
        Spare { kind: SlotKind::Copy, page: PageNo(page), version: Version(version), checksum }
    }

    #[test]
    fn versions_far_from_the_first_come_back() {
        let mut content = Content::default();
        let versions = [1 << 40, 1, (1 << 40) + (1 << 31), (1 << 40) - (1 << 31), u64::MAX, 0];
        let stamp = Body::Data(Stamp::new(PageNo(7), 1 << 40));
        let spares = versions.map(|version| spare(7, version, &stamp));
        spares.iter().for_each(|spare| content.push(spare, &stamp));
        for (slot, spare) in (0..).zip(spares) {
            assert_eq!(content.read(slot), SlotRead::Found(spare, stamp.clone()), "slot {slot}");
        }
        let side = content.side.as_deref().map_or(0, |side| side.spares.len());
        assert_eq!(side, 4, "what fits is kept in the slot alone");
    }

    #[test]
    fn a_slot_keeps_whatever_it_is_given() {
        assert_eq!(size_of::<Slot>(), 12);
        let stamp = Body::Data(Stamp::new(PageNo(7), 9));
        round_trip(spare(7, 1, &stamp), stamp.clone());
        for kind in [SlotKind::Clean, SlotKind::CleanCopy] {
            round_trip(Spare { kind, ..spare(7, 1, &stamp) }, stamp.clone());
            let bytes = Body::Data(PageBuf::copy_from(&[3; 4096]));
            round_trip(Spare { kind, ..spare(7, 1, &bytes) }, bytes);
        }
        // A stamp of another page, a large version, a wrong checksum.
        round_trip(spare(8, 1, &stamp), stamp.clone());
        round_trip(spare(7, 1 << 50, &stamp), stamp.clone());
        round_trip(Spare { checksum: 1, ..spare(7, 1, &stamp) }, stamp);
        let large = Body::Data(Stamp::new(PageNo(u64::from(u32::MAX - 1)), u64::MAX));
        round_trip(spare(u64::from(u32::MAX - 1), (1 << 40) - 1, &large), large);
        let bytes = Body::Data(PageBuf::copy_from(&[3; 4096]));
        round_trip(spare(1 << 40, 5, &bytes), bytes);
        for count in [1 << 22, 1 << 23, (1 << 40) - (1 << 22) + 1, 1 << 40, (1 << 40) + 9, 1 << 63]
        {
            let stamp = Body::Data(Stamp::new(PageNo(7), count));
            round_trip(spare(7, 1 << 40, &stamp), stamp);
        }
        let meta: Body<Stamp> = Body::Meta(PageBuf::copy_from(&[4; 4096]));
        round_trip(Spare { kind: SlotKind::Record, ..spare(3, 4, &meta) }, meta);
    }
}
