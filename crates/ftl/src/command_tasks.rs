//! Commands that run to their end even if their caller drops the future.
//!
//! A change that has its place in the log must be written: later changes wait for it, and a dump
//! must not find half of it. So the body of a command that changes the log runs as a task of the
//! device, and the caller only waits. The first step runs in the caller's first poll, which gives
//! the command its place in the order of commands, as with any future of a device.
//!
//! A task costs at least two allocations per command. So writes to a write cache, which enter it in
//! one step, do not become tasks; the flushers that write them to the log are tasks anyway.
use std::cell::{OnceCell, RefCell};
use std::future::Future;
use std::rc::{Rc, Weak};
use std::task::Poll;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::sync::WaitQueue;
use tantalum_runtime::{Body, Runtime};

use crate::fault_points::Fault;

/// Adds a task to the runtime on which the device was started.
type Detach = Box<dyn Fn(&'static str, Body)>;

/// Runs the commands of device `D` as tasks.
pub struct CommandTasks<D> {
    started: OnceCell<(Weak<D>, Detach)>,
}

/// The result of a command.
struct Outcome<T> {
    result: RefCell<Option<T>>,
    ended: WaitQueue,
}

impl<D> Default for CommandTasks<D> {
    fn default() -> Self {
        CommandTasks::new()
    }
}

impl<D> CommandTasks<D> {
    /// A runner for a device that is not started yet.
    pub fn new() -> Self {
        CommandTasks { started: OnceCell::new() }
    }

    /// Runs commands of `device` on `runtime` from now on; later calls change nothing.
    pub fn start(&self, device: &Rc<D>, runtime: &impl Runtime) {
        let runtime = runtime.clone();
        self.started.get_or_init(|| {
            let detach: Detach = Box::new(move |name, body| runtime.detach(name, body));
            (Rc::downgrade(device), detach)
        });
    }

    /// Runs the future that `command` makes for the device. It runs to completion even if the
    /// caller drops this future after its first poll.
    ///
    /// # Errors
    /// Those of the command; `InvalidInput` before [`start`](Self::start).
    pub async fn run<T: 'static, F: Future<Output = Result<T>> + 'static>(
        &self,
        name: &'static str,
        command: impl FnOnce(Rc<D>) -> F,
    ) -> Result<T> {
        let started = self.started.get();
        let Some((device, detach)) =
            started.and_then(|(device, detach)| Some((device.upgrade()?, detach)))
        else {
            let context = "the device is not started, so it cannot run commands";
            return Err(Error::new(ErrorKind::InvalidInput, context));
        };
        let mut body = Box::pin(command(device));
        if Fault::GivenUpMidway.is_planted() {
            return body.await;
        }
        let first = std::future::poll_fn(|context| {
            Poll::Ready(match body.as_mut().poll(context) {
                Poll::Ready(result) => Some(result),
                Poll::Pending => None,
            })
        });
        if let Some(result) = first.await {
            return result;
        }
        let ended = WaitQueue::new("a command's end");
        let outcome = Rc::new(Outcome { result: RefCell::new(None), ended });
        let told = Rc::clone(&outcome);
        let task = async move {
            let result = body.await;
            *told.result.borrow_mut() = Some(result);
            told.ended.wake_all();
        };
        detach(name, Box::pin(task));
        outcome.ended.until(|| outcome.result.borrow_mut().take()).await
    }
}
