//! An ext4 file system on a loop device over `nbdfuse`, where available (root, FUSE, loop devices).
mod support;

use support::{installed, run, serve};
use tantalum_base::Durability;
use tantalum_nbd::ServerOptions;

/// Makes a file system, fills it, checks it, mounts it again and compares. `$1` is the server's URI, `$2` a folder for
/// the mounts. Nothing stays mounted in any case.
const SCRIPT: &str = r#"
set -e
mkdir "$2/nbd" "$2/ext4"
nbdfuse "$2/nbd" "$1" &
fuse=$!
loop=
clean() {
    umount "$2/ext4" 2>/dev/null || true
    [ -z "$loop" ] || losetup -d "$loop"
    fusermount3 -u "$2/nbd" 2>/dev/null || umount "$2/nbd" || true
    wait $fuse || true
}
trap 'clean "$@"' EXIT
for turn in $(seq 50); do [ -e "$2/nbd/nbd" ] && break; sleep 0.1; done
loop=$(losetup -f --show "$2/nbd/nbd")
mkfs.ext4 -q "$loop"
mount "$loop" "$2/ext4"
head -c 20000000 /dev/urandom > "$2/there"
for copy in 1 2 3; do cp "$2/there" "$2/ext4/$copy"; done
rm "$2/ext4/2"
sync "$2/ext4/1"
fstrim "$2/ext4" || true
umount "$2/ext4"
e2fsck -fn "$loop"
mount "$loop" "$2/ext4"
cmp "$2/there" "$2/ext4/1"
cmp "$2/there" "$2/ext4/3"
"#;

#[test]
fn ext4_on_a_loop_device_keeps_its_files() {
    let programs = ["nbdfuse", "losetup", "mkfs.ext4", "e2fsck", "fusermount3", "fstrim"];
    if !installed(&programs) || !tantalum_testing::can_loop() {
        return;
    }
    let serving = serve(128 << 20, Durability::OnFlush, ServerOptions::default());
    let folder = serving.folder.path().to_string_lossy().into_owned();
    run("sh", &["-c", SCRIPT, "sh", &serving.uri(), &folder]);
    let statistics = serving.finish();
    assert!(statistics.flushes > 0 && statistics.writes > 100, "{statistics:?}");
    assert_eq!((statistics.errors, statistics.connections_failed), (0, 0), "{statistics:?}");
}
