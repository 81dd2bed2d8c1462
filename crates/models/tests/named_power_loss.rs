//! Devices as users name them, with their link, lose power. The state restored from the medium
//! alone is a prefix of the commands in their order of issue, and includes all acknowledged ones.
//!
//! This is not a workload of the crash lab, which scales these devices down and searches for an order that
//! explains the result. Here the devices have thousands of pages, and the order is the order of issue.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::fault_points::plant;
use tantalum_base::{PageDevice, PageNo, PageRange, Payload, Rng, Stamp};
use tantalum_ftl::fault_points::Fault;
use tantalum_media::{ErasedZones, Fate};
use tantalum_models::NandZones;
use tantalum_models::{DeviceConfig, SimulatedSsd};
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{DeviceKind, Live, Opening, Runtime, Virtual};
use tantalum_ssd::RebootReport;

const PAGES: u64 = 3000;

/// An issued command. Its number is the version of its writes.
#[derive(Clone, Copy, Debug)]
struct Issued {
    range: PageRange,
    trims: bool,
    acknowledged: bool,
}

/// The contents of the pages, and the commands issued since.
struct Model {
    pages: Vec<u64>,
    issued: Vec<Issued>,
    next_version: u64,
}

impl Model {
    fn apply(pages: &mut [u64], command: &Issued, version: u64) {
        let (first, end) = (command.range.first.0, command.range.first.0 + command.range.pages);
        pages[first as usize..end as usize].fill(if command.trims { 0 } else { version });
    }

    /// Makes `found` the known content from now on.
    ///
    /// # Panics
    /// If it is not a prefix that includes all acknowledged commands.
    fn settle(&mut self, found: &[Stamp], context: &str) {
        let found: Vec<u64> = (0..)
            .zip(found)
            .map(|(page, stamp)| {
                let empty = *stamp == Stamp::zero();
                assert!(empty || *stamp == Stamp::new(PageNo(page), stamp.count), "{context}");
                stamp.count
            })
            .collect();
        let acknowledged = self.issued.iter().rposition(|command| command.acknowledged);
        let least = acknowledged.map_or(0, |last| last + 1);
        let mut pages = self.pages.clone();
        let mut prefix = None;
        for taken in 0..=self.issued.len() {
            if taken >= least && pages == found {
                prefix = Some(taken);
                break;
            }
            if let Some(command) = self.issued.get(taken) {
                Self::apply(&mut pages, command, self.next_version + taken as u64);
            }
        }
        let all = self.issued.len();
        assert!(prefix.is_some(), "{context}: no prefix of {least} to {all} commands");
        self.next_version += all as u64;
        self.pages = found;
        self.issued.clear();
    }
}

/// Runs six clients until the power is lost after `until_ns`.
async fn load(
    runtime: Virtual,
    device: Rc<SimulatedSsd<Virtual, Stamp>>,
    model: Rc<RefCell<Model>>,
    seed: u64,
    until_ns: u64,
) {
    for client in 0..6 {
        let (device, model) = (Rc::clone(&device), Rc::clone(&model));
        runtime.spawn("client", async move {
            let mut rng = Rng::new(seed * 10 + client);
            let most = u64::from(device.limits().atomic_write_pages_max).min(24);
            loop {
                let range = PageRange::new(PageNo(rng.below(PAGES - most)), 1 + rng.below(most));
                let trims = rng.chance(0.05);
                let (place, version) = {
                    let model = &mut *model.borrow_mut();
                    model.issued.push(Issued { range, trims, acknowledged: false });
                    let place = model.issued.len() - 1;
                    (place, model.next_version + place as u64)
                };
                if trims {
                    device.trim(range).await.unwrap();
                } else {
                    let content: Vec<Stamp> =
                        range.iter().map(|page| Stamp::new(page, version)).collect();
                    device.write(range.first, &content, None).await.unwrap();
                }
                model.borrow_mut().issued[place].acknowledged = true;
                if rng.chance(0.1) {
                    device.flush().await.unwrap();
                }
            }
        });
    }
    runtime.sleep(until_ns).await;
}

/// Cuts the power: operations in flight land, vanish or tear; then the capacitors power the dump.
fn power_loss(
    runtime: &Virtual,
    device: &SimulatedSsd<Virtual, Stamp>,
    rng: &mut Rng,
) -> NandZones<Virtual, Stamp> {
    let now_ns = runtime.now_ns();
    runtime.drop_tasks();
    let ssd = Rc::clone(device.device());
    let cut = ssd.ftl().media().downcast_ref::<NandZones<Virtual, Stamp>>();
    let cut = cut.expect("the device is on simulated flash");
    cut.nand().power_cut(now_ns, |_| Fate::ALL[rng.below(3) as usize]);
    let media = cut.reopen(runtime.clone());
    let fed = Virtual::new(Schedule::Fifo);
    let again = ErasedZones::new(media.reopen(fed.clone()));
    let dumped = fed.run(async move { ssd.power_loss(again).await }).unwrap().unwrap();
    assert!(dumped.bytes <= dumped.budget_bytes && dumped.number > 0, "{dumped:?}");
    media
}

