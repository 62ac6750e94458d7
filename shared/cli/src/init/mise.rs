//! The two mise tasks: `mise run harness-coordinator-loop [FLAGS…]` and
//! `mise run harness-worker-loop [FLAGS…]`.
//!
//! mise hands a task's arguments on to its last command, so the tasks need no
//! arguments of their own.

use std::fmt::Write;

/// Files that mise reads in a project's root, the usual first.
pub(super) const FILES: [&str; 6] = [
    "mise.toml",
    ".mise.toml",
    "mise/config.toml",
    ".mise/config.toml",
    ".config/mise.toml",
    ".config/mise/config.toml",
];

const TASKS: [(&str, &str, &str); 2] = [
    (
        "harness-coordinator-loop",
        "Run a batch over the ready issues, one lane per worktree",
        "harness-coordinator",
    ),
    (
        "harness-worker-loop",
        "Work on ready issues in this worktree only",
        "harness-worker",
    ),
];

/// What is to be done about a mise file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MisePlan {
    /// The file has both tasks.
    Complete,
    /// This is to be added at its end.
    Append(String),
    /// It is left alone, for this reason.
    LeaveAlone(String),
}

/// Reports what the text of a mise file lacks; an empty text is a new file.
pub(super) fn plan(text: &str) -> MisePlan {
    let table = match text.parse::<toml::Table>() {
        Ok(table) => table,
        Err(_) => return MisePlan::LeaveAlone("it is not TOML that can be read".to_owned()),
    };
    let has = |name: &str| {
        let tasks = table.get("tasks").and_then(toml::Value::as_table);
        tasks.is_some_and(|tasks| tasks.contains_key(name))
    };
    let mut added = String::new();
    for (name, description, run) in TASKS.into_iter().filter(|(name, ..)| !has(name)) {
        let _ = write!(
            added,
            "[tasks.{name}]\ndescription = \"{description}\"\nrun = \"{run}\"\nraw = true\n\n"
        );
    }
    if added.is_empty() {
        return MisePlan::Complete;
    }
    let added = match text {
        "" => format!("{}\n", added.trim_end()),
        _ if text.ends_with('\n') => format!("\n{}\n", added.trim_end()),
        _ => format!("\n\n{}\n", added.trim_end()),
    };
    // An inline `tasks = { … }` cannot be added to from below.
    if format!("{text}{added}").parse::<toml::Table>().is_err() {
        return MisePlan::LeaveAlone(format!(
            "its [tasks] table cannot be extended automatically; add: {}",
            TASKS
                .map(|(name, _, run)| format!("{name} = \"{run}\""))
                .join(", ")
        ));
    }
    MisePlan::Append(added)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(text: &str) -> Vec<String> {
        let table: toml::Table = text.parse().unwrap();
        table["tasks"].as_table().unwrap().keys().cloned().collect()
    }

    fn appended(text: &str) -> String {
        match plan(text) {
            MisePlan::Append(added) => format!("{text}{added}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_missing_is_added_and_what_is_there_stays() {
        for text in [
            "",
            "[tools]\nnode = \"22\"",
            "[tasks.harness-worker-loop]\nrun = \"mine\"\n",
            "[tasks]\nharness-worker-loop = \"mine\"\n",
        ] {
            let full = appended(text);
            assert!(full.starts_with(text));
            assert_eq!(
                tasks(&full),
                ["harness-coordinator-loop", "harness-worker-loop"]
            );
            assert_eq!(plan(&full), MisePlan::Complete);
        }
    }

    #[test]
    fn what_cannot_be_added_to_is_left_alone() {
        for text in ["tasks = { a = \"b\" }\n", "= broken"] {
            assert!(matches!(plan(text), MisePlan::LeaveAlone(_)), "{text}");
        }
    }
}
