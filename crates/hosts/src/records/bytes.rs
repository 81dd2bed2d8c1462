//! Records as bytes.
use std::borrow::Cow;
use std::marker::PhantomData;
use std::rc::Rc;
use tantalum_base::checksum::{crc32c, crc32c_append};
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo};

use super::{ByteRecord, Codec, FRAME_BYTES, PAGE_ROOM};
use crate::fault_points::Fault;

/// Writes records as bytes, each with a checksum.
#[derive(Debug)]
pub struct ByteCodec<T>(PhantomData<T>);

impl<T> Default for ByteCodec<T> {
    fn default() -> Self {
        ByteCodec(PhantomData)
    }
}

/// Set in the mark of a page whose first bytes continue a record of the previous page: no record is read from its beginning,
/// so a user's value cannot pass for one.
const GOES_ON: u8 = 0x80;

impl<T: ByteRecord> Codec for ByteCodec<T> {
    type Page = PageBuf;
    type Record = T;

    fn encode(&self, _first: PageNo, records: &[Rc<T>]) -> Vec<PageBuf> {
        let mut bytes = Vec::new();
        let mut frames = Vec::with_capacity(records.len());
        for record in records {
            let frame = bytes.len();
            frames.push(frame);
            bytes.extend([0; FRAME_BYTES]);
            record.encode(&mut bytes);
            let content = &bytes[frame + FRAME_BYTES..];
            debug_assert_eq!(content.len(), record.content_bytes(), "{record:?}");
            let length = (content.len() as u32).to_le_bytes();
            let checksum = crc32c_append(crc32c(&length), content);
            bytes[frame..frame + 4].copy_from_slice(&checksum.to_le_bytes());
            bytes[frame + 4..frame + 8].copy_from_slice(&length);
        }
        let mark = records.first().map_or(0, |record| record.mark());
        let page = |(number, room): (usize, &[u8])| {
            let begins = frames.binary_search(&(number * PAGE_ROOM)).is_ok();
            let mut page = [0; PAGE_BYTES];
            page[0] = if begins { mark } else { mark | GOES_ON };
            page[1..=room.len()].copy_from_slice(room);
            PageBuf::copy_from(&page)
        };
        bytes.chunks(PAGE_ROOM).enumerate().map(page).collect()
    }

    fn decode(&self, offset: u16, pages: &[PageBuf]) -> Option<Rc<T>> {
        let mark = pages.first()?[0];
        let goes_on = offset == 0 && mark & GOES_ON != 0;
        if goes_on && !Fault::RecordsAnywhere.is_planted() {
            return None;
        }
        let offset = usize::from(offset);
        let frame = room(pages, offset, FRAME_BYTES)?;
        let (checksum, length) = frame.split_at(4);
        let bytes = u32::from_le_bytes(length.try_into().ok()?);
        let content = room(pages, offset + FRAME_BYTES, bytes as usize)?;
        let is_whole = crc32c_append(crc32c(length), &content).to_le_bytes() == checksum;
        if !is_whole && !Fault::ChecksumsIgnored.is_planted() {
            return None;
        }
        let record = T::decode(&content)?;
        let mark = mark & !GOES_ON;
        (mark != 0 && record.mark() == mark).then(|| Rc::new(record))
    }
}

/// A range of bytes of the pages' room; not copied if it lies in one page, as most do.
fn room(pages: &[PageBuf], begin: usize, bytes: usize) -> Option<Cow<'_, [u8]>> {
    let end = begin.checked_add(bytes)?;
    let (first, last) = (begin / PAGE_ROOM, end.saturating_sub(1) / PAGE_ROOM);
    let taken = pages.get(first..=last.max(first))?;
    let begin = begin - first * PAGE_ROOM;
    match taken {
        [page] => Some(Cow::Borrowed(page.get(1 + begin..1 + begin + bytes)?)),
        _ => {
            let gathered = taken.iter().flat_map(|page| &page[1..]).skip(begin).take(bytes);
            Some(Cow::Owned(gathered.copied().collect()))
        }
    }
}
