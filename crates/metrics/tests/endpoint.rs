//! Tests an endpoint on real sockets, with good, slow, greedy and malformed clients.
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use tantalum_base::ErrorKind;
use tantalum_metrics::{Endpoint, EndpointOptions, Scrape, fetch};
use tantalum_runtime::Live;
use tantalum_runtime::live::net::{Address, Stream};
use tantalum_runtime::live::remote::{RemoteSender, channel};
use tantalum_runtime::live::{LiveOptions, LiveThread, spawn_thread};

/// An endpoint on a separate thread; `finish` stops it.
struct Serving {
    address: Address,
    folder: tempfile::TempDir,
    stop: RemoteSender<()>,
    // Counts how often the metrics were collected.
    thread: LiveThread<u64>,
}

fn serve(address: Option<&str>, options: EndpointOptions) -> Serving {
    let folder = tempfile::tempdir().unwrap();
    let socket = Address::Unix(folder.path().join("metrics.sock"));
    let address = address.map_or(socket, |text| text.parse().unwrap());
    let (stop, mut stopped) = channel::<()>("the end of the test", 1);
    let (ready, is_ready) = std::sync::mpsc::channel();
    let thread = spawn_thread("metrics", LiveOptions::default(), move |live| async move {
        let listener = options.listen(&live, &address).unwrap();
        ready.send(listener.local_address().clone()).unwrap();
        let told = std::rc::Rc::new(Cell::new(0));
        let telling = std::rc::Rc::clone(&told);
        let endpoint = Endpoint::start(&live, listener, options, move |out| {
            telling.set(telling.get() + 1);
            out.counter("tantalum_told_total", "Times told", telling.get());
        });
        assert!(stopped.recv().await.is_none());
        endpoint.stop().await;
        told.get()
    })
    .unwrap();
    Serving { address: is_ready.recv().unwrap(), folder, stop, thread }
}

impl Serving {
    fn socket(&self) -> PathBuf {
        self.folder.path().join("metrics.sock")
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(self.socket()).unwrap()
    }

    /// The complete answer to these bytes.
    fn answer(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        rest(&mut stream)
    }

    fn finish(self) -> u64 {
        drop(self.stop);
        self.thread.join().unwrap()
    }
}

fn rest(stream: &mut impl Read) -> String {
    let mut rest = Vec::new();
    // A reset ends the connection just as well.
    let _ = stream.read_to_end(&mut rest);
    String::from_utf8(rest).unwrap()
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("")
}

const GET: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

