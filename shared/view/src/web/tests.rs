use super::*;
use crate::fixture::{now, viewer};
use crate::report::{AttemptView, PastAttempt, PastTotals, StepFacts};
use crate::status::StatusView;
use crate::status::tests::live;
use premath_kernel::record::live::{LiveBatch, LiveLaneState, LiveOutcome, PauseEnd, PauseKind};
use premath_kernel::record::trajectory::{StepRow, action};
use premath_kernel::turn::{Stage, judged_notes};

const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x> \u{202e}gnp";

fn status(live: &LiveBatch) -> StatusView {
    StatusView::of(std::slice::from_ref(live), &|_| true, None, now())
}

fn shown(live: &LiveBatch, controls: bool) -> String {
    overview(&status(live), &viewer(80), controls)
}

/// A batch in which every text that a step can choose is hostile.
fn hostile() -> LiveBatch {
    let mut live = live();
    let step = live.lane(&"worker.1".into()).step.as_mut().unwrap();
    step.title = HOSTILE.to_owned();
    step.issue_id = HOSTILE.into();
    step.agent.as_mut().unwrap().last_tool = Some(HOSTILE.to_owned());
    let lane = live.lane(&"worker.2".into());
    lane.state = LiveLaneState::Disabled;
    lane.reason = Some(HOSTILE.to_owned());
    live.pause(PauseKind::Provider, HOSTILE, Some(PauseEnd(None)));
    let at = live.started_at.clone();
    live.ended(LiveOutcome {
        issue_id: HOSTILE.into(),
        title: HOSTILE.to_owned(),
        step_id: "s".into(),
        worker_id: HOSTILE.into(),
        attempt: 1,
        closed: false,
        ending: HOSTILE.to_owned(),
        failure_class: Some(HOSTILE.to_owned()),
        duration_ms: 1,
        at,
    });
    live
}

#[test]
fn what_a_step_says_is_text_and_nothing_else() {
    let text = shown(&hostile(), true);
    for part in ["<script", "<img", "\"'>", "\u{202e}"] {
        assert!(!text.contains(part), "{part} is in {text}");
    }
    assert!(
        text.contains("&lt;script&gt;") && text.contains("\\u{202e}"),
        "{text}"
    );
}

#[test]
fn the_figures_are_those_of_the_lines() {
    let text = shown(&live(), false);
    let lines = crate::status::lines(&status(&live()), &viewer(200)).join("\n");
    for part in [
        "124 closed",
        "40 ready",
        "12 waiting for others (2 behind issues that no lane closes)",
        "140 ended",
        "4.1M tokens",
        "12m/45m",
    ] {
        assert!(
            text.contains(part) && lines.contains(part),
            "{part}: {text}\n{lines}"
        );
    }
    assert!(text.contains("<b>124</b> of 200 issues closed"));
    assert!(text.contains("1 of 2 lanes at work"));
}

#[test]
fn the_parts_of_the_stream_are_those_of_the_page() {
    let status = status(&live());
    let page = overview(&status, &viewer(80), false);
    for part in fragments(&status, &viewer(80), false) {
        let place = format!("data-live=\"{}\"", part.name);
        assert!(
            page.contains(&place) && page.contains(&part.html),
            "{}",
            part.name
        );
        assert!(
            part.html.is_empty() || part.html.ends_with('\n'),
            "{}",
            part.name
        );
    }
}

#[test]
fn requests_are_offered_only_where_the_batch_takes_them() {
    assert!(!shown(&live(), false).contains("/control/"));
    let text = shown(&live(), true);
    assert!(text.contains("/control/pause?batch=hb1_a") && !text.contains("/control/resume"));
    assert!(text.contains("/control/cancel?issue=bd-12"));
    let mut paused = live();
    paused.pause(PauseKind::Operator, "ann", Some(PauseEnd(None)));
    let text = shown(&paused, true);
    assert!(text.contains("/control/resume?batch=hb1_a") && !text.contains("/control/pause"));
}

#[test]
fn nothing_at_all_has_words() {
    let none = StatusView::of(&[], &|_| false, None, now());
    let text = overview(&none, &viewer(80), true);
    for words in [
        "No batch is running.",
        "No batch ran in this repository yet.",
        "No lane works now.",
        "The issues are not counted yet.",
        "No attempt has ended yet.",
    ] {
        assert!(text.contains(words), "{words}");
    }
}

