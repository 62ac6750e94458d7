use super::*;
use crate::fixture::{BEGAN_MS, batch};
use premath_kernel::json::time::Moment;
use premath_kernel::record::live::{BatchPhase, LiveBatch, PauseEnd};
use std::collections::BTreeSet;

/// A sample: name, labels, value.
type Sample = (String, BTreeMap<String, String>, f64);

/// Reads the text format strictly: heads before samples, families in one piece,
/// escapes as they are defined, and no sample twice.
fn parse(text: &str) -> Vec<Sample> {
    let (mut samples, mut families) = (Vec::new(), BTreeSet::new());
    let (mut family, mut helped) = (String::new(), String::new());
    let mut seen = BTreeSet::new();
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(!help.is_empty());
            helped = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, helped);
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
            assert!(matches!(kind, "counter" | "gauge"));
            assert!(families.insert(name.to_owned()), "{name} twice");
            family = name.to_owned();
        } else {
            let sample = sample(line);
            assert_eq!(sample.0, family, "{line}");
            let key = format!("{}{:?}", sample.0, sample.1);
            assert!(seen.insert(key), "twice: {line}");
            samples.push(sample);
        }
    }
    samples
}

fn sample(line: &str) -> Sample {
    let (name, rest) = line.split_once('{').unwrap();
    let is_name = |text: &str| {
        let mut chars = text.chars();
        let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
        chars.next().is_some_and(is_first) && chars.all(|c| is_first(c) || c.is_ascii_digit())
    };
    assert!(is_name(name), "{line}");
    let mut labels = BTreeMap::new();
    let mut chars = rest.chars();
    loop {
        let label: String = chars.by_ref().take_while(|c| *c != '=').collect();
        assert!(is_name(&label), "{line}");
        assert_eq!(chars.next(), Some('"'), "{line}");
        let mut value = String::new();
        loop {
            match chars.next().expect("an end of the value") {
                '"' => break,
                '\\' => value.push(match chars.next() {
                    Some('n') => '\n',
                    Some(c @ ('\\' | '"')) => c,
                    other => panic!("escape {other:?}: {line}"),
                }),
                c => value.push(c),
            }
        }
        assert!(labels.insert(label, value).is_none(), "{line}");
        match chars.next() {
            Some(',') => {}
            Some('}') => break,
            other => panic!("{other:?}: {line}"),
        }
    }
    let rest: String = chars.collect();
    let number = rest.strip_prefix(' ').unwrap();
    (name.to_owned(), labels, number.parse().unwrap())
}

/// Returns the one sample of a name with these labels, if there is one.
fn figure(samples: &[Sample], name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let mut fitting = samples.iter().filter(|(of, all, _)| {
        let is_there = |(label, value): &(&str, &str)| all.get(*label).is_some_and(|v| v == value);
        of == name && labels.iter().all(is_there)
    });
    let found = fitting.next().map(|(_, _, figure)| *figure);
    assert!(fitting.next().is_none(), "{name} {labels:?} is several");
    found
}

fn live() -> LiveBatch {
    let mut live = batch();
    live.lane(&"w.1".into()).state = LiveLaneState::Working;
    live.lane(&"w.2".into()).state = LiveLaneState::Working;
    live.lane(&"w.3".into()).state = LiveLaneState::Idle;
    live.totals.attempts = 9;
    live.totals.closes.first_pass = 5;
    live.totals.failures = [("check_failed".to_owned(), 3)].into();
    live.pause(PauseKind::Provider, "claude", Some(PauseEnd(None)));
    live.queue = Some(LiveQueue {
        total: 20,
        ready: 7,
        ..LiveQueue::default()
    });
    live
}

fn view(live: &LiveBatch) -> StatusView {
    let now = Moment {
        wall: "2026-03-05T11:00:00.5Z".parse().unwrap(),
        boot_ms: BEGAN_MS + 3_600_500,
    };
    StatusView::of(std::slice::from_ref(live), &|_| true, None, now)
}

