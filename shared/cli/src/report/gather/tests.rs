//! The bounded reading against a plain one, over logs of many kinds.

use super::*;
use jiff::{SignedDuration, Timestamp};
use premath_kernel::failure::FailureClass;
use premath_kernel::policy::landing::LandingRecord;
use premath_kernel::record::trajectory::{AgentRecord, BatchHolder, BatchRecord, RowGlance};
use premath_kernel::record::trajectory::{batch_end_row, batch_refused_row, batch_start_row};
use premath_view::report::{Reader, ReportView, html, lines, step_ref};
use std::fmt::Write;

/// Numbers that look random, the same for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

fn time(minute: u64) -> Timestamp {
    let begin: Timestamp = "2026-03-05T22:00:00Z".parse().unwrap();
    let minutes = SignedDuration::from_mins(minute.try_into().unwrap());
    begin.checked_add(minutes).unwrap()
}

fn attempt(batch: Option<&str>, minute: u64, numbers: &mut Numbers) -> StepRow {
    let issue = format!("bd/{}", numbers.below(7));
    let class = ["completed", "failed_issue_blocked", "failed_retry"];
    let class = class[usize::try_from(numbers.below(3)).unwrap()];
    let id = format!("w.{issue}.{minute}");
    let mut row = StepRow::new(id, action::WORKER_LOOP, class, time(minute + 2));
    row.batch_id = batch.map(Into::into);
    row.started_at = Some(time(minute).into());
    row.worker_id = Some(format!("w.{}", numbers.below(3)).as_str().into());
    if row.succeeded() {
        let target = ["harness/integration", "main"];
        row.landing = Some(LandingRecord {
            target: target[usize::from(numbers.one_in(9))].to_owned(),
            commit: format!("{minute:040x}"),
        });
    } else {
        let classes = [
            "check_failed",
            "usage_limit",
            "harness_died",
            "step_interrupted",
        ];
        let one = classes[usize::try_from(numbers.below(4)).unwrap()];
        row.failure_classes = vec![one.to_owned()];
        row.salvage = Some(format!("harness/salvage/{minute}"));
    }
    row.agent = numbers.one_in(2).then(|| AgentRecord {
        adapter: "codex".to_owned(),
        calls: numbers.below(9),
        denials: [("r".to_owned(), numbers.below(3))].into(),
        ..AgentRecord::default()
    });
    row.issue_id = Some(issue.as_str().into());
    row
}

/// Writes a run log of batches that overlap, some of them cut, with rows of other
/// programs and lines that cannot be read as rows.
fn log(seed: u64) -> String {
    let mut numbers = Numbers(seed);
    let mut text = String::new();
    let mut put = |row: &StepRow, numbers: &mut Numbers| {
        let line = row.line().unwrap();
        let line = match numbers.below(20) {
            0 => line.replace('/', "\\/"),
            1 => line.replace("hb", "\\u0068b"),
            2 => line[..line.len() / 2].to_owned(),
            3 => line.replace("{\"action\"", "{\"batchId\":7,\"action\""),
            4 => line.replace("\"landing\":{", "\"landing\":{\"x\":0,"),
            5 => String::new(),
            _ => line,
        };
        let _ = writeln!(text, "{line}");
    };
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
    let mut last = None;
    for minute in 0..200 {
        let batch = format!("hb{}", (minute / 40) + numbers.below(2));
        let id = batch.as_str().into();
        let row = match numbers.below(12) {
            0 => batch_start_row(&id, record.clone(), time(minute)),
            1 => batch_end_row(&id, "completed", time(minute)),
            2 => batch_refused_row(&id, &[FailureClass::StepInterrupted], time(minute)),
            3 => attempt(None, minute, &mut numbers),
            4 => {
                let mut row = StepRow::new(
                    format!("r{minute}"),
                    action::REVIEWED,
                    "accepted",
                    time(minute),
                );
                row.lineage_refs = last.iter().map(step_ref).collect();
                row
            }
            _ => attempt(Some(&batch), minute, &mut numbers),
        };
        if row.action == action::WORKER_LOOP {
            last = Some(row.step_id.clone());
        }
        put(&row, &mut numbers);
    }
    text
}

