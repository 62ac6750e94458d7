mod attention;

use super::*;
use crate::columns::width_of;
use crate::figures::Viewer;
use jiff::{SignedDuration, Timestamp};
use premath_kernel::failure::FailureClass;
use premath_kernel::policy::governing::SensitiveChange;
use premath_kernel::policy::landing::LandingRecord;
use premath_kernel::policy::retry::{EscalationAction, RetryVerdict};
use premath_kernel::record::trajectory::{
    AgentRecord, BatchHolder, BatchRecord, RetryRecord, RowGlance, StepRow, TokenCounts, action,
    batch_end_row, batch_refused_row, batch_start_row,
};
use serde_json::json;

/// Markup, a script, turned writing, terminal control and a second line.
const HOSTILE: &str = "</title><script>alert(1)</script> [x](javascript:1) |`| \u{202e}txt\u{1b}[2J\n# head & \"q\" '";

fn time(minute: i64) -> Timestamp {
    let begin: Timestamp = "2026-03-05T22:00:00Z".parse().unwrap();
    begin
        .checked_add(SignedDuration::from_mins(minute))
        .unwrap()
}

fn reader(width: usize) -> Reader {
    Reader {
        zone: TimeZone::UTC,
        width,
    }
}

/// A run log that is written row by row, with what else is known.
#[derive(Default)]
struct Log {
    rows: Vec<StepRow>,
    facts: BTreeMap<u64, StepFacts>,
    titles: BTreeMap<IssueId, IssueFacts>,
}

impl Log {
    fn row(&mut self, row: StepRow) -> u64 {
        self.rows.push(row);
        self.rows.len().try_into().unwrap()
    }

    fn begin(&mut self, batch: &str, minute: i64) {
        let record = BatchRecord {
            settings_digest: "d".to_owned(),
            holder: BatchHolder {
                host: "h".into(),
                boot_id: "b".into(),
                pid: 1,
                started: 1,
                pid_ns: None,
            },
        };
        self.row(batch_start_row(&batch.into(), record, time(minute)));
    }

    fn end(&mut self, batch: &str, minute: i64) {
        self.row(batch_end_row(&batch.into(), "completed", time(minute)));
    }

    /// Adds an attempt that closed its issue, of two minutes.
    fn closed(&mut self, batch: &str, issue: &str, minute: i64) -> u64 {
        let mut row = step(batch, issue, minute, "completed");
        let commit = format!("{:040x}", self.rows.len() + 1);
        row.landing = Some(LandingRecord {
            target: "harness/integration".to_owned(),
            commit: commit.clone(),
        });
        let number = self.row(row);
        let facts = StepFacts {
            commit: Some(commit),
            change: Some(ChangeSize {
                files: 1,
                added: 3,
                deleted: 1,
            }),
            witnesses: vec![format!("artifacts/ciwitness/w.{issue}.mutation.json")],
            ..StepFacts::default()
        };
        self.facts.insert(number, facts);
        number
    }

    /// Adds an attempt that failed, of two minutes.
    fn failed(&mut self, batch: &str, issue: &str, minute: i64, class: &str, said: &str) -> u64 {
        let mut row = step(batch, issue, minute, "failed_issue_blocked");
        row.failure_classes = vec![class.to_owned()];
        row.salvage = Some(format!("harness/salvage/{issue}/{minute}"));
        row.retry = Some(RetryRecord {
            decision: RetryVerdict::Escalate,
            action: Some(EscalationAction::MarkBlocked),
            attempt: 1,
            max_attempts: 1,
            backoff_class: "none".to_owned(),
            rule_id: Some("r".to_owned()),
            failure_class: Some(class.to_owned()),
        });
        let number = self.row(row);
        let facts = StepFacts {
            said: Some(said.to_owned()),
            output: Some(format!("artifacts/streams/w.{issue}.verify.stderr")),
            ..StepFacts::default()
        };
        self.facts.insert(number, facts);
        number
    }

    fn last(&mut self) -> &mut StepRow {
        self.rows.last_mut().unwrap()
    }

    fn titled(&mut self, issue: &str, title: &str) {
        let facts = IssueFacts {
            title: title.to_owned(),
            status: "open".to_owned(),
        };
        self.titles.insert(issue.into(), facts);
    }

