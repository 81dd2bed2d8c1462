use super::memory_device::MemoryDevice;
use super::world::*;
use crate::ServerOptions;
use crate::export::Export;
use crate::protocol::transmission::{Command, Request};
use std::rc::Rc;
use tantalum_base::{Durability, ErrorKind, PageBuf, PageDevice, PageNo, PageRange, Payload, Rng};
use tantalum_runtime::Virtual;
use tantalum_runtime::rounds::Rounds;
use tantalum_runtime::virtual_time::Schedule;

#[test]
fn fua_and_flush_reach_a_device_that_needs_them() {
    for (durability, fua_flushes) in
        [(Durability::OnAck, 0), (Durability::OnFlush, 3), (Durability::Volatile, 3)]
    {
        with_server(1, ServerOptions::default(), durability, move |world| async move {
            let client = world.client().await;
            client.write(0, &[1; 4096]).await;
            assert_eq!(world.device.flushes.get(), 0);
            assert_eq!(client.call(WRITE, FUA, 0, 512, &[2; 512]).await, 0);
            assert_eq!(client.call(TRIM, FUA, 4096, 8192, &[]).await, 0);
            assert_eq!(client.call(ZEROES, FUA, 4096, 512, &[]).await, 0);
            assert_eq!(client.call(READ, FUA, 0, 0, &[]).await, 0);
            assert_eq!(world.device.flushes.get(), fua_flushes);
            assert_eq!(client.call(FLUSH, 0, 0, 0, &[]).await, 0);
            assert_eq!(world.device.flushes.get(), fua_flushes + 1);
        });
    }
}

#[test]
fn long_writes_are_split_and_zeroes_leave_holes_unless_told() {
    with_server(2, ServerOptions::default(), Durability::OnAck, |world| async move {
        let client = world.client().await;
        let bytes: Vec<u8> = (0..10 * 4096_u32).map(|at| (at / 512) as u8 + 1).collect();
        client.write(4096, &bytes).await;
        // The device takes at most four pages per write.
        assert_eq!(world.device.writes.get(), 3);
        assert_eq!(client.read(4096, bytes.len() as u32).await, bytes);
        assert_eq!(client.call(ZEROES, FAST_ZERO, 8192, 8192, &[]).await, 0);
        assert_eq!((world.device.writes.get(), world.device.trims.get()), (3, 1));
        assert_eq!(client.call(ZEROES, NO_HOLE, 0, 5 * 4096, &[]).await, 0);
        assert_eq!((world.device.writes.get(), world.device.trims.get()), (5, 1));
        assert_eq!(client.call(ZEROES, NO_HOLE | FAST_ZERO, 0, 4096, &[]).await, 95);
        assert_eq!(client.read(0, 5 * 4096).await, vec![0; 5 * 4096]);
        // A trim discards whole pages only.
        assert_eq!(client.call(TRIM, 0, 6 * 4096 - 512, 1024, &[]).await, 0);
        assert_eq!(world.device.trims.get(), 1);
        assert_eq!(client.read(5 * 4096, 8192).await, bytes[4 * 4096..6 * 4096]);
    });
}

#[test]
fn an_export_may_end_within_the_last_page() {
    // The device has 64 pages.
    let (last, size) = (63 * 4096, 63 * 4096 + 512);
    for bytes in [size - 512, size - 1, 64 * 4096 + 512] {
        let options = ServerOptions { size_bytes: Some(bytes), ..Default::default() };
        let device = Rc::new(MemoryDevice::new(64, 4, Durability::OnAck));
        assert!(Export::new(device, options, Rounds::default()).is_err(), "{bytes}");
    }
    let options = ServerOptions { size_bytes: Some(size), ..Default::default() };
    with_server(3, options, Durability::OnAck, move |world| async move {
        let client = world.client().await;
        let page = async || {
            let mut out = [PageBuf::zero()];
            world.device.read(PageNo(63), &mut out, None).await.unwrap();
            out[0].to_vec()
        };
        let held = |fill: u8| [vec![fill; 512], vec![0; 3584]].concat();
        // The whole existing part of the last page: nothing is read first.
        client.write(last - 4096, &[5; 4096 + 512]).await;
        assert_eq!(world.server.statistics().read_modify_writes, 0);
        assert_eq!((page().await, client.read(last, 512).await), (held(5), vec![5; 512]));
        for (command, payload, code) in [(WRITE, 512, 28), (ZEROES, 0, 28), (READ, 0, 22)] {
            let payload = vec![1; payload];
            assert_eq!(client.call(command, 0, size, 512, &payload).await, code);
        }
        assert_eq!(client.call(TRIM, 0, last, 512, &[]).await, 0);
        assert_eq!(page().await, vec![0; 4096]);
        client.write(last, &[6; 512]).await;
        assert_eq!(client.call(ZEROES, NO_HOLE, 4096, size as u32 - 4096, &[]).await, 0);
        assert_eq!(page().await, vec![0; 4096]);
    });
}

