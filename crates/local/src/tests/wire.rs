//! Encoded messages decode to the same value, and other bytes are refused.
use super::world::content;
use crate::changes::Changed;
use crate::protocol::{
    HEAD_BYTES, Head, Hello, Welcome, decode_call, decode_reply, encode_call, encode_reply,
};
use crate::{Answer, Call, FileId, Level, Raise, Request};
use tantalum_base::{Durability, Error, ErrorKind, Limits, PageNo, PageRange, Rng, TxId};

fn calls() -> Vec<Call> {
    let tx = Some(TxId(u64::MAX));
    let requests = [
        Request::Read { first: PageNo(7), pages: 2048, tx: None },
        Request::Read { first: PageNo(7), pages: 0, tx },
        Request::Write { first: PageNo(u64::MAX), pages: vec![content(1), content(2)], tx },
        Request::Write { first: PageNo(0), pages: vec![], tx: None },
        Request::WriteScattered(vec![(PageNo(9), content(3)), (PageNo(2), content(4))]),
        Request::WriteScattered(vec![]),
        Request::Flush,
        Request::Trim(PageRange::new(PageNo(3), 1 << 40)),
        Request::Share(vec![(PageNo(1), PageNo(2)), (PageNo(3), PageNo(4))]),
        Request::Begin,
        Request::Commit(TxId(5)),
        Request::Abort(TxId(6)),
    ];
    let view = PageRange::new(PageNo(0), 2);
    let raise = Raise { holder: 3, wanted: Level::Exclusive, seen: 1 << 33, view };
    let locks = [
        Call::Raise(raise),
        Call::Lower { holder: u64::MAX, wanted: Level::Shared },
        Call::IsReserved,
    ];
    requests.into_iter().map(Call::Device).chain(locks).collect()
}

fn split(frame: &[u8]) -> (Head, &[u8]) {
    let (head, body) = frame.split_first_chunk::<HEAD_BYTES>().unwrap();
    let head = Head::decode(head).unwrap();
    assert_eq!(head.body_bytes, body.len());
    (head, body)
}

#[test]
fn calls_come_as_they_went_and_damaged_ones_do_not_come_or_as_others() {
    let mut rng = Rng::split(1, "wire");
    for call in calls() {
        let frame = encode_call(77, &call);
        let (head, body) = split(&frame);
        assert_eq!(head.number, 77);
        assert_eq!(decode_call(head.kind, body).unwrap(), call);
        for cut in [1, 8, 4096].into_iter().filter(|cut| *cut <= body.len()) {
            let shorter = decode_call(head.kind, &body[..body.len() - cut]);
            assert_ne!(shorter.ok(), Some(call.clone()), "cut by {cut}");
        }
        for _ in 0..20 {
            // Nothing panics.
            let mut other = body.to_vec();
            other.iter_mut().for_each(|byte| *byte ^= if rng.chance(0.1) { 0xff } else { 0 });
            let _ = decode_call(head.kind, &other);
        }
    }
}

#[test]
fn answers_come_as_they_went() {
    let some = Answer {
        pages: vec![content(1), content(2)],
        tx: TxId(9),
        level: Level::Pending,
        last_change: 1 << 40,
        changed: Changed::Pages(vec![PageRange::new(PageNo(1), 2), PageRange::new(PageNo(8), 1)]),
    };
    let all = Answer { changed: Changed::Everything, ..Answer::default() };
    for answer in [Answer::default(), some, all] {
        let frame = encode_reply(5, &Ok(answer.clone()));
        let (head, body) = split(&frame);
        assert_eq!(decode_reply(head.kind, body).unwrap(), answer);
    }
    for kind in ErrorKind::ALL {
        let frame = encode_reply(5, &Err(Error::new(kind, "page 7: why").wrap("where")));
        let (head, body) = split(&frame);
        let error = decode_reply(head.kind, body).unwrap_err();
        assert_eq!((error.kind(), &*error.to_string()), (kind, "where: page 7: why"));
    }
}

#[test]
fn greetings_come_as_they_went() {
    for read_only in [false, true] {
        let hello = Hello { read_only, pid: 77 };
        let frame = hello.encode();
        let (head, body) = split(&frame);
        assert_eq!(Hello::decode(head.kind, body).unwrap(), hello);
        for durability in [Durability::OnAck, Durability::OnFlush, Durability::Volatile] {
            let limits = Limits {
                page_bytes: 4096,
                pages: 1 << 35,
                atomic_write_pages_max: 2,
                transaction_pages_max: 3,
                transactions_max: 4,
                share_pairs_max: 5,
                durability,
            };
            let file = read_only.then_some(FileId { device: (1, 2), inode: 1 << 60 });
            let welcome = Welcome { read_only, pid: 6, limits, last_change: 1 << 50, file };
            let frame = welcome.encode();
            let (head, body) = split(&frame);
            assert_eq!(Welcome::decode(head.kind, body).unwrap(), welcome);
        }
    }
}
