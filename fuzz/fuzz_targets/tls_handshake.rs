#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tantalum_fuzzing::run("tls_handshake", input));