    fn report_of(&self, which: &WhichBatches, issue: Option<&str>) -> Option<ReportView> {
        let mut index = LogIndex::default();
        let numbered = || (1_u64..).zip(&self.rows);
        numbered().for_each(|(number, row)| index.observe(number, row));
        let scope = ReportScope::of(&index, which, issue.map(Into::into))?;
        let rows = numbered().filter(|(_, row)| scope.takes(&RowGlance::from(*row)));
        let rows: Vec<(u64, StepRow)> = rows.map(|(n, row)| (n, row.clone())).collect();
        let input = ReportInput {
            run_log: ".premath/harness_trajectory.jsonl".to_owned(),
            index,
            scope,
            rows,
            steps: self.facts.clone(),
            issues: self.titles.clone(),
            unreadable_rows: Vec::new(),
        };
        Some(input.report())
    }

    fn report(&self) -> ReportView {
        self.report_of(&WhichBatches::LastWorking, None).unwrap()
    }
}

fn step(batch: &str, issue: &str, minute: i64, result: &str) -> StepRow {
    let mut row = StepRow::new(
        format!("worker.1.{issue}.{minute}"),
        action::WORKER_LOOP,
        result,
        time(minute + 2),
    );
    row.issue_id = Some(issue.into());
    row.batch_id = Some(batch.into());
    row.worker_id = Some("worker.1".into());
    row.started_at = Some(Stamp::at(time(minute)));
    row.generation = Some(1);
    row.agent = Some(AgentRecord {
        adapter: "codex".to_owned(),
        calls: 3,
        tokens: Some(TokenCounts {
            input: 100,
            cached: 40,
            output: 10,
        }),
        ..AgentRecord::default()
    });
    row
}

/// A night with one of each.
fn night() -> Log {
    let mut log = Log::default();
    log.begin("hb1_before", 0);
    log.failed("hb1_before", "bd-10", 1, "check_failed", "bd-10 is wrong");
    log.end("hb1_before", 4);
    log.begin("hb1_night", 10);
    log.closed("hb1_night", "bd-2", 11);
    log.closed("hb1_night", "bd-1", 12);
    let sensitive = SensitiveChange {
        path: ".github/workflows/ci.yml".to_owned(),
        category: premath_kernel::policy::governing::Category::Ci,
    };
    log.last().sensitive_changes.push(sensitive);
    log.failed(
        "hb1_night",
        "bd-3",
        14,
        "check_failed",
        "bd-3 is wrong\nmore",
    );
    log.failed("hb1_night", "bd-10", 15, "check_failed", "bd-10 is wrong");
    let mut limited = step("hb1_night", "bd-4", 16, "retry_needed_lease_active");
    limited.failure_classes = vec!["usage_limit".to_owned()];
    limited.agent.as_mut().unwrap().tokens = None;
    log.row(limited);
    log.closed("hb1_night", "bd-4", 18);
    let agent = log.last().agent.as_mut().unwrap();
    agent.repair_rounds = Some(2);
    agent.denials.insert("no_push".to_owned(), 3);
    log.end("hb1_night", 30);
    log.begin("hb1_empty", 40);
    log.end("hb1_empty", 41);
    log.titled("bd-1", "Change the pipeline");
    log.titled("bd-3", "Three");
    log
}

fn ids(issues: &[ReportedIssue]) -> Vec<&str> {
    issues.iter().map(|issue| issue.issue_id.as_str()).collect()
}

#[test]
fn a_later_batch_that_was_refused_or_runs_is_named() {
    let mut log = night();
    let refused = batch_refused_row(
        &"hb1_refused".into(),
        &[FailureClass::GoverningFilesUntrusted],
        time(50),
    );
    log.row(refused);
    log.begin("hb1_runs", 60);
    let report = log.report();
    assert_eq!(report.batches[0].batch_id.as_str(), "hb1_night");
    assert_eq!(report.later_empty_batches, 1);
    let later: Vec<&str> = report
        .later_batches
        .iter()
        .map(|batch| batch.batch_id.as_str())
        .collect();
    assert_eq!(later, ["hb1_refused", "hb1_runs"]);
    let text = lines(&report, &reader(80)).join("\n");
    assert!(
        text.contains("hb1_refused was refused before it began"),
        "{text}"
    );
    assert!(text.contains("hb1_runs has ended no attempt yet"), "{text}");
}

