//! The headers of a zone's appends, as the spare areas of their flash pages hold them.
use crate::zone::AppendHeader;
use tantalum_base::Version;

/// `batch_delta` of a header that is kept whole in `odd`.
const ODD: u32 = u32::MAX;
/// `batch_delta` of a header with `batch_first` 0.
const NO_BATCH: u32 = u32::MAX - 1;

/// A header in 28 bytes: what is alike in all appends of a zone's opening is kept once, and the
/// batch's first version as its distance from `durable`.
#[derive(Clone, Copy)]
struct Packed {
    first_offset: u32,
    pages: u32,
    zone_durable_slots: u32,
    batch_len: u32,
    batch_delta: u32,
    durable: [u32; 2],
}

/// Appends of one opening of a zone, in order.
#[derive(Default)]
pub(super) struct AppendLog {
    epoch: u64,
    stream: u8,
    appends: Vec<Packed>,
    // By place in `appends`, ascending.
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
        }
        let distance = header.batch_first.0.wrapping_sub(header.durable.0);
        let batch_delta = if header.epoch != self.epoch || header.stream != self.stream {
            ODD
        } else if header.batch_first == Version::NEVER {
            NO_BATCH
        } else {
            u32::try_from(distance).ok().filter(|delta| *delta < NO_BATCH).unwrap_or(ODD)
        };
        if batch_delta == ODD {
            self.odd.push((self.appends.len() as u32, *header));
        }
        self.appends.push(Packed {
            first_offset,
            pages,
            zone_durable_slots: header.zone_durable_slots,
            batch_len: header.batch_len,
            batch_delta,
            durable: [header.durable.0 as u32, (header.durable.0 >> 32) as u32],
        });
    }

    /// The appends from the first one on that starts at `from_offset` or later.
    pub(super) fn from(&self, from_offset: u32) -> impl Iterator<Item = LoggedAppend> {
        let first = self.appends.partition_point(|append| append.first_offset < from_offset);
        (first..self.appends.len()).map(|at| self.get(at))
    }

    fn get(&self, at: usize) -> LoggedAppend {
        let packed = self.appends[at];
        let Packed { first_offset, pages, zone_durable_slots, batch_len, batch_delta, .. } = packed;
        let durable = u64::from(packed.durable[1]) << 32 | u64::from(packed.durable[0]);
        let odd = self.odd.binary_search_by_key(&(at as u32), |(at, _)| *at);
        let header = match odd {
            Ok(odd) => self.odd[odd].1,
            Err(_) => AppendHeader {
                epoch: self.epoch,
                stream: self.stream,
                durable: Version(durable),
                zone_durable_slots,
                batch_first: match batch_delta {
                    NO_BATCH => Version::NEVER,
                    delta => Version(durable + u64::from(delta)),
                },
                batch_len,
            },
        };
        LoggedAppend { header, first_offset, pages }
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
            zone_durable_slots: 17,
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
            plain,
        ];
        let mut log = AppendLog::default();
        for (at, header) in headers.iter().enumerate() {
            log.push(header, at as u32 * 4, 3);
        }
        let logged: Vec<_> = log.from(0).collect();
        assert_eq!(logged.iter().map(|append| append.header).collect::<Vec<_>>(), headers);
        assert_eq!(log.from(5).next().map(|append| append.first_offset), Some(8));
        assert_eq!(size_of::<Packed>(), 28);
    }
}
