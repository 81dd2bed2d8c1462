//! Gives the shared library its name for the loader: the version that its interface is part of. Until 1.0 each minor version may change the
//! interface, so `libtantalum.so.0.2`; then the major version alone.
use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let part = |name: &str| var(format!("CARGO_PKG_VERSION_{name}")).expect("set by cargo");
    let interface = match &part("MAJOR")[..] {
        "0" => format!("0.{}", part("MINOR")),
        major => major.to_owned(),
    };
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtantalum.so.{interface}");
}
