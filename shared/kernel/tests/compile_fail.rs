//! Misuse of the turn chain that must not compile (`HARNESS-TYPESTATE 2`, `6`).
//!
//! Each `<case>_fail.rs` is next to `<case>_pass.rs`, which differs by the
//! misuse alone: a case that fails for another reason has a twin that fails
//! too. After a change of the toolchain the messages are rewritten with
//! `TRYBUILD=overwrite` and reviewed.

#[test]
fn misuse_does_not_compile_and_its_twin_does() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/compile_fail/*_fail.rs");
    cases.pass("tests/compile_fail/*_pass.rs");
}

#[test]
fn every_case_has_a_counterpart() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/compile_fail");
    let names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let cases = |ending: &str| {
        let mut cases: Vec<_> = names
            .iter()
            .filter_map(|name| name.strip_suffix(ending))
            .collect();
        cases.sort_unstable();
        cases
    };
    assert_eq!(cases("_fail.rs"), cases("_pass.rs"));
    assert_eq!(cases("_fail.rs"), cases("_fail.stderr"));
}