#[test]
fn what_is_known_has_a_sample_and_what_is_not_has_none() {
    let mut live = live();
    let text = metrics(&view(&live), "parser");
    let samples = parse(&text);
    let of = |name: &str, labels: &[(&str, &str)]| figure(&samples, name, labels);
    for (_, labels, _) in &samples {
        assert_eq!(labels["repository"], "parser");
    }
    assert_eq!(of("premath_running_batches", &[]), Some(1.0));
    assert_eq!(
        of("premath_batch_state", &[("state", "running")]),
        Some(1.0)
    );
    assert_eq!(of("premath_batch_state", &[("state", "cut")]), Some(0.0));
    assert_eq!(
        of("premath_batch_lanes", &[("state", "working")]),
        Some(2.0)
    );
    assert_eq!(
        of("premath_batch_lanes", &[("state", "disabled")]),
        Some(0.0)
    );
    assert_eq!(of("premath_batch_elapsed_seconds", &[]), Some(3600.5));
    assert_eq!(of("premath_issues", &[("state", "ready")]), Some(7.0));
    assert_eq!(
        of("premath_batch_paused", &[("kind", "provider")]),
        Some(1.0)
    );
    assert_eq!(of("premath_batch_paused", &[("kind", "room")]), Some(0.0));
    let failed = [("class", "check_failed")];
    assert_eq!(
        of("premath_batch_failed_attempts_total", &failed),
        Some(3.0)
    );
    for unknown in [
        "premath_batch_tokens_total",
        "premath_batch_cost_dollars_total",
        "premath_batch_budget_dollars",
        "premath_batch_exit_code",
        "premath_batch_time_left_seconds",
    ] {
        assert!(!text.contains(unknown), "{unknown}");
    }
    live.totals.used.tokens = Some(0);
    live.totals.used.cost_nano_usd = Some(1_250_000_001);
    let text = metrics(&view(&live), "parser");
    assert!(
        text.contains("premath_batch_tokens_total{repository=\"parser\",batch_id=\"hb1_a\"} 0\n")
    );
    assert!(text.contains(" 1.250000001\n"), "{text}");
}

#[test]
fn a_batch_that_ended_waits_for_nothing() {
    let mut ended = live();
    ended.phase = BatchPhase::Ended;
    let samples = parse(&metrics(&view(&ended), "parser"));
    let provider = [("kind", "provider")];
    assert_eq!(
        figure(&samples, "premath_batch_paused", &provider),
        Some(0.0)
    );
}

#[test]
fn labels_are_escaped_and_bounded_in_number_and_length() {
    let mut live = live();
    let hostile = "a\"} 1\nevil{x=\"\\ \u{1b}[2J";
    live.totals.denials = (0..100)
        .map(|number| (format!("r{number:03}"), 1))
        .collect();
    live.totals.denials.insert(hostile.to_owned(), 5);
    live.totals.denials.insert("x".repeat(10_000), 7);
    live.totals.denials.insert("other".to_owned(), 2);
    let text = metrics(&view(&live), hostile);
    let samples = parse(&text);
    assert!(!text.contains('\u{1b}') && text.lines().all(|line| line.len() < 1_000));
    assert!(samples[0].1["repository"].starts_with("a\"} 1\\nevil{x=\""));
    let denials: Vec<_> = samples
        .iter()
        .filter(|(name, ..)| name == "premath_batch_denied_calls_total")
        .collect();
    assert_eq!(denials.len(), VALUES_MAX + 1);
    let sum: f64 = denials.iter().map(|(_, _, count)| count).sum();
    assert_eq!(sum, 114.0);
}

#[test]
fn several_batches_share_their_families_and_none_gives_no_error() {
    let (mut one, mut other) = (live(), live());
    one.batch_id = "hb1_b".into();
    other.batch_id = "hb1_c".into();
    let now = Moment {
        wall: "2026-03-05T11:00:00Z".parse().unwrap(),
        boot_ms: 3_600_000,
    };
    let both = StatusView::of(&[one, other], &|_| true, None, now);
    let samples = parse(&metrics(&both, "parser"));
    assert_eq!(figure(&samples, "premath_running_batches", &[]), Some(2.0));
    for batch in ["hb1_b", "hb1_c"] {
        let attempts = [("batch_id", batch)];
        let attempts = figure(&samples, "premath_batch_attempts_total", &attempts);
        assert_eq!(attempts, Some(9.0));
    }
    let none = StatusView::of(&[], &|_| true, None, now);
    assert_eq!(
        metrics(&none, "p"),
        "# HELP premath_running_batches Batches that run now.\n\
         # TYPE premath_running_batches gauge\n\
         premath_running_batches{repository=\"p\"} 0\n"
    );
}

#[test]
fn decimals_are_exact() {
    for (parts, places, text) in [
        (0, 9, "0"),
        (1, 9, "0.000000001"),
        (1_500, 3, "1.5"),
        (u64::MAX, 9, "18446744073.709551615"),
    ] {
        assert_eq!(decimal(parts, places), text);
    }
}
