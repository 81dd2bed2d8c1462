//! The metrics of a server of local clients.
use super::world::{World, content, with_server};
use crate::{Level, Request, ServerOptions};
use tantalum_base::{PageNo, TxId};
use tantalum_runtime::Runtime;
use tantalum_runtime::metrics::{Reading, Readings};

/// The value of metric `name` with these label values; for durations, their count.
fn count(world: &World, name: &str, values: &[&str]) -> u64 {
    let mut readings = Readings::default();
    world.server.metrics(&mut readings);
    let name = format!("tantalum_local_{name}");
    let metric = readings.metrics().iter().find(|metric| metric.name == name).unwrap();
    let has = |labels: &[(&str, String)]| {
        labels.iter().map(|(_, value)| value.as_str()).eq(values.iter().copied())
    };
    match &metric.samples.iter().find(|sample| has(&sample.labels)).unwrap().reading {
        Reading::Count(count) => *count,
        Reading::Histogram(durations) => durations.count(),
        other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn what_clients_ask_and_are_refused_is_counted() {
    const ROUNDS: u64 = 7;
    for seed in 0..4 {
        let options = ServerOptions { clients_max: 2, ..ServerOptions::default() };
        with_server(seed, options, |world| async move {
            let (one, two) = (world.client().await, world.client().await);
            for round in 0..ROUNDS {
                let pages = vec![(PageNo(5), content(round))];
                one.ask(Request::WriteScattered(pages)).await.unwrap();
                two.ask(Request::Read { first: PageNo(5), pages: 1, tx: None }).await.unwrap();
            }
            two.ask(Request::Commit(TxId(99))).await.unwrap_err();
            assert_eq!(one.raise(1, Level::Exclusive).await, Level::Exclusive);
            assert_eq!(two.raise(1, Level::Shared).await, Level::None);
            let durations = |of| count(&world, "request_duration_seconds", &[of]);
            assert_eq!((durations("write_scattered"), durations("read")), (ROUNDS, ROUNDS));
            assert_eq!((durations("commit"), durations("lock"), durations("flush")), (1, 2, 0));
            assert_eq!(count(&world, "errors_total", &["unknown_transaction"]), 1);
            assert_eq!(count(&world, "errors_total", &["io"]), 0);
            assert_eq!(count(&world, "locks_refused_total", &[]), 1);
            assert_eq!(count(&world, "lock_holders", &[]), 1);
            assert_eq!(count(&world, "requests_in_flight", &[]), 0);
            let third = world.connect();
            world.runtime.sleep(1_000_000).await;
            let clients = |of| count(&world, of, &[]);
            assert_eq!((clients("clients"), clients("clients_accepted_total")), (2, 2));
            assert_eq!((clients("clients_refused_total"), clients("clients_failed_total")), (1, 0));
            drop(third);
        });
    }
}