#[test]
fn metrics_are_told_with_their_type_and_the_connection_closes() {
    let serving = serve(None, EndpointOptions::default());
    let answer = serving.answer(GET);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert_eq!(head.lines().next(), Some("HTTP/1.1 200 OK"));
    assert!(head.contains("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{head}");
    assert!(head.ends_with("\r\nConnection: close"), "{head}");
    assert!(body.contains("\ntantalum_told_total 1\n") && body.ends_with("scrapes_total 1\n"));

    let head_alone = serving.answer(b"HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head_alone.starts_with("HTTP/1.1 200 OK") && head_alone.ends_with("\r\n\r\n"));
    assert!(head_alone.contains(&format!("\r\nContent-Length: {}\r\n", body.len())));
    assert_eq!(serving.finish(), 2);
}

#[test]
fn what_is_no_question_is_answered_as_that() {
    let serving = serve(None, EndpointOptions::default());
    let long = [b"GET /metrics HTTP/1.1\r\nX: ", &[b'x'; 100_000][..]].concat();
    let body =
        [b"PUT /metrics HTTP/1.1\r\nContent-Length: 60000\r\n\r\n", &[0; 60_000][..]].concat();
    for (request, expected) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
        (b"DELETE /metrics HTTP/1.1\r\n\r\n", "405"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400"),
        (b"IHAVEOPT\0\0\0\x01\0\0\0\0", "400"),
        (&long, "431"),
        (&body, "405"),
    ] {
        let mut stream = serving.connect();
        // The connection may be cut off while this sends.
        let _ = stream.write_all(request);
        assert_eq!(status(&rest(&mut stream)), expected);
    }
    let refused_head = serving.answer(b"HEAD / HTTP/1.1\r\n\r\n");
    assert!(status(&refused_head) == "404" && refused_head.ends_with("\r\n\r\n"), "{refused_head}");
    // None of these requests made the endpoint collect metrics.
    assert_eq!(serving.finish(), 0);
}

#[test]
fn a_request_may_come_in_a_few_pieces_and_not_in_any_number() {
    let serving = serve(None, EndpointOptions::default());
    let mut stream = serving.connect();
    for piece in GET.chunks(9) {
        stream.write_all(piece).unwrap();
        std::thread::yield_now();
    }
    assert_eq!(status(&rest(&mut stream)), "200");
    let mut stream = serving.connect();
    let mut answered = Vec::new();
    for byte in [&b"GET /metrics HTTP/1.1\r\n"[..], &[b'a'; 20_000]].concat() {
        // Each byte arrives at the endpoint separately.
        if stream.write_all(&[byte]).is_err() {
            break;
        }
        stream.set_nonblocking(true).unwrap();
        let mut piece = [0; 512];
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => answered.extend_from_slice(&piece[..count]),
            Err(_) => {}
        }
        stream.set_nonblocking(false).unwrap();
    }
    stream.set_nonblocking(false).unwrap();
    answered.extend(rest(&mut stream).into_bytes());
    let answered = String::from_utf8(answered).unwrap();
    assert!(["400", "431"].contains(&status(&answered)), "{answered}");
    serving.finish();
}

#[test]
fn silent_clients_make_room_and_are_cut_off() {
    let options =
        EndpointOptions { connections_max: 4, connection_ms_max: 200, ..Default::default() };
    let serving = serve(None, options.clone());
    // Open as many connections as the limit allows, each with half a request.
    let mut silent: Vec<_> = (0..4).map(|_| serving.connect()).collect();
    silent.iter_mut().for_each(|stream| stream.write_all(&GET[..20]).unwrap());
    assert_eq!(status(&serving.answer(GET)), "200");
    for stream in &mut silent {
        assert_eq!(rest(stream), "");
    }
    // Clients that close midway leave nothing behind.
    for _ in 0..20 {
        let mut gone = serving.connect();
        gone.write_all(GET).unwrap();
        drop(gone);
    }
    assert_eq!(status(&serving.answer(GET)), "200");
    assert!(serving.finish() >= 2);
}

#[test]
fn many_at_once_are_answered_one_after_the_other() {
    let serving = serve(None, EndpointOptions::default());
    let mut streams: Vec<_> = (0..12).map(|_| serving.connect()).collect();
    streams.iter_mut().for_each(|stream| stream.write_all(GET).unwrap());
    for stream in &mut streams {
        assert_eq!(status(&rest(stream)), "200");
    }
    assert_eq!(serving.finish(), 12);
}

#[test]
fn a_stopping_endpoint_waits_for_nobody_and_leaves_no_socket() {
    let serving = serve(None, EndpointOptions::default());
    let mut silent = serving.connect();
    silent.write_all(&GET[..20]).unwrap();
    let socket = serving.socket();
    assert!(socket.exists());
    let folder = serving.folder;
    drop(serving.stop);
    assert_eq!(serving.thread.join().unwrap(), 0);
    assert_eq!(rest(&mut silent), "");
    assert!(!socket.exists());
    drop(folder);
}

#[test]
fn it_is_fetched_over_tcp_too() {
    let serving = serve(Some("127.0.0.1:0"), EndpointOptions::default());
    let Address::Tcp(address) = serving.address else { panic!("no TCP address") };
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(GET).unwrap();
    assert_eq!(status(&rest(&mut stream)), "200");
    let live = Live::new(LiveOptions::default()).unwrap();
    let (handle, address) = (live.clone(), serving.address.clone());
    let text = live.run(async move {
        let stream = Stream::connect(&handle, &address).unwrap();
        fetch(&handle, stream).await.unwrap()
    });
    let scrape = Scrape::parse(&text).unwrap();
    assert_eq!(scrape.sum("tantalum_told_total", &[]), Some(2.0));
    assert_eq!(scrape.sum("tantalum_metrics_scrapes_total", &[]), Some(2.0));
    assert_eq!(serving.finish(), 2);
}

#[test]
fn other_machines_are_let_in_only_when_asked() {
    let live = Live::new(LiveOptions::default()).unwrap();
    let remote: Address = "0.0.0.0:0".parse().unwrap();
    let error = EndpointOptions::default().listen(&live, &remote).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("--allow-remote"), "{error}");
    EndpointOptions { allow_remote: true, ..Default::default() }.listen(&live, &remote).unwrap();
}