#[test]
fn an_empty_batch_does_not_hide_the_last_one_that_did_work() {
    let log = night();
    let report = log.report();
    assert_eq!(report.batches.len(), 1);
    assert_eq!(report.batches[0].batch_id.as_str(), "hb1_night");
    assert_eq!(report.later_empty_batches, 1);
    assert_eq!(report.later_batches, []);
    let named = |id: &str| log.report_of(&WhichBatches::Named(id.into()), None);
    let empty = named("hb1_empty").unwrap();
    assert_eq!(empty.totals, Totals::default());
    assert!(lines(&empty, &reader(80)).contains(&"No issue failed.".to_owned()));
    assert_eq!(named("hb1_none"), None);
    assert_eq!(
        Log::default().report_of(&WhichBatches::LastWorking, None),
        None
    );
    let since = log.report_of(&WhichBatches::Since(time(20)), None).unwrap();
    assert_eq!(since.batches.len(), 2);
}

#[test]
fn a_lane_that_was_disabled_is_named_with_the_reason() {
    let mut log = Log::default();
    log.begin("hb1_a", 0);
    let mut lost = StepRow::new("lost", action::LANE_GIVEN_UP, "failed", time(1));
    lost.batch_id = Some("hb1_a".into());
    lost.worker_id = Some("worker.1".into());
    lost.failure_classes = vec!["hook_failed".to_owned()];
    lost.next_step = Some("the setup command failed; output: /s/setup.stderr".to_owned());
    log.row(lost);
    log.end("hb1_a", 2);
    let named = WhichBatches::Named("hb1_a".into());
    let report = log.report_of(&named, None).unwrap();
    let said = "worker.1: the setup command failed; output: /s/setup.stderr (hook_failed)";
    let lanes: Vec<(&str, u64)> = report
        .lost_lanes()
        .map(|lane| (&*lane.text, lane.row))
        .collect();
    assert_eq!(lanes, [(said, 2)]);
    let text = lines(&report, &reader(120)).join("\n");
    assert!(
        text.contains(&format!("disabled  {said}, row 2\n")),
        "{text}"
    );
}

#[test]
fn what_is_counted_equals_what_happened() {
    let report = night().report();
    assert_eq!(ids(&report.failed), ["bd-3", "bd-10"]);
    assert_eq!(ids(&report.closed), ["bd-1", "bd-2", "bd-4"]);
    let totals = &report.totals;
    assert_eq!((totals.issues, totals.closed, totals.failed), (5, 3, 2));
    assert_eq!((totals.attempts, totals.cut_attempts), (5, 1));
    assert_eq!(
        totals.failed_by_class,
        BTreeMap::from([("check_failed".to_owned(), 2)])
    );
    assert_eq!(
        totals.failed_by_outcome,
        BTreeMap::from([("blocked".to_owned(), 2)])
    );
    assert_eq!(
        (totals.repaired, totals.repair_rounds, totals.denials),
        (1, 2, 3)
    );
    assert_eq!((totals.landed, totals.salvaged), (3, 2));
    assert_eq!(
        (totals.closes.first_pass, totals.closes.after_repair),
        (2, 1)
    );
    assert_eq!(totals.usage.tokens.unwrap().total(), 5 * 110);
    assert_eq!(totals.usage.tokens_unknown, 1);
    // Not 0: none was reported.
    assert_eq!(
        (totals.usage.cost_nano_usd, totals.usage.cost_unknown),
        (None, 6)
    );
    assert_eq!(report.agents[0].usage, totals.usage);
    assert_eq!(report.failed[1].attempts, 1);
    assert_eq!(report.failed[1].attempts_in_all, 2);
    assert_eq!(report.denials[0].rows, [10]);
    let of_issue = night()
        .report_of(&WhichBatches::All, Some("bd-10"))
        .unwrap();
    assert_eq!(of_issue.totals.attempts, 2);
    assert_eq!(of_issue.failed[0].steps.len(), 2);
}

#[test]
fn failures_that_differ_in_their_issue_alone_are_alike() {
    let report = night().report();
    assert_eq!(report.clusters.len(), 1);
    let cluster = &report.clusters[0];
    assert_eq!(cluster.line, "ISSUE is wrong");
    assert_eq!(cluster.attempts, 2);
    assert_eq!(cluster.rows, [7, 8]);
    let ids: Vec<&str> = cluster.issue_ids.iter().map(|id| id.as_str()).collect();
    assert_eq!(ids, ["bd-3", "bd-10"]);
}

