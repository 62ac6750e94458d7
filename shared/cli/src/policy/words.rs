//! The rules of policies in plain words.

use crate::terminal::{plain, wrapped};
use premath_kernel::policy::retry::{RetryPolicy, RuleTerms};
use premath_kernel::policy::turn::{
    Caller, RiskRules, RoleRule, RoleRules, RuleDecision, ToolClass, ToolRule, TurnPolicy,
};
use std::fmt::Write;

/// Returns what a rule about tools asks for beside the tool, in short.
pub(super) fn conditions(rule: &ToolRule) -> String {
    let lists = [
        ("", &rule.programs),
        ("", &rule.subcommands),
        ("with ", &rule.arguments),
        ("path ", &rule.paths),
        ("host ", &rule.hosts),
    ];
    let name = rule.name.iter().map(|name| format!("named {name}"));
    let callers = callers(rule).map(|callers| format!("by {callers}"));
    let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
    let lists = lists.map(|(word, list)| format!("{word}{}", list.join(", ")));
    name.chain(callers)
        .chain(lists)
        .collect::<Vec<_>>()
        .join(": ")
}

/// Returns the whole turn policy, a paragraph for each rule.
pub(super) fn turn(policy: &TurnPolicy) -> String {
    let mut text = String::from(
        "Each tool call is judged before it runs. The first rule that matches decides.\n\
         Of a shell text, each command is judged by itself. A call that no rule matches is\n\
         denied, and so is a shell text that cannot be parsed.\n\n",
    );
    for (at, rule) in policy.tools().iter().enumerate() {
        let _ = writeln!(text, "{}. {}", at + 1, plain(&rule.rule_id));
        text.push_str(&wrapped(&sentence(rule), 4));
        if !rule.reason.is_empty() {
            let reason = format!("The agent reads: {}", rule.reason);
            text.push_str(&wrapped(&reason, 4));
        }
    }
    let _ = write!(text, "\n{}", turn_rules(policy));
    text.push_str(
        "\nRules about commands are guidance: a shell can be talked around them. The sandbox is\n\
         the boundary (`premath sandbox explain`).\n",
    );
    text
}

/// Returns who a rule is about, where it is not about everybody.
fn callers(rule: &ToolRule) -> Option<String> {
    let names = rule.callers.iter().map(|caller| match caller {
        Caller::Agent => "the agent itself",
        Caller::Subagent => "sub-agents",
    });
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| names.join(" or "))
}

fn sentence(rule: &ToolRule) -> String {
    let verb = match rule.decision {
        RuleDecision::Allow => "Allows",
        RuleDecision::Deny => "Denies",
    };
    let mut text = format!("{verb} {}", what(rule.tool));
    if let Some(name) = &rule.name {
        let _ = write!(text, " named {name}");
    }
    if let Some(callers) = callers(rule) {
        let _ = write!(text, " by {callers}");
    }
    let mut clauses = Vec::new();
    if !rule.programs.is_empty() {
        clauses.push(format!("the program is {}", any_of(&rule.programs)));
    }
    if !rule.subcommands.is_empty() {
        clauses.push(format!("its subcommand is {}", any_of(&rule.subcommands)));
    }
    if !rule.arguments.is_empty() {
        let arguments = rule.arguments.iter().map(|one| readable(one));
        let arguments = arguments.collect::<Vec<_>>().join(", then ");
        clauses.push(format!("its arguments have {arguments}"));
    }
    let each = match rule.decision {
        RuleDecision::Allow => "each",
        RuleDecision::Deny => "a",
    };
    if !rule.paths.is_empty() {
        clauses.push(format!("{each} path is {}", any_of(&rule.paths)));
    }
    if !rule.hosts.is_empty() {
        clauses.push(format!("{each} host is {}", any_of(&rule.hosts)));
    }
    if !clauses.is_empty() {
        let _ = write!(text, " if {}", clauses.join(", and "));
    }
    format!("{text}.")
}

fn any_of(patterns: &[String]) -> String {
    match patterns {
        [one] => readable(one),
        patterns => {
            let patterns: Vec<_> = patterns.iter().map(|one| readable(one)).collect();
            format!("one of {}", patterns.join(", "))
        }
    }
}

