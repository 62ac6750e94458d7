use super::*;
use crate::fixture::{batch, now, step, viewer};
use premath_kernel::record::live::{PauseEnd, PauseKind};

pub(crate) fn live() -> LiveBatch {
    let mut live = batch();
    let lane = live.lane(&"worker.1".into());
    lane.state = LiveLaneState::Working;
    let mut attempt = step(12, "Parse \u{1b}[2J the log");
    attempt.step_id = "worker.1.bd-12.3".into();
    (attempt.generation, attempt.attempt) = (3, 2);
    if let Some(agent) = &mut attempt.agent {
        agent.calls = 31;
        agent.used.cost_nano_usd = None;
    }
    lane.step = Some(attempt);
    live.lane(&"worker.2".into()).state = LiveLaneState::Idle;
    live.budget.cost_nano_usd = Some(25_000_000_000);
    live.totals.closed = 124;
    live.totals.closes.first_pass = 110;
    live.totals.closes.after_retry = 14;
    live.totals.attempts = 140;
    live.totals.used.tokens = Some(4_000_000);
    live.queue = Some(LiveQueue {
        total: 200,
        ready: 40,
        waiting: 12,
        stuck: 2,
        closed: 124,
        blocked: 3,
        in_progress: 1,
        ..LiveQueue::default()
    });
    live
}

fn view(live: &LiveBatch, alive: bool) -> StatusView {
    StatusView::of(std::slice::from_ref(live), &|_| alive, None, now())
}

#[test]
fn a_running_batch_at_two_widths() {
    let status = view(&live(), true);
    let narrow = lines(&status, &viewer(80)).join("\n");
    assert_eq!(
        narrow,
        "\
batch     hb1_a, running for 2h 13m since 10:00
issues    124 closed, 1 in progress, 40 ready,
          12 waiting for others (2 behind issues that no lane closes),
          3 blocked, 200 in all
pace      55.9 closed an hour, 51 issues left, done about 13:07 (in 54m)
attempts  140 ended, 110 closed at the first pass, 14 after retry,
          0 repair rounds, 0 calls denied
cost      unknown of 25.00 USD, 4.1M tokens

LANE      ISSUE  PHASE    TIME     LAST EVENT    TRY  CALLS  TITLE
worker.1  bd-12  working  12m/45m  Bash 10s ago    2     31  Parse \\u{1b}[2J th…
worker.2  -      idle     -        -               -      -"
    );
    let wide = lines(&status, &viewer(200));
    let lane = wide
        .iter()
        .find(|line| line.starts_with("worker.1"))
        .unwrap();
    assert_eq!(
        lane,
        "worker.1  bd-12  working  12m/45m  Bash 10s ago    2     31    ?    120k  2m 00s/1h 00m    \
         13m  Parse \\u{1b}[2J the log"
    );
    for width in [40, 80, 200] {
        let lines = lines(&status, &viewer(width));
        assert!(
            lines.iter().all(|line| line.chars().count() <= width),
            "{width}"
        );
    }
}

#[test]
fn a_batch_whose_process_is_gone_was_cut_and_does_not_run() {
    let mut later = now();
    later.boot_ms += 3_600_000;
    let status = StatusView::of(&[live()], &|_| false, None, later);
    assert!(!status.running);
    let batch = &status.batches[0];
    assert_eq!(
        (batch.state, batch.elapsed_ms),
        (BatchState::Cut, 7_980_000)
    );
    assert_eq!(batch.estimate.time_left_ms, None);
    let text = lines(&status, &viewer(80)).join("\n");
    assert!(text.starts_with("no batch is running\n"), "{text}");
    assert!(text.contains("cut: its process is gone"), "{text}");
    assert!(!text.contains("LANE"), "{text}");
}

#[test]
fn an_ended_batch_says_when_and_how() {
    let mut ended = live();
    ended.phase = BatchPhase::Ended;
    ended.exit_code = Some(1);
    ended.ended_at = Some(Stamp::at(now().wall));
    let mut later = viewer(80);
    later.now = "2026-03-05T12:20:00Z".parse().unwrap();
    let text = lines(&view(&ended, true), &later).join("\n");
    let said = "batch     hb1_a, ended 12:13 (7m 00s ago) after 2h 13m, exit code 1\n";
    assert!(text.contains(said), "{text}");
}

#[test]
fn a_batch_that_does_not_run_has_no_pauses() {
    let mut paused = live();
    let until = Stamp::parse("2026-03-05T13:00:00Z");
    paused.pause(
        PauseKind::Breaker,
        "executor_unavailable",
        Some(PauseEnd(until.clone())),
    );
    paused.pause(PauseKind::Window, "00:00-06:00", Some(PauseEnd(until)));
    assert_eq!(view(&paused, true).batches[0].pauses.len(), 2);
    let mut ended = paused.clone();
    ended.phase = BatchPhase::Ended;
    for (batch, is_alive) in [(ended, true), (paused, false)] {
        let status = view(&batch, is_alive);
        assert_eq!(status.batches[0].pauses, []);
        let text = lines(&status, &viewer(80)).join("\n");
        assert!(!text.contains("PAUSED"), "{text}");
    }
}

#[test]
fn the_batches_that_run_hide_those_that_ended() {
    let mut ended = live();
    ended.batch_id = "hb1_old".into();
    ended.phase = BatchPhase::Ended;
    let status = StatusView::of(&[ended, live()], &|_| true, None, now());
    let ids: Vec<_> = status
        .batches
        .iter()
        .map(|batch| &*batch.batch_id)
        .collect();
    assert_eq!(ids, ["hb1_a"]);
}

#[test]
fn what_a_person_should_look_at_is_named() {
    let mut live = live();
    let lane = live.lane(&"worker.1".into());
    let agent = lane
        .step
        .as_mut()
        .and_then(|step| step.agent.as_mut())
        .unwrap();
    agent.last_event_ms = Some(now().boot_ms - 1_000_000);
    let lost = live.lane(&"worker.3".into());
    lost.state = LiveLaneState::Disabled;
    lost.reason = Some("dirty_worktree: a file".into());
    let until = Stamp::parse("2026-03-05T13:00:00Z");
    live.pause(PauseKind::Provider, "claude", Some(PauseEnd(until)));
    let status = view(&live, true);
    let text = lines(&status, &viewer(120)).join("\n");
    for said in [
        "PAUSED    provider claude is parked until 13:00 (in 47m)\n",
        "LOOK      worker.1 on bd-12 is silent for 16m; it is ended at 30m\n",
        "LOOK      worker.3 is disabled: dirty_worktree: a file\n",
        "end unknown",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
}

#[test]
fn what_is_unknown_is_null_for_a_program() {
    let value = serde_json::to_value(view(&live(), true)).unwrap();
    let batch = &value["batches"][0];
    assert!(batch["used"]["costNanoUsd"].is_null());
    assert_eq!(batch["used"]["tokens"], 4_120_000);
    assert!(batch["lanes"][0]["attempt"]["used"]["costNanoUsd"].is_null());
    assert!(batch["lanes"][1]["attempt"].is_null());
}
