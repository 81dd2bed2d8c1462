//! Options that several commands take: traces, sizes of caches, clients.
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use tantalum_base::size::{Size, human_bytes};
use tantalum_base::{PAGE_BYTES, Result};
use tantalum_console::progress::Progress;
use tantalum_policy::{PolicySpec, Request};
use tantalum_report::{Report, Value, number};
use tantalum_runtime::live::memory;
use tantalum_runtime::supervision;
use tantalum_trace::layout::TRUNCATIONS;
use tantalum_trace::{
    Account, Expand, Expression, Objects, OpenOptions, PageEvent, PageEvents, open,
};

/// The trace, and how to read it.
#[derive(clap::Args, Debug)]
pub struct TraceArgs {
    /// A trace file (plain, .gz or .zst), - for the standard input, a generator (zipf:pages=1m), or parts of traces
    /// (concat:a.csv@50%+b.csv@1m..2m)
    pub trace: PathBuf,
    /// Format of the trace, if its beginning does not identify it: page_csv, block_csv, page_binary, plain_text,
    /// csv:obj_id=2, cachelib_kv, oracle_general, lis, msr, spc, alibaba, tencent, vscsi, blkparse:action=Q, fiu
    /// (docs/traces.md)
    #[arg(long, alias = "from", value_name = "FORMAT")]
    trace_format: Option<String>,
    /// Size of the pages that a block trace is cut into, and of the pages of any trace in a buffer above a device:
    /// bytes, or 8KiB
    #[arg(long, value_name = "SIZE", default_value = "4096", value_parser = page_bytes)]
    page_size: u32,
    /// Requests of several pages: no (one request each), yes (one request per page), first (only their first page)
    #[arg(long, value_name = "HOW", default_value = "no", value_parser = Expand::parse)]
    expand: Expand,
    /// Volumes of a block trace (disks, devices, kinds of file) to read; by default all
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    volume: Vec<String>,
    /// Renumber the pages from 0, in the order of their first use
    #[arg(long)]
    renumber: bool,
    /// Objects of a trace of objects (csv, cachelib_kv, oracle_general): one-page (each is a page, ratios are of
    /// objects) or as-pages (as many pages of --page-size as its size needs, ratios are of bytes)
    #[arg(long, value_name = "HOW", default_value = "one-page", value_parser = Objects::parse)]
    objects: Objects,
    #[arg(skip)]
    account: Account,
}

/// Bytes of a page in the notations of users: `8192`, `8KiB`, `8k`.
fn page_bytes(text: &str) -> anyhow::Result<u32> {
    let bytes = match Size::parse(text)? {
        Size::Bytes(bytes) | Size::Count(bytes) => u32::try_from(bytes).ok(),
        Size::Share(_) => None,
    };
    let sound = bytes.filter(|bytes| bytes.is_power_of_two() && (512..=1 << 20).contains(bytes));
    sound.with_context(|| "accepted: powers of two from 512 to 1MiB".to_owned())
}

impl TraceArgs {
    /// The options for the trace crate.
    pub fn options(&self) -> OpenOptions {
        OpenOptions {
            format: self.trace_format.clone(),
            page_bytes: self.page_size,
            expand: self.expand,
            volumes: self.volume.clone(),
            renumber: self.renumber,
            objects: self.objects,
            account: self.account.clone(),
            rescue: None,
        }
    }

    /// Adds to `report` the number of requests in the trace as it was read, the data that were left out, and the
    /// parameters of a generated trace, which its name in the rows lacks.
    pub fn tell(&self, report: &mut Report) {
        self.tell_read(report);
        let workload = self.expression().ok().and_then(|trace| trace.workload());
        report.fields.extend(workload.map(|workload| ("workload", Value::from(workload))));
    }

    fn tell_read(&self, report: &mut Report) {
        let Some(requests) = self.account.requests() else { return };
        report.fields.push(("trace_requests", requests.into()));
        let pages = report.table.index("requests").zip(report.table.rows().first());
        if let Some((at, row)) = pages
            && let Value::Count(pages) = row[at]
            && pages != requests
        {
            let (requests, pages) = (number::thousands(requests), number::thousands(pages));
            report.notes.push(format!("{requests} requests of the trace ask for {pages} pages"));
        }
        let dropped = self.account.dropped();
        if dropped.is_empty() {
            return;
        }
        let told = self.dropped_in_words();
        report.notes.push(format!("left out of the trace: {told}{}", self.remedy()));
        report.fields.push(("dropped", dropped.join(", ").into()));
    }

    /// The data of the trace that were left out, in words; `None` if there are none, or the trace was not read to its
    /// end.
    pub fn left_out(&self) -> Option<String> {
        let told = self.dropped_in_words();
        (!told.is_empty()).then(|| format!("without {told} of the trace{}", self.remedy()))
    }