async fn read_all<D: PageDevice<Page = Stamp>>(device: &D) -> Vec<Stamp> {
    let mut found = vec![Stamp::zero(); PAGES as usize];
    for (first, out) in (0..).step_by(100).zip(found.chunks_mut(100)) {
        device.read(PageNo(first), out, None).await.unwrap();
    }
    found
}

/// Runs lives of the device called `text`, each ended by a power loss. Returns the last medium.
fn lives(text: &str, seed: u64, lives: u64) -> (NandZones<Virtual, Stamp>, Rc<RefCell<Model>>) {
    let config = DeviceConfig::parse(text).unwrap();
    let model = Model { pages: vec![0; PAGES as usize], issued: Vec::new(), next_version: 1 };
    let (model, mut rng) = (Rc::new(RefCell::new(model)), Rng::new(seed));
    let mut media: Option<NandZones<Virtual, Stamp>> = None;
    for life in 0..lives {
        let runtime = Virtual::new(Schedule::Shuffled(seed * 100 + life));
        let (rt, config, shared) = (runtime.clone(), config.clone(), Rc::clone(&model));
        let opened = media.take().map(|media| media.reopen(runtime.clone()));
        let (until_ns, context) =
            (2_000_000 + rng.below(300_000_000), format!("{text} {seed} {life}"));
        let whole = async move {
            let device = match opened {
                None => config.build::<_, Stamp>(&rt, seed).await.unwrap(),
                Some(media) => {
                    let media = ErasedZones::new(media);
                    let on = Opening { runtime: rt.clone(), media, kept: () };
                    let (device, report) = config.kind(seed).open(on).await.unwrap();
                    let RebootReport { recovery, reboot_ns, .. } = report;
                    assert!(recovery.merged && reboot_ns >= config.ssd.recharge_ns, "{report:?}");
                    let found = read_all(&*device).await;
                    shared.borrow_mut().settle(&found, &context);
                    device
                }
            };
            load(rt, Rc::clone(&device), shared, seed * 1000 + life, until_ns).await;
            device
        };
        let device = runtime.run(whole).unwrap();
        media = Some(power_loss(&runtime, &device, &mut rng));
    }
    (media.unwrap(), model)
}

#[test]
fn what_comes_back_is_a_prefix_of_what_was_issued() {
    let mut commands = 0;
    for seed in 0..6 {
        for parameters in [
            "cache=256",
            "cache=64,quota=20,flush=order",
            "cache=128,barrier=on,cleaning=d-choices:3,wear_spread=2",
            "capacitors=2,flush=write-back",
        ] {
            let (_, model) = lives(&format!("durassd:pages={PAGES},op=0.1,{parameters}"), seed, 4);
            commands += model.borrow().next_version;
        }
    }
    assert!(commands > 2_500, "{commands}");
}

#[test]
fn a_dump_without_the_mapping_entries_is_noticed() {
    let noticed = (0..6).any(|seed| {
        let _planted = plant(Fault::DeltasNotDumped);
        let text = format!("durassd:pages={PAGES},op=0.1,cache=64");
        let result = std::panic::catch_unwind(|| drop(lives(&text, seed, 3)));
        result.is_err_and(|panic| {
            panic.downcast_ref::<String>().is_some_and(|said| said.contains("no prefix"))
        })
    });
    assert!(noticed);
}

#[test]
fn a_device_reboots_and_serves_in_real_time() {
    let text = format!("durassd:pages={PAGES},op=0.1,cache=256");
    let (media, model) = lives(&text, 9, 1);
    let live = Live::new(LiveOptions::default()).unwrap();
    let handle = live.clone();
    live.run(async move {
        let config = DeviceConfig::parse(&text).unwrap();
        let media = media.reopen(handle.clone());
        let on = Opening { runtime: handle.clone(), media, kept: () };
        let (device, report) = config.kind(9).open(on).await.unwrap();
        assert!(report.recovery.merged && report.reboot_ns >= config.ssd.recharge_ns);
        let found = read_all(&*device).await;
        model.borrow_mut().settle(&found, "live");
        device.write(PageNo(7), &[Stamp::new(PageNo(7), 1 << 40)], None).await.unwrap();
        let mut out = [Stamp::zero()];
        device.read(PageNo(7), &mut out, None).await.unwrap();
        assert_eq!(out[0], Stamp::new(PageNo(7), 1 << 40));
    });
}
