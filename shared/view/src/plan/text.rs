//! The plan of a batch as lines for a person.

use crate::columns::{self, Column, fitted, flowed};
use crate::figures::{NONE, UNKNOWN, Viewer, brief_ms, money, tokens};
use premath_kernel::json::plain::plain;
use premath_kernel::record::plan::{
    BatchPlan, NeverIssue, PlanEstimate, PlannedBudget, PlannedIssue, PlannedLane,
};

/// How many issues of a list are shown; the document has all.
const SHOWN: usize = 50;

/// How much of a title is shown before figures are.
const TITLE_LEAST: usize = 18;

/// How many characters of a policy's digest are shown.
const DIGEST_SHOWN: usize = 17;

/// Returns the plan as lines of at most the viewer's width.
pub fn lines(plan: &BatchPlan, viewer: &Viewer) -> Vec<String> {
    let mut lines = vec![head(plan), estimate(plan)];
    for refusal in &plan.refusals {
        let class = refusal.failure_class.map(|class| format!("{class}: "));
        let (class, text) = (class.unwrap_or_default(), &refusal.text);
        lines.push(format!("the batch would be refused: {class}{text}"));
    }
    if let Some(batch) = &plan.resumes {
        lines.push(format!("it would resume the interrupted batch {batch}"));
    }
    lines.extend(terms(plan, viewer));
    lines.push(String::new());
    lines.extend(lane_lines(&plan.lanes, viewer.width));
    if !plan.order.is_empty() {
        lines.push(String::new());
        lines.extend(order_lines(&plan.order, viewer));
    }
    let mut never = never_lines(&plan.never);
    if !never.is_empty() {
        lines.push(String::new());
        lines.append(&mut never);
    }
    let one_line = |line: &String| fitted(&plain(line), viewer.width);
    lines.iter().map(one_line).collect()
}

fn head(plan: &BatchPlan) -> String {
    format!(
        "plan: {} issue(s) on {} lane(s) in {} round(s), {} never run; nothing was changed",
        plan.order.len(),
        plan.lanes.len(),
        plan.estimate.rounds,
        plan.never.len()
    )
}

fn estimate(plan: &BatchPlan) -> String {
    let PlanEstimate {
        closed_attempts,
        issues,
        priced_attempts,
        ..
    } = plan.estimate;
    let time = match (plan.estimate.time_ms, plan.estimate.issue_ms) {
        (Some(time), Some(each)) => format!(
            "about {} for {issues} issue(s) on {} lane(s) (median {} of {closed_attempts} \
             attempt(s) that closed their issue)",
            brief_ms(time),
            plan.lanes.len(),
            brief_ms(each)
        ),
        _ => format!("time {UNKNOWN}: no earlier attempt closed its issue"),
    };
    let cost = match plan.estimate.cost_nano_usd {
        Some(cost) => format!(
            "cost about {} USD (by {priced_attempts} attempt(s))",
            money(cost)
        ),
        None => format!("cost {UNKNOWN}"),
    };
    format!("estimate: {time}; {cost}")
}

fn terms(plan: &BatchPlan, viewer: &Viewer) -> Vec<String> {
    let terms = &plan.terms;
    let mut lines: Vec<String> = Vec::new();
    for agent in &terms.agents {
        let word = match agent.is_fallback {
            true => "fallback",
            false => "agent",
        };
        let by = match agent.provider == agent.adapter {
            true => String::new(),
            false => format!(" (evidence: {})", agent.adapter),
        };
        lines.push(format!("{word} {}{by}: {}", agent.provider, agent.command));
    }
    lines.push(format!("verify: {}", terms.verify_command));
    for (name, policy) in [
        ("turn policy", &terms.turn_policy),
        ("retry policy", &terms.retry_policy),
    ] {
        let digest: String = policy.policy_digest.chars().take(DIGEST_SHOWN).collect();
        lines.push(format!("{name}: {} ({digest}…)", policy.policy_id));
    }
    lines.push(terms.sandbox_detail.clone());
    lines.extend(limits(plan, viewer));
    lines.push(landing(plan));
    let acts_under = &terms.acts_under;
    let reference = acts_under.instruction_ref.as_deref();
    lines.push(format!(
        "authorised by {}: {}",
        acts_under.mutation_mode,
        reference.unwrap_or(&acts_under.reason)
    ));
    lines
}

