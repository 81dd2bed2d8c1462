use super::world::*;
use crate::ServerOptions;
use tantalum_base::Durability::OnAck;

const ACK: u32 = 1;
const UNSUP: u32 = 0x8000_0001;
const INVALID: u32 = 0x8000_0003;
const UNKNOWN: u32 = 0x8000_0006;
const TOO_BIG: u32 = 0x8000_0009;

fn options() -> ServerOptions {
    ServerOptions {
        export_name: "vol".into(),
        description: "a volume".into(),
        ..Default::default()
    }
}

#[test]
fn list_info_go_and_abort() {
    with_server(1, options(), OnAck, |world| async move {
        let client = world.connect();
        client.greet().await;
        client.option(3, b"").await;
        assert_eq!(client.option_reply().await, (3, 2, b"\0\0\0\x03vola volume".to_vec()));
        assert_eq!(client.option_reply().await, (3, ACK, vec![]));
        client.option(6, b"\0\0\0\x03vol\0\x03\0\x01\0\x02\0\x03").await;
        let flags = 0b1001_0110_1101_u16.to_be_bytes();
        let size = (64 * 4096_u64).to_be_bytes();
        let export = [&[0, 0], &size[..], &flags[..]].concat();
        assert_eq!(client.option_reply().await, (6, 3, export.clone()));
        assert_eq!(client.option_reply().await, (6, 3, b"\0\x01vol".to_vec()));
        assert_eq!(client.option_reply().await, (6, 3, b"\0\x02a volume".to_vec()));
        let sizes = b"\0\x03\0\0\x02\0\0\0\x10\0\x02\0\0\0".to_vec();
        assert_eq!(client.option_reply().await, (6, 3, sizes.clone()));
        assert_eq!(client.option_reply().await, (6, ACK, vec![]));
        client.option(7, b"\0\0\0\0\0\0").await;
        assert_eq!(client.option_reply().await, (7, 3, export));
        assert_eq!(client.option_reply().await, (7, 3, sizes));
        assert_eq!(client.option_reply().await, (7, ACK, vec![]));
        // The INFO before requested block sizes, so they bind.
        assert_eq!(client.call(READ, 0, 1, 512, &[]).await, 22);
        let other = world.connect();
        other.greet().await;
        other.option(2, b"").await;
        assert_eq!(other.option_reply().await, (2, ACK, vec![]));
        assert!(other.is_closed().await);
        assert_eq!(world.server.statistics().connections_failed, 0);
    });
}

#[test]
fn options_that_cannot_be_met_are_answered_and_negotiation_goes_on() {
    with_server(2, options(), OnAck, |world| async move {
        let client = world.connect();
        client.greet().await;
        let answers: [(u32, Vec<u8>, u32); 9] = [
            (5, vec![], UNSUP),
            (4, vec![], UNSUP),
            (11, vec![0; 12], UNSUP),
            (0xdead_beef, vec![7; 100], UNSUP),
            (3, vec![1], INVALID),
            (7, b"\0\0\0\x09vol\0\0".to_vec(), INVALID),
            (6, vec![], INVALID),
            (7, b"\0\0\0\x05other\0\0".to_vec(), UNKNOWN),
            (7, vec![0; 300_000], TOO_BIG),
        ];
        for (option, data, reply) in answers {
            client.option(option, &data).await;
            let answer = client.option_reply().await;
            assert_eq!((answer.0, answer.1), (option, reply));
        }
        client.option(7, b"\0\0\0\x03vol\0\0").await;
        while client.option_reply().await.1 != ACK {}
        client.write(0, &[1; 4096]).await;
    });
}

#[test]
fn export_name_with_and_without_zeroes() {
    with_server(3, options(), OnAck, |world| async move {
        for (flags, zeroes) in [(3, 0), (1, 124)] {
            let client = world.connect();
            client.receive(18).await;
            client.send(&[0, 0, 0, flags]).await;
            client.option(1, b"vol").await;
            let reply = client.receive(10 + zeroes).await;
            assert_eq!(reply[..8], (64 * 4096_u64).to_be_bytes());
            // This client did not request block sizes, so any alignment will do.
            client.write(4095, b"ab").await;
            assert_eq!(client.read(4094, 4).await, b"\0ab\0");
            client.request(DISC, 0, 0, 0, &[]).await;
            assert!(client.is_closed().await);
        }
        let client = world.connect();
        client.greet().await;
        client.option(1, b"other").await;
        assert!(client.is_closed().await);
    });
}

#[test]
fn a_read_only_export_says_so_and_refuses() {
    let options = ServerOptions { read_only: true, ..options() };
    with_server(4, options, OnAck, |world| async move {
        let client = world.connect();
        client.greet().await;
        client.option(1, b"").await;
        let flags = client.receive(10).await[9];
        assert_eq!(flags & 2, 2);
        assert_eq!(client.call(WRITE, 0, 0, 4096, &[1; 4096]).await, 1);
        assert_eq!(client.call(TRIM, 0, 0, 4096, &[]).await, 1);
        assert_eq!(client.call(ZEROES, 0, 0, 4096, &[]).await, 1);
        assert_eq!(client.read(0, 4096).await, [0; 4096]);
        assert_eq!(client.call(FLUSH, 0, 0, 0, &[]).await, 0);
    });
}

/// Two clients with the same part, and one with all of it, at the same time.
#[test]
fn a_part_is_served_by_its_name_as_if_it_were_all() {
    with_server(9, options(), OnAck, |world| async move {
        let whole = world.connect();
        whole.greet().await;
        whole.option(1, b"").await;
        whole.receive(10).await;
        whole.write(0, &[1; 3 * 4096]).await;
        whole.write(8 * 4096, &[2; 4096]).await;
        let part = world.connect();
        part.greet().await;
        part.option(7, b"\0\0\0\x0c@32KiB+16KiB\0\x01\0\x01").await;
        let export = part.option_reply().await.2;
        assert_eq!(export[2..10], (16_384_u64).to_be_bytes());
        assert_eq!(part.option_reply().await, (7, 3, b"\0\x01@32KiB+16KiB".to_vec()));
        while part.option_reply().await.1 != ACK {}
        assert_eq!(part.read(0, 8192).await, [[2; 4096], [0; 4096]].concat());
        // Unaligned bytes, too.
        part.write(4095, b"ab").await;
        assert_eq!(whole.read(8 * 4096 + 4094, 4).await, b"\x02ab\0");
        assert_eq!(part.call(TRIM, 0, 0, 8192, &[]).await, 0);
        assert_eq!(part.call(FLUSH, 0, 0, 0, &[]).await, 0);
        assert_eq!(whole.read(8 * 4096, 8192).await, [0; 8192]);
        // The part ends where its name says.
        part.write(12_288, &[3; 4096]).await;
        assert_eq!(part.call(WRITE, 0, 12_288, 8192, &[3; 8192]).await, 28);
        assert_eq!(part.call(READ, 0, 16_384, 512, &[]).await, 22);
        assert_eq!(whole.read(11 * 4096, 8192).await, [[3; 4096], [0; 4096]].concat());
        assert_eq!(whole.read(0, 3 * 4096).await, [1; 3 * 4096]);
        let beyond = world.connect();
        beyond.greet().await;
        beyond.option(7, b"\0\0\0\x0f@252KiB+8192KiB\0\0").await;
        assert_eq!(beyond.option_reply().await.1, UNKNOWN);
    });
}
