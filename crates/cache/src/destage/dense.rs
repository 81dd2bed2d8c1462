//! Dense: the tracks with the most dirty pages are destaged first (DTF; write cache, section 3.2),
//! each in few long writes.
use tantalum_base::{PageDevice, PageNo, PageRange, Payload, Result};
use tantalum_media::{BlockStore, ZoneMedia};
use tantalum_runtime::Runtime;

use super::Failure;
use super::slices::HomeWrite;
use crate::fault_points::Fault;
use crate::tiered::Tiered;

/// A round takes about one in this many of the dirty pages, so that other tracks become denser
/// meanwhile.
const ROUND_DIVISOR: u64 = 4;

impl<R, M, H, J> Tiered<R, M, H, J>
where
    R: Runtime,
    M: ZoneMedia,
    H: PageDevice<Page = M::Page>,
    J: BlockStore,
{
    /// Destages the densest tracks. Pages that cannot be read stay dirty; the others are destaged.
    pub(super) async fn dense_round(&self) -> Result<(), Failure> {
        let tries_again = self.is_due_again();
        if tries_again {
            self.dirty.borrow_mut().try_again();
        }
        let tracks = self.densest_tracks(tries_again || self.destager.is_next_wanted());
        self.dirty.borrow_mut().take(&tracks);
        let took_all = self.dirty.borrow().fresh.is_empty();
        self.destager.took_all_ns.set(took_all.then(|| self.runtime.now_ns()));
        let round = self.destager.round.get() + 1;
        self.destager.round.set(round);
        // Everything sent to the home must be durable in the flash: after a power cut the content
        // of the flash counts.
        self.drive.settle().await?;
        self.leave_out_refused().await?;
        if !Fault::HomeNotForetold.is_planted() {
            self.journal()?.home_may_have(self.drive.ftl().durable_version()).await?;
        }
        let mut tracks = tracks.into_iter().peekable();
        let mut read = Ok(());
        while tracks.peek().is_some() {
            if self.destager.resting.get() {
                return Ok(());
            }
            let mut taken = 0;
            let slice = std::iter::from_fn(|| {
                let track = tracks.next_if(|_| taken < u64::from(self.options.slice_pages))?;
                taken += self.dirty.borrow().round.count_in(track);
                Some(track)
            });
            let slice: Vec<PageRange> = slice.collect();
            read = read.and(self.write_tracks(&slice).await?);
        }
        // Pages left in the round are lost, or already on the home.
        self.dirty.borrow_mut().end_round();
        self.destager.ended.set(round);
        self.put_off_unreadable(tries_again);
        read.and(self.none_is_unreadable())?;
        self.destager.mark_safe(round);
        Ok(())
    }

    /// Removes from the round the pages that are not dirty in the flash: the flash refused their
    /// last write. The write cache may have a later write of such a page now. If the flash refused
    /// that one too, only the home would have its content. A page that is dirty and durable in the
    /// flash stays in the round: the flash's content counts until the home has all of a newer one.
    /// The next round takes the removed pages that changed since.
    async fn leave_out_refused(&self) -> Result<()> {
        if Fault::RefusedWritesGoHome.is_planted() {
            return Ok(());
        }
        let ftl = self.drive.ftl();
        let durable = ftl.durable_version();
        let is_durable = {
            let dirty = &mut *self.dirty.borrow_mut();
            let absent = |page: &PageNo| !ftl.is_dirty(*page) && !ftl.is_lost(*page);
            let refused: Vec<PageNo> = dirty.round.iter().filter(absent).collect();
            refused.into_iter().for_each(|page| _ = dirty.round.remove(page));
            dirty.round.iter().all(|page| ftl.version_of(page) <= durable)
        };
        match is_durable {
            true => Ok(()),
            // They changed since, perhaps for the first time since the flash refused a write.
            false => self.drive.settle().await,
        }
    }

    /// The tracks of the next round, in page order; with `all`, every track that has dirty pages.
    fn densest_tracks(&self, all: bool) -> Vec<PageRange> {
        let pages = &self.dirty.borrow().fresh;
        let track_pages = u64::from(self.options.track_pages);
        let mut tracks: Vec<(u64, PageRange)> = Vec::new();
        let mut next = pages.next(PageNo(0));
        while let Some(page) = next {
            let track = PageRange::new(PageNo(page.0 - page.0 % track_pages), track_pages);
            tracks.push((pages.count_in(track), track));
            next = pages.next(track.end());
        }
        tracks.sort_unstable_by_key(|(count, track)| (u64::MAX - count, track.first));
        let wanted = (pages.len() / ROUND_DIVISOR).max(u64::from(self.options.slice_pages));
        let mut taken = 0;
        let enough = |(count, _): &(u64, PageRange)| {
            let takes = all || taken < wanted;
            taken += count;
            takes
        };
        let mut tracks: Vec<PageRange> =
            tracks.into_iter().take_while(enough).map(|(_, track)| track).collect();
        tracks.sort_unstable_by_key(|track| track.first);
        tracks
    }

    /// Writes the pages of `tracks` that the round took and that can be read. The inner result is
    /// an error if some cannot be read.
    async fn write_tracks(&self, tracks: &[PageRange]) -> Result<Result<(), Failure>> {
        let mut contents = Vec::new();
        let mut zeros: Vec<PageRange> = Vec::new();
        for page in self.taken_of(tracks) {
            if self.drive.is_trimmed(page) {
                match zeros.last_mut() {
                    Some(run) if run.end() == page => run.pages += 1,
                    _ => zeros.push(PageRange::new(page, 1)),
                }
            } else if self.drive.holds(page) {
                contents.push((page, M::Page::zero()));
            }
        }
        let read = self.read_dirty(&mut contents).await;
        if let Err(Failure::Other(error)) = read {
            return Err(error);
        }
        let mut writes: Vec<_> = zeros.into_iter().map(HomeWrite::Zeros).collect();
        writes.extend(self.in_long_writes(&contents));
        self.write_slice(writes).await?;
        Ok(read)
    }

    /// The pages of `tracks` that the round took.
    fn taken_of(&self, tracks: &[PageRange]) -> Vec<PageNo> {
        let round = &self.dirty.borrow().round;
        let of = |track: &PageRange| {
            let track = *track;
            let within = move |page: &PageNo| track.contains(*page);
            let first = round.next(track.first).filter(within);
            std::iter::successors(first, move |page| round.next(PageNo(page.0 + 1)).filter(within))
        };
        tracks.iter().flat_map(of).collect()
    }
}
