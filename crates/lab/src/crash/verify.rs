//! What a device must hold when it is opened after a cut.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{Durability, PageDevice, PageNo, Payload, Result};

use super::run::{Scenario, later};
use super::workload::{Command, Contents, Violation, content};

/// How far the client came.
#[derive(Default)]
pub(super) struct Client {
    pub issued: usize,
    pub acknowledged: usize,
    /// Commands that a completed flush covers, or that are durable when acknowledged.
    pub durable: usize,
    pub violations: Vec<Violation>,
    /// What the device promises.
    pub durability: Option<Durability>,
    /// What the first opening held, where the promise leaves that open page by page.
    found: Option<Contents>,
}

/// Which number of commands the device's content stands for; a violation where there is none
/// that the promise allows.
pub(super) async fn find_state<D: PageDevice>(
    device: &D,
    scenario: &Scenario,
    client: &Rc<RefCell<Client>>,
    commands: &[Command],
    round: u32,
) -> Result<Result<usize, Violation>> {
    let mut pages = Vec::new();
    for page in (0..scenario.shape.pages).map(PageNo) {
        let mut out = [D::Page::zero()];
        device.read(page, &mut out, None).await?;
        let [content] = out;
        pages.push(content);
    }
    let client = &mut *client.borrow_mut();
    Ok(if client.durability == Some(Durability::Volatile) {
        find_contents(&pages, scenario, client, commands, round)
    } else {
        find_prefix(&pages, scenario, client, commands, round)
    })
}

/// A volatile cache: what was flushed and not rewritten since is there; any other page holds one
/// of the contents that were written to it since, or the flushed one. What one opening found and
/// then flushed, the next finds again.
fn find_contents<P: Payload>(
    pages: &[P],
    scenario: &Scenario,
    client: &mut Client,
    commands: &[Command],
    round: u32,
) -> Result<usize, Violation> {
    let states = match client.found.take() {
        Some(mut found) => {
            later(scenario).iter().for_each(|command| found.apply(command));
            vec![found]
        }
        None => {
            let mut contents = Contents::empty(scenario.shape.pages);
            commands[..client.durable].iter().for_each(|command| contents.apply(command));
            let mut states = vec![contents.clone()];
            for command in &commands[client.durable..client.issued] {
                contents.apply(command);
                states.push(contents.clone());
            }
            states
        }
    };
    let mut found = Contents::empty(scenario.shape.pages);
    for (page, seen) in (0..).map(PageNo).zip(pages) {
        let state = states.iter().find(|state| *seen == content::<P>(page, state.get(page)));
        let Some(state) = state else {
            let mut allowed: Vec<u64> = states.iter().map(|state| state.get(page)).collect();
            allowed.dedup();
            return Err(Violation(format!(
                "opening {round}: page {page} should be one of the writes {allowed:?} and is {seen:?}"
            )));
        };
        found.set(page, state.get(page));
    }
    client.found = Some(found);
    Ok(client.durable)
}

/// Every other cache: the state after some number of commands, at least those that are durable.
fn find_prefix<P: Payload>(
    pages: &[P],
    scenario: &Scenario,
    client: &Client,
    commands: &[Command],
    round: u32,
) -> Result<usize, Violation> {
    let (least, most) = (client.durable, client.issued);
    let mut contents = Contents::empty(scenario.shape.pages);
    let mut nearest = (usize::MAX, String::new());
    for number in 0..=most {
        let mut expected = contents.clone();
        if round > 0 {
            later(scenario).iter().for_each(|command| expected.apply(command));
        }
        if number >= least {
            let wrong: Vec<PageNo> = (0..scenario.shape.pages)
                .map(PageNo)
                .filter(|page| pages[page.index()] != content::<P>(*page, expected.get(*page)))
                .collect();
            if wrong.is_empty() {
                return Ok(number);
            }
            if wrong.len() < nearest.0 {
                let page = wrong[0];
                let (seen, count) = (&pages[page.index()], expected.get(page));
                let text = format!(
                    "after {number} commands page {page} should be write {count} and is {seen:?}"
                );
                nearest = (wrong.len(), text);
            }
        }
        if let Some(command) = commands.get(number) {
            contents.apply(command);
        }
    }
    Err(Violation(format!(
        "opening {round}: no state between command {least} and {most} matches; nearest: {} pages differ, {}",
        nearest.0, nearest.1
    )))
}