/// Returns whether the repository has a salvage branch that the log names.
fn is_kept(branch: &str) -> bool {
    branch.ends_with(['0', '2', '4', '6', '8'])
}

/// Makes a repository with those branches.
fn repository(folder: &Path) {
    let git = git2::Repository::init(folder).unwrap();
    let tree = git.treebuilder(None).unwrap().write().unwrap();
    let tree = git.find_tree(tree).unwrap();
    let author = git2::Signature::now("t", "t@localhost").unwrap();
    let commit = git.commit(Some("HEAD"), &author, &author, "base", &tree, &[]);
    let commit = git.find_commit(commit.unwrap()).unwrap();
    let branches = (0..200).map(|minute| format!("harness/salvage/{minute}"));
    for branch in branches.filter(|branch| is_kept(branch)) {
        git.branch(&branch, &commit, false).unwrap();
    }
}

/// Reads every line as a row, and holds all of them.
fn plain(
    sources: &Sources<'_>,
    which: &WhichBatches,
    issue: Option<IssueId>,
) -> Option<ReportView> {
    let path = &sources.roots.trajectory;
    let text = std::fs::read_to_string(path).unwrap();
    let (mut all, mut unreadable_rows) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty()) {
        match StepRow::parse(line.as_bytes()) {
            Ok(mut row) => {
                row.salvage = row.salvage.filter(|branch| is_kept(branch));
                all.push((number, row));
            }
            Err(_) => unreadable_rows.push(number),
        }
    }
    let mut index = LogIndex::default();
    all.iter()
        .for_each(|(number, row)| index.observe(*number, row));
    let scope = ReportScope::of(&index, which, issue)?;
    all.retain(|(_, row)| scope.takes(&RowGlance::from(row)));
    let target = index.target().unwrap_or("HEAD");
    let input = ReportInput {
        run_log: sources.shown(path),
        steps: sources.steps(&all, target),
        issues: sources.titles(&all),
        index,
        scope,
        rows: all,
        unreadable_rows,
    };
    Some(input.report())
}

#[test]
fn reports_are_those_of_a_plain_reading() {
    let folder = tempfile::tempdir().unwrap();
    repository(folder.path());
    let roots = MemoryRoots::discover(folder.path()).unwrap();
    std::fs::create_dir_all(roots.trajectory.parent().unwrap()).unwrap();
    let sources = Sources::of(&roots, &roots.issues);
    let reader = Reader {
        zone: jiff::tz::TimeZone::UTC,
        width: 100,
    };
    let mut whiches = vec![WhichBatches::LastWorking, WhichBatches::All];
    whiches.extend((0..7).map(|id| WhichBatches::Named(format!("hb{id}").as_str().into())));
    whiches.extend([0, 100, 150, 199, 900].map(|minute| WhichBatches::Since(time(minute))));
    for seed in 0..4 {
        std::fs::write(&roots.trajectory, log(seed)).unwrap();
        let mut attempts = 0;
        for which in &whiches {
            for issue in [None, Some("bd/1"), Some("none")] {
                let issue = issue.map(IssueId::from);
                let expected = plain(&sources, which, issue.clone());
                let found = sources.input(which, issue).unwrap();
                let found = found.map(ReportInput::report);
                assert_eq!(found, expected, "seed {seed}, {which:?}");
                let (Some(found), Some(expected)) = (found, expected) else {
                    continue;
                };
                attempts += found.totals.attempts;
                assert_eq!(html(&found, &reader), html(&expected, &reader));
                assert_eq!(lines(&found, &reader), lines(&expected, &reader));
            }
        }
        assert!(attempts > 100, "seed {seed}: {attempts}");
    }
}
