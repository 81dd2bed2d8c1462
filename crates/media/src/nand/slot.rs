//! A slot in 16 bytes, and what does not fit in them.
use crate::zone::{Body, SlotKind, Spare};
use tantalum_base::{PageBuf, PageNo, Payload, Version};

/// A 4 KiB place as it is kept: kind, logical page, version and a stamp's token, packed.
///
/// ```text
/// word 0   version 40 | flags 8 | token or checksum, upper 16
/// word 1   page 32    | token or checksum, lower 32
/// ```
#[derive(Clone, Copy, Default)]
pub(super) struct Slot([u64; 2]);

const KIND: u8 = 0b0000_0111;
/// The content is kept in the side tables: a host's page without a token.
const SIDE_BODY: u8 = 0b0000_1000;
/// The content is the FTL's own bytes, kept in the side tables.
const META: u8 = 0b0001_0000;
/// The spare is kept in the side tables: something in it is out of range here.
const SIDE_SPARE: u8 = 0b0010_0000;
/// Reads as content that is neither old nor new.
const TORN: u8 = 0b0100_0000;
/// Reads as bit errors past correction.
const UNREADABLE: u8 = 0b1000_0000;

const VERSION_BITS: u32 = 40;
const TOKEN_BITS: u32 = 48;

impl Slot {
    fn pack(flags: u8, spare: &Spare, token: u64) -> Slot {
        let version = spare.version.0 & ((1 << VERSION_BITS) - 1);
        let page = u64::from(spare.page.0 as u32);
        Slot([
            version << 24 | u64::from(flags) << 16 | token >> 32,
            page << 32 | token & 0xffff_ffff,
        ])
    }

    fn flags(self) -> u8 {
        (self.0[0] >> 16) as u8
    }

    fn token(self) -> u64 {
        (self.0[0] & 0xffff) << 32 | self.0[1] & 0xffff_ffff
    }

    fn page(self) -> PageNo {
        PageNo(self.0[1] >> 32)
    }

    fn version(self) -> Version {
        Version(self.0[0] >> 24)
    }

    fn set(&mut self, flag: u8) {
        self.0[0] |= u64::from(flag) << 16;
    }

    fn has(self, flag: u8) -> bool {
        self.flags() & flag != 0
    }
}

/// What does not fit in a [`Slot`], by slot in the block, ascending.
struct Side<P> {
    bodies: Vec<(u32, P)>,
    metas: Vec<(u32, PageBuf)>,
    spares: Vec<(u32, Spare)>,
}

fn find<T>(items: &[(u32, T)], slot: u32) -> Option<&T> {
    items.binary_search_by_key(&slot, |(at, _)| *at).ok().map(|at| &items[at].1)
}

/// What a slot reads as.
#[derive(Clone, Debug, PartialEq)]
pub enum SlotRead<P> {
    /// Nothing was programmed there, or padding.
    Blank,
    /// Bit errors past correction.
    Unreadable,
    /// Spare and content, which need not match each other.
    Found(Spare, Body<P>),
}

/// The programmed slots of one block.
pub(super) struct Content<P> {
    slots: Vec<Slot>,
    side: Option<Box<Side<P>>>,
}

impl<P> Default for Content<P> {
    fn default() -> Self {
        Content { slots: Vec::new(), side: None }
    }
}

impl<P: Payload> Content<P> {
    /// Empty, around the memory of an earlier content where there is some.
    pub(super) fn around(recycled: Option<Content<P>>, capacity: usize) -> Self {
        match recycled {
            Some(mut content) => {
                content.slots.clear();
                content.side = None;
                content
            }
            None => Content { slots: Vec::with_capacity(capacity), side: None },
        }
    }

