//! Measures the locality of successive write-backs: on page traces of PostgreSQL the policies that
//! write by clusters switch between clusters far less than the others, as the dissertation finds in
//! sections 3.3 and 5.3.4 (`cargo test -p tantalum-policy --test cluster_switches -- --nocapture`).
mod support;

use tantalum_policy::{PolicySpec, Request, Workload};
use tantalum_testing::found;
use tantalum_trace::shared;

/// The number of write-backs, and the number of those in another cluster of 16 pages than the one
/// before.
fn writes(requests: &[Request], text: &str, frames: u32) -> (u64, u64) {
    let workload = Workload { pages_end: support::pages_end(requests), future: &[] };
    let mut policy = PolicySpec::parse(text).unwrap().build(frames, workload).unwrap();
    let (mut write_backs, mut switches, mut last) = (0, 0, None);
    let mut effects = Vec::new();
    for &request in requests {
        policy.access(request, &mut effects);
        for effect in effects.drain(..).filter(|effect| effect.writes()) {
            let cluster = Some(effect.page().0 / 16);
            write_backs += 1;
            switches += u64::from(cluster != last);
            last = cluster;
        }
    }
    println!("{text}, {frames} frames: {write_backs} write-backs, {switches} cluster switches");
    (write_backs, switches)
}

#[test]
fn clustered_writes_switch_less_between_clusters() {
    let Some(path) =
        found(shared::find("traces/databases/tpcc-pg-logical.csv.zst"), "shared traces")
    else {
        return;
    };
    let requests = support::load(&path);
    for frames in [4000, 16_000] {
        let (_, lru) = writes(&requests, "lru", frames);
        let (_, cfdc) = writes(&requests, "cfdc", frames);
        assert!(cfdc * 10 < lru * 6, "CFDC: {cfdc} switches, LRU: {lru}");
        for cost in ["1:4", "1:64"] {
            let (casa_writes, casa) = writes(&requests, &format!("casa:cost={cost}"), frames);
            let (sawc_writes, sawc) = writes(&requests, &format!("sawc:cost={cost}"), frames);
            assert!(sawc * 100 < casa * 65, "SAWC: {sawc} switches, CASA: {casa}");
            assert!(sawc_writes * 100 < casa_writes * 103, "SAWC writes {sawc_writes}");
        }
    }
}
