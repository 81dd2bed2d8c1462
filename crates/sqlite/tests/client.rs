//! A handle to a device on a thread of its own.
mod common;
use common::disk::Disk;
use tantalum::front_end::FrontEnd;
use tantalum_base::{ErrorKind, PageBuf, PageNo, PageRange};

fn page(fill: u8) -> PageBuf {
    PageBuf::copy_from(&[fill; 4096])
}

#[test]
fn calls_reach_the_device_and_errors_come_back_whole() {
    let disk = Disk::new(100, 20);
    let client = disk.client();
    let scattered: Vec<_> = [9, 3, 4, 50, 5].map(|at| (PageNo(at), page(at as u8))).into();
    client.write_scattered(scattered.clone()).unwrap();
    assert_eq!(disk.commits(), 1);
    assert_eq!(client.read(PageNo(3), 3).unwrap(), [page(3), page(4), page(5)]);
    let long = (0..20).map(|at| (PageNo(at), page(1))).collect();
    client.write_scattered(long).unwrap();
    let kind = |pages| client.write_scattered(pages).unwrap_err().kind();
    assert_eq!(kind((0..21).map(|at| (PageNo(at), page(2))).collect()), ErrorKind::TooLarge);
    assert_eq!(kind(vec![(PageNo(1), page(2)); 2]), ErrorKind::InvalidInput);
    assert_eq!(kind(vec![(PageNo(1), page(2)), (PageNo(100), page(2))]), ErrorKind::OutOfRange);
    assert_eq!(client.read(PageNo(1), 1).unwrap(), [page(1)], "nothing of a refused one");
    assert_eq!(client.read(PageNo(99), 2).unwrap_err().kind(), ErrorKind::OutOfRange);
    client.write_scattered(Vec::new()).unwrap();
    assert_eq!(disk.commits(), 2, "nothing to write is no transaction");
    let mut tx = client.begin().unwrap();
    tx.write(PageNo(1), vec![page(7)]).unwrap();
    assert_eq!(tx.read(PageNo(1), 1).unwrap(), [page(7)]);
    let again = client.transaction(tx.number());
    assert_eq!(client.read(PageNo(1), 1).unwrap(), [page(1)]);
    tx.abort().unwrap();
    assert_eq!(again.commit().unwrap_err().kind(), ErrorKind::UnknownTransaction);
    client.trim(PageRange::new(PageNo(1), 1)).unwrap();
    client.flush().unwrap();
    assert_eq!(client.read(PageNo(1), 1).unwrap(), [page(0)]);
    disk.state().fail_in = Some(0);
    let error = client.write(PageNo(2), vec![page(3)]).unwrap_err();
    assert_eq!((error.kind(), error.context()), (ErrorKind::Io, "injected"));
}

#[test]
fn many_threads_share_a_client() {
    let disk = Disk::new(1000, 20);
    let client = disk.client();
    std::thread::scope(|scope| {
        // At most as many as the device's limit on open transactions.
        for thread in 0..4u64 {
            let client = client.clone();
            scope.spawn(move || {
                for round in 0..100u64 {
                    let first = PageNo(thread * 100 + round);
                    let content = page((thread * 50 + round % 50) as u8);
                    client.write_scattered(vec![(first, content.clone())]).unwrap();
                    assert_eq!(client.read(first, 1).unwrap(), [content]);
                }
            });
        }
    });
    assert_eq!(disk.commits(), 400);
}

#[test]
fn a_volume_whose_thread_has_gone_is_closed() {
    let (client, kill) = Disk::new(100, 20).mortal_client();
    client.write(PageNo(2), vec![page(3)]).unwrap();
    kill.send(()).unwrap();
    let mut calls = 0;
    // The thread ends at its own time; until then it serves.
    let error = loop {
        match client.read(PageNo(2), 1) {
            Ok(pages) => assert_eq!(pages, [page(3)]),
            Err(error) => break error,
        }
        calls += 1;
        assert!(calls < 10_000_000);
    };
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert_eq!(
        client.write_scattered(vec![(PageNo(1), page(1))]).unwrap_err().kind(),
        ErrorKind::Closed
    );
}

#[test]
fn a_panic_over_there_leaves_nobody_waiting() {
    let disk = Disk::new(100, 20);
    let client = disk.client();
    disk.state().panics = true;
    assert_eq!(client.read(PageNo(2), 1).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(client.flush().unwrap_err().kind(), ErrorKind::Closed);
}
