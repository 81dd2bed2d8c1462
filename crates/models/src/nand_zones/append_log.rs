//! The headers of a zone's appends, as stored in the spare areas of their flash pages.
use tantalum_base::Version;
use tantalum_media::zone::AppendHeader;

/// Value of `batch_delta` for a header with `batch_first` 0.
const NO_BATCH: u32 = u32::MAX;

/// A header in 16 bytes: values shared by all appends since a zone's opening are stored once, and
/// versions as differences.
#[derive(Clone, Copy, Default)]
struct Packed {
    first_offset: u32,
    // Difference from the first append's `durable`.
    durable_delta: u32,
    // Difference from this append's `durable`.
    batch_delta: u32,
    batch_len: u16,
    pages: u16,
}

/// Appends of one opening of a zone, in order.
#[derive(Default)]
pub(super) struct AppendLog {
    epoch: u64,
    stream: u8,
    durable: Version,
    appends: Vec<Packed>,
    // Headers that do not fit, by index in `appends`, ascending.
    odd: Vec<(u32, AppendHeader)>,
}

/// One append of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoggedAppend {
    pub(super) header: AppendHeader,
    pub(super) first_offset: u32,
    pub(super) pages: u32,
}

impl AppendLog {
    pub(super) fn is_empty(&self) -> bool {
        self.appends.is_empty()
    }

    #[inline]
    pub(super) fn push(&mut self, header: &AppendHeader, first_offset: u32, pages: u32) {
        if self.appends.is_empty() {
            (self.epoch, self.stream) = (header.epoch, header.stream);
            self.durable = header.durable;
        }
        let packed = self.pack(header).unwrap_or_else(|| {
            self.odd.push((self.appends.len() as u32, *header));
            Packed::default()
        });
        self.appends.push(Packed { first_offset, pages: pages as u16, ..packed });
    }

    /// The packed header; `None` if one of its values is out of range.
    #[inline]
    fn pack(&self, header: &AppendHeader) -> Option<Packed> {
        if header.epoch != self.epoch || header.stream != self.stream {
            return None;
        }
        let distance = |from: Version, to: Version| u32::try_from(to.0.checked_sub(from.0)?).ok();
        let batch_delta = if header.batch_first == Version::NEVER {
            NO_BATCH
        } else {
            distance(header.durable, header.batch_first).filter(|delta| *delta != NO_BATCH)?
        };
        Some(Packed {
            durable_delta: distance(self.durable, header.durable)?,
            batch_delta,
            batch_len: u16::try_from(header.batch_len).ok()?,
            ..Packed::default()
        })
    }

    /// Frees memory reserved for further appends.
    pub(super) fn shrink(&mut self) {
        self.appends.shrink_to_fit();
    }

    /// The appends from the first one that starts at `from_offset` or later.
    pub(super) fn from(&self, from_offset: u32) -> impl Iterator<Item = LoggedAppend> {
        let first = self.appends.partition_point(|append| append.first_offset < from_offset);
        (first..self.appends.len()).map(|at| self.get(at))
    }

    fn get(&self, at: usize) -> LoggedAppend {
        let packed = self.appends[at];
        let durable = Version(self.durable.0 + u64::from(packed.durable_delta));
        let header = match self.odd.binary_search_by_key(&(at as u32), |(at, _)| *at) {
            Ok(odd) => self.odd[odd].1,
            Err(_) => AppendHeader {
                epoch: self.epoch,
                stream: self.stream,
                durable,
                batch_first: match packed.batch_delta {
                    NO_BATCH => Version::NEVER,
                    delta => Version(durable.0 + u64::from(delta)),
                },
                batch_len: u32::from(packed.batch_len),
            },
        };
        LoggedAppend { header, first_offset: packed.first_offset, pages: u32::from(packed.pages) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_as_they_were() {
        let plain = AppendHeader {
            epoch: 3,
            stream: 2,
            durable: Version(1 << 40),
            batch_first: Version((1 << 40) + 5),
            batch_len: 9,
        };
        let headers = [
            plain,
            AppendHeader { batch_first: Version(0), ..plain },
            AppendHeader { batch_first: Version(1 << 60), ..plain },
            AppendHeader { batch_first: Version(1), ..plain },
            AppendHeader { epoch: 4, ..plain },
            AppendHeader { stream: 1, ..plain },
            AppendHeader { durable: Version(5), batch_first: Version(6), ..plain },
            AppendHeader { durable: Version(1 << 50), batch_first: Version(1 << 50), ..plain },
            AppendHeader { batch_len: 1 << 20, ..plain },
            AppendHeader { batch_first: Version((1 << 40) + u64::from(u32::MAX)), ..plain },
            plain,
        ];
        let mut log = AppendLog::default();
        for (at, header) in headers.iter().enumerate() {
            log.push(header, at as u32 * 4, 3);
        }
        let logged: Vec<_> = log.from(0).collect();
        assert_eq!(logged.iter().map(|append| append.header).collect::<Vec<_>>(), headers);
        assert_eq!(log.from(5).next().map(|append| append.first_offset), Some(8));
        assert_eq!(size_of::<Packed>(), 16);
    }
}
