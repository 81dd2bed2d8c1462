//! Structured replies: negotiation, reads in chunks, errors with messages.
use super::world::*;
use crate::ServerOptions;
use tantalum_base::{Durability::OnAck, ErrorKind, PageNo, Rng};

const INVALID: u32 = 0x8000_0003;
const UNKNOWN: u32 = 0x8000_0006;
const TOO_BIG: u32 = 0x8000_0009;
const DATA: u16 = 1;
const HOLE: u16 = 2;

/// The export flags in an INFO reply, and whether DF is among them.
async fn flags_of(client: &Client) -> (u16, bool) {
    client.option(6, b"\0\0\0\0\0\0").await;
    let (_, _, export) = client.option_reply().await;
    while client.option_reply().await.1 != 1 {}
    let flags = u16::from_be_bytes(export[10..12].try_into().unwrap());
    (flags & !0x80, flags & 0x80 != 0)
}

/// The data of a request for metadata contexts.
fn queries(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend(name.as_bytes());
    data.extend((queries.len() as u32).to_be_bytes());
    for query in queries {
        data.extend((query.len() as u32).to_be_bytes());
        data.extend(query.as_bytes());
    }
    data
}

#[test]
fn df_is_offered_with_structured_replies_alone() {
    with_server(1, ServerOptions::default(), OnAck, |world| async move {
        let client = world.connect();
        client.greet().await;
        let (before, df) = flags_of(&client).await;
        assert!(!df);
        client.option(8, b"x").await;
        assert_eq!(client.option_reply().await.1, INVALID);
        assert!(!flags_of(&client).await.1, "a refused option was taken");
        // A second request changes nothing.
        for _ in 0..2 {
            client.option(8, b"").await;
            assert_eq!(client.option_reply().await, (8, 1, vec![]));
        }
        assert_eq!(flags_of(&client).await, (before, true));
        client.option(1, b"").await;
        let flags = client.receive(10).await;
        assert_eq!(u16::from_be_bytes([flags[8], flags[9]]), before | 0x80);
        assert_eq!(client.ask(READ, DF, 0, 512, &[]).await.len(), 1);
        // A client that negotiated nothing does not have the flag.
        assert_eq!(world.client().await.call(READ, DF, 0, 512, &[]).await, 22);
    });
}

#[test]
fn contexts_are_listed_and_selected_by_name() {
    with_server(2, ServerOptions::default(), OnAck, |world| async move {
        let client = world.connect();
        client.greet().await;
        // Without structured replies, contexts may be listed but not selected.
        client.option(10, &queries("", &["base:allocation"])).await;
        assert_eq!(client.option_reply().await.1, INVALID);
        let found: [(u32, &[&str], Option<u8>); 7] = [
            (9, &[], Some(0)),
            (9, &["base:"], Some(0)),
            (9, &["other:x", "base:allocation"], Some(0)),
            (9, &["base:other"], None),
            (10, &[], None),
            (10, &["base:", "x"], None),
            (10, &["base:allocation", "base:allocation"], Some(1)),
        ];
        client.option(8, b"").await;
        assert_eq!(client.option_reply().await.1, 1);
        for (option, asked, id) in found {
            client.option(option, &queries("tantalum", asked)).await;
            if let Some(id) = id {
                let context = [&[0, 0, 0, id], &b"base:allocation"[..]].concat();
                assert_eq!(client.option_reply().await, (option, 4, context), "{asked:?}");
            }
            assert_eq!(client.option_reply().await, (option, 1, vec![]), "{asked:?}");
        }
        let mut cut = queries("", &["base:allocation"]);
        cut.pop();
        for (data, answer) in [
            (cut, INVALID),
            (vec![0; 7], INVALID),
            (b"\xff\xff\xff\xff\0\0\0\0".to_vec(), INVALID),
            (b"\0\0\0\0\xff\xff\xff\xff".to_vec(), INVALID),
            (queries("other", &["base:allocation"]), UNKNOWN),
            (vec![0; 100_000], TOO_BIG),
        ] {
            for option in [9, 10] {
                client.option(option, &data).await;
                let reply = client.option_reply().await;
                assert_eq!((reply.0, reply.1), (option, answer), "{data:.40?}");
            }
        }
    });
}

