//! Stock clients on a sparse volume: they see which bytes are allocated, and leave the rest out of copies.
mod support;

use std::collections::BTreeSet;
use std::path::PathBuf;
use support::exposition::Told;
use support::nbd::{Client, PAGE_BYTES};
use support::server::{Server, run};
use support::{good, text};
use tantalum_base::Rng;
use tantalum_testing::installed;

const PAGES: u64 = 16384;

/// An extent: first byte, length in bytes, storage.
type Extent = (u64, u64, Stored);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stored {
    Data,
    /// Written zeros.
    Zeros,
    Hole,
}

/// The expected content of a volume of 64 MiB.
struct Sparse {
    folder: tempfile::TempDir,
    config: PathBuf,
    bytes: Vec<u8>,
    mapped: BTreeSet<u64>,
}

impl Sparse {
    fn new() -> Sparse {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("v.toml");
        good(&["create", text(&config), "--capacity", "64MiB", "--durability", "on_ack"]);
        Sparse {
            folder,
            config,
            bytes: vec![0; PAGES as usize * PAGE_BYTES],
            mapped: BTreeSet::new(),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn serve(&self) -> Server {
        let metrics = format!("unix:{}", self.file("metrics.sock").display());
        Server::start_as(&self.config, &["--metrics", &metrics])
    }

    /// Writes and trims pages at places drawn with `seed`.
    fn change(&mut self, server: &Server, seed: u64) {
        let mut client = Client::connect(&server.socket).unwrap();
        let mut rng = Rng::split(seed, "sparse volume");
        for change in 0..60 {
            let pages = 1 + rng.below(12);
            let first = rng.below(PAGES - pages);
            let at = first as usize * PAGE_BYTES..(first + pages) as usize * PAGE_BYTES;
            if change % 3 < 2 {
                rng.fill(&mut self.bytes[at.clone()]);
                if change % 10 == 0 {
                    // Written zeros are not a hole; sometimes they are between other content.
                    let half = if change % 20 == 0 { at.start } else { at.start.midpoint(at.end) };
                    self.bytes[half / PAGE_BYTES * PAGE_BYTES..at.end].fill(0);
                }
                client.write(first, &self.bytes[at]);
                self.mapped.extend(first..first + pages);
            } else {
                // A trim that includes a part of the written pages.
                let first = *self.mapped.range(first..).next().unwrap_or(&first);
                let pages = pages.min(PAGES - first);
                let at = first as usize * PAGE_BYTES..(first + pages) as usize * PAGE_BYTES;
                client.trim(first, pages as usize);
                self.bytes[at].fill(0);
                (first..first + pages).for_each(|page| _ = self.mapped.remove(&page));
            }
        }
    }

    fn is_zero(&self, page: u64) -> bool {
        self.bytes[page as usize * PAGE_BYTES..][..PAGE_BYTES].iter().all(|byte| *byte == 0)
    }

    fn extents(&self) -> Vec<Extent> {
        let mut extents: Vec<Extent> = Vec::new();
        for page in 0..PAGES {
            let at = page * PAGE_BYTES as u64;
            let stored = match self.is_zero(page) {
                _ if !self.mapped.contains(&page) => Stored::Hole,
                true => Stored::Zeros,
                false => Stored::Data,
            };
            match extents.last_mut() {
                Some(last) if last.2 == stored => last.1 += PAGE_BYTES as u64,
                _ => extents.push((at, PAGE_BYTES as u64, stored)),
            }
        }
        extents
    }

    /// Bytes that clients have read so far.
    fn bytes_read(&self) -> f64 {
        let told = Told::by(&self.file("metrics.sock"));
        told.get("tantalum_nbd_request_bytes_total{command=\"read\"}")
    }
}

/// The output of `nbdinfo --map`.
fn nbdinfo_map(uri: &str) -> Vec<Extent> {
    let told: serde_json::Value =
        serde_json::from_str(&run("nbdinfo", &["--map", "--json", uri])).unwrap();
    let extent = |extent: &serde_json::Value| {
        let of = |name: &str| extent[name].as_u64().unwrap();
        // Hole and zero are the two flags of `base:allocation`.
        let stored = match of("type") {
            0 => Stored::Data,
            2 => Stored::Zeros,
            3 => Stored::Hole,
            other => panic!("{other}"),
        };
        (of("offset"), of("length"), stored)
    };
    told.as_array().unwrap().iter().map(extent).collect()
}

#[test]
fn nbdinfo_shows_what_was_written_and_not_trimmed() {
    if !installed(&["nbdinfo"]) {
        return;
    }
    let mut sparse = Sparse::new();
    let server = sparse.serve();
    assert_eq!(nbdinfo_map(&server.uri()), [(0, PAGES * PAGE_BYTES as u64, Stored::Hole)]);
    sparse.change(&server, 1);
    let expected = sparse.extents();
    assert!(expected.len() > 20);
    let zeros = expected.iter().filter(|(_, _, stored)| *stored == Stored::Zeros);
    assert!(zeros.count() > 1, "{expected:?}");
    assert_eq!(nbdinfo_map(&server.uri()), expected);
    server.kill();
    std::fs::remove_file(sparse.file("nbd.sock")).unwrap();
    std::fs::remove_file(sparse.file("metrics.sock")).unwrap();
    let server = sparse.serve();
    assert_eq!(nbdinfo_map(&server.uri()), expected, "after a kill");
    server.terminate();
    let server = Server::start_read_only(&sparse.config, sparse.file("nbd.sock"));
    assert_eq!(nbdinfo_map(&server.uri()), expected, "to be read only");
    server.terminate();
}

#[test]
fn nbdcopy_reads_where_something_is_allocated() {
    if !installed(&["nbdcopy"]) {
        return;
    }
    let mut sparse = Sparse::new();
    let server = sparse.serve();
    sparse.change(&server, 2);
    let (copy, back) = (sparse.file("copy"), sparse.file("back"));
    let before = sparse.bytes_read();
    run("nbdcopy", &[&server.uri(), text(&copy)]);
    let read = sparse.bytes_read() - before;
    assert!(std::fs::read(&copy).unwrap() == sparse.bytes);
    // The copy reads in blocks of 256 KiB, each of which contains data.
    let data: Vec<u64> = (0..PAGES).filter(|page| !sparse.is_zero(*page)).collect();
    let blocks: BTreeSet<u64> = data.iter().map(|page| page / 64).collect();
    let (least, most) = (data.len() * PAGE_BYTES, blocks.len() * 64 * PAGE_BYTES);
    assert!(most < sparse.bytes.len() / 4 && least < most, "{least} to {most}");
    assert!((least as f64..=most as f64).contains(&read), "{read}, not {least} to {most}");
    server.terminate();
    // Copy it into another volume, over that volume's content.
    let mut other = Sparse::new();
    let server = other.serve();
    other.change(&server, 3);
    run("nbdcopy", &["--flush", text(&copy), &server.uri()]);
    run("nbdcopy", &[&server.uri(), text(&back)]);
    assert!(std::fs::read(&back).unwrap() == sparse.bytes);
    server.terminate();
}

fn qemu_map(uri: &str) -> Vec<Extent> {
    let told = run("qemu-img", &["map", "--output=json", "-f", "raw", uri]);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let extent = |extent: &serde_json::Value| {
        let of = |name: &str| extent[name].as_u64().unwrap();
        let flag = |name: &str| extent[name].as_bool().unwrap();
        let stored = match (flag("zero"), flag("data")) {
            (false, _) => Stored::Data,
            (true, true) => Stored::Zeros,
            (true, false) => Stored::Hole,
        };
        (of("start"), of("length"), stored)
    };
    told.as_array().unwrap().iter().map(extent).collect()
}

#[test]
fn qemu_img_maps_and_converts() {
    if !installed(&["qemu-img"]) {
        return;
    }
    let mut sparse = Sparse::new();
    let server = sparse.serve();
    sparse.change(&server, 4);
    assert_eq!(qemu_map(&server.uri()), sparse.extents());
    let (copy, image) = (sparse.file("copy"), sparse.file("image.qcow2"));
    let before = sparse.bytes_read();
    run("qemu-img", &["convert", "-f", "raw", "-O", "raw", &server.uri(), text(&copy)]);
    let read = sparse.bytes_read() - before;
    assert!(std::fs::read(&copy).unwrap() == sparse.bytes);
    assert!(read < 4e6, "it read {read} bytes");
    run("qemu-img", &["convert", "-f", "raw", "-O", "qcow2", &server.uri(), text(&image)]);
    let compared =
        run("qemu-img", &["compare", "-f", "raw", "-F", "qcow2", &server.uri(), text(&image)]);
    assert!(compared.contains("identical"), "{compared}");
    server.terminate();
}

/// Clients split long ranges of zeros, within pages too.
#[test]
fn a_large_sparse_image_that_is_copied_in_leaves_holes() {
    if !installed(&["nbdinfo", "nbdcopy", "qemu-img", "qemu-io"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let (config, image) = (file("v.toml"), file("image"));
    good(&["create", text(&config), "--capacity", "9GiB", "--sparse", "--durability", "on_flush"]);
    const DATA_BYTES: u64 = 8 << 20;
    const BYTES: u64 = 9 << 30;
    std::fs::write(&image, vec![7; DATA_BYTES as usize]).unwrap();
    std::fs::File::options().write(true).open(&image).unwrap().set_len(BYTES).unwrap();
    let server = Server::start(&config);
    let expected = [(0, DATA_BYTES, Stored::Data), (DATA_BYTES, BYTES - DATA_BYTES, Stored::Hole)];
    let convert = ["convert", "-n", "-f", "raw", "-O", "raw", text(&image)];
    run("qemu-img", &[&convert[..], &[&server.uri()]].concat());
    assert_eq!(nbdinfo_map(&server.uri()), expected, "qemu-img convert");
    // Split as QEMU does, with content on both sides in each split page.
    let step = (2 << 30) - 512;
    let cuts: Vec<u64> = (DATA_BYTES..BYTES).step_by(step).collect();
    for cut in &cuts[1..] {
        let write = format!("write -P 3 {} 1024", cut - 512);
        run("qemu-io", &["-f", "raw", "-c", &write, &server.uri()]);
    }
    assert_ne!(nbdinfo_map(&server.uri()), expected);
    for cut in cuts {
        let write = format!("write -z -u {cut} {}", (BYTES - cut).min(step as u64));
        run("qemu-io", &["-f", "raw", "-c", &write, &server.uri()]);
    }
    assert_eq!(nbdinfo_map(&server.uri()), expected, "qemu-io write -z");
    run("nbdcopy", &["--flush", text(&image), &server.uri()]);
    assert_eq!(nbdinfo_map(&server.uri()), expected, "nbdcopy");
    server.terminate();
}

/// The content at the home of a tiered volume is unknown without reading it: all of it counts as data, and copies are
/// complete.
#[test]
fn a_tiered_volume_is_data() {
    if !installed(&["nbdinfo", "nbdcopy"]) {
        return;
    }
    let (folder, config) = tiered();
    let server = Server::start(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    client.write(3, &[7; PAGE_BYTES]);
    let map = nbdinfo_map(&server.uri());
    assert_eq!(map, [(0, map[0].1, Stored::Data)]);
    let copy = folder.path().join("copy");
    run("nbdcopy", &[&server.uri(), text(&copy)]);
    let bytes = std::fs::read(&copy).unwrap();
    assert_eq!(bytes.len() as u64, map[0].1);
    assert!((0..).zip(&bytes).all(|(at, byte)| *byte == if at / PAGE_BYTES == 3 { 7 } else { 0 }));
    server.terminate();
}

/// A tiered volume over a home of zeros.
fn tiered() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (home, flash, config) = (path("home"), path("flash"), path("v.toml"));
    let paths = ["--home", text(&home), "--flash", text(&flash)];
    let sizes = ["--capacity", "32MiB", "--flash-size", "128MiB"];
    good(&[&["create", text(&config)], &paths[..], &sizes[..]].concat());
    (folder, config)
}
