//! What a person must know of a batch beside how its issues ended.

use super::*;

#[test]
fn what_failed_beside_the_issues_comes_first_and_is_not_merged() {
    let merges = |log: &Log| {
        let report = log.report_of(&WhichBatches::LastWorking, None).unwrap();
        let text = lines(&report, &reader(200)).join("\n");
        let is_merged = report
            .next
            .iter()
            .any(|next| next.command.contains("git merge"));
        (is_merged, text)
    };
    let mut log = Log::default();
    log.begin("hb1_a", 0);
    log.closed("hb1_a", "a", 1);
    let mut tip = StepRow::new("t".to_owned(), action::TIP_VERIFIED, "failed", time(3));
    tip.batch_id = Some("hb1_a".into());
    tip.next_step = Some("0123456789 DOES NOT PASS the verification".to_owned());
    log.row(tip.clone());
    log.end("hb1_a", 4);
    let (is_merged, text) = merges(&log);
    assert!(!is_merged && text.contains("DOES NOT PASS"), "{text}");
    // A later verification that passed ends that.
    tip.step_id = "t2".into();
    tip.result_class = "passed".to_owned();
    let end = log.rows.len() - 1;
    log.rows.insert(end, tip);
    let (is_merged, text) = merges(&log);
    assert!(is_merged && !text.contains("DOES NOT PASS"), "{text}");
    // A later batch without an attempt may say that the target is broken.
    log.begin("hb1_b", 10);
    let mut lost = StepRow::new("l".to_owned(), action::LANE_GIVEN_UP, "failed", time(11));
    lost.batch_id = Some("hb1_b".into());
    lost.next_step = Some("filter `x` is not configured".to_owned());
    log.row(lost);
    log.end("hb1_b", 12);
    let row = log.last();
    row.result_class = "failed".to_owned();
    row.failure_classes = vec![FailureClass::LandingNotTakenBack.as_str().to_owned()];
    row.next_step = Some("the target still contains 0123".to_owned());
    let (is_merged, text) = merges(&log);
    for expected in [
        "filter `x` is not configured",
        "the target still contains 0123",
    ] {
        assert!(!is_merged && text.contains(expected), "{text}");
    }
}

#[test]
fn what_a_person_closed_since_is_not_to_be_tried_again() {
    let mut log = Log::default();
    log.begin("hb1_a", 0);
    for (issue, minute) in [("a", 1), ("b", 2)] {
        log.failed("hb1_a", issue, minute, "check_failed", "it failed");
        log.titled(issue, "title");
    }
    log.titles.get_mut("a").unwrap().status = "closed".to_owned();
    log.end("hb1_a", 4);
    let report = log.report_of(&WhichBatches::LastWorking, None).unwrap();
    let retries = |next: &[NextCommand]| -> Vec<String> {
        let commands = next.iter().map(|next| next.command.clone());
        commands
            .filter(|one| one.contains("premath retry"))
            .collect()
    };
    assert_eq!(retries(&report.next), ["premath retry b --note \"…\""]);
    assert_eq!(retries(&report.failed[0].next), [""; 0]);
    assert_eq!(retries(&report.failed[1].next).len(), 1);
}
