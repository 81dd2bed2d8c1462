//! Records changes of a medium.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::Result;
use tantalum_media::{ZoneLayer, ZoneMedia, ZoneOperation};

/// Forwards everything and records what changes the medium.
pub struct Changes<M> {
    inner: M,
    noted: Rc<RefCell<Vec<String>>>,
}

impl<M: ZoneMedia> Changes<M> {
    /// Wraps `inner`; returns the records too.
    pub fn new(inner: M) -> (Self, Rc<RefCell<Vec<String>>>) {
        let noted = Rc::new(RefCell::new(Vec::new()));
        (Changes { inner, noted: Rc::clone(&noted) }, noted)
    }

    fn note(&self, change: String) {
        self.noted.borrow_mut().push(change);
    }
}

impl<M: ZoneMedia> ZoneLayer for Changes<M> {
    type Inner = M;

    fn inner(&self) -> &M {
        &self.inner
    }

    async fn around<T>(
        &self,
        operation: ZoneOperation<'_>,
        run: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match operation {
            ZoneOperation::Append { zone, spares, .. } => {
                self.note(format!("append of {} pages to {zone:?}", spares.len()));
            }
            ZoneOperation::Reset(zone) => self.note(format!("reset of {zone:?}")),
            ZoneOperation::WriteAnchor(number) => self.note(format!("anchor {number}")),
            ZoneOperation::PersistMapping => self.note("the medium's own mapping".to_owned()),
            _ => {}
        }
        run.await
    }
}
