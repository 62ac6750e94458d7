//! Misuse of the turn chain that must not compile (`HARNESS-TYPESTATE 2`, `6`).
//!
//! Each `<case>_fail.rs` is next to `<case>_pass.rs`, which differs by the
//! misuse alone: a case that fails for another reason has a twin that fails
//! too. The twins are modules of this test, so that it does not compile if one
//! of them does not. After a change of the toolchain the messages are rewritten
//! with `TRYBUILD=overwrite` and reviewed.

/// The twins, and their names.
macro_rules! twins {
    ($($twin:ident,)*) => {
        $(
            #[allow(
                dead_code,
                clippy::unwrap_used,
                reason = "a twin has to compile, not to run"
            )]
            mod $twin;
        )*
        const TWINS: &[&str] = &[$(stringify!($twin)),*];
    };
}

twins! {
    change_of_ones_own_pass,
    failed_transport_judged_pass,
    instructed_change_made_by_hand_pass,
    instructed_change_reused_pass,
    instruction_bound_by_hand_pass,
    ready_cloned_pass,
    ready_defaulted_pass,
    ready_deserialised_pass,
    ready_made_outside_the_gate_pass,
    ready_minted_outside_the_gate_pass,
    ready_reused_pass,
    ready_used_for_another_change_pass,
    refusal_made_into_a_join_pass,
    state_admitted_unjoined_pass,
    state_kept_after_a_step_pass,
    state_skipped_pass,
    turn_judged_uncarried_pass,
}

#[test]
fn misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*_fail.rs");
}

#[test]
fn every_case_has_a_twin_that_compiles() {
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
    let mut twins: Vec<_> = TWINS
        .iter()
        .map(|twin| twin.strip_suffix("_pass").unwrap())
        .collect();
    twins.sort_unstable();
    assert_eq!(cases("_fail.rs"), twins);
    assert_eq!(cases("_pass.rs"), twins);
    assert_eq!(cases("_fail.stderr"), twins);
}
