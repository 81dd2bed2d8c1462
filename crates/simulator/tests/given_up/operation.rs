//! The operations that are given up, and their results.
use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use tantalum_base::{
    Error, ErrorKind, Limits, PageDevice, PageNo, PageRange, Payload, Result, Stamp,
};
use tantalum_runtime::LifeCycle;

/// Number of pages that each operation concerns.
pub const PAGES: u64 = 4;
/// The index of the one that is written again after the operation.
pub const REWRITTEN: u64 = 1;
/// The first page of the contents that are shared.
pub const RIGHT: u64 = 80;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Read,
    Write,
    Flush,
    Trim,
    Share,
    Begin,
    Commit,
    Abort,
    Close,
}

pub fn stamp(page: u64, count: u64) -> Stamp {
    Stamp::new(PageNo(page), count)
}

/// Polls `future` up to `polls` times and then drops it; returns its output if it ended by then.
pub async fn give_up<T>(polls: u32, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut polled = 0;
    std::future::poll_fn(|context| {
        polled += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if polled >= polls => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

impl Operation {
    pub const ALL: [Operation; 9] = [
        Operation::Read,
        Operation::Write,
        Operation::Flush,
        Operation::Trim,
        Operation::Share,
        Operation::Begin,
        Operation::Commit,
        Operation::Abort,
        Operation::Close,
    ];

    /// Whether a device supports it.
    pub fn is_offered(self, limits: &Limits) -> bool {
        match self {
            Operation::Share => limits.share_pairs_max > 0,
            Operation::Begin | Operation::Commit | Operation::Abort => limits.transactions_max > 0,
            _ => true,
        }
    }

    /// The contents of pages `first` to `first + PAGES` after it; before, each has count 1.
    pub fn leaves(self, first: u64) -> Vec<Stamp> {
        let leaves = |at: u64| match self {
            Operation::Write | Operation::Commit => stamp(first + at, 2),
            Operation::Trim => Stamp::zero(),
            Operation::Share if at < PAGES - 1 => stamp(RIGHT + at, 1),
            _ => stamp(first + at, 1),
        };
        (0..PAGES).map(leaves).collect()
    }

    /// Starts it and gives it up after `polls` polls; returns whether it ended.
    pub async fn give_up<D: LifeCycle + PageDevice<Page = Stamp>>(
        self,
        device: &D,
        first: u64,
        polls: u32,
    ) -> Result<bool> {
        let range = PageRange::new(PageNo(first), PAGES);
        let pages: Vec<Stamp> = (first..first + PAGES).map(|page| stamp(page, 2)).collect();
        let ended = match self {
            Operation::Read => {
                let mut out = vec![Stamp::zero(); PAGES as usize];
                give_up(polls, device.read(range.first, &mut out, None)).await
            }
            Operation::Write if device.limits().atomic_write_pages_max < PAGES as u32 => {
                let write = async {
                    for (page, content) in range.iter().zip(&pages) {
                        device.write(page, std::slice::from_ref(content), None).await?;
                    }
                    Ok(())
                };
                give_up(polls, write).await
            }
            Operation::Write => give_up(polls, device.write(range.first, &pages, None)).await,
            Operation::Flush => give_up(polls, device.flush()).await,
            Operation::Trim => give_up(polls, device.trim(range)).await,
            Operation::Share => {
                let pair = |at: u64| (PageNo(first + at), PageNo(RIGHT + at));
                let pairs: Vec<_> = (0..PAGES - 1).map(pair).collect();
                give_up(polls, device.share(&pairs)).await
            }
            Operation::Begin => {
                let begun = give_up(polls, device.begin()).await;
                if let Some(Ok(tx)) = &begun {
                    device.abort(*tx).await?;
                }
                begun.map(|begun| begun.map(|_| ()))
            }
            Operation::Commit | Operation::Abort => {
                let tx = device.begin().await?;
                device.write(range.first, &pages, Some(tx)).await?;
                let ended = match self {
                    Operation::Commit => give_up(polls, device.commit(tx)).await,
                    _ => give_up(polls, device.abort(tx)).await,
                };
                if ended.is_none() {
                    // It may still be open.
                    match device.abort(tx).await.map_err(|error| error.kind()) {
                        Ok(()) | Err(ErrorKind::UnknownTransaction) => {}
                        Err(kind) => return Err(Error::new(kind, "aborting what was given up")),
                    }
                    // A commit in progress holds its pages until its end, which must come.
                    device.until_released(range).await;
                }
                ended
            }
            Operation::Close => give_up(polls, device.close()).await,
        };
        ended.transpose().map(|ended| ended.is_some())
    }
}