    /// The data that were left out, with their number if it is known: `times, 46 truncations`.
    fn dropped_in_words(&self) -> String {
        let truncations = self.account.truncations();
        let words = |kind: &'static str| match truncations {
            1 if kind == TRUNCATIONS => "1 truncation".to_owned(),
            2.. if kind == TRUNCATIONS => format!("{} {kind}", number::thousands(truncations)),
            _ => kind.to_owned(),
        };
        let told: Vec<String> = self.account.dropped().into_iter().map(words).collect();
        told.join(", ")
    }

    fn remedy(&self) -> &'static str {
        match self.account.dropped().contains(&"sizes") {
            true => {
                " (each object is one page; --objects as-pages makes as many of it as its size needs)"
            }
            false => "",
        }
    }

    /// The trace expression of the user.
    pub fn expression(&self) -> Result<Expression> {
        Expression::parse(&self.trace)
    }

    /// The files that are read: those of the trace, and their maps.
    pub fn files(&self) -> Result<Vec<PathBuf>> {
        let expression = self.expression()?;
        let maps = expression.files().into_iter().map(open::map_path).filter(|map| map.exists());
        let maps: Vec<PathBuf> = maps.collect();
        Ok(expression.files().into_iter().map(Path::to_owned).chain(maps).collect())
    }

    /// Bytes of a page of the trace.
    pub fn page_bytes(&self) -> u32 {
        self.page_size
    }

    /// These sizes in pages of the trace, which has `distinct` pages.
    pub fn cache_pages(&self, sizes: &[CacheSize], distinct: u64) -> anyhow::Result<Vec<u32>> {
        self.pages_up_to(sizes, distinct, u32::MAX - 1)
    }

    fn pages_up_to(
        &self,
        sizes: &[CacheSize],
        distinct: u64,
        most: u32,
    ) -> anyhow::Result<Vec<u32>> {
        let page_bytes = u64::from(self.page_size);
        sizes.iter().map(|size| size.pages(page_bytes, distinct, most)).collect()
    }

    /// The same, for caches that are run with a policy.
    ///
    /// # Errors
    /// If the tables of one of them exceed the memory.
    pub fn policy_pages(&self, sizes: &[CacheSize], distinct: u64) -> anyhow::Result<Vec<u32>> {
        let pages = self.pages_up_to(sizes, distinct, PolicySpec::FRAMES_MAX)?;
        let limit_bytes = memory::limit_bytes();
        for (size, pages) in sizes.iter().zip(&pages) {
            if u64::from(*pages) * POLICY_BYTES > limit_bytes {
                bail!(
                    "--size: {} is a cache of {pages} pages, whose tables exceed the {} MiB of memory that this process may use: give a smaller size",
                    size.text,
                    limit_bytes >> 20
                );
            }
        }
        Ok(pages)
    }

    /// The name of the trace in rows.
    pub fn name(&self) -> String {
        open::trace_name(&self.trace)
    }

    /// The seed of a generated trace; 0 for any other, which has no randomness.
    pub fn seed(&self) -> Result<u64> {
        self.expression()?.seed()
    }

    /// Refuses a generated trace whose requests exceed the memory, before it makes any of them: no trace that is kept in
    /// memory takes less than this.
    pub fn check_fits(&self) -> anyhow::Result<()> {
        let Some(requests) = self.expression()?.requests()? else { return Ok(()) };
        let bytes = requests.saturating_mul(size_of::<Request>() as u64);
        let limit_bytes = memory::limit_bytes();
        if bytes > limit_bytes / 2 {
            bail!(
                "{}: {} requests take {}, and the trace does not fit into half of the {} of memory that this process may use: \
                 give fewer requests, or more memory; `curve --sample` needs little",
                self.trace.display(),
                number::thousands(requests),
                human_bytes(bytes),
                human_bytes(limit_bytes)
            );
        }
        Ok(())
    }

    /// The trace's page events, with progress shown as a count of `what`; `Interrupted` if a signal requests the end.
    pub fn events(&self, what: &'static str) -> Result<impl Iterator<Item = Result<PageEvent>>> {
        self.events_as(&self.options(), what)
    }

    /// The same for a device, where each page of the trace is one page of the device: for a trace of page numbers, any
    /// other `--page-size` is refused, as it would have no effect.
    pub fn events_for_pages(
        &self,
        what: &'static str,
    ) -> anyhow::Result<impl Iterator<Item = Result<PageEvent>>> {
        let events = self.expression()?.open(&self.options())?;
        if self.page_size != PAGE_BYTES as u32 && !events.is_of_bytes() {
            bail!(
                "--page-size {}: {} has page numbers, and no bytes to cut into pages; without a \
                 buffer above the device each is a page of the device, of {PAGE_BYTES} bytes \
                 (--policy and --size put a buffer of such pages above, and --objects as-pages \
                 cuts objects that have sizes)",
                self.page_size,
                self.trace.display()
            );
        }
        Ok(with_progress(events, what))
    }

    /// The same as [`events`](Self::events), with these `options`.
    pub fn events_as(
        &self,
        options: &OpenOptions,
        what: &'static str,
    ) -> Result<impl Iterator<Item = Result<PageEvent>> + use<>> {
        Ok(with_progress(self.expression()?.open(options)?, what))
    }

    /// The settings that go into a configuration hash. The folder of a file is not part of it.
    pub fn config(&self) -> Vec<String> {
        let trace = self.expression().map_or_else(|_| self.name(), |trace| trace.config());
        let format = self.trace_format.as_deref().unwrap_or("any");
        let mut parts = vec![
            format!("trace={trace}"),
            format!("from={format}"),
            format!("page_size={}", self.page_size),
        ];
        // Defaults are left out, so that older hashes stay the same.
        if self.expand != Expand::No {
            parts.push(format!("expand={:?}", self.expand));
        }
        parts.extend(self.volume.iter().map(|name| format!("volume={name}")));
        parts.extend(self.renumber.then(|| "renumber".to_owned()));
        parts.extend((self.objects == Objects::AsPages).then(|| "objects=as-pages".to_owned()));
        parts
    }
}

