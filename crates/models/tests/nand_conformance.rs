//! Zones over simulated NAND conform to the contract of zoned media.
use std::rc::Rc;
use tantalum_base::{PageBuf, Rng, SlotNo};
use tantalum_media::conformance::ZoneFactory;
use tantalum_media::wrappers::Checker;
use tantalum_media::{Fate, ZoneMedia};
use tantalum_models::nand::{Nand, NandFaults, NandGeometry, NandOptions, NandTiming};
use tantalum_models::{NandZones, NandZonesOptions};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

struct Factory {
    runtime: Virtual,
    nand: Nand<PageBuf>,
    zones: Option<Rc<NandZones<Virtual, PageBuf>>>,
}

impl Factory {
    fn new(seed: u64) -> Self {
        let geometry = NandGeometry {
            channels: 2,
            packages_per_channel: 2,
            planes_per_package: 2,
            blocks_per_plane: 8,
            pages_per_block: 16,
            page_bytes: 8192,
            spare_bytes: 256,
        };
        let timing = NandTiming {
            read_ns: 60_000,
            program_ns: 800_000,
            program_upper_ns: 800_000,
            erase_ns: 1_500_000,
            channel_bytes_per_second: 200_000_000,
        };
        let faults = NandFaults { factory_bad: 0.03, ..NandFaults::default() };
        let nand = Nand::new(&NandOptions { geometry, timing, faults, seed }).unwrap();
        Factory { runtime: Virtual::new(Schedule::Shuffled(seed)), nand, zones: None }
    }
}

impl ZoneFactory for Factory {
    type Media = Checker<NandZones<Virtual, PageBuf>>;

    fn runtime(&self) -> &Virtual {
        &self.runtime
    }

    fn open(&mut self) -> Self::Media {
        let zones = match &self.zones {
            None => {
                let options = NandZonesOptions { spare_blocks_per_plane: 2, append_pages_max: 64 };
                NandZones::new(self.runtime.clone(), self.nand.clone(), options).unwrap()
            }
            Some(zones) => zones.reopen(self.runtime.clone()),
        };
        let zones = Rc::new(zones);
        self.zones = Some(Rc::clone(&zones));
        Checker::new(zones)
    }

    fn cut(&mut self, rng: &mut Rng) {
        self.nand.power_cut(self.runtime.now_ns(), |_| match rng.below(3) {
            0 => Fate::Land,
            1 => Fate::Vanish,
            _ => Fate::Tear,
        });
    }

    fn decay(&mut self, slot: SlotNo) {
        // The next flash page to be sensed decays; it is the page of `slot`.
        self.nand.fail_read(0);
        let zones = Rc::clone(self.zones.as_ref().unwrap());
        let read = self.runtime.run(async move {
            let mut out = [tantalum_base::Payload::zero()];
            zones.read(&[slot], &mut out).await
        });
        assert!(read.unwrap().is_err());
    }
}

tantalum_media::zone_conformance_tests!(Factory::new);
