//! Durations of operations, and the times at which planes and channels are busy.
use super::geometry::{NandGeometry, PageAddr};
use std::collections::VecDeque;
use tantalum_base::{Error, ErrorKind, Result};

/// Durations of NAND operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NandTiming {
    /// Array to page register: sensing one flash page.
    pub read_ns: u64,
    /// Page register to array: programming one flash page; for multi-level cells a lower page.
    pub program_ns: u64,
    /// Programming an upper page of multi-level cells, which takes longer: every second flash page
    /// of a block, the odd ones in even planes and the even ones in odd planes. The same as
    /// `program_ns` if all pages are alike.
    pub program_upper_ns: u64,
    /// Erasing one block.
    pub erase_ns: u64,
    /// Bytes a second over one channel.
    pub channel_bytes_per_second: u64,
}

impl NandTiming {
    /// Refuses durations so short that a power cut could not fall into an operation.
    pub(crate) fn check(&self) -> Result<()> {
        let Self { read_ns: _, program_ns, program_upper_ns, erase_ns, .. } = *self;
        let least_ns = program_ns.min(program_upper_ns).min(erase_ns);
        if least_ns < 2 || self.channel_bytes_per_second == 0 {
            let context = "NAND timing needs programs and erases of 2 ns at least and a channel \
                           rate";
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        Ok(())
    }

    fn transfer_ns(&self, bytes: u64) -> u64 {
        (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(self.channel_bytes_per_second))
            as u64
    }
}

/// The time during which an operation works on its plane: the program or erase pulse, or for a read
/// from sensing to the end of the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
}

/// The times at which planes and channels are busy. Operations on a plane run in the order of
/// submission; a channel serves the operation that is ready first.
pub(super) struct Occupancy {
    timing: NandTiming,
    // Transfer time of a flash page with its spare area. A read transfers all of it as well, however many of
    // its slots were requested ("still requires a 8KB page IO", DuraSSD, section 3.1.2).
    page_transfer_ns: u64,
    spare_transfer_ns: u64,
    planes: Vec<Plane>,
    channels: Vec<Channel>,
}

struct Plane {
    busy_until_ns: u64,
    /// The channel of the plane.
    channel: usize,
}

impl Occupancy {
    pub(super) fn new(geometry: &NandGeometry, timing: NandTiming) -> Self {
        let whole_bytes = u64::from(geometry.page_bytes) + u64::from(geometry.spare_bytes);
        Occupancy {
            timing,
            page_transfer_ns: timing.transfer_ns(whole_bytes),
            spare_transfer_ns: timing.transfer_ns(u64::from(geometry.spare_bytes)),
            planes: (0..geometry.planes())
                .map(|plane| Plane {
                    busy_until_ns: 0,
                    channel: (plane % geometry.channels) as usize,
                })
                .collect(),
            channels: (0..geometry.channels).map(|_| Channel::default()).collect(),
        }
    }

    /// Makes everything idle, for a clock that may restart.
    pub(super) fn clear(&mut self) {
        self.planes.iter_mut().for_each(|plane| plane.busy_until_ns = 0);
        self.channels.iter_mut().for_each(|channel| channel.busy.clear());
    }

    /// Transfer into the plane's register once that is free, then the program pulse. Returns the
    /// pulse.
    #[inline]
    pub(super) fn program(&mut self, now_ns: u64, at: PageAddr) -> Span {
        let plane = &mut self.planes[at.block.plane as usize];
        let channel = &mut self.channels[plane.channel];
        let ready_ns = now_ns.max(plane.busy_until_ns);
        let transfer_ns = self.page_transfer_ns;
        let start_ns = channel.reserve(now_ns, ready_ns, transfer_ns) + transfer_ns;
        let upper = (at.page + at.block.plane) % 2 == 1;
        let timing = &self.timing;
        let end_ns = start_ns + if upper { timing.program_upper_ns } else { timing.program_ns };
        plane.busy_until_ns = end_ns;
        Span { start_ns, end_ns }
    }

    /// Sensing, then the transfer of the flash page; the plane's register is busy until its end.
    #[inline]
    pub(super) fn read(&mut self, now_ns: u64, at: PageAddr) -> Span {
        self.sense(now_ns, at, self.page_transfer_ns)
    }

    /// Sensing, then the transfer of only the spare area.
    pub(super) fn read_spare(&mut self, now_ns: u64, at: PageAddr) -> Span {
        self.sense(now_ns, at, self.spare_transfer_ns)
    }