fn limits(plan: &BatchPlan, viewer: &Viewer) -> Vec<String> {
    let terms = &plan.terms;
    let mut parts = vec![
        format!("{} attempt(s) an issue by default", terms.attempts),
        format!("{} an attempt", brief_ms(terms.step_limit_ms)),
        format!("{} a verification", brief_ms(terms.verify_limit_ms)),
    ];
    if let Some(rounds) = terms.rounds {
        let steps = terms.steps_per_dispatch;
        parts.push(format!(
            "{rounds} dispatch(es) a lane of {steps} attempt(s)"
        ));
    }
    for (of, budget) in [
        ("the batch", &terms.batch_budget),
        ("an issue", &terms.issue_budget),
    ] {
        parts.extend(
            allowed(budget)
                .into_iter()
                .map(|bound| format!("{bound} for {of}")),
        );
    }
    parts.push(format!("until {}", terms.until));
    if let Some(window) = &terms.window {
        parts.push(format!("attempts start in {window}"));
    }
    if let Some(at) = &terms.ends_at {
        parts.push(format!("ends at {}", viewer.when(at.time())));
    }
    flowed("limits: ", &parts, viewer.width)
}

fn allowed(budget: &PlannedBudget) -> Vec<String> {
    let tokens = budget
        .tokens
        .map(|count| format!("{} tokens", tokens(count)));
    let money = budget
        .cost_nano_usd
        .map(|nano| format!("{} USD", money(nano)));
    let time = budget.time_ms.map(brief_ms);
    tokens.into_iter().chain(money).chain(time).collect()
}

fn landing(plan: &BatchPlan) -> String {
    let landing = &plan.terms.landing;
    let Some(target) = &landing.target else {
        return "work is committed on the branch of its lane".to_owned();
    };
    let mut text = match landing.mode {
        "merge" => format!("attempts start from {target} and land on it"),
        _ => format!("attempts start from {target}"),
    };
    if let Some(check) = &landing.check_command {
        text.push_str(&format!(", checked by {check}"));
    }
    if let Some(remote) = &landing.push {
        text.push_str(&format!(", pushed to {remote}"));
    }
    text
}

fn lane_lines(lanes: &[PlannedLane], width: usize) -> Vec<String> {
    const COLUMNS: [Column; 4] = [
        Column::text("LANE"),
        Column::text("AGENT"),
        Column::text("FIRST ISSUE"),
        Column::text("WORKTREE"),
    ];
    let row = |lane: &PlannedLane| {
        let first = lane.first_issue.as_ref();
        let created = match lane.exists {
            true => "",
            false => " (to be created)",
        };
        vec![
            lane.worker_id.to_string(),
            lane.provider.clone(),
            first.map_or(NONE.to_owned(), ToString::to_string),
            format!("{}{created}", lane.worktree),
        ]
    };
    let rows: Vec<_> = lanes.iter().map(row).collect();
    columns::lines(&COLUMNS, &rows, width, TITLE_LEAST)
}

fn order_lines(order: &[PlannedIssue], viewer: &Viewer) -> Vec<String> {
    const COLUMNS: [Column; 5] = [
        Column::figure("ROUND"),
        Column::text("ISSUE"),
        Column::figure("PRIORITY"),
        Column::text("WAITS FOR"),
        Column::text("TITLE"),
    ];
    let row = |planned: &PlannedIssue| {
        let mut waits: Vec<String> = planned.waits_for.iter().map(ToString::to_string).collect();
        waits.extend(
            planned
                .not_before
                .as_ref()
                .map(|at| viewer.clock(at.time())),
        );
        if planned.takes_over {
            waits.push("lease is over".to_owned());
        }
        vec![
            planned.round.to_string(),
            planned.issue_id.to_string(),
            planned.priority.to_string(),
            match waits.is_empty() {
                true => NONE.to_owned(),
                false => waits.join(", "),
            },
            planned.title.clone(),
        ]
    };
    let rows: Vec<_> = order.iter().take(SHOWN).map(row).collect();
    let mut lines = columns::lines(&COLUMNS, &rows, viewer.width, TITLE_LEAST);
    lines.extend(more(order.len()));
    lines
}

fn never_lines(never: &[NeverIssue]) -> Vec<String> {
    let mut lines = Vec::new();
    if !never.is_empty() {
        lines.push("never run:".to_owned());
    }
    for issue in never.iter().take(SHOWN) {
        lines.push(format!("  {}  {}", issue.issue_id, issue.title));
        for reason in &issue.reasons {
            lines.push(format!("    {}", reason.text));
            lines.extend(reason.next.iter().map(|next| format!("      next: {next}")));
        }
        if let Some(root) = &issue.root {
            lines.push(format!("    the cause is {root}"));
        }
    }
    lines.extend(more(never.len()));
    lines
}

fn more(count: usize) -> Option<String> {
    let left = count.checked_sub(SHOWN).filter(|left| *left > 0)?;
    Some(format!("  {left} more; `premath plan --json` lists all"))
}
