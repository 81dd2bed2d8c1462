//! The container image: made from the built package, on a base that is made here, as none can be downloaded.
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::{good, text};
use tantalum_testing::{built, installed, is_root, skip};

const BASE: &str = "localhost/debian:bookworm-slim";

/// Keeps images and containers in a separate folder.
struct Builder {
    folder: tempfile::TempDir,
}

impl Builder {
    fn new() -> Builder {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let at = |name: &str| folder.path().join(name);
        let storage = format!(
            "[storage]\ndriver = \"vfs\"\ngraphroot = {:?}\nrunroot = {:?}\n",
            at("graph"),
            at("run")
        );
        std::fs::write(at("storage.conf"), storage).unwrap();
        Builder { folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn output(&self, program: impl AsRef<Path>, args: &[&str]) -> Output {
        let mut command = Command::new(program.as_ref());
        command.args(args).stdin(Stdio::null()).env("BUILDAH_ISOLATION", "chroot");
        command.env("CONTAINERS_STORAGE_CONF", self.at("storage.conf")).env("BASE", BASE);
        command.env("OUT", self.folder.path()).env("COMPRESSION", "-Zgzip -z1");
        command.env("BUILT", built::folder()).output().unwrap()
    }

    /// The output of `program`, which must succeed.
    fn run(&self, program: impl AsRef<Path>, args: &[&str]) -> String {
        let output = self.output(program, args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(name)
}

#[test]
fn the_image_runs_as_nobody_in_particular_and_serves_a_volume() {
    let programs = ["buildah", "mmdebstrap", "dpkg-deb", "dpkg-shlibdeps"];
    if !installed(&programs) || !is_root() {
        return;
    }
    if !built::folder().join("libtantalum.a").exists() {
        return skip("what scripts/test builds");
    }
    let builder = Builder::new();
    let base = builder.at("base.tar");
    let debian = builder.output("mmdebstrap", &["--variant=minbase", "bookworm", text(&base)]);
    if !debian.status.success() {
        return skip("a mirror of Debian");
    }
    std::fs::write(builder.at("Containerfile"), "FROM scratch\nADD base.tar /\n").unwrap();
    builder.run("buildah", &["build", "--quiet", "--tag", BASE, text(builder.folder.path())]);

    builder.run(script("package"), &[]);
    let image = builder.run(script("container"), &[]);
    let container = builder.run("buildah", &["from", &image]);
    let inside = |line: &str| builder.run("buildah", &["run", &container, "--", "sh", "-ec", line]);
    assert_eq!(inside("tantalum --version"), good(&["--version"]).trim());
    assert_ne!(inside("id -u"), "0");
    inside("tantalum create v/VOLUME.toml --capacity 16MiB");
    let served = inside(
        "timeout -s TERM 2 tantalum serve v/VOLUME.toml --nbd 127.0.0.1:0 || test $? = 124; tantalum check v/VOLUME.toml",
    );
    assert!(served.contains("at 127.0.0.1:") && served.contains("sound"), "{served}");
    builder.run("buildah", &["rm", &container]);
}
