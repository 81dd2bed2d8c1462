//! The dependencies of a volume and its front ends: no model, and nothing of the laboratory except `trace`, with which
//! a volume records its requests.
use std::process::Command;

#[test]
fn no_model_is_in_a_volume_or_its_front_ends() {
    for package in ["tantalum-volume", "tantalum-nbd", "tantalum-sqlite", "tantalum-capi"] {
        let tree = ["tree", "--offline", "--edges", "normal", "--prefix", "none", "-p", package];
        let out = Command::new(env!("CARGO")).args(tree).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let tree = String::from_utf8_lossy(&out.stdout);
        assert!(tree.contains("tantalum-runtime"), "{tree}");
        for apart in [
            "tantalum-models",
            "tantalum-simulator",
            "tantalum-replay",
            "tantalum-repro",
            "tantalum-hosts",
        ] {
            assert!(!tree.contains(apart), "{package} needs {apart}:\n{tree}");
        }
    }
}