#[test]
fn a_selection_holds_until_the_next_one_good_or_not() {
    with_server(3, ServerOptions::default(), OnAck, |world| async move {
        let second = [
            (queries("", &[]), 22),
            (queries("", &["base:other"]), 22),
            (queries("other", &["base:allocation"]), 22),
            (vec![1], 22),
            (vec![0; 100_000], 22),
            (queries("", &["base:allocation"]), 0),
        ];
        for (data, expected) in second {
            let client = world.connect();
            client.greet().await;
            client.structured_options().await;
            // Listing changes nothing.
            client.option(9, &queries("", &["x:"])).await;
            assert_eq!(client.option_reply().await.1, 1);
            client.option(10, &data).await;
            while client.option_reply().await.1 == 4 {}
            client.go().await;
            let chunks = client.ask(STATUS, 0, 0, 4096, &[]).await;
            let error = if chunks[0].kind == 5 { 0 } else { chunks[0].error().0 };
            assert_eq!(error, expected, "{data:.40?}");
        }
    });
}

/// The bytes of a read, assembled from its chunks, which must not overlap; and the number of bytes that came as holes.
fn put_together(chunks: &[Chunk], offset: u64, length: u32) -> (Vec<u8>, u32) {
    let mut bytes: Vec<Option<u8>> = vec![None; length as usize];
    let mut in_holes = 0;
    for chunk in chunks {
        let data = match chunk.kind {
            0 => {
                assert!(chunk.payload.is_empty() && chunks.len() == 1);
                continue;
            }
            DATA => chunk.payload[8..].to_vec(),
            HOLE => {
                assert_eq!(chunk.payload.len(), 12);
                in_holes += chunk.word(8);
                vec![0; chunk.word(8) as usize]
            }
            kind => panic!("a chunk of kind {kind} in a read"),
        };
        assert!(!data.is_empty());
        for (at, byte) in (chunk.offset() - offset..).zip(data) {
            assert!(bytes[at as usize].replace(byte).is_none(), "byte {at} came twice");
        }
    }
    (bytes.into_iter().map(|byte| byte.expect("all bytes came")).collect(), in_holes)
}

#[test]
fn reads_leave_out_what_has_no_content() {
    with_server(4, ServerOptions::default(), OnAck, |world| async move {
        let client = world.structured_client().await;
        // A written page of zeros is data.
        client.write(4 * 4096, &[[5; 4096], [0; 4096]].concat()).await;
        let kinds = |chunks: &[Chunk]| -> Vec<(u16, u64, usize)> {
            let bytes = |chunk: &Chunk| match chunk.kind {
                HOLE => chunk.word(8) as usize,
                _ => chunk.payload.len() - 8,
            };
            chunks.iter().map(|chunk| (chunk.kind, chunk.offset(), bytes(chunk))).collect()
        };
        let chunks = client.ask(READ, 0, 3 * 4096 + 512, 5 * 4096, &[]).await;
        let expected =
            [(HOLE, 3 * 4096 + 512, 3584), (DATA, 4 * 4096, 8192), (HOLE, 6 * 4096, 8704)];
        assert_eq!(kinds(&chunks), expected);
        // In one piece, if that is requested.
        let chunks = client.ask(READ, DF, 3 * 4096 + 512, 5 * 4096, &[]).await;
        assert_eq!(kinds(&chunks), [(DATA, 3 * 4096 + 512, 5 * 4096)]);
        assert_eq!(chunks[0].payload[8 + 3584..][..4096], [5; 4096]);
        let chunks = client.ask(READ, DF, 8 * 4096, 5 * 4096, &[]).await;
        assert_eq!(kinds(&chunks), [(HOLE, 8 * 4096, 5 * 4096)]);
        let chunks = client.ask(READ, 0, 4096, 0, &[]).await;
        assert_eq!((chunks.len(), chunks[0].kind), (1, 0));
        // Other requests get simple replies, as before.
        assert_eq!(client.call(FLUSH, 0, 0, 0, &[]).await, 0);
    });
}

