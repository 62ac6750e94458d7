//! The page of `harness.toml`, from the template that `premath init` writes.

use crate::surface::prose;
use std::fmt::Write;

const HEAD: &str = "\
# Configuration

<!-- Written by `mise run generate` from worker/src/settings/keys.rs. -->

`harness.toml` in the main worktree configures a batch. `premath init` writes it, most keys as \
comments. Every key may be left out. The values are examples; without a key of `[budget]` there \
is no limit. Flags override environment variables, and these \
override the file. An unknown key is an error. Durations are written as `30s`, `45m` or `1h`, \
sizes as `512MiB` or `20GiB`. `premath schema harness-toml` prints a JSON Schema for editors.
";

/// A text with the keys that it is about.
#[derive(Default)]
struct Entry {
    text: Vec<String>,
    keys: Vec<String>,
}

/// Returns the page.
pub(super) fn page(template: &str) -> String {
    let mut page = HEAD.to_owned();
    let mut entry = Entry::default();
    let mut in_table = false;
    for line in template.lines() {
        if line.starts_with('[') {
            entry.end(&mut page, in_table);
            in_table = true;
            let _ = write!(page, "\n## {line}\n");
        } else if let Some(key) = key(line) {
            // `premath init` puts the name of the file that it wrote there.
            let named = "instructions/<timestamp>-<id>.json";
            entry
                .keys
                .push(key.replace("instructions/FIRST.json", named));
        } else {
            // A text below keys is about the next ones.
            if !entry.keys.is_empty() {
                entry.end(&mut page, in_table);
            }
            if let Some(text) = line.strip_prefix("# ") {
                entry.text.push(text.to_owned());
            }
        }
    }
    entry.end(&mut page, in_table);
    page
}

impl Entry {
    fn end(&mut self, page: &mut String, in_table: bool) {
        let entry = std::mem::take(self);
        if !in_table || (entry.keys.is_empty() && entry.text.is_empty()) {
            return;
        }
        if !entry.keys.is_empty() {
            let _ = write!(page, "\n```toml\n{}\n```\n", entry.keys.join("\n"));
        }
        if !entry.text.is_empty() {
            let text = prose(&entry.text.join("\n"));
            let _ = write!(page, "\n{text}\n");
        }
    }
}

/// Returns a line that sets a key, or shows how to.
fn key(line: &str) -> Option<&str> {
    let line = line.strip_prefix('#').unwrap_or(line);
    let (name, _) = line.split_once(" = ")?;
    let is_key = |c: char| c.is_ascii_lowercase() || c == '_';
    (!name.is_empty() && name.chars().all(is_key)).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_becomes_a_section_a_table() {
        let page = page(
            "# About.\n\n[batch]\n# Runs <this>, `<that>`.\n#work = 'x'\nmore = 1\n# Last.\n#c = 2\n",
        );
        let body = page.strip_prefix(HEAD).unwrap();
        assert_eq!(
            body,
            "\n## [batch]\n\n```toml\nwork = 'x'\nmore = 1\n```\n\nRuns &lt;this>, `<that>`.\n\n\
             ```toml\nc = 2\n```\n\nLast.\n"
        );
    }
}
