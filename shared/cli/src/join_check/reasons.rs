//! Why a turn was refused, for a person.

use crate::terminal::{plain, wrapped};
use premath_kernel::failure::FailureClass;
use premath_kernel::turn::{Breach, BrokenRule};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Prints, for each class, its meaning, the place where it was found, and what
/// the rule requires. Derived classes come last, one line each.
pub(super) fn text(broken: &[BrokenRule], ignored: &BTreeSet<String>) -> String {
    let mut text = String::new();
    let roots: BTreeSet<FailureClass> = classes(broken, false);
    for class in &roots {
        let _ = writeln!(text, "\n{class}  ({})", class.source());
        text.push_str(&wrapped(class.meaning(), 4));
        let mut shown: Vec<&[Breach]> = Vec::new();
        for rule in broken.iter().filter(|rule| rule.class == *class) {
            // Some rules hold for the join, and again before a change.
            if shown.contains(&rule.breaches.as_slice()) {
                continue;
            }
            shown.push(&rule.breaches);
            text.extend(rule.breaches.iter().map(place));
            if rule.more > 0 {
                let _ = writeln!(text, "  - and {} more", rule.more);
            }
            let _ = write!(text, "  required: {}", wrapped(rule.asks, 12).trim_start());
        }
    }
    for class in classes(broken, true).difference(&roots) {
        let _ = writeln!(text, "\n{class} is implied by the above.");
    }
    if !ignored.is_empty() {
        text.push('\n');
    }
    for field in ignored {
        let _ = writeln!(text, "ignored field: {}", plain(field));
    }
    text
}

fn classes(broken: &[BrokenRule], derived: bool) -> BTreeSet<FailureClass> {
    let rules = broken.iter().filter(|rule| rule.derived == derived);
    rules.map(|rule| rule.class).collect()
}

fn place(breach: &Breach) -> String {
    let place = format!("{}: {}", breach.at, breach.found);
    format!("  - {}", wrapped(&place, 4).trim_start())
}
