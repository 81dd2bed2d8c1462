//! `tantalum top ADDRESS`, and `tantalum top VOLUME.toml`.
mod fields;
mod screen;
mod view;

use super::told_counters::scrape;
use anyhow::bail;
use screen::Screen;
use std::fmt::{Display, Formatter};
use std::future::Future;
use std::io::IsTerminal;
use std::path::Path;
use std::pin::{Pin, pin};
use tantalum_console::Verdict;
use tantalum_console::output::print_text;
use tantalum_metrics::{Scrape, fetch};
use tantalum_report::{OutputFormat, Table};
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::live::net::{Address, Stream};
use tantalum_runtime::live::signal::terminated;
use tantalum_runtime::{First, Live, Runtime, first};
use tantalum_volume::VolumeConfig;

/// Interval at which the size of the terminal is checked.
const RESIZE_NS: u64 = 200_000_000;

/// Watch a running server, or a program that has a volume open: rates, latencies, hits, cleaning, errors
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Address of the server's metrics (serve --metrics): unix:/path, 127.0.0.1:9809 or [::1]:9809; or the VOLUME.toml
    /// of a volume that a program, such as SQLite, has opened itself
    address: String,
    /// Seconds between two updates
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = interval_ns)]
    interval: u64,
    /// Print this many intervals one below the other, even on a terminal, then end
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// table, csv or json (one object per line; fields: docs/output.md)
    #[arg(long, default_value = "table")]
    format: String,
}

const AFTER_HELP: &str = "On a terminal the view is redrawn in place until Ctrl-C. Numbers are of \
the last interval, errors since the server was started; percentiles are read from a histogram \
(docs/metrics.md). Metrics that the server does not publish are not shown. For a program that \
opened the volume itself, top shows its requests and transactions, updated a few times a second \
while it works. The exit status is 1 if the server does not answer any more, or the program has \
closed the volume.

Examples:
  tantalum top 127.0.0.1:9809
  tantalum top unix:/tmp/metrics.sock --interval 10 --count 6 --format json
  tantalum top vol/VOLUME.toml";

/// Seconds as nanoseconds.
fn interval_ns(text: &str) -> anyhow::Result<u64> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=86_400.0).contains(&seconds) => Ok((seconds * 1e9) as u64),
        _ => bail!("accepted: 0.1 to 86400"),
    }
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let format = OutputFormat::parse(&args.format)?;
    let watched = watched(&args.address)?;
    let live = Live::new(LiveOptions::default())?;
    let watch = Watch { live: live.clone(), watched, format };
    let (interval_ns, count) = (args.interval, args.count);
    live.run(async move { watch.run(interval_ns, count).await })
}

/// Parses `text`: an address, or the configuration of a volume.
fn watched(text: &str) -> anyhow::Result<Watched> {
    match Path::new(text) {
        path if path.is_file() => Ok(Watched::Volume(Box::new(VolumeConfig::read(path)?))),
        _ => Ok(Watched::Server(text.parse()?)),
    }
}

/// The watched server or program.
enum Watched {
    /// The server that serves its metrics at this address.
    Server(Address),
    /// The program that has this volume open, and publishes its counters beside the configuration.
    Volume(Box<VolumeConfig>),
}

impl Display for Watched {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Watched::Server(address) => address.fmt(f),
            Watched::Volume(config) => config.path.display().fmt(f),
        }
    }
}

struct Watch {
    live: Live,
    watched: Watched,
    format: OutputFormat,
}

impl Watch {
    async fn run(self, interval_ns: u64, count: Option<u64>) -> anyhow::Result<Verdict> {
        let mut stop = pin!(terminated(&self.live)?);
        // A failure of the first scrape means a wrong address.
        let Some(first) = unless(stop.as_mut(), self.scrape()).await else {
            return Ok(Verdict::Good);
        };
        let mut before = first?;
        let on_terminal = count.is_none() && self.format == OutputFormat::Table;
        let mut screen =
            if on_terminal && std::io::stdout().is_terminal() { Screen::take()? } else { None };
        let mut shown =
            view::lines(&self.watched.to_string(), &before, &fields::fields(None, &before));
        if let Some(screen) = &mut screen {
            screen.draw(&shown)?;
        }
        let mut next_ns = self.live.now_ns();
        let mut printed = 0;
        let gone = loop {
            next_ns = next_ns.max(self.live.now_ns().saturating_sub(interval_ns)) + interval_ns;
            let waited = self.wait(next_ns, screen.as_mut(), &shown);
            let Some(waited) = unless(stop.as_mut(), waited).await else { break None };
            waited?;
            let Some(scraped) = unless(stop.as_mut(), self.scrape()).await else { break None };
            let now = match scraped {
                Ok(now) => now,
                Err(error) => break Some(error),
            };
            let table = fields::fields(Some(&before), &now);
            shown = view::lines(&self.watched.to_string(), &now, &table);
            match &mut screen {
                Some(screen) => screen.draw(&shown)?,
                None => self.print(&table, &shown, printed == 0)?,
            }
            before = now;
            printed += 1;
            if count == Some(printed) {
                break None;
            }
        };
        if screen.take().is_some() {
            // The last values stay on the terminal.
            print_text(&(shown.join("\n") + "\n"))?;
        }
        Ok(match gone {
            None => Verdict::Good,
            Some(error) => {
                eprintln!("tantalum: {} does not answer any more: {error}", self.watched);
                Verdict::FoundWrong
            }
        })
    }

    /// Reads the metrics once.
    async fn scrape(&self) -> tantalum_base::Result<Scrape> {
        let address = match &self.watched {
            Watched::Server(address) => address,
            Watched::Volume(config) => return scrape(config),
        };
        let stream = Stream::connect(&self.live, address)?;
        let text = fetch(&self.live, stream).await;
        text.and_then(|text| Scrape::parse(&text)).map_err(|error| {
            let context = format!("asking {address} for metrics");
            error.wrap(context)
        })
    }

    /// Waits until `until_ns`, and redraws if the size of the terminal changes meanwhile.
    async fn wait(
        &self,
        until_ns: u64,
        mut screen: Option<&mut Screen>,
        shown: &[String],
    ) -> std::io::Result<()> {
        loop {
            let now_ns = self.live.now_ns();
            let Some(screen) = screen.as_mut().filter(|_| now_ns < until_ns) else { break };
            self.live.sleep_until(until_ns.min(now_ns + RESIZE_NS)).await;
            if screen.is_resized() {
                screen.draw(shown)?;
            }
        }
        self.live.sleep_until(until_ns).await;
        Ok(())
    }

    fn print(&self, table: &Table, lines: &[String], is_first: bool) -> anyhow::Result<()> {
        let text = match self.format {
            OutputFormat::Table => lines.join("\n") + "\n\n",
            OutputFormat::Json => table.to_json_lines()?,
            OutputFormat::Csv if is_first => table.to_csv(),
            OutputFormat::Csv => {
                table.to_csv().lines().skip(1).map(|it| it.to_owned() + "\n").collect()
            }
        };
        Ok(print_text(&text)?)
    }
}

/// The outcome of `work`; `None` if `stop` is ready first.
async fn unless<T>(
    stop: Pin<&mut impl Future<Output = ()>>,
    work: impl Future<Output = T>,
) -> Option<T> {
    match first(stop, work).await {
        First::One(()) => None,
        First::Other(done) => Some(done),
    }
}
