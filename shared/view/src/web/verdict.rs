//! What the gate said about a turn: the verdict, and the rows that broke a rule.

use super::query_value;
use crate::html::escaped;
use premath_kernel::failure::FailureClass;
use premath_kernel::turn::{BrokenRule, RuleNote, Stage};
use std::collections::BTreeSet;
use std::fmt::Write;

/// What the gate said about a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether every call is accounted for.
    pub join_closed: bool,
    /// Whether the turn may change issues.
    pub mutation_ready: bool,
    /// The classes that keep the join open.
    pub join_classes: Vec<FailureClass>,
    /// The classes that keep the turn from a change.
    pub mutation_classes: Vec<FailureClass>,
    /// The recorded classes that kept the issue from being closed; `None` where
    /// none are recorded.
    pub close_classes: Option<Vec<String>>,
    /// The rules that this turn was judged by: all of them but those that need its step.
    pub judged: Vec<RuleNote>,
    /// The rules that the turn breaks, with the places.
    pub broken: Vec<BrokenRule>,
}

/// Writes a verdict.
pub fn verdict(verdict: &Verdict) -> String {
    let mut text = String::from("<ul class=\"verdict\">\n");
    let line = |text: &mut String, good: bool, yes: &str, no: &str, classes: &str| {
        let (state, word) = if good { ("good", yes) } else { ("bad", no) };
        let _ = writeln!(
            text,
            "<li><span class=\"state {state}\">{word}</span> {classes}</li>"
        );
    };
    let named = |classes: &[FailureClass]| {
        let classes: Vec<String> = classes.iter().map(|c| class_link(c.as_str())).collect();
        classes.join(", ")
    };
    line(
        &mut text,
        verdict.join_closed,
        "join closed",
        "join open",
        &named(&verdict.join_classes),
    );
    line(
        &mut text,
        verdict.mutation_ready,
        "change allowed",
        "change refused",
        &named(&verdict.mutation_classes),
    );
    if let Some(classes) = &verdict.close_classes {
        let named: Vec<String> = classes.iter().map(|class| class_link(class)).collect();
        let named = named.join(", ");
        line(
            &mut text,
            classes.is_empty(),
            "close allowed",
            "close refused",
            &named,
        );
    }
    text.push_str("</ul>\n");
    let broken: BTreeSet<&str> = verdict.broken.iter().map(|rule| &*rule.rule).collect();
    let _ = writeln!(
        text,
        "<p>Judged again here, without its step: {} broken.</p>",
        broken.len()
    );
    for rule in &verdict.broken {
        one(rule, &mut text);
    }
    for (heading, join) in [("the join", true), ("a change", false)] {
        judged(verdict, (heading, join), &broken, &mut text);
    }
    text
}

/// Lists the rules of the join, or those of a change, with what each said.
fn judged(
    verdict: &Verdict,
    (heading, join): (&str, bool),
    broken: &BTreeSet<&str>,
    text: &mut String,
) {
    let rules = verdict.judged.iter();
    let rules: Vec<&RuleNote> = rules
        .filter(|rule| (rule.stage == Stage::Join) == join)
        .collect();
    let _ = writeln!(
        text,
        "<details>\n<summary>Rules of {heading} that were judged ({})</summary>\n<ul>",
        rules.len()
    );
    for rule in rules {
        let (state, word) = match broken.contains(&*rule.rule) {
            true => ("bad", "broken"),
            false => ("good", "kept"),
        };
        let _ = writeln!(
            text,
            "<li><span class=\"state {state}\">{word}</span> <code>{}</code>: {}</li>",
            escaped(&rule.rule),
            escaped(rule.asks)
        );
    }
    text.push_str("</ul>\n</details>\n");
}

fn one(rule: &BrokenRule, text: &mut String) {
    let derived = if rule.derived {
        ", follows from another rule"
    } else {
        ""
    };
    let _ = writeln!(
        text,
        "<article class=\"rule\">\n<h3>{} <span class=\"faint\">rule <code>{}</code>{derived}</span>\
        </h3>\n<p>{}</p>\n<ul>",
        class_link(rule.class.as_str()),
        escaped(&rule.rule),
        escaped(rule.class.meaning())
    );
    for breach in &rule.breaches {
        let _ = writeln!(
            text,
            "<li><code>{}</code>: <bdi>{}</bdi></li>",
            escaped(&breach.at.to_string()),
            escaped(&breach.found.to_string())
        );
    }
    if rule.more > 0 {
        let _ = writeln!(text, "<li>and {} more</li>", rule.more);
    }
    let _ = writeln!(
        text,
        "</ul>\n<p><b>Required:</b> {}</p>\n</article>",
        escaped(rule.asks)
    );
}

fn class_link(class: &str) -> String {
    format!(
        "<a href=\"/log?class={}\"><code>{}</code></a>",
        query_value(class),
        escaped(class)
    )
}
