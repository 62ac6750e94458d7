//! The conformance suite is embedded: a file that is added to it makes a new binary.

fn main() {
    println!("cargo:rerun-if-changed=../../tests/conformance/harness-typestate");
}