#[test]
fn the_most_risky_landing_is_reviewed_first_and_salvage_last() {
    let report = night().report();
    let order: Vec<(&str, u64)> = report
        .review
        .iter()
        .map(|item| (item.issue_id.as_str(), item.score))
        .collect();
    // Sensitive 50; repaired 20 and denied 15; nothing; then not verified 30 with an
    // unknown size 10, and a failed attempt before it 10.
    let expected = [
        ("bd-1", 50),
        ("bd-4", 35),
        ("bd-2", 0),
        ("bd-10", 50),
        ("bd-3", 40),
    ];
    assert_eq!(order, expected);
    assert_eq!(report.review[0].reasons[0].text, "1 sensitive file: ci");
    assert_eq!(report.review[0].command, "git show 000000000000");
    assert_eq!(
        report.review[4].command,
        "git diff harness/integration...harness/salvage/bd-3/14"
    );
}

#[test]
fn an_attempt_that_closed_its_issue_before_it_was_reopened_did_not_fail() {
    let mut log = Log::default();
    log.begin("hb1_a", 0);
    log.closed("hb1_a", "bd-1", 1);
    log.closed("hb1_a", "bd-1", 4);
    log.failed("hb1_a", "bd-2", 7, "work_failed", "no");
    log.closed("hb1_a", "bd-2", 10);
    let report = log.report();
    let scores: Vec<u64> = report.review.iter().map(|item| item.score).collect();
    assert_eq!(scores, [10, 0]);
}

#[test]
fn commands_are_as_they_must_be_typed() {
    let mut log = Log::default();
    log.begin("hb1_a", 0);
    log.failed("hb1_a", "it's $(x)", 1, "work_failed", "no");
    log.failed("hb1_a", "-f", 4, "work_failed", "no");
    let report = log.report();
    let commands = |issue: &ReportedIssue| -> Vec<String> {
        issue.next.iter().map(|next| next.command.clone()).collect()
    };
    assert_eq!(
        commands(&report.failed[0]),
        [
            "premath retry --note \"…\" -- -f",
            "premath issue show -- -f",
            "git diff HEAD...harness/salvage/-f/4"
        ]
    );
    let quoted = "'it'\\''s $(x)'";
    assert_eq!(
        commands(&report.failed[1])[..2],
        [
            format!("premath retry {quoted} --note \"…\""),
            format!("premath issue show {quoted}"),
        ]
    );
}

/// A report of which every text of an issue and an agent is hostile.
fn hostile() -> ReportView {
    let mut log = Log::default();
    log.begin("hb1_a", 0);
    log.failed("hb1_a", HOSTILE, 1, HOSTILE, HOSTILE);
    log.last().worker_id = Some(HOSTILE.into());
    let agent = log.last().agent.as_mut().unwrap();
    agent.adapter = HOSTILE.to_owned();
    agent.model = Some(HOSTILE.to_owned());
    agent.denials.insert(HOSTILE.to_owned(), 1);
    log.closed("hb1_a", &format!("z{HOSTILE}"), 4);
    log.titled(HOSTILE, HOSTILE);
    log.titled(&format!("z{HOSTILE}"), HOSTILE);
    log.report()
}

/// Whether nothing in a text acts on a terminal or hides.
fn is_plain(text: &str) -> bool {
    text.lines()
        .all(|line| premath_kernel::json::plain::plain(line) == line)
}

#[test]
fn a_hostile_text_is_text_on_a_terminal() {
    for width in [40, 80, 200] {
        let lines = lines(&hostile(), &reader(width));
        assert!(lines.iter().all(|line| !line.contains('\n')));
        assert!(is_plain(&lines.join("\n")));
    }
    let attempt = hostile().failed[0].steps[0].clone();
    let viewer = Viewer {
        now: time(60),
        zone: TimeZone::UTC,
        width: 80,
    };
    let past = PastAttempt {
        attempt,
        output_end: vec![HOSTILE.to_owned()],
        resume: Some(format!("cd {HOSTILE}")),
    };
    let lines = history_lines(&[past], 0, &viewer);
    assert!(lines.iter().all(|line| !line.contains('\n')));
    assert!(is_plain(&lines.join("\n")));
}