/// Returns a pattern with a word between its alternatives.
fn readable(pattern: &str) -> String {
    let mut text = String::new();
    let mut is_escaped = false;
    for letter in pattern.chars() {
        match letter {
            '|' if !is_escaped => text.push_str(" or "),
            letter => text.push(letter),
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    text
}

const fn what(tool: Option<ToolClass>) -> &'static str {
    match tool {
        None => "calls of any tool",
        Some(ToolClass::Shell) => "shell commands",
        Some(ToolClass::Edit) => "edits of files",
        Some(ToolClass::Read) => "reading files",
        Some(ToolClass::Search) => "listing and searching files",
        Some(ToolClass::WebFetch) => "fetching addresses",
        Some(ToolClass::WebSearch) => "searching the web",
        Some(ToolClass::Subagent) => "starting sub-agents",
        Some(ToolClass::Plan) => "keeping a plan",
        Some(ToolClass::Mcp) => "tools of MCP servers",
        Some(ToolClass::Other) => "other tools",
    }
}

/// Returns what a turn is held to beside the rules about its calls.
pub(super) fn turn_rules(policy: &TurnPolicy) -> String {
    let mut text = limits(policy) + &repair(policy);
    if let Some(reasons) = &policy.stop().handled_stop_reasons {
        let words: Vec<&str> = reasons.iter().map(|reason| reason.as_str()).collect();
        let _ = writeln!(text, "stop    closes after {}", listed(&words));
    }
    if let Some(output) = policy.output() {
        let most = output.max_result_bytes;
        let _ = writeln!(text, "output  a result has at most {most} bytes");
    }
    if policy.compaction().is_some_and(|rules| !rules.allowed) {
        text.push_str("context may not be summarised by the agent\n");
    }
    if let Some(risk) = policy.risk() {
        text.push_str(&tiers(risk));
    }
    if let Some(roles) = policy.roles() {
        text.push_str(&scopes(roles));
    }
    if let Some(setup) = policy.setup() {
        let stated = serde_json::to_value(setup);
        let names = stated.ok().and_then(|stated| {
            let names: Vec<&str> = stated.as_object()?.keys().map(String::as_str).collect();
            Some(listed(&names))
        });
        let _ = writeln!(text, "setup   binds {}", names.unwrap_or_default());
    }
    text
}

fn tiers(risk: &RiskRules) -> String {
    let mut text = String::new();
    for rule in &risk.rules {
        let of = |name: &str, words: &[String]| match words {
            [] => String::new(),
            words => format!(" {name} {}", plain(&words.join(" or "))),
        };
        let of = of("label", &rule.labels) + &of("type", &rule.issue_types);
        let of = if of.is_empty() { " any issue" } else { &*of };
        let _ = writeln!(text, "risk    {} is{of}", rule.tier.as_str());
    }
    let _ = writeln!(
        text,
        "risk    {} is any other issue",
        risk.otherwise.as_str()
    );
    for (tier, controls) in &risk.controls {
        let mut needs = Vec::new();
        if !controls.adapters.is_empty() {
            needs.push(format!("the adapter {}", controls.adapters.join(" or ")));
        }
        if !controls.confinement.is_empty() {
            let modes = controls.confinement.iter().map(|mode| mode.as_str());
            let modes: Vec<&str> = modes.collect();
            needs.push(format!("confinement {}", modes.join(" or ")));
        }
        if controls.hooks {
            needs.push("hooks".to_owned());
        }
        let needs = match needs.is_empty() {
            true => "nothing".to_owned(),
            false => plain(&needs.join(", ")).into_owned(),
        };
        let _ = writeln!(text, "risk    {} needs {needs}", tier.as_str());
    }
    text
}

fn scopes(roles: &RoleRules) -> String {
    let mut text = String::new();
    let mut add = |name: &str, rule: &Option<RoleRule>| {
        let Some(rule) = rule else { return };
        let places: Vec<&str> = rule.writable.iter().map(String::as_str).collect();
        let _ = write!(text, "role    {name} may change {}", listed(&places));
        let targets = rule.handoff.iter().flat_map(|rule| &rule.targets);
        let targets: Vec<&str> = targets.map(String::as_str).collect();
        let _ = match targets.is_empty() {
            true => writeln!(text, ", and hands over to no one"),
            false => writeln!(text, ", and may hand over to {}", listed(&targets)),
        };
    };
    add("orchestrator", &roles.orchestrator);
    add("specialist", &roles.specialist);
    text
}

fn listed(words: &[&str]) -> String {
    match words {
        [] => "nothing".to_owned(),
        words => plain(&words.join(", ")).into_owned(),
    }
}

/// Returns the limits of a turn.
fn limits(policy: &TurnPolicy) -> String {
    let calls = policy.calls();
    let subagents = match calls.subagents {
        true => format!(
            "sub-agents {} deep, {} at once",
            calls.max_depth, calls.max_branches
        ),
        false => "no sub-agents".to_owned(),
    };
    format!(
        "calls   at most {} in a turn, {} at once; {subagents}\n",
        calls.max_calls, calls.max_open
    )
}

/// Returns how often a failed verification is shown to the agent.
fn repair(policy: &TurnPolicy) -> String {
    match policy.stop().repair_rounds {
        0 => "repair  none: a failed verification ends the attempt\n".to_owned(),
        1 => "repair  1 round in the same session\n".to_owned(),
        rounds => format!("repair  {rounds} rounds in the same session\n"),
    }
}

/// Returns the whole retry policy, a paragraph for each rule.
pub(super) fn retry(policy: &RetryPolicy) -> String {
    let mut text = String::from(
        "A failure has classes. The first class that a rule names decides; of a class that no\n\
         rule names, the default rule does.\n\n",
    );
    for rule in policy.rules() {
        let classes: Vec<&str> = rule.failure_classes.iter().map(String::as_str).collect();
        let _ = writeln!(text, "{}", plain(&rule.rule_id));
        let sentence = format!("{} Classes: {}.", terms(&rule.terms), classes.join(", "));
        text.push_str(&wrapped(&sentence, 4));
    }
    let _ = write!(
        text,
        "default\n{}",
        wrapped(&terms(policy.default_rule()), 4)
    );
    text
}

fn terms(terms: &RuleTerms) -> String {
    let action = terms.escalation_action;
    let attempts = match terms.max_attempts {
        1 => "1 attempt".to_owned(),
        attempts => format!(
            "{attempts} attempts, with backoff {} between them",
            terms.backoff_class
        ),
    };
    format!(
        "{attempts}, then {} ({}).",
        action.as_str(),
        action.meaning()
    )
}
