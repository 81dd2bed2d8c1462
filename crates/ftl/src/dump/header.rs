//! Header and footer of a dump, which have the same content.
use tantalum_base::{PageBuf, Version};

use crate::log::own_page::{FieldReader, FieldWriter};

pub(crate) const HEADER_MAGIC: u64 = 0x706d_7544_746e_6154; // "TantDump"
pub(crate) const FOOTER_MAGIC: u64 = 0x456d_7544_746e_6154; // "TantDumE"

/// The content of a dump's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DumpHeader {
    /// The dump's number: the epoch of its zones.
    pub number: u64,
    /// The checkpoint on which it is based.
    pub checkpoint: u64,
    /// Delta pages with lower numbers belong to the dump.
    pub deltas_up_to: u64,
    /// No version from here on has been used.
    pub next_version: Version,
    /// The number of delta pages of that checkpoint, in the meta zones.
    pub delta_pages: u64,
    /// The number of pages of changed entries.
    pub entry_pages: u32,
    /// The number of frames.
    pub frames: u32,
}

impl DumpHeader {
    /// Pages of the dump, header and footer included.
    pub fn pages(&self) -> u64 {
        2 + u64::from(self.entry_pages) + u64::from(self.frames)
    }

    /// Encodes the header or the footer, by `magic`.
    pub(crate) fn encode(&self, magic: u64) -> PageBuf {
        let mut writer = FieldWriter::new();
        writer.u64(magic).u64(self.number).u64(self.checkpoint).u64(self.deltas_up_to);
        writer.u64(self.next_version.0).u64(self.delta_pages);
        writer.u32(self.entry_pages).u32(self.frames).finish()
    }

    /// Decodes a header or, with `footer`, a footer; `None` if the page is neither.
    pub fn decode(page: &PageBuf, footer: bool) -> Option<Self> {
        let mut reader = FieldReader::new(page, 0);
        let magic = if footer { FOOTER_MAGIC } else { HEADER_MAGIC };
        (reader.u64() == magic).then(|| DumpHeader {
            number: reader.u64(),
            checkpoint: reader.u64(),
            deltas_up_to: reader.u64(),
            next_version: Version(reader.u64()),
            delta_pages: reader.u64(),
            entry_pages: reader.u32(),
            frames: reader.u32(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::Payload;

    #[test]
    fn headers_come_back() {
        let header = DumpHeader {
            number: 1 << 40,
            checkpoint: 7,
            deltas_up_to: 1 << 50,
            next_version: Version(99),
            delta_pages: 12,
            entry_pages: 3,
            frames: 1 << 30,
        };
        assert_eq!(DumpHeader::decode(&header.encode(HEADER_MAGIC), false), Some(header));
        assert_eq!(DumpHeader::decode(&header.encode(HEADER_MAGIC), true), None);
        assert_eq!(DumpHeader::decode(&PageBuf::zero(), false), None);
    }
}