#[test]
fn a_hostile_text_is_text_on_a_page() {
    let page = html(&hostile(), &reader(80));
    assert!(is_plain(&page));
    assert!(!page.contains("<script"), "{page}");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    // No element but ours, no attribute that acts, nothing from elsewhere.
    let names = page.split('<').skip(1).map(|rest| {
        let name = rest.trim_start_matches('/');
        name.split(|c: char| !c.is_ascii_alphanumeric() && c != '!')
            .next()
            .unwrap()
            .to_owned()
    });
    let ours = [
        "!doctype", "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3",
        "p", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "article", "code",
        "ul", "li", "span", "div", "svg", "text", "line", "rect", "i",
    ];
    for name in names {
        assert!(ours.contains(&&*name), "<{name}>");
    }
    for sign in ["http://", "https://", "url(", "@import", " on", "src="] {
        let in_tags = page
            .split('<')
            .filter(|tag| tag.split('>').next().unwrap().contains(sign));
        assert_eq!(in_tags.count(), 0, "{sign}");
    }
}

/// Returns a line of Markdown without its spans of code, which are on one line and have
/// no backquote in them.
fn outside_of_code(line: &str) -> String {
    let line = line.replace("\\`", "");
    line.split('`').step_by(2).collect()
}

#[test]
fn a_hostile_text_is_text_in_markdown() {
    let text = markdown(&hostile(), &reader(80));
    assert!(is_plain(&text));
    assert!(!text.contains("\n# head"), "{text}");
    let is_command = |line: &&str| line.starts_with("premath ") || line.starts_with("git ");
    for line in text.lines().filter(|line| !is_command(line)) {
        let signs: Vec<char> = outside_of_code(line).chars().collect();
        for pair in signs.windows(2) {
            let is_active = matches!(pair[1], '<' | '[' | ']' | '&' | '!') && pair[0] != '\\';
            assert!(!is_active, "{pair:?} in {line}");
        }
    }
    assert_eq!(
        markdown::escaped("a|b*c_d<e>[f](g)!"),
        "a\\|b\\*c\\_d\\<e\\>\\[f\\]\\(g\\)\\!"
    );
    assert_eq!(markdown::escaped("@team see #12"), "`@team see #12`");
    assert_eq!(markdown::escaped("@a`b"), "\\@a\\`b");
    // A backslash before a bar would end a cell within code.
    assert_eq!(markdown::escaped("@a\\|<b>"), "\\@a\\\\\\|\\<b\\>");
    assert_eq!(
        markdown::escaped("www.a.b http://x"),
        "www\\.a\\.b http\\://x"
    );
    // A cell never makes another one.
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).collect();
    let cells = |row: &str| {
        let row = row.replace("\\\\", "").replace("\\|", "");
        row.matches('|').count()
    };
    for pair in rows.windows(2).filter(|pair| pair[1].starts_with("| --")) {
        assert_eq!(cells(pair[0]), cells(pair[1]));
    }
}

#[test]
fn lines_fit_the_width_and_wide_titles_are_cut() {
    let mut log = night();
    log.titled("bd-2", &"日本語の題名".repeat(20));
    for width in [60, 80, 120, 200] {
        let report = log.report();
        for line in lines(&report, &reader(width)) {
            // Commands and paths are never cut.
            let is_whole = ["git ", "premath ", "artifacts/"]
                .iter()
                .any(|sign| line.contains(sign));
            assert!(is_whole || width_of(&line) <= width, "{width}: {line}");
        }
    }
    let at = |width: usize| lines(&log.report(), &reader(width)).join("\n");
    let cut = at(80);
    let mut cut = cut.lines().filter(|line| line.contains("日本"));
    let cut = cut.find(|line| line.starts_with("bd-2 ")).unwrap();
    assert!(
        cut.ends_with('…') && (79..=80).contains(&width_of(cut)),
        "{cut}"
    );
    assert!(at(200).contains("TOKENS"));
}

#[test]
fn the_same_rows_give_the_same_bytes() {
    let (one, two) = (night().report(), night().report());
    assert_eq!(lines(&one, &reader(80)), lines(&two, &reader(80)));
    assert_eq!(markdown(&one, &reader(80)), markdown(&two, &reader(80)));
    assert_eq!(html(&one, &reader(80)), html(&two, &reader(80)));
    assert_eq!(json!(one), json!(two));
}

#[test]
fn the_timeline_draws_every_attempt_of_a_lane() {
    let page = html(&night().report(), &reader(80));
    assert_eq!(page.matches("<rect ").count(), 6);
    assert!(
        page.contains("<title>bd-3 Three: blocked, 2m 00s, row 7</title>"),
        "{page}"
    );
}
