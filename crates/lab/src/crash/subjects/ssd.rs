//! An SSD with a write cache of any kind.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::Result;
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::ZoneMedia;
use tantalum_runtime::Virtual;
use tantalum_ssd::{CacheKind, Ssd, SsdOptions, WriteCache};

use crate::crash::subject::{Coverage, Opening, Subject};

/// Pages of the write cache: small, so that it fills.
const CACHE_PAGES: u32 = 24;

/// [`Ssd`] with one kind of write cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SsdSubject {
    /// How the write cache keeps its promise.
    pub cache: CacheKind,
}

/// The content of a durable cache, once there is a device.
type KeptCache<P> = Rc<RefCell<Option<Rc<RefCell<WriteCache<P>>>>>>;

impl SsdSubject {
    fn options(&self) -> SsdOptions {
        let mut options = SsdOptions::new(self.cache, CACHE_PAGES);
        options.write_back_start_pages = 8;
        options.write_backs_in_flight = 2;
        options
    }

    /// The device over `ftl`, with the cache that survived; its cache is what survives next.
    fn over<M: ZoneMedia>(&self, ftl: Rc<Ftl<M>>, kept: &KeptCache<M::Page>) -> Result<Rc<Ssd<M>>> {
        let survived = kept.borrow_mut().take();
        let ssd = Rc::new(Ssd::new(ftl, self.options(), survived)?);
        if self.cache == CacheKind::Durable {
            *kept.borrow_mut() = Some(ssd.write_cache());
        }
        Ok(ssd)
    }
}

/// Checkpoints often enough that a small load crosses several.
pub(super) fn ftl_options(pages: u64) -> FtlOptions {
    FtlOptions { checkpoint_interval_slots: 64, ..FtlOptions::new(pages) }
}

impl<M: ZoneMedia> Subject<M> for SsdSubject {
    type Device = Ssd<M>;
    type Kept = KeptCache<M::Page>;

    fn text(&self) -> String {
        let cache = match self.cache {
            CacheKind::Durable => "durable",
            CacheKind::WriteThrough => "through",
            CacheKind::Ordered => "ordered",
            CacheKind::Volatile => "volatile",
        };
        format!("ssd:cache={cache}")
    }

    fn kept(&self) -> Self::Kept {
        Rc::default()
    }

    async fn format(&self, opening: Opening<M, Self::Kept>) -> Result<Rc<Ssd<M>>> {
        let ftl = Ftl::format(opening.media, ftl_options(opening.pages)).await?;
        self.over(ftl, &opening.kept)
    }

    async fn reopen(&self, opening: Opening<M, Self::Kept>) -> Result<Rc<Ssd<M>>> {
        let (ftl, _) = Ftl::recover(opening.media, ftl_options(opening.pages)).await?;
        self.over(ftl, &opening.kept)
    }

    fn start(&self, runtime: &Virtual, device: &Rc<Ssd<M>>) {
        device.start(runtime);
    }

    async fn close(&self, device: &Ssd<M>) -> Result<()> {
        device.close().await
    }

    fn validate(&self, device: &Ssd<M>) {
        device.ftl().validate();
    }

    fn coverage(&self, device: &Ssd<M>) -> Coverage {
        let ftl = device.statistics().ftl;
        Coverage { cleaned: ftl.zones_cleaned, checkpoints: ftl.checkpoints }
    }
}