    /// Slots programmed so far, padding included.
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
        let mut flags = spare.kind as u8;
        let token = match body {
            Body::Data(page) => {
                match page.token(spare.page).filter(|token| *token >> TOKEN_BITS == 0) {
                    Some(token) => {
                        if page.checksum() != spare.checksum {
                            flags |= SIDE_SPARE;
                        }
                        token
                    }
                    None => {
                        flags |= SIDE_BODY;
                        u64::from(spare.checksum)
                    }
                }
            }
            Body::Meta(_) => {
                flags |= META;
                u64::from(spare.checksum)
            }
        };
        if spare.version.0 >> VERSION_BITS != 0 || spare.page.0 >> 32 != 0 {
            flags |= SIDE_SPARE;
        }
        if flags & (SIDE_BODY | META | SIDE_SPARE) != 0 {
            self.push_side(flags, spare, body);
        }
        self.slots.push(Slot::pack(flags, spare, token));
    }

    fn push_side(&mut self, flags: u8, spare: &Spare, body: &Body<P>) {
        let at = self.slots.len() as u32;
        let side = self.side.get_or_insert_with(|| {
            Box::new(Side { bodies: Vec::new(), metas: Vec::new(), spares: Vec::new() })
        });
        match body {
            Body::Data(page) if flags & SIDE_BODY != 0 => side.bodies.push((at, page.clone())),
            Body::Data(_) => {}
            Body::Meta(bytes) => side.metas.push((at, bytes.clone())),
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

    /// Forgets the slots from `len` on.
    pub(super) fn truncate(&mut self, len: u32) {
        self.slots.truncate(len as usize);
        if let Some(side) = &mut self.side {
            side.bodies.retain(|(at, _)| *at < len);
            side.metas.retain(|(at, _)| *at < len);
            side.spares.retain(|(at, _)| *at < len);
        }
    }

    /// From now on `slot` reads as bit errors past correction.
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

    /// Whether the slot was programmed whole and can be read.
    pub(super) fn is_whole(&self, slot: u32) -> bool {
        self.slots.get(slot as usize).is_some_and(|slot| !slot.has(UNREADABLE | TORN))
    }

    /// Spare and content of `slot`.
    pub(super) fn read(&self, slot: u32) -> SlotRead<P> {
        let Some(packed) = self.slots.get(slot as usize).copied() else { return SlotRead::Blank };
        if packed.has(UNREADABLE) {
            return SlotRead::Unreadable;
        }
        let Some(kind) = SlotKind::from_byte(packed.flags() & KIND) else {
            return SlotRead::Blank;
        };
        let side = self.side.as_deref();
        let body = if packed.has(META) {
            side.and_then(|side| find(&side.metas, slot)).cloned().map(Body::Meta)
        } else {
            self.host_page(packed, slot).map(Body::Data)
        };
        let Some(body) = body else { return SlotRead::Unreadable };
        let spare = match side.and_then(|side| find(&side.spares, slot)) {
            Some(spare) if packed.has(SIDE_SPARE) => *spare,
            _ => {
                let checksum = if packed.has(META | SIDE_BODY) {
                    packed.token() as u32
                } else {
                    body.checksum()
                };
                Spare { kind, page: packed.page(), version: packed.version(), checksum }
            }
        };
        let body = match body {
            Body::Data(page) if packed.has(TORN) => Body::Data(page.torn()),
            Body::Meta(bytes) if packed.has(TORN) => Body::Meta(bytes.torn()),
            body => body,
        };
        SlotRead::Found(spare, body)
    }

    fn host_page(&self, packed: Slot, slot: u32) -> Option<P> {
        if packed.has(SIDE_BODY) {
            return self.side.as_deref().and_then(|side| find(&side.bodies, slot)).cloned();
        }
        // A page number past 32 bits is in the side table alone.
        let page = match self.side.as_deref().and_then(|side| find(&side.spares, slot)) {
            Some(spare) if packed.has(SIDE_SPARE) => spare.page,
            _ => packed.page(),
        };
        P::from_token(page, packed.token())
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
    fn a_slot_keeps_whatever_it_is_given() {
        assert_eq!(size_of::<Slot>(), 16);
        let stamp = Body::Data(Stamp::new(PageNo(7), 9));
        round_trip(spare(7, 1, &stamp), stamp.clone());
        // A stamp of another page, a version past 40 bits, a wrong checksum.
        round_trip(spare(8, 1, &stamp), stamp.clone());
        round_trip(spare(7, 1 << 50, &stamp), stamp.clone());
        round_trip(Spare { checksum: 1, ..spare(7, 1, &stamp) }, stamp);
        let large = Body::Data(Stamp::new(PageNo(u64::from(u32::MAX - 1)), u64::MAX));
        round_trip(spare(u64::from(u32::MAX - 1), (1 << 40) - 1, &large), large);
        let bytes = Body::Data(PageBuf::copy_from(&[3; 4096]));
        round_trip(spare(1 << 40, 5, &bytes), bytes);
        let meta: Body<Stamp> = Body::Meta(PageBuf::copy_from(&[4; 4096]));
        round_trip(Spare { kind: SlotKind::Record, ..spare(3, 4, &meta) }, meta);
    }
}
