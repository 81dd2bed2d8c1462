//! Part 2: kills the process that has the volume open, and cuts its power.
use crate::live::open;
use crate::load::{Model, verify};
use anyhow::{Context, ensure};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tantalum_base::Rng;
use tantalum_console::output::print_line;

/// The way in which a round ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// SIGKILL after this many acknowledgements.
    Kill { acknowledgements: u64 },
    /// A power cut at this media operation.
    PowerCut { operation: u64 },
}

/// Runs `rounds` rounds of each kind on the database of part 1, which has `transactions` transactions.
pub fn run(volume: &Path, seed: u64, transactions: i64, rounds: u32) -> anyhow::Result<()> {
    print_line("2. Killed and cut off in the middle of the load")?;
    tantalum_sqlite::register(
        "demo",
        |path: &Path| tantalum::Volume::open(path),
        Default::default(),
    )?;
    let mut rng = Rng::split(seed, "demo crashes");
    let mut model = Model::new(seed);
    let mut least = 0;
    // The last transactions may have been rolled back: read how far part 1 really came.
    {
        let connection = open(volume, "demo")?;
        least = least.max(verify(&connection, &mut model, 0, transactions)?);
    }
    for round in 0..2 * rounds {
        let end = if round % 2 == 0 {
            End::Kill { acknowledgements: 20 + rng.below(300) }
        } else {
            End::PowerCut { operation: 20 + rng.below(300) }
        };
        let (acknowledged, issued) = crash(volume, seed, end, &mut rng)?;
        let acknowledged = acknowledged.max(least);
        let connection = open(volume, "demo")?;
        let last = verify(&connection, &mut model, acknowledged, issued.max(acknowledged))?;
        connection.close().map_err(|(_, error)| error).context("closing the database")?;
        let what = match end {
            End::Kill { .. } => "SIGKILL  ".to_owned(),
            End::PowerCut { operation } => format!("power cut at media operation {operation:>3}"),
        };
        print_line(&format!(
            "   seed {seed} round {:>2}: {what:<34} acknowledged up to {acknowledged}, found {last}: whole, integrity ok",
            round + 1
        ))?;
        least = last;
    }
    print_line("   every acknowledged transaction is there, and no transaction in part\n")?;
    Ok(())
}

/// Lets a child process continue the load until `end`. Returns the last transaction that was acknowledged, and the last
/// that was begun.
fn crash(volume: &Path, seed: u64, end: End, rng: &mut Rng) -> anyhow::Result<(i64, i64)> {
    let mut command = Command::new(std::env::current_exe().context("finding this program")?);
    command.arg("demo-child").arg(volume).args(["--seed", &seed.to_string()]);
    if let End::PowerCut { operation } = end {
        command.args(["--cut-at", &operation.to_string()]);
    }
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = Ended(child.context("starting the process that is to be killed")?);
    let out = child.0.stdout.take().context("the child's output is a pipe")?;
    let (mut acknowledged, mut issued, mut count) = (0, 0, 0);
    for line in BufReader::new(out).lines() {
        let line = line.context("reading the child's output")?;
        let number = |text: &str| text.parse::<i64>().context("the child's output");
        match line.split_once(' ') {
            Some(("i", text)) => issued = number(text)?,
            Some(("a", text)) => {
                acknowledged = number(text)?;
                count += 1;
            }
            _ => anyhow::bail!("the child said {line:?}"),
        }
        if let End::Kill { acknowledgements } = end
            && count == acknowledgements
        {
            // Kill it somewhere in the middle of the following transactions.
            let pause = Duration::from_micros(rng.below(2000));
            #[expect(clippy::disallowed_methods, reason = "a real process is killed in real time")]
            std::thread::sleep(pause);
            child.0.kill().context("killing the child")?;
            count += 1;
        }
    }
    let status = child.0.wait().context("waiting for the child")?;
    let expected = match end {
        End::Kill { .. } => !status.success(),
        End::PowerCut { .. } => status.success(),
    };
    ensure!(expected, "the child ended by itself: {status}");
    Ok((acknowledged, issued))
}

/// Ends the child process if the demo ends early.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // If it has already ended, nothing is left to do.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
