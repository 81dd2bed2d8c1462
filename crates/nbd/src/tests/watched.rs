//! The metrics of a server, in virtual time: durations are those of the device, to the nanosecond.
use super::world::*;
use crate::ServerOptions;
use tantalum_base::{Durability, ErrorKind};
use tantalum_runtime::Runtime;
use tantalum_runtime::metrics::{HistogramReading, Reading, Readings};

/// The number of `name` with these labels' values.
fn reading(world: &World, name: &str, values: &[&str]) -> Reading {
    let mut readings = Readings::default();
    world.server.metrics(&mut readings);
    let metric = readings.metrics().iter().find(|metric| metric.name == name).unwrap();
    let has = |labels: &[(&str, String)]| {
        labels.iter().map(|(_, value)| value.as_str()).eq(values.iter().copied())
    };
    metric.samples.iter().find(|sample| has(&sample.labels)).unwrap().reading.clone()
}

pub(super) fn count(world: &World, name: &str, values: &[&str]) -> u64 {
    match reading(world, name, values) {
        Reading::Count(count) => count,
        other => panic!("{name} is {other:?}"),
    }
}

fn duration(world: &World, command: &str) -> HistogramReading {
    match reading(world, "tantalum_nbd_request_duration_seconds", &[command]) {
        Reading::Histogram(histogram) => histogram,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_request_is_timed_once_and_for_no_longer_than_it_took() {
    for seed in 0..4 {
        with_server(seed, ServerOptions::default(), Durability::OnAck, |world| async move {
            let client = world.client().await;
            let mut took_ns = 0;
            for round in 0..30 {
                let from_ns = world.runtime.now_ns();
                client.write(round * 4096, &[1; 4096]).await;
                took_ns += world.runtime.now_ns() - from_ns;
                assert_eq!(duration(&world, "write").count(), round + 1);
            }
            let told = duration(&world, "write");
            // The network of this world takes no time.
            assert_eq!(told.sum_ns, took_ns);
            assert_eq!(duration(&world, "read").count(), 0);
            assert_eq!(count(&world, "tantalum_nbd_requests_in_flight", &[]), 0);
        });
    }
}

#[test]
fn requests_of_the_device_are_in_flight_until_it_answers() {
    with_server(3, ServerOptions::default(), Durability::OnAck, |world| async move {
        let client = world.client().await;
        for page in 0..8 {
            client.request(READ, 0, page * 4096, 4096, &[]).await;
        }
        world.runtime.sleep(1).await;
        let in_flight = count(&world, "tantalum_nbd_requests_in_flight", &[]);
        assert!((1..=8).contains(&in_flight), "{in_flight}");
        for _ in 0..8 {
            assert_eq!(client.reply().await.0, 0);
            client.receive(4096).await;
        }
        assert_eq!(count(&world, "tantalum_nbd_requests_in_flight", &[]), 0);
    });
}

#[test]
fn errors_are_counted_by_what_went_wrong_and_refusals_beside_them() {
    with_server(5, ServerOptions::default(), Durability::OnAck, |world| async move {
        let client = world.client().await;
        for (kind, times) in [(ErrorKind::Checksum, 2), (ErrorKind::Io, 3), (ErrorKind::Latched, 1)]
        {
            world.device.failure.set(Some(kind));
            for _ in 0..times {
                assert_eq!(client.call(READ, 0, 0, 4096, &[]).await, 5);
            }
        }
        world.device.failure.set(None);
        assert_eq!(client.call(READ, 0, 1 << 40, 4096, &[]).await, 22);
        let errors = "tantalum_nbd_errors_total";
        for (kind, times) in [("checksum", 2), ("io", 3), ("latched", 1), ("out_of_range", 0)] {
            assert_eq!(count(&world, errors, &[kind]), times, "{kind}");
        }
        assert_eq!(count(&world, "tantalum_nbd_refused_requests_total", &[]), 1);
        // A failed request took time; a refused one was never begun.
        assert_eq!(duration(&world, "read").count(), 6);
        assert_eq!(count(&world, "tantalum_nbd_requests_total", &["read"]), 6);
    });
}
