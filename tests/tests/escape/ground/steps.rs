//! The issues of a ground, and the command that works on them.

use super::{Ground, night};
use premath_tests::issue;
use std::path::PathBuf;

/// What every hostile script begins with. A private git folder may be in the
/// place of the user's, so both are attacked: `gits` prints every folder that
/// may be the lane's, `commons` every one that may be the shared one.
const PRELUDE: &str = r#"
G=$(git rev-parse --absolute-git-dir 2>/dev/null) || G=$PWD/.git
C=$(git rev-parse --path-format=absolute --git-common-dir 2>/dev/null) || C=$ROOT/.git
B=$(git symbolic-ref -q HEAD)
LANE=$PWD
gits() { for at in "$G" "$ROOT"/.git/worktrees/*; do [ -d "$at" ] && echo "$at"; done | sort -u; }
commons() { printf '%s\n' "$C" "$ROOT/.git" | sort -u; }
g() { git -c user.name=Hostile -c user.email=hostile@localhost "$@"; }
put() { mkdir -p "${1%/*}"; rm -rf "$1"; ln -s "$2" "$1"; }
"#;

/// What an honest issue's work is.
const HONEST: &str = r#"echo x > "src/$PREMATH_ISSUE_ID.txt""#;

/// A step that does harm, or does not.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) id: String,
    title: String,
    priority: i64,
    script: String,
    pub(super) may_be_cut: bool,
}

impl Ground {
    /// Adds an issue whose work is hostile.
    pub(crate) fn hostile(&mut self, id: &str, script: &str) -> &mut Self {
        self.titled(id, &format!("hostile {id}"), script)
    }

    /// Adds a hostile issue with a title of the attacker's.
    pub(crate) fn titled(&mut self, id: &str, title: &str, script: &str) -> &mut Self {
        self.steps.push(Step {
            id: id.to_owned(),
            title: title.to_owned(),
            priority: 1,
            script: script.to_owned(),
            may_be_cut: false,
        });
        self
    }

    /// Says that the last issue is worked on after honest ones.
    pub(crate) fn later(&mut self) -> &mut Self {
        self.of_priority(3)
    }

    /// Sets the last issue's priority; honest ones have 2.
    pub(crate) fn of_priority(&mut self, priority: i64) -> &mut Self {
        if let Some(step) = self.steps.last_mut() {
            step.priority = priority;
        }
        self
    }

    /// Gives an issue another script: one that knows what came up meanwhile.
    pub(crate) fn script_of(&mut self, id: &str, script: &str) {
        for step in self.steps.iter_mut().filter(|step| step.id == id) {
            script.clone_into(&mut step.script);
        }
    }

    /// Adds an issue of a type that no step works on.
    pub(crate) fn row(&mut self, id: &str, kind: &str) {
        self.rows.push((id.to_owned(), kind.to_owned()));
    }

    /// Says that the last issue's work need not get to its end.
    pub(crate) fn may_be_cut(&mut self) -> &mut Self {
        if let Some(step) = self.steps.last_mut() {
            step.may_be_cut = true;
        }
        self
    }

    /// The command that works on every issue, hostile and honest.
    pub(super) fn work(&self) -> String {
        let quoted = |path: PathBuf| format!("'{}'", path.display());
        let mut work = format!(
            "ROOT={} FOLDER={} USERHOME={}\n",
            quoted(self.path("repo")),
            quoted(self.scratch.folder()),
            quoted(self.path("home")),
        );
        work.push_str("case $PREMATH_ISSUE_ID in\n");
        for step in &self.steps {
            let Step { id, script, .. } = step;
            work.push_str(&format!(
                "{id})\n{PRELUDE}\n{script}\necho 'attack: the end'\n;;\n"
            ));
        }
        let pause = self.honest_pause;
        work.push_str(&format!("*) sleep {pause}; {HONEST} ;;\nesac"));
        work
    }

    /// Writes issue memory, as the user has it before the first night.
    pub(super) fn write_issues(&self) {
        let mut text = String::new();
        for step in &self.steps {
            let mut row = issue(&step.id);
            row["title"] = step.title.clone().into();
            row["priority"] = step.priority.into();
            text.push_str(&format!("{row}\n"));
        }
        for (id, kind) in &self.rows {
            let mut row = issue(id);
            row["issue_type"] = kind.clone().into();
            text.push_str(&format!("{row}\n"));
        }
        for number in 1..=night::HONEST_ISSUES {
            text.push_str(&format!("{}\n", issue(&format!("n1-{number}"))));
        }
        self.write("repo/.premath/issues.jsonl", &text);
    }
}