/// Returns the value of a custom property: the first is that of a light page, the
/// second that of a dark one.
fn colours(name: &str) -> Vec<[f64; 3]> {
    let mark = format!("--{name}:");
    let parts = STYLE.split(&*mark).skip(1);
    let values = parts.map(|rest| rest.trim_start().trim_start_matches('#'));
    let values = values.map(|rest| rest.split(';').next().unwrap().to_owned());
    let whole = values.map(|value| match value.len() {
        3 => value.chars().flat_map(|c| [c, c]).collect(),
        _ => value,
    });
    let channel = |text: &str, at: usize| {
        let value = u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        let value = f64::from(value) / 255.0;
        match value <= 0.040_45 {
            true => value / 12.92,
            false => ((value + 0.055) / 1.055).powf(2.4),
        }
    };
    whole
        .map(|text| [0, 2, 4].map(|at| channel(&text, at)))
        .collect()
}

#[test]
fn all_text_has_the_contrast_that_wcag_asks_for() {
    let light = |[r, g, b]: [f64; 3]| 0.2126 * r + 0.7152 * g + 0.0722 * b;
    for (ink, paper) in [
        ("ink", "paper"),
        ("ink", "wash"),
        ("faint", "paper"),
        ("faint", "wash"),
        ("accent", "paper"),
        ("good-ink", "good-bg"),
        ("warn-ink", "warn-bg"),
        ("bad-ink", "bad-bg"),
        ("calm-ink", "calm-bg"),
        ("bad-ink", "paper"),
    ] {
        let pairs = colours(ink).into_iter().zip(colours(paper)).take(2);
        for (index, (one, other)) in pairs.enumerate() {
            let (one, other) = (light(one), light(other));
            let ratio = (one.max(other) + 0.05) / (one.min(other) + 0.05);
            assert!(ratio >= 4.5, "{ink} on {paper} ({index}): {ratio}");
        }
    }
}

/// The page of an issue with nine attempts, of which it shows some.
fn issue_page(rows: std::ops::Range<u64>, earlier: u64) -> String {
    let attempt = |number: u64| {
        let id = format!("w.1.a.{number}");
        let row = StepRow::new(id.as_str(), action::WORKER_LOOP, "failed", now().wall);
        PastAttempt {
            attempt: AttemptView::of(number, &row, StepFacts::default()),
            output_end: Vec::new(),
            resume: None,
        }
    };
    let page = IssuePage {
        id: "a&b".to_owned(),
        title: "t".to_owned(),
        status: "open".to_owned(),
        facts: Vec::new(),
        texts: Vec::new(),
        needs: Vec::new(),
        needed_by: Vec::new(),
        reasons: Vec::new(),
        runs: false,
        attempts: rows.map(attempt).collect(),
        earlier,
        totals: PastTotals {
            attempts: 9,
            ..PastTotals::default()
        },
        change: Err(String::new()),
        error: None,
        controls: false,
    };
    issue(&page, &viewer(80))
}

#[test]
fn the_page_of_an_issue_leads_to_its_earlier_and_latest_attempts() {
    let (latest, earlier) = (
        "href=\"/issue?id=a%26b\">Latest attempts<",
        "href=\"/issue?id=a%26b&amp;before=107\">Earlier attempts (6)<",
    );
    let newest = issue_page(107..110, 6);
    assert!(newest.contains(earlier), "{newest}");
    assert!(!newest.contains("Latest attempts"), "{newest}");
    assert!(newest.contains("9 in all"), "{newest}");
    let middle = issue_page(104..107, 3);
    assert!(middle.contains(latest), "{middle}");
    assert!(middle.contains("before=104\">Earlier attempts (3)<"));
    let oldest = issue_page(101..104, 0);
    assert!(oldest.contains(latest), "{oldest}");
    assert!(!oldest.contains("Earlier attempts"), "{oldest}");
}

#[test]
fn a_verdict_lists_the_rules_that_were_judged_and_what_each_said() {
    let judged = judged_notes();
    let of_join = judged
        .iter()
        .filter(|note| note.stage == Stage::Join)
        .count();
    let page = verdict(&Verdict {
        join_closed: true,
        mutation_ready: true,
        join_classes: Vec::new(),
        mutation_classes: Vec::new(),
        close_classes: None,
        judged: judged.clone(),
        broken: Vec::new(),
    });
    let summaries = [("the join", of_join), ("a change", judged.len() - of_join)];
    for (heading, count) in summaries {
        assert!(count > 10, "{heading}");
        let summary = format!("Rules of {heading} that were judged ({count})");
        assert!(page.contains(&summary), "{summary}: {page}");
    }
    assert_eq!(page.matches(">kept<").count(), judged.len());
    for note in judged {
        assert!(
            page.contains(&format!("<code>{}</code>", note.rule)),
            "{}",
            note.rule
        );
    }
}
