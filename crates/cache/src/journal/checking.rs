//! Checks a journal: the contents of the epoch that is committed in it, and both copies of its
//! head. If the head says that no epoch is committed, the contents are meaningless and are not
//! checked.
use super::Journal;
use super::head::{COPIES_AT, damaged_copy};
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageNo, Payload, Result};
use tantalum_media::BlockStore;
use tantalum_runtime::life_cycle::is_damage;
use tantalum_runtime::{DevicePart, Finding};

const NAMES: [&str; 2] = ["first copy", "second copy"];

impl<S: BlockStore, P: Payload> Journal<S, P> {
    /// Finds content that is damaged or cannot be read. The journal must be in the state in which
    /// it was opened.
    ///
    /// # Errors
    /// Only errors that no finding can express.
    pub async fn check(&self) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        for at in 0..self.with_committed(|committed| committed.index.entries.len()).unwrap_or(0) {
            match self.content(at).await {
                Ok(_) => {}
                Err(error) if is_damage(error.kind()) => {
                    findings.push(self.finding_at(at, &error));
                }
                Err(error) if error.kind() == ErrorKind::Io => {
                    findings.push(self.finding_at(at, &error).unanswered());
                }
                Err(error) => return Err(error),
            }
        }
        let mut copies = [Vec::new(), Vec::new()];
        for ((copy, at), name) in copies.iter_mut().zip(COPIES_AT).zip(NAMES) {
            match self.store.read(at, self.store.buffer(PAGE_BYTES)).await {
                Ok(buf) => {
                    *copy = buf.to_vec();
                    self.store.recycle(buf);
                }
                Err(error) => {
                    let place = format!("journal's head, {name}");
                    findings.push(Finding::unread(DevicePart::Journal, place, &error));
                }
            }
        }
        if let [Some(first), Some(second)] =
            copies.map(|copy| <[u8; PAGE_BYTES]>::try_from(copy).ok())
            && let Some(damaged) = damaged_copy([&first, &second])
        {
            let place = format!("journal's head, {}", NAMES[damaged]);
            let problem = "it is damaged: the other copy is used";
            findings.push(Finding::not_in_force(DevicePart::Journal, place, problem));
        }
        Ok(findings)
    }

    /// The finding that the entry at index `at` has this `error`.
    fn finding_at(&self, at: usize, error: &Error) -> Finding {
        let page = self.with_committed(|committed| committed.index.entries[at].page);
        let place = format!("journal, page {}", page.unwrap_or(PageNo(0)));
        Finding::new(DevicePart::Journal, place, error.to_string())
    }
}
