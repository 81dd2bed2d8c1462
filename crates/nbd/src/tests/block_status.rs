//! Block status after and during writes and trims.
use super::world::*;
use crate::ServerOptions;
use crate::export::Done;
use crate::protocol::structured::Descriptor;
use crate::protocol::transmission::{Command, Request};
use std::rc::Rc;
use tantalum_base::{Durability::OnAck, PageBuf, PageDevice, PageNo, PageRange, Rng};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

const PAGE: u64 = 4096;
const HOLE: u32 = 3;
const ZERO: u32 = 2;

/// The extents of `length` bytes from `offset` on, as (bytes, flags).
async fn extents(client: &Client, flags: u16, offset: u64, length: u32) -> Vec<(u32, u32)> {
    let chunks = client.ask(STATUS, flags, offset, length, &[]).await;
    assert_eq!((chunks.len(), chunks[0].kind, chunks[0].word(0)), (1, 5, 1));
    let words: Vec<u32> =
        (4..chunks[0].payload.len()).step_by(4).map(|at| chunks[0].word(at)).collect();
    words.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

/// The expected extents of these sectors, of pages that are mapped or not.
fn expected(mapped: &[bool], sectors: &[u8], offset: u64, length: u32) -> Vec<(u32, u32)> {
    let mut told: Vec<(u32, u32)> = Vec::new();
    for sector in (offset / 512)..(offset + u64::from(length)) / 512 {
        let page = sector as usize / 8;
        let flags = match mapped[page] {
            false => HOLE,
            true if sectors[page * 8..page * 8 + 8] == [0; 8] => ZERO,
            true => 0,
        };
        match told.last_mut() {
            Some(last) if last.1 == flags => last.0 += 512,
            _ => told.push((512, flags)),
        }
    }
    told
}

#[test]
fn it_agrees_with_what_was_written_and_trimmed() {
    for seed in 0..8 {
        with_server(seed, ServerOptions::default(), OnAck, move |world| async move {
            let mut rng = Rng::split(seed, "block status");
            let (mut mapped, mut contents) = ([false; 64], [0; 64 * 8]);
            let (mut seen, client) = ([0; 4], world.structured_client().await);
            for round in 0..300 {
                let sectors = 1 + rng.below(80);
                let sector = rng.below(64 * 8 - sectors + 1);
                let (offset, length) = (sector * 512, sectors as u32 * 512);
                let (first, end) = (sector as usize / 8, (sector + sectors).div_ceil(8) as usize);
                let whole = (sector.div_ceil(8) as usize)..((sector + sectors) / 8) as usize;
                let changed = sector as usize..(sector + sectors) as usize;
                match rng.below(4) {
                    0 => {
                        // Often the same content, often zeros.
                        let content = rng.below(3) as u8;
                        client.write(offset, &vec![content; length as usize]).await;
                        mapped[first..end].fill(true);
                        contents[changed].fill(content);
                    }
                    1 => {
                        assert_eq!(client.call(TRIM, 0, offset, length, &[]).await, 0);
                        whole.for_each(|page| {
                            mapped[page] = false;
                            contents[page * 8..page * 8 + 8].fill(0);
                        });
                    }
                    2 => {
                        let flags = if rng.chance(0.5) { NO_HOLE } else { 0 };
                        assert_eq!(client.call(ZEROES, flags, offset, length, &[]).await, 0);
                        contents[changed].fill(0);
                        // A page that became zeros is trimmed, unless the client wants no hole.
                        for page in first..end {
                            let is_zero = contents[page * 8..page * 8 + 8] == [0; 8];
                            mapped[page] = flags == NO_HOLE || !is_zero;
                        }
                    }
                    _ => {
                        let all = expected(&mapped, &contents, offset, length);
                        let told = extents(&client, 0, offset, length).await;
                        assert_eq!(told, all, "seed {seed}, round {round}");
                        told.iter().for_each(|(_, flags)| seen[*flags as usize] += 1);
                        let one = extents(&client, REQ_ONE, offset, length).await;
                        // It may end before a page that only seems to be zeros.
                        let is_start = one.len() == 1 && one[0].1 == all[0].1;
                        assert!(is_start && one[0].0 <= all[0].0, "seed {seed}, round {round}");
                    }
                }
            }
            let told = world.server.statistics().block_statuses;
            assert!(told > 50, "seed {seed}: {told}");
            let all = [seen[0], seen[ZERO as usize], seen[HOLE as usize]];
            assert!(all.iter().all(|extents| *extents > 20), "seed {seed}: {all:?}");
        });
    }
}

/// A page that seems to be zeros is data if it cannot be read, or if it has other content.
#[test]
fn what_seems_to_be_zeros_is_read() {
    with_server(4, ServerOptions::default(), OnAck, |world| async move {
        let client = world.structured_client().await;
        client.write(0, &[0; 6 * 4096]).await;
        client.write(2 * PAGE + 512, &[1; 512]).await;
        let told = extents(&client, 0, 0, 6 * PAGE as u32).await;
        assert_eq!(told, [(8192, ZERO), (4096, 0), (3 * 4096, ZERO)]);
        world.device.failing_page.set(Some(PageNo(1)));
        let told = extents(&client, 0, 0, 6 * PAGE as u32).await;
        // Its neighbours are data as well, as they are read together.
        assert_eq!(told, [(3 * 4096, 0), (3 * 4096, ZERO)]);
        world.device.failing_page.set(None);
        assert_eq!(extents(&client, REQ_ONE, PAGE, 2 * PAGE as u32).await, [(4096, ZERO)]);
    });
}

/// If pages have to be read, a reply covers a part of them, and the client requests the rest.
#[test]
fn a_long_range_of_zeros_is_told_in_several_replies() {
    let runtime = Virtual::new(Schedule::Fifo);
    let device = Rc::new(super::memory_device::MemoryDevice::new(5000, 5000, OnAck));
    let export = export(&device);
    let client = alone(&runtime);
    let main = async move {
        let zeros = vec![PageBuf::copy_from(&[0; 4096]); 5000];
        device.write(PageNo(0), &zeros, None).await.unwrap();
        let (mut at, mut told) = (0, Vec::new());
        while at < 5000 * PAGE {
            let length = (5000 * PAGE - at) as u32;
            let request =
                Request { flags: 0, command: Command::BlockStatus, cookie: 1, offset: at, length };
            let Done::Status(of) =
                export.perform(&request, &mut Vec::new(), &client).await.unwrap()
            else {
                panic!("no status");
            };
            assert!(of.len() == 1 && of[0].flags == ZERO, "{of:?}");
            at += u64::from(of[0].bytes);
            told.push(u64::from(of[0].bytes) / PAGE);
        }
        assert_eq!(told, [2048, 2048, 904]);
    };
    runtime.run(main).unwrap();
}

#[test]
fn misuse_is_refused_in_words() {
    with_server(1, ServerOptions::default(), OnAck, |world| async move {
        let end = 64 * PAGE;
        let client = world.structured_client().await;
        for (flags, offset, length, words) in [
            (0, 0, 0, "block status of no bytes"),
            (0, end, 0, "block status of no bytes"),
            (0, end, 512, "past the end of the export"),
            (0, end - 512, 1024, "past the end of the export"),
            (0, u64::MAX - 511, 512, "past the end of the export"),
            (0, 0, u32::MAX - 511, "past the end of the export"),
            (0, 100, 512, "offset or length is no multiple of the minimum block size"),
            (DF, 0, 512, "a flag that this command does not have"),
            (NO_HOLE, 0, 512, "a flag that this command does not have"),
        ] {
            let refused = client.refused(STATUS, flags, offset, length, &[]).await;
            assert_eq!(refused, (22, words.to_owned()), "{flags} {offset} {length}");
        }
        // Without a context, and without structured replies.
        let unasked = world.connect();
        unasked.greet().await;
        unasked.option(8, b"").await;
        assert_eq!(unasked.option_reply().await.1, 1);
        unasked.go().await;
        let refused = unasked.refused(STATUS, 0, 0, 4096, &[]).await;
        assert_eq!(refused, (22, "block status without a negotiated metadata context".to_owned()));
        let simple = world.client().await;
        assert_eq!(simple.call(STATUS, 0, 0, 4096, &[]).await, 22);
        assert_eq!(world.server.statistics().refused, 11);
        assert_eq!(world.server.statistics().block_statuses, 0);
        assert_eq!(extents(&client, REQ_ONE, end - 512, 512).await, [(512, HOLE)]);
    });
}

#[test]
fn a_client_that_was_not_told_of_block_sizes_may_ask_of_any_byte() {
    with_server(2, ServerOptions::default(), OnAck, |world| async move {
        let client = world.connect();
        client.greet().await;
        client.structured_options().await;
        client.option(1, b"").await;
        client.receive(10).await;
        client.write(PAGE, b"x").await;
        let told = extents(&client, 0, 1, 3 * PAGE as u32).await;
        assert_eq!(told, [(4095, HOLE), (4096, 0), (4097, HOLE)]);
    });
}

/// While pages are written and trimmed, a reported hole was a hole at some moment between request and reply.
#[test]
fn a_hole_was_one_between_request_and_reply() {
    for seed in 0..10 {
        with_server(seed, ServerOptions::default(), OnAck, move |world| async move {
            let (writer, looker) =
                (world.structured_client().await, world.structured_client().await);
            // Each round writes page 0 and then, after the reply, trims page 1; the next round swaps the pages.
            let changing = world.runtime.spawn("writer", async move {
                for round in 0..60 {
                    let (written, trimmed) = if round % 2 == 0 { (0, PAGE) } else { (PAGE, 0) };
                    writer.write(written, &[1; 4096]).await;
                    assert_eq!(writer.call(TRIM, 0, trimmed, 4096, &[]).await, 0);
                }
            });
            let mut seen = [0; 2];
            looker.write(PAGE, &[1; 4096]).await;
            for _ in 0..80 {
                let told = extents(&looker, 0, 0, 2 * PAGE as u32).await;
                // One of the two has content at every moment.
                let has_content = told.iter().any(|(_, flags)| *flags == 0);
                assert!(has_content, "seed {seed}: {told:?} was never so");
                seen[usize::from(told[0].1 == 0)] += 1;
                world.runtime.sleep(500).await;
            }
            assert!(seen.iter().all(|times| *times > 5), "seed {seed}: {seen:?}");
            changing.await;
        });
    }
}

/// Every second page has content, so that there are as many extents as pages.
#[test]
fn a_long_answer_is_cut_and_the_client_asks_for_the_rest() {
    let runtime = Virtual::new(Schedule::Fifo);
    let device = Rc::new(super::memory_device::MemoryDevice::new(140_000, 4, OnAck));
    let export = export(&device);
    let client = alone(&runtime);
    let main = async move {
        let page = PageBuf::copy_from(&[1; 4096]);
        for at in (0..5_000).step_by(2) {
            device.write(PageNo(at), std::slice::from_ref(&page), None).await.unwrap();
        }
        let status = async |offset: u64| -> Vec<Descriptor> {
            let length = (140_000 * PAGE - offset) as u32;
            let request =
                Request { flags: 0, command: Command::BlockStatus, cookie: 1, offset, length };
            match export.perform(&request, &mut Vec::new(), &client).await.unwrap() {
                Done::Status(told) => told,
                other => panic!("{other:?}"),
            }
        };
        let bytes =
            |told: &[Descriptor]| told.iter().map(|told| u64::from(told.bytes)).sum::<u64>();
        let first = status(0).await;
        // It fits the four pages reserved for the reply.
        assert_eq!(first.len(), (4 * 4096 - 24) / 8);
        assert_eq!(bytes(&first), first.len() as u64 * PAGE);
        let (mut at, mut replies) = (0, 0);
        while at < 140_000 * PAGE {
            let told = status(at).await;
            for (page, extent) in (at / PAGE..).zip(&told).take(told.len() - 1) {
                let flags = if page % 2 == 0 { 0 } else { HOLE };
                assert_eq!((extent.bytes, extent.flags), (4096, flags), "page {page}");
            }
            at += bytes(&told);
            replies += 1;
        }
        // Three with all descriptors that fit, the rest in pieces of 65536 pages.
        assert_eq!((at, replies), (140_000 * PAGE, 5));
        let whole = PageRange::new(PageNo(0), 140_000);
        assert_eq!(device.extent(whole).pages, 1);
    };
    runtime.run(main).unwrap();
}
