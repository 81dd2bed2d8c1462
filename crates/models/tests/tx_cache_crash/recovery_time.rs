//! The time of a recovery (section IV-E, table III).
use crate::tx_cache_crash::clients::Shape;
use crate::tx_cache_crash::matrix::small;
use crate::tx_cache_crash::rig::{At, Cut, FATES};
use crate::tx_cache_crash::scenario::{Scenario, run};
use tantalum_base::ErrorKind;
use tantalum_models::TxCacheOptions;

/// Table III: 19 µs for 128 headers, at 0.15 µs a header.
#[test]
fn recovery_looks_at_the_headers_alone() {
    let options = TxCacheOptions {
        write_pages_max: 3,
        transactions_max: 128,
        headers: 128,
        ..small().options
    };
    let shape = Shape { commands: 6, ..small().shape };
    let plain = Scenario { options, shape, ..small() };
    let dry = run(&plain).unwrap();
    assert_eq!((dry.report.headers, dry.report.redone, dry.report.undone), (129, 0, 0));
    assert_eq!(dry.report.time_ns, 129 * 150, "128 and the one for writes outside");
    let mut undone = 0;
    for after in (0..dry.load.0).step_by(7) {
        let cut = Some(Cut { at: At::Store(after), fate: FATES[0] });
        let report = run(&Scenario { cut, ..plain }).unwrap().report;
        undone += report.undone;
        if !report.trim_redone {
            let each = u64::from(report.undone + report.redone) + 2 * report.pages_redone;
            assert_eq!(report.accesses, 129 + each, "{report:?}");
            assert_eq!(report.time_ns, 150 * report.accesses);
        }
        assert_eq!(report.page_headers, 14 + 8);
    }
    assert!(undone > 0);
}

#[test]
fn nvram_of_another_device_is_refused() {
    use crate::tx_cache_crash::rig::Rig;
    use tantalum_runtime::Virtual;
    use tantalum_runtime::virtual_time::Schedule;
    let options = small().options;
    let runtime = Virtual::new(Schedule::Fifo);
    let mut rig = Rig::new(options, 30, 1);
    rig.format(&runtime);
    rig.power_off(&runtime);
    let mut other = Rig::new(TxCacheOptions { headers: 5, ..options }, 30, 1);
    other.format(&runtime);
    rig.nvram = other.nvram.take();
    let error = rig.recover(&runtime, None).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}