#[test]
fn random_reads_are_what_a_plain_vector_has() {
    for seed in 0..6 {
        with_server(seed, ServerOptions::default(), OnAck, move |world| async move {
            let mut rng = Rng::split(seed, "structured");
            let mut model = vec![0_u8; 64 * 4096];
            let client = world.structured_client().await;
            let mut in_holes = 0;
            for round in 0..300 {
                let sectors = 1 + rng.below(60);
                let sector = rng.below(64 * 8 - sectors + 1);
                let (offset, length) = (sector * 512, sectors as u32 * 512);
                let inside = &mut model[offset as usize..][..length as usize];
                match rng.below(6) {
                    0 | 1 => {
                        rng.fill(inside);
                        client.write(offset, inside).await;
                    }
                    2 => {
                        inside.fill(0);
                        assert_eq!(client.call(ZEROES, 0, offset, length, &[]).await, 0);
                    }
                    _ => {
                        let flags = if rng.chance(0.3) { DF } else { 0 };
                        let chunks = client.ask(READ, flags, offset, length, &[]).await;
                        assert!(flags != DF || chunks.len() == 1);
                        let (read, holes) = put_together(&chunks, offset, length);
                        assert!(read == *inside, "seed {seed}, round {round}, {offset}+{length}");
                        in_holes += holes;
                    }
                }
            }
            assert!(in_holes > 100_000, "seed {seed}: {in_holes}");
        });
    }
}

#[test]
fn errors_come_with_their_words() {
    with_server(5, ServerOptions::default(), OnAck, |world| async move {
        let client = world.structured_client().await;
        let end = 64 * 4096;
        for (command, offset, length, payload, error, words) in [
            (READ, end, 512, 0, 22, "past the end of the export"),
            (WRITE, end, 512, 512, 28, "past the end of the export"),
            (READ, 1, 512, 0, 22, "offset or length is no multiple of the minimum block size"),
            (READ, 0, 64 << 20, 0, 22, "longer than the maximum block size"),
            (FLUSH, 0, 512, 0, 22, "a flush of a range"),
            (5, 0, 512, 0, 22, "an unknown command"),
        ] {
            let refused = client.refused(command, 0, offset, length, &vec![1; payload]).await;
            assert_eq!(refused, (error, words.to_owned()));
        }
        let flag = client.refused(WRITE, DF, 0, 512, &[1; 512]).await;
        assert_eq!(flag, (22, "a flag that this command does not have".to_owned()));
        world.device.failing_page.set(Some(PageNo(3)));
        for (command, payload) in [(READ, 0), (WRITE, 4096), (TRIM, 0)] {
            let refused = client.refused(command, 0, 3 * 4096, 4096, &vec![1; payload]).await;
            assert_eq!(refused, (5, "as the test asked".to_owned()));
        }
        world.device.failing_page.set(None);
        world.device.failure.set(Some(ErrorKind::Latched));
        assert_eq!(client.refused(FLUSH, 0, 0, 0, &[]).await.0, 5);
        world.device.failure.set(None);
        assert_eq!(client.ask(READ, 0, 0, 4096, &[]).await[0].kind, HOLE);
        assert_eq!(world.server.statistics().errors, 11);
    });
}

#[test]
fn a_read_only_export_says_why_it_does_not_change() {
    let options = ServerOptions { read_only: true, ..Default::default() };
    with_server(6, options, OnAck, |world| async move {
        let client = world.structured_client().await;
        let refused = client.refused(ZEROES, 0, 0, 4096, &[]).await;
        assert_eq!(refused, (1, "the export is read-only".to_owned()));
        assert_eq!(client.ask(STATUS, 0, 0, 4096, &[]).await[0].kind, 5);
    });
}
