//! The explanation of a sandbox as lines.

use crate::terminal::plain;
use harness_worker::sandbox::{Explanation, Listed, Reach};
use std::fmt::Write as _;

/// Bytes in a GiB.
const GIB: f64 = (1_u64 << 30) as f64;

pub(super) fn text(explanation: &Explanation) -> String {
    let mut text = format!("{}\n", plain(&explanation.description));
    section(&mut text, "read", &explanation.read);
    section(&mut text, "read, with a private layer", &explanation.caches);
    section(&mut text, "write", &explanation.write);
    if !explanation.hidden.is_empty() {
        text.push_str("\nhidden:\n");
        for path in &explanation.hidden {
            let _ = writeln!(text, "  {}", plain(path));
        }
    }
    text.push_str("\nreach:\n");
    reach(&mut text, "work", &explanation.work_network);
    reach(&mut text, "verification", &explanation.verify_network);
    let limits = &explanation.limits;
    let size = |bytes: Option<u64>| match bytes {
        Some(bytes) => format!("{:.1} GiB", bytes as f64 / GIB),
        None => "unlimited".to_owned(),
    };
    let count =
        |count: Option<u64>| count.map_or("unlimited".to_owned(), |count| count.to_string());
    let _ = writeln!(
        text,
        "\nlimits: memory {}, disk {}, processes {}, open files {}",
        size(limits.memory_bytes),
        size(limits.disk_bytes),
        count(limits.processes),
        count(limits.open_files),
    );
    let _ = writeln!(
        text,
        "variables: {}",
        plain(&explanation.variables.join(" "))
    );
    text
}

fn section(text: &mut String, name: &str, list: &[Listed]) {
    if list.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{name}:");
    let width = list.iter().map(|item| item.path.chars().count()).max();
    let width = width.unwrap_or_default().min(50);
    for item in list {
        let _ = writeln!(text, "  {:width$}  {}", plain(&item.path), item.source);
    }
}

fn reach(text: &mut String, who: &str, reach: &Reach) {
    let hosts = match reach.hosts.is_empty() {
        true => String::new(),
        false => format!(": {}", plain(&reach.hosts.join(" "))),
    };
    let _ = writeln!(text, "  {who:12}  {}{hosts}", reach.policy);
}
