//! `premath status --metrics` says what `premath status --json` says.

use premath_tests::{Scratch, issue};
use serde_json::Value;
use std::collections::BTreeMap;

/// Returns the samples by name and labels, without the one that all have.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let samples = lines.map(|line| {
        let (key, figure) = line.rsplit_once(' ').unwrap();
        let (name, labels) = key.split_once('{').unwrap();
        let labels = labels.strip_suffix('}').unwrap().split(',');
        let own = labels.filter(|label| !label.starts_with("repository="));
        let own = own.filter(|label| !label.starts_with("batch_id="));
        let key = format!("{name} {}", own.collect::<Vec<_>>().join(","));
        (key.trim_end().to_owned(), figure.parse().unwrap())
    });
    samples.collect()
}

#[test]
fn metrics_and_the_status_have_the_same_figures() {
    let scratch = Scratch::with_issues(2, &[issue("a"), issue("b"), issue("c")]);
    let work = "echo x > src/$PREMATH_ISSUE_ID.txt; test $PREMATH_ISSUE_ID != b";
    scratch.batch(work, "true").end().exits(1);
    let status = scratch.premath(["status", "--json"]).end().exits(0).json();
    let printed = scratch.premath(["status", "--metrics"]).end().exits(0);
    let samples = samples(&printed.stdout);
    let (batch, queue) = (&status["batches"][0], &status["queue"]);
    let number = |value: &Value| value.as_f64().unwrap();
    let is = |name: &str, expected: f64| {
        assert_eq!(
            samples.get(name),
            Some(&expected),
            "{name}: {}",
            printed.stdout
        );
    };
    is("premath_running_batches", 0.0);
    is("premath_batch_state state=\"ended\"", 1.0);
    is("premath_batch_exit_code", number(&batch["exitCode"]));
    is(
        "premath_batch_elapsed_seconds",
        number(&batch["elapsedMs"]) / 1000.0,
    );
    is(
        "premath_batch_attempts_total",
        number(&batch["totals"]["attempts"]),
    );
    let closes = &batch["totals"]["closes"];
    is(
        "premath_batch_closed_issues_total how=\"first_pass\"",
        number(&closes["firstPass"]),
    );
    assert_eq!(number(&closes["firstPass"]), 2.0);
    let failures = batch["totals"]["failures"].as_object().unwrap();
    let failed: f64 = failures.values().map(number).sum();
    assert_eq!(failed, number(&batch["totals"]["attempts"]) - 2.0);
    for (class, count) in failures {
        let name = format!("premath_batch_failed_attempts_total class=\"{class}\"");
        is(&name, number(count));
    }
    let states = samples
        .iter()
        .filter(|(name, _)| name.starts_with("premath_issues "));
    let all: f64 = states.map(|(_, count)| count).sum();
    assert_eq!(all, number(&queue["total"]));
    for (state, key) in [
        ("ready", "ready"),
        ("blocked", "blocked"),
        ("closed", "closed"),
    ] {
        is(
            &format!("premath_issues state=\"{state}\""),
            number(&queue[key]),
        );
    }
    // A plain command reports no usage.
    assert_eq!(batch["used"]["tokens"], Value::Null);
    assert!(!printed.stdout.contains("tokens") && !printed.stdout.contains("dollars"));
}