#[test]
fn a_long_write_goes_side_by_side_and_keeps_what_is_before_an_error() {
    for seed in 0..20 {
        with_server(seed, ServerOptions::default(), Durability::OnAck, move |world| async move {
            let client = world.client().await;
            client.write(0, &[1; 64 * 4096]).await;
            assert_eq!(world.device.in_flight_max.get(), 8, "seed {seed}");
            // Page 13 is in the fourth of sixteen pieces.
            world.device.failing_page.set(Some(PageNo(13)));
            assert_eq!(client.call(WRITE, 0, 0, 64 * 4096, &[2; 64 * 4096]).await, 5);
            world.device.failing_page.set(None);
            let pages = client.read(0, 64 * 4096).await;
            let pieces: Vec<&[u8]> = pages.chunks(4 * 4096).collect();
            for (number, piece) in pieces.iter().enumerate() {
                let whole = piece.iter().all(|byte| *byte == piece[0]);
                assert!(whole, "seed {seed}: piece {number} is half done");
                let new = match number {
                    0..3 => Some(true),
                    3 => Some(false),
                    // Of the later pieces, only those in flight together with the failed one may be there.
                    4..11 => None,
                    _ => Some(false),
                };
                assert!(new.is_none_or(|new| new == (piece[0] == 2)), "seed {seed}: {number}");
            }
        });
    }
}

#[test]
fn a_long_trim_is_cut_into_steps() {
    let runtime = Virtual::new(Schedule::Fifo);
    let device = Rc::new(MemoryDevice::new(20_000, 4, Durability::OnAck));
    let export = export(&device);
    let client = alone(&runtime);
    let main = async move {
        for (command, trims) in [(Command::Trim, 3), (Command::WriteZeroes, 6)] {
            let page = PageBuf::copy_from(&[1; 4096]);
            for at in [0, 8191, 8192, 19_999] {
                device.write(PageNo(at), std::slice::from_ref(&page), None).await.unwrap();
            }
            let length = 20_000 * 4096;
            let request = Request { flags: 0, command, cookie: 1, offset: 0, length };
            export.perform(&request, &mut Vec::new(), &client).await.unwrap();
            assert_eq!(device.trims.get(), trims);
            let mut pages = vec![page; 20_000];
            device.read(PageNo(0), &mut pages, None).await.unwrap();
            assert!(pages.iter().all(|page| *page == PageBuf::zero()));
        }
    };
    runtime.run(main).unwrap();
}

/// Lengths as QEMU sends them, at 2 GiB less a sector, and the longest possible request.
#[test]
fn long_zeroings_that_are_cut_within_pages_leave_holes_alone() {
    const PAGES: u64 = (9 << 30) / 4096;
    let page = PageBuf::copy_from(&[1; 4096]);
    for (start, length) in [(8 << 20, (2 << 30) - 512), (512, (4 << 30) - 512), (0, 3 << 30)] {
        let runtime = Virtual::new(Schedule::Fifo);
        let device = Rc::new(MemoryDevice::new(PAGES, 4, Durability::OnAck));
        let export = export(&device);
        let client = alone(&runtime);
        let page = page.clone();
        let main = async move {
            // Some content everywhere around the cuts.
            for at in (start..PAGES * 4096).step_by(length as usize) {
                for page_no in (at / 4096).saturating_sub(1)..(at / 4096 + 2).min(PAGES) {
                    let page = std::slice::from_ref(&page);
                    device.write(PageNo(page_no), page, None).await.unwrap();
                }
            }
            let mut at = start;
            while at < PAGES * 4096 {
                let length = length.min(PAGES * 4096 - at) as u32;
                let command = Command::WriteZeroes;
                let request = Request { flags: 0, command, cookie: 1, offset: at, length };
                export.perform(&request, &mut Vec::new(), &client).await.unwrap();
                at += u64::from(length);
            }
            let (mut at, mut data) = (0, Vec::new());
            while at < PAGES {
                let extent = device.extent(PageRange::new(PageNo(at), PAGES - at));
                data.extend((!extent.is_hole).then_some((at, extent.pages)));
                at += extent.pages;
            }
            // All remaining content lies before the first zeroed page.
            let before = start.div_ceil(4096);
            let left = data.iter().all(|(first, pages)| first + pages <= before);
            assert!(left, "{length} bytes from {start} on: {data:?}");
        };
        runtime.run(main).unwrap();
    }
}