/// Adds progress to these events; `Interrupted` if a signal requests the end.
fn with_progress(
    events: PageEvents,
    what: &'static str,
) -> impl Iterator<Item = Result<PageEvent>> + use<> {
    let events = events.map(|event| supervision::check_stop().and(event));
    Progress::counter(what).count(events)
}

/// The hit ratio and the miss ratio of `requests` with `misses`, with six decimals: as many as are meaningful. An empty
/// trace has no ratios.
pub fn ratios(requests: u64, misses: u64) -> (Value, Value) {
    let share = |part: u64| Value::rounded(part as f64 / requests as f64, 1e6);
    (share(requests - misses), share(misses))
}

/// Most clients of a replay: each needs memory, so there must be a limit.
pub const CLIENTS_MAX: u32 = 1 << 16;

/// Parses a number of clients.
pub fn clients(text: &str) -> anyhow::Result<u32> {
    match text.parse() {
        Ok(clients @ 1..=CLIENTS_MAX) => Ok(clients),
        _ => bail!("accepted: 1 to {CLIENTS_MAX}"),
    }
}

/// Refuses `policies` that must know the requests to come, if `clients` share these.
pub fn check_future(policies: &[PolicySpec], clients: u32) -> anyhow::Result<()> {
    match policies.iter().find(|policy| policy.needs_future()) {
        Some(policy) if clients > 1 => bail!(
            "--clients {clients}: policy {} must know the order of all requests, which several clients make only as they \
             run: leave --clients out, or name other policies",
            policy.text()
        ),
        _ => Ok(()),
    }
}

/// Bytes of memory that a policy has for each page of its cache, at the least.
const POLICY_BYTES: u64 = 48;

/// A cache size: the user's text, for messages, and the parsed size.
pub struct CacheSize {
    text: String,
    size: Size,
}

impl CacheSize {
    /// Parses sizes separated by commas: `1k,64MiB,10%`.
    pub fn parse_list(text: &str) -> anyhow::Result<Vec<CacheSize>> {
        let parse = |text: &str| {
            let size = Size::parse(text);
            let share = text.trim().parse().ok().filter(|share: &f64| *share > 0.0 && *share < 1.0);
            if let (Err(error), Some(share)) = (&size, share) {
                let percent = (share * 1e8).round() / 1e6;
                bail!("--size: {error} of pages; a share of the distinct pages is {percent}%");
            }
            let size = size.context("--size")?;
            Ok(CacheSize { text: text.trim().to_owned(), size })
        };
        text.split(',').map(parse).collect()
    }

    /// The size as the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The size in pages, at most `most`; a share is a share of `distinct_pages`.
    fn pages(&self, page_bytes: u64, distinct_pages: u64, most: u32) -> anyhow::Result<u32> {
        if distinct_pages == 0 && matches!(self.size, Size::Share(_)) {
            bail!(
                "--size: {} is a share of the distinct pages, and the trace has no requests",
                self.text
            );
        }
        let pages = self.size.pages(page_bytes, distinct_pages);
        match u32::try_from(pages) {
            Ok(pages) if (1..=most).contains(&pages) => Ok(pages),
            _ => {
                bail!("--size: {} is a cache of {pages} pages; accepted: 1 to {most}", self.text)
            }
        }
    }
}

/// Reports the written trace on the standard error: the standard output may contain the trace itself. `pages` is the
/// number of pages that its reads, writes and trims name, if some name several.
pub fn tell_written(path: &Path, events: u64, pages: Option<u64>, seed: u64, config: &str) {
    let plural = if events == 1 { "" } else { "s" };
    let pages =
        pages.map_or(String::new(), |pages| format!(" of {} pages", number::thousands(pages)));
    eprintln!(
        "{}: {} event{plural}{pages}, seed {seed}, configuration {config}",
        path.display(),
        number::thousands(events)
    );
}
