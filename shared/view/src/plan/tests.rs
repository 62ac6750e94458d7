use super::*;
use crate::figures::Viewer;
use jiff::tz::TimeZone;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::policy::sandbox::SandboxMode;
use premath_kernel::record::event::ActsUnder;
use premath_kernel::record::plan::{
    NeverIssue, PlanEstimate, PlanTerms, PlannedAgent, PlannedBudget, PlannedIssue, PlannedLanding,
    PlannedLane, PlannedPolicy, PlannedRefusal,
};
use premath_kernel::record::why::{Reason, ReasonKind};

fn terms() -> PlanTerms {
    let policy = |id: &str| PlannedPolicy {
        policy_id: id.to_owned(),
        policy_digest: format!("pol1_{}", "0123456789abcdef".repeat(4)),
    };
    PlanTerms {
        acts_under: ActsUnder {
            mutation_mode: "human-override",
            reason: "a night".to_owned(),
            support_until: String::new(),
            instruction_ref: None,
            instruction_class: None,
        },
        agents: vec![PlannedAgent {
            provider: "codex".to_owned(),
            adapter: "codex".to_owned(),
            command: "codex exec --json".to_owned(),
            is_fallback: false,
        }],
        verify_command: "cargo test".to_owned(),
        turn_policy: policy("turn"),
        retry_policy: policy("retry"),
        attempts: 3,
        sandbox: SandboxMode::Landlock,
        sandbox_detail: "commands are confined by landlock".to_owned(),
        step_limit_ms: 2_700_000,
        verify_limit_ms: 2_700_000,
        rounds: None,
        steps_per_dispatch: 1,
        until: "forever",
        window: Some("22:00-07:00".to_owned()),
        ends_at: Stamp::parse("2026-03-06T07:00:00Z"),
        batch_budget: PlannedBudget {
            cost_nano_usd: Some(25_000_000_000),
            ..PlannedBudget::default()
        },
        issue_budget: PlannedBudget::default(),
        landing: PlannedLanding {
            mode: "merge",
            target: Some("main".to_owned()),
            check_command: None,
            push: Some("origin".to_owned()),
        },
    }
}

fn planned() -> BatchPlan {
    BatchPlan {
        at: Stamp::parse("2026-03-05T22:00:00Z").unwrap(),
        issues_path: "/r/.premath/issues.jsonl".to_owned(),
        resumes: None,
        refusals: Vec::new(),
        terms: terms(),
        lanes: vec![PlannedLane {
            worker_id: "worker.1".into(),
            worktree: "/r-lanes/lane-1".to_owned(),
            exists: false,
            provider: "codex".to_owned(),
            first_issue: Some("bd-1".into()),
        }],
        order: ["bd-1", "bd-2"]
            .iter()
            .zip(1..)
            .map(|(id, round)| PlannedIssue {
                issue_id: (*id).into(),
                title: "Write\u{1b}[2J the\nparser".to_owned(),
                priority: 2,
                round,
                waits_for: (round == 2).then(|| "bd-1".into()).into_iter().collect(),
                not_before: None,
                takes_over: false,
            })
            .collect(),
        never: vec![NeverIssue {
            issue_id: "bd-9".into(),
            title: "Later".to_owned(),
            reasons: vec![Reason {
                kind: ReasonKind::Held,
                text: "it waits for bd-8".to_owned(),
                next: Some("premath why bd-8".to_owned()),
            }],
            root: Some("bd-7".into()),
        }],
        estimate: PlanEstimate {
            closed_attempts: 31,
            issues: 2,
            rounds: 2,
            issue_ms: Some(3_900_000),
            time_ms: Some(7_800_000),
            ..PlanEstimate::default()
        },
    }
}

fn shown(plan: &BatchPlan, width: usize) -> Vec<String> {
    let viewer = Viewer {
        now: plan.at.time(),
        zone: TimeZone::UTC,
        width,
    };
    lines(plan, &viewer)
}

#[test]
fn a_plan_says_what_would_run_and_what_would_not() {
    assert_eq!(
        shown(&planned(), 160),
        [
            "plan: 2 issue(s) on 1 lane(s) in 2 round(s), 1 never run; nothing was changed",
            "estimate: about 2h 10m for 2 issue(s) on 1 lane(s) (median 1h 05m of 31 attempt(s) \
             that closed their issue); cost unknown",
            "agent codex: codex exec --json",
            "verify: cargo test",
            "turn policy: turn (pol1_0123456789ab…)",
            "retry policy: retry (pol1_0123456789ab…)",
            "commands are confined by landlock",
            "limits: 3 attempt(s) an issue by default, 45m an attempt, 45m a verification, \
             25.00 USD for the batch, until forever, attempts start in 22:00-07:00,",
            "        ends at 2026-03-06 07:00 (in 9h 00m)",
            "attempts start from main and land on it, pushed to origin",
            "authorised by human-override: a night",
            "",
            "LANE      AGENT  FIRST ISSUE  WORKTREE",
            "worker.1  codex  bd-1         /r-lanes/lane-1 (to be created)",
            "",
            "ROUND  ISSUE  PRIORITY  WAITS FOR  TITLE",
            "    1  bd-1          2  -          Write\\u{1b}[2J the\\nparser",
            "    2  bd-2          2  bd-1       Write\\u{1b}[2J the\\nparser",
            "",
            "never run:",
            "  bd-9  Later",
            "    it waits for bd-8",
            "      next: premath why bd-8",
            "    the cause is bd-7",
        ]
    );
}

#[test]
fn what_is_not_known_is_unknown_and_a_refusal_comes_first() {
    let mut plan = planned();
    plan.estimate = PlanEstimate::default();
    plan.refusals.push(PlannedRefusal {
        failure_class: Some(premath_kernel::failure::FailureClass::DependencyCycle),
        text: "a -> b -> a".to_owned(),
    });
    let lines = shown(&plan, 200);
    assert_eq!(
        lines[1],
        "estimate: time unknown: no earlier attempt closed its issue; cost unknown"
    );
    assert_eq!(
        lines[2],
        "the batch would be refused: dependency_cycle: a -> b -> a"
    );
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [40, 80, 200] {
        for line in shown(&planned(), width) {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn the_document_names_its_action() {
    let text = document(&planned());
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["action"], ACTION);
    assert_eq!(document["terms"]["attempts"], 3);
    assert!(!text.contains('\u{1b}'));
}
