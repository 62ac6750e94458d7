//! Any bytes are an input of the join check, or an error; and what is judged
//! reads back from its own document as the same turn.

#![no_main]

use libfuzzer_sys::fuzz_target;
use premath_kernel::turn::{JoinCheck, ParsedInput, explain, normalize};
use std::collections::BTreeSet;

fuzz_target!(|bytes: &[u8]| {
    let Ok(ParsedInput { input, .. }) = ParsedInput::from_slice(bytes) else {
        return;
    };
    let Ok(normalized) = normalize(input.evidence.clone()) else {
        return;
    };
    let broken = explain(&normalized, &input.constraints);
    let check = JoinCheck::of(normalized, &input.constraints);

    let explained: BTreeSet<_> = broken.iter().map(|rule| rule.class).collect();
    let judged = &check.failure_classes | &check.mutation_failure_classes;
    assert_eq!(explained, judged, "what is explained is what is refused");

    let document = serde_json::to_vec(&input).expect("an input is JSON");
    let again = ParsedInput::from_slice(&document).expect("a document reads back");
    let again = normalize(again.input.evidence).expect("and can be judged again");
    assert_eq!(again, check.normalized, "as the same turn");
});