#[test]
fn bad_requests_get_errors_and_the_connection_lives_on() {
    with_server(3, ServerOptions::default(), Durability::OnAck, |world| async move {
        let client = world.client().await;
        let end = 64 * 4096;
        let cases: [(u16, u16, u64, u32, usize, u32); 17] = [
            (READ, 0, end, 512, 0, 22),
            (READ, 0, end - 512, 1024, 0, 22),
            (READ, 0, u64::MAX - 511, 512, 0, 22),
            (READ, 0, u64::MAX - 511, 1024, 0, 22),
            (READ, 0, 0, u32::MAX, 0, 22),
            (READ, 0, 0, 513, 0, 22),
            (READ, NO_HOLE, 0, 512, 0, 22),
            (READ, 0x8000, 0, 512, 0, 22),
            (WRITE, 0, end, 512, 512, 28),
            (WRITE, 0, 512, 100, 100, 22),
            (WRITE, 4, 0, 512, 512, 22),
            (WRITE, 0, 0, (32 << 20) + 512, (32 << 20) + 512, 22),
            (FLUSH, 0, 0, 512, 0, 22),
            (TRIM, 0, 0, u32::MAX - 511, 0, 22),
            (ZEROES, 0, end - 4096, 8192, 0, 28),
            (5, 0, 0, 512, 0, 22),
            (0xffff, 0, 0, 0, 0, 22),
        ];
        let count = cases.len() as u64;
        for (command, flags, offset, length, payload, error) in cases {
            let payload = vec![0xee; payload];
            let answer = client.call(command, flags, offset, length, &payload).await;
            assert_eq!(answer, error, "{command} {flags} {offset} {length}");
        }
        assert_eq!(world.server.statistics().errors, count);
        client.write(512, &[3; 512]).await;
        assert_eq!(client.read(0, 1024).await, [[0; 512], [3; 512]].concat());
    });
}

#[test]
fn errors_of_the_device_are_told_by_number_and_kept_in_words() {
    with_server(4, ServerOptions::default(), Durability::OnFlush, |world| async move {
        let client = world.client().await;
        client.write(0, &[1; 4096]).await;
        let kinds = [
            (ErrorKind::OutOfSpace, 28),
            (ErrorKind::Uncorrectable, 5),
            (ErrorKind::Latched, 5),
            (ErrorKind::PowerCut, 108),
        ];
        for (kind, error) in kinds {
            world.device.failure.set(Some(kind));
            assert_eq!(client.call(READ, 0, 0, 4096, &[]).await, error);
            assert_eq!(client.call(WRITE, 0, 0, 4096, &[2; 4096]).await, error);
            assert_eq!(client.call(WRITE, 0, 0, 512, &[2; 512]).await, error);
            assert_eq!(client.call(FLUSH, 0, 0, 0, &[]).await, error);
            assert_eq!(client.call(TRIM, 0, 0, 4096, &[]).await, error);
            assert_eq!(client.call(ZEROES, 0, 0, 512, &[]).await, error);
            world.device.failure.set(None);
        }
        assert_eq!(client.read(0, 4096).await, [1; 4096]);
        let statistics = world.server.statistics();
        assert_eq!(statistics.errors, 24);
        assert_eq!(statistics.last_error.as_deref(), Some("as the test asked"));
    });
}

#[test]
fn random_requests_do_what_a_plain_vector_does() {
    for seed in 0..8 {
        with_server(seed, ServerOptions::default(), Durability::OnAck, move |world| async move {
            let mut rng = Rng::split(seed, "model");
            let mut model = vec![0_u8; 64 * 4096];
            let client = world.client().await;
            for round in 0..300 {
                let sectors = 1 + rng.below(40);
                let sector = rng.below(64 * 8 - sectors + 1);
                let (offset, length) = (sector * 512, sectors as usize * 512);
                let inside = &mut model[offset as usize..offset as usize + length];
                let flags = if rng.chance(0.2) { FUA } else { 0 };
                let what = rng.below(10);
                match what {
                    0..5 => {
                        rng.fill(inside);
                        let error = client.call(WRITE, flags, offset, length as u32, inside).await;
                        assert_eq!(error, 0);
                    }
                    5 | 6 => {
                        let flags = flags | if what == 5 { NO_HOLE } else { FAST_ZERO };
                        inside.fill(0);
                        assert_eq!(client.call(ZEROES, flags, offset, length as u32, &[]).await, 0);
                    }
                    7 => {
                        assert_eq!(client.call(TRIM, flags, offset, length as u32, &[]).await, 0);
                        let first = offset.next_multiple_of(4096) as usize;
                        let end = (offset as usize + length) / 4096 * 4096;
                        if first < end {
                            model[first..end].fill(0);
                        }
                    }
                    _ => {
                        let read = client.read(offset, length as u32).await;
                        assert!(read == *inside, "seed {seed}, round {round}, {offset}+{length}");
                    }
                }
            }
            let read = client.read(0, model.len() as u32).await;
            assert!(read == model, "seed {seed}: the whole device");
        });
    }
}
