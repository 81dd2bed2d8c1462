//! Who may connect to the Unix sockets of a server.
mod support;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use support::{good, refused, text};
use tantalum_testing::built;

/// All sockets of a server in the folder of its volume.
const SOCKETS: [&str; 4] = ["nbd", "metrics", "v.toml.socket", "v.toml.control"];

/// Serves `v.toml` in `folder` at all kinds of sockets, with the umask that gives away most.
fn serve(folder: &Path, options: &[&str]) -> Child {
    let unix = |name: &str| format!("unix:{}", folder.join(name).display());
    let mut server = Command::new("sh")
        .args(["-c", "umask 0; exec \"$@\"", "sh", built::tantalum(), "serve"])
        .arg(folder.join("v.toml"))
        .args(["--socket", "--nbd", &unix("nbd"), "--metrics", &unix("metrics")])
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    lines.map_while(Result::ok).find(|line| line.starts_with("metrics at")).expect("it listens");
    server
}

#[test]
fn the_umask_opens_no_socket_and_a_group_may_be_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("v.toml");
    good(&["create", text(&config), "--capacity", "16MiB"]);
    let own = folder.path().metadata().unwrap().gid();
    let of_group = own.to_string();
    for (options, mode) in [(&[][..], 0o600), (&["--socket-group", &of_group], 0o660)] {
        let mut server = serve(folder.path(), options);
        let modes = SOCKETS.map(|name| {
            let about = folder.path().join(name).symlink_metadata().unwrap();
            (about.permissions().mode() & 0o777, about.gid())
        });
        server.kill().unwrap();
        server.wait().unwrap();
        assert_eq!(modes, [(mode, own); 4]);
    }
}

#[test]
fn an_unknown_group_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("v.toml");
    good(&["create", text(&config), "--capacity", "16MiB"]);
    let serve = ["serve", text(&config), "--socket"];
    let told = refused(&[&serve[..], &["--socket-group", "nobody-here"]].concat());
    assert!(told.contains("--socket-group: there is no group \"nobody-here\""), "{told}");
    let before = std::fs::read_to_string(&config).unwrap();
    let group = before.replace("# socket_group = \"disk\"", "socket_group = \"nobody-here\"");
    std::fs::write(&config, group).unwrap();
    let told = refused(&serve);
    assert!(told.contains("socket_group: there is no group \"nobody-here\""), "{told}");
}

/// Members of the group cannot open the volume's file, and ask its server.
#[test]
fn who_may_connect_may_ask_for_the_figures() {
    if !tantalum_testing::installed(&["setpriv"]) || !tantalum_testing::is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    // The folder of the build may be closed to others.
    let program = folder.path().join("tantalum");
    std::fs::copy(built::tantalum(), &program).unwrap();
    let config = folder.path().join("v.toml");
    good(&["create", text(&config), "--capacity", "16MiB"]);
    std::fs::set_permissions(&config, PermissionsExt::from_mode(0o644)).unwrap();
    let mut server = serve(folder.path(), &["--socket-group", "65534"]);
    let stat = |group: &str| {
        let mut member = Command::new("setpriv");
        member.args(["--reuid", "65534", "--regid", group, "--clear-groups"]);
        member.arg(&program).args(["stat", text(&config)]).output().unwrap()
    };
    let (told, refused) = (stat("65534"), stat("65533"));
    server.kill().unwrap();
    server.wait().unwrap();
    let figures = String::from_utf8_lossy(&told.stdout);
    assert!(told.status.success() && figures.contains("capacity"), "{told:?}");
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.contains("may not be opened by this user"), "{error}");
}
