//! `include/tantalum.h` matches the code. `TANTALUM_BLESS=1` writes it anew.
use std::path::Path;

#[test]
fn the_header_is_what_the_code_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let sources = ["version", "status", "boundary", "volume", "pages", "transactions"];
    let builder = sources.iter().fold(cbindgen::Builder::new(), |builder, source| {
        builder.with_src(folder.join(format!("src/{source}.rs")))
    });
    let mut header = Vec::new();
    builder.with_config(config).generate().unwrap().write(&mut header);
    let header = without_rust_sections(std::str::from_utf8(&header).unwrap());
    let path = folder.join("include/tantalum.h");
    if std::env::var_os("TANTALUM_BLESS").is_some() {
        std::fs::write(&path, &header).unwrap();
    }
    let checked_in = std::fs::read_to_string(&path).unwrap();
    assert!(
        checked_in == header,
        "crates/capi/include/tantalum.h is stale: run TANTALUM_BLESS=1 cargo test -p tantalum-capi \
         --test header"
    );
}

/// The header without the headings that Rust requires above safety conditions.
fn without_rust_sections(header: &str) -> String {
    header.replace(" * # Safety\n", "")
}
