//! Copies pages home: the newest versions that lie in the oldest zone of the log go to their home
//! locations; then the zone is reset.
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageNo, Payload, Result, SlotNo};
use tantalum_media::ZoneMedia;

use super::RedoLog;
use super::index::Logged;

/// Number of pages copied in one batch.
const COPY_PAGES: usize = 1024;

/// The content of the state page, which follows the host's pages: all transactions up to `home` are
/// home.
pub(super) fn encode_state<P: Payload>(page: PageNo, home: u64) -> P {
    let mut bytes = [0; PAGE_BYTES];
    bytes[..8].copy_from_slice(&(page.0 + 1).to_le_bytes());
    bytes[8..16].copy_from_slice(&home.to_le_bytes());
    P::from_bytes(&bytes)
}

/// Decodes the content from [`encode_state`]; 0 if the page was never written.
pub(super) fn decode_state<P: Payload>(page: PageNo, content: &P) -> Result<u64> {
    if *content == P::zero() {
        return Ok(0);
    }
    let number = |bytes: &[u8]| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[8..16]);
        u64::from_le_bytes(word)
    };
    content.bytes().map(number).or_else(|| content.token(page)).ok_or_else(|| {
        Error::new(ErrorKind::Corrupt, format!("page {page}, the redo log's state: {content:?}"))
    })
}

impl<P: Payload> RedoLog<P> {
    /// Copies the oldest zone home whenever the log fills up; ends when the device fails.
    pub(super) async fn run_copier(&self) {
        loop {
            let due = || {
                if self.check_failed().is_err() {
                    return Some(None);
                }
                self.log.oldest_due().map(Some)
            };
            let Some(last) = self.log.filling.until(due).await else { return };
            if let Err(error) = self.copy_home(last).await {
                return self.fail(&error);
            }
        }
    }

    /// Copies home those pages of transactions up to `last` that no later transaction replaced.
    pub(super) async fn copy_home(&self, last: u64) -> Result<()> {
        let _turn = self.home_turn.acquire(1).await;
        let idle = || {
            if let Err(error) = self.check_failed() {
                return Some(Err(error));
            }
            (!self.index.borrow().is_in_flight(last)).then_some(Ok(()))
        };
        self.commits_ended.until(idle).await?;
        if last > self.home.get() {
            let oldest = self.index.borrow().oldest(last);
            self.write_home(oldest, last).await?;
            self.index.borrow_mut().forget(last);
            self.home.set(last);
        }
        self.log.release(last).await
    }

    /// Writes `versions` to their home locations; the last batch also writes the state.
    async fn write_home(&self, versions: Vec<(PageNo, Logged<P>)>, last: u64) -> Result<()> {
        let pages = self.read_back(versions).await?;
        copy(&self.ftl, &pages, last).await?;
        self.count(|counts| counts.pages_home += pages.len() as u64);
        Ok(())
    }

    /// The contents of `versions`, from memory or from the log.
    async fn read_back(&self, versions: Vec<(PageNo, Logged<P>)>) -> Result<Vec<(PageNo, P)>> {
        let missing = || versions.iter().filter(|(_, logged)| logged.content.is_none());
        let slots: Vec<SlotNo> = missing().map(|(_, logged)| logged.slot).collect();
        let expected = missing().map(|(page, logged)| (*page, logged.checksum));
        let contents = self.log.read(&slots, expected).await?;
        self.count(|counts| counts.pages_read_back += slots.len() as u64);
        let mut contents = contents.into_iter();
        let pages = versions
            .into_iter()
            .filter_map(|(page, logged)| Some((page, logged.content.or_else(|| contents.next())?)));
        Ok(pages.collect())
    }
}

/// Writes `pages` home. The last batch also records that all transactions up to `last` are home.
pub(super) async fn copy<M: ZoneMedia>(
    ftl: &tantalum_ftl::Ftl<M>,
    pages: &[(PageNo, M::Page)],
    last: u64,
) -> Result<()> {
    let state = PageNo(ftl.options().pages - 1);
    let most = COPY_PAGES.min(ftl.batch_pages_max() as usize).max(2) - 1;
    let mut chunks = pages.chunks(most).peekable();
    while let Some(chunk) = chunks.next() {
        if chunks.peek().is_some() {
            ftl.write(chunk, false).await?;
        } else {
            let mut batch = chunk.to_vec();
            batch.push((state, encode_state(state, last)));
            return ftl.write(&batch, true).await;
        }
    }
    ftl.write(&[(state, encode_state(state, last))], true).await
}
