//! The explanation of a broken rule.

use super::{closed, read};
use crate::turn::gate::PLACES;
use crate::turn::{explain, normalize};
use serde_json::{Value, json};

/// Returns what is found by one rule of a turn.
fn found(rule: &str, input: Value) -> (Vec<String>, usize) {
    let input = read(input);
    let turn = normalize(input.evidence).unwrap();
    let broken = explain(&turn, &input.constraints);
    let Some(rule) = broken.into_iter().find(|broken| broken.rule == rule) else {
        panic!("nothing breaks {rule}");
    };
    let text = |breach: &crate::turn::Breach| format!("{}: {}", breach.at, breach.found);
    (rule.breaches.iter().map(text).collect(), rule.more)
}

/// A turn in json mode, so many calls of which are in one action.
fn action_of(calls: usize) -> Value {
    let mut input = closed();
    input["evidence"]["callSpec"]["actionMode"] = json!("json");
    let rows = (0..calls).map(
        |n| json!({"toolCallId": format!("c{n}"), "toolName": "t", "facts": {"actionId": "one"}}),
    );
    input["evidence"]["toolRequests"] = rows.collect();
    input
}

#[test]
fn the_calls_of_an_action_are_named_up_to_five() {
    let (five, _) = found("tool::action_holds_many", action_of(5));
    assert_eq!(
        five,
        ["toolRequests[].facts.actionId: action `one` holds 5 calls: `c0`, `c1`, `c2`, `c3`, `c4`"]
    );
    let (six, _) = found("tool::action_holds_many", action_of(6));
    assert_eq!(
        six,
        [
            "toolRequests[].facts.actionId: action `one` holds 6 calls: `c0`, `c1`, `c2`, `c3`, `c4`, …"
        ]
    );
}

#[test]
fn a_cycle_of_parents_is_distinguished_from_a_parent_that_leads_into_one() {
    let mut input = closed();
    let row =
        |id, parent| json!({"toolCallId": id, "toolName": "t", "facts": {"parentCallId": parent}});
    input["evidence"]["toolRequests"] = json!([
        row("a", "b"),
        row("b", "c"),
        row("c", "b"),
        row("d", "nobody"),
        row("e", "e")
    ]);
    let (places, _) = found("caller::parent_unknown", input);
    assert_eq!(
        places,
        [
            "toolRequests[b]: the parents of the call lead back to it, by `c`",
            "toolRequests[c]: the parents of the call lead back to it, by `b`",
            "toolRequests[d]: the parent `nobody` was not requested",
            "toolRequests[e]: the parents of the call lead back to it, by `e`",
        ]
    );
}

#[test]
fn many_places_are_counted_and_the_first_are_reported() {
    let mut input = closed();
    let rows = (0..PLACES + 7).map(|n| json!({"toolCallId": format!("c{n:02}"), "toolName": "t"}));
    input["evidence"]["toolRequests"] = rows.collect();
    let (places, more) = found("tool::result_missing", input);
    assert_eq!((places.len(), more), (PLACES, 7));
    assert_eq!(
        places[0],
        "toolRequests[c00]: the call was requested and has no result"
    );
}
