//! Servers on real sockets: which addresses they accept, and how they stop.
mod support;

use std::io::Read;
use std::os::unix::net::UnixStream;
use support::serve;
use tantalum_base::{Durability, ErrorKind};
use tantalum_nbd::ServerOptions;
use tantalum_runtime::live::net::Address;
use tantalum_runtime::live::{Live, LiveOptions};

#[test]
fn an_address_that_others_reach_must_be_asked_for() {
    let live = Live::new(LiveOptions::default()).unwrap();
    let everywhere: Address = "0.0.0.0:0".parse().unwrap();
    let refused = ServerOptions::default().listen(&live, &everywhere).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert!(refused.to_string().contains("allow_remote"), "{refused}");
    let remote = ServerOptions { allow_remote: true, ..Default::default() };
    remote.listen(&live, &everywhere).unwrap();
    ServerOptions::default().listen(&live, &"[::1]:0".parse().unwrap()).unwrap();
}

#[test]
fn a_stop_closes_idle_connections_and_removes_the_socket() {
    let serving = serve(1 << 20, Durability::OnAck, ServerOptions::default());
    let path = serving.file("nbd.sock");
    let mut silent = UnixStream::connect(&path).unwrap();
    let mut greeting = [0; 18];
    silent.read_exact(&mut greeting).unwrap();
    let statistics = serving.finish();
    assert_eq!(silent.read(&mut greeting).unwrap(), 0);
    assert!(!path.exists());
    assert_eq!((statistics.connections_accepted, statistics.connections_open), (1, 0));
    assert_eq!(statistics.connections_failed, 0);
}