    #[inline]
    fn sense(&mut self, now_ns: u64, at: PageAddr, transfer_ns: u64) -> Span {
        let plane = &mut self.planes[at.block.plane as usize];
        let channel = &mut self.channels[plane.channel];
        let start_ns = now_ns.max(plane.busy_until_ns);
        let sensed_ns = start_ns + self.timing.read_ns;
        let end_ns = channel.reserve(now_ns, sensed_ns, transfer_ns) + transfer_ns;
        plane.busy_until_ns = end_ns;
        Span { start_ns, end_ns }
    }

    /// Erasing keeps the plane busy and the channel free.
    pub(super) fn erase(&mut self, now_ns: u64, plane: u32) -> Span {
        let busy_until_ns = &mut self.planes[plane as usize].busy_until_ns;
        let start_ns = now_ns.max(*busy_until_ns);
        *busy_until_ns = start_ns + self.timing.erase_ns;
        Span { start_ns, end_ns: *busy_until_ns }
    }
}

/// A bus, with the times at which it is busy: disjoint, ascending, adjacent ones merged.
#[derive(Default)]
struct Channel {
    busy: VecDeque<(u64, u64)>,
}

impl Channel {
    /// Reserves the first free `length_ns` at or after `ready_ns`. Returns its start. The search
    /// for a gap matters: a read that waits for a long erase must not block the bus in the
    /// meantime.
    #[inline]
    fn reserve(&mut self, now_ns: u64, ready_ns: u64, length_ns: u64) -> u64 {
        while self.busy.front().is_some_and(|&(_, end_ns)| end_ns <= now_ns) {
            self.busy.pop_front();
        }
        match self.busy.back_mut() {
            Some((_, end_ns)) if *end_ns == ready_ns => {
                *end_ns += length_ns;
                ready_ns
            }
            Some((_, end_ns)) if *end_ns > ready_ns => self.reserve_in_gap(ready_ns, length_ns),
            _ => {
                self.busy.push_back((ready_ns, ready_ns + length_ns));
                ready_ns
            }
        }
    }

    fn reserve_in_gap(&mut self, ready_ns: u64, length_ns: u64) -> u64 {
        let mut at = self.busy.partition_point(|&(_, end_ns)| end_ns <= ready_ns);
        let mut start_ns = ready_ns;
        while let Some(&(taken_ns, free_ns)) = self.busy.get(at) {
            if start_ns + length_ns <= taken_ns {
                break;
            }
            start_ns = start_ns.max(free_ns);
            at += 1;
        }
        let end_ns = start_ns + length_ns;
        let joins_left = at > 0 && self.busy[at - 1].1 == start_ns;
        let joins_right = self.busy.get(at).is_some_and(|&(taken_ns, _)| taken_ns == end_ns);
        match (joins_left, joins_right) {
            (true, true) => {
                self.busy[at - 1].1 = self.busy[at].1;
                self.busy.remove(at);
            }
            (true, false) => self.busy[at - 1].1 = end_ns,
            (false, true) => self.busy[at].0 = start_ns,
            (false, false) => self.busy.insert(at, (start_ns, end_ns)),
        }
        start_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_fills_gaps_and_merges_neighbours() {
        let mut channel = Channel::default();
        assert_eq!(channel.reserve(0, 100, 10), 100);
        assert_eq!(channel.reserve(0, 0, 10), 0);
        // Between 10 and 100 there is room for 80 and then for 10, but not for 91.
        assert_eq!(channel.reserve(0, 5, 91), 110);
        assert_eq!(channel.reserve(0, 5, 80), 10);
        assert_eq!(channel.reserve(0, 0, 10), 90);
        assert_eq!(channel.busy, [(0, 201)]);
        assert_eq!(channel.reserve(0, 50, 1), 201);
        assert_eq!(channel.reserve(300, 300, 1), 300);
        assert_eq!(channel.busy, [(300, 301)]);
    }

    #[test]
    fn random_reservations_never_overlap() {
        let mut rng = tantalum_base::Rng::new(7);
        let mut channel = Channel::default();
        let mut taken: Vec<(u64, u64)> = Vec::new();
        for _ in 0..2_000 {
            let (ready, length) = (rng.below(20_000), 1 + rng.below(20));
            let start = channel.reserve(0, ready, length);
            assert!(start >= ready);
            assert!(taken.iter().all(|&(from, to)| start + length <= from || to <= start));
            taken.push((start, start + length));
        }
        assert!(channel.busy.iter().zip(channel.busy.iter().skip(1)).all(|(a, b)| a.1 < b.0));
    }
}
