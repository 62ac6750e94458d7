//! The map of the slices.

use super::small::{ADVERSARIAL, GOLDEN, Small};
use crate::{SLICES, slices};
use premath_kernel::turn::notes;

#[test]
fn the_slices_are_eighteen_in_order() {
    let numbers: Vec<u8> = SLICES.iter().map(|slice| slice.number).collect();
    assert_eq!(numbers, (1..=18).collect::<Vec<u8>>());
}

#[test]
fn every_slice_has_code_and_every_rule_a_slice() {
    let rows = slices(&Small::new().run());
    for row in &rows {
        assert!(!row.rules.is_empty(), "{}", row.slice.number);
    }
    for note in notes() {
        assert!(!note.slices.is_empty(), "{}", note.rule);
        for number in note.slices {
            assert!(rows[usize::from(*number) - 1].rules.contains(&note));
        }
    }
}

#[test]
fn a_slice_names_the_vectors_that_name_it() {
    let rows = slices(&Small::new().run());
    let ids: Vec<&str> = rows[0].vectors.iter().map(|v| v.id.as_str()).collect();
    assert_eq!(ids, [ADVERSARIAL, GOLDEN]);
    assert!(rows[1..].iter().all(|row| row.vectors.is_empty()));
}
