//! The page of environment variables.

use super::super::{Fault, files, text_of};
use crate::surface::cell;
use premath_evidence::Agent;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// Where the variables that pass to commands are listed.
const PASSING: &str = "worker/src/environment.rs";

/// Who sets a variable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SetBy {
    /// The operator, for a batch or a command.
    Operator,
    /// The harness, for the commands of a step.
    Harness,
    /// The harness, for itself.
    Internal,
}

use SetBy::{Harness, Internal, Operator};

/// Every variable of ours, sorted within its group.
const VARIABLES: [(SetBy, &str, &str); 55] = [
    (
        Operator,
        "PREMATH_ACTIVE_ISSUE_ID",
        "the issue of `premath escalate` and `harness-worker gate`",
    ),
    (Operator, "PREMATH_ADAPTER", "`--adapter`"),
    (Operator, "PREMATH_AGENT", "`--agent`"),
    (
        Operator,
        "PREMATH_ALLOW_NETWORK_FS",
        "`1` accepts an issue store on a network file system, where file locks are not reliable",
    ),
    (Operator, "PREMATH_BOOT_CMD", "`boot_cmd` of `[batch]`"),
    (
        Operator,
        "PREMATH_ENV_ALLOW",
        "more variables that commands get, separated by commas",
    ),
    (
        Operator,
        "PREMATH_HOST_ACTION_TRANSPORT",
        "`--host-action-transport`",
    ),
    (Operator, "PREMATH_INSTRUCTION", "`--instruction`"),
    (
        Operator,
        "PREMATH_KILL_AT",
        "for tests of recovery: the boundary at which the process ends itself with SIGKILL, as `<boundary>` or \
         `<boundary>:<occurrence>`",
    ),
    (
        Operator,
        "PREMATH_LOG",
        "log filter for standard error, for example `info` or `harness_worker=debug` (default `warn`)",
    ),
    (
        Operator,
        "PREMATH_MCP_TOKEN",
        "the token of `premath mcp-serve --http`",
    ),
    (Operator, "PREMATH_NETWORK_VERIFY", "`--network-verify`"),
    (Operator, "PREMATH_NETWORK_WORK", "`--network-work`"),
    (
        Operator,
        "PREMATH_PANIC_AT",
        "for tests: the boundary at which each thread panics that reaches it, as `<boundary>` or \
         `<boundary>:<first occurrence>`",
    ),
    (Operator, "PREMATH_SANDBOX", "`--sandbox`"),
    (Operator, "PREMATH_SANDBOX_IMAGE", "`--sandbox-image`"),
    (
        Operator,
        "PREMATH_SANDBOX_READ",
        "more paths that commands may read, absolute, separated by colons",
    ),
    (
        Operator,
        "PREMATH_SANDBOX_WRITE",
        "more paths that commands may write, absolute, separated by colons",
    ),
    (
        Operator,
        "PREMATH_STARTUP_CMD",
        "`startup_cmd` of `[batch]`",
    ),
    (
        Operator,
        "PREMATH_STOP_AT",
        "for tests: the boundary at which the process stops itself with SIGSTOP, as `<boundary>` or \
         `<boundary>:<occurrence>`",
    ),
    (Operator, "PREMATH_STOP_CMD", "`stop_cmd` of `[batch]`"),
    (Operator, "PREMATH_VERIFY_CMD", "`--verify-cmd`"),
    (
        Operator,
        "PREMATH_WITNESS_REF_PREFIX",
        "`--witness-ref-prefix`",
    ),
    (
        Operator,
        "PREMATH_WORKTREES",
        "`--worktree`, separated by commas",
    ),
    (Operator, "PREMATH_WORK_CMD", "`--work-cmd`"),
    (
        Harness,
        "PREMATH_ATTEMPT",
        "the number of the attempt, for a command of `harness-worker gate`",
    ),
    (
        Harness,
        "PREMATH_DATABASE_SUFFIX",
        "`_lane` and the number of the lane, for names of databases",
    ),
    (
        Harness,
        "PREMATH_EVIDENCE_PATH",
        "where the work command writes its evidence, with the adapter `evidence-file`",
    ),
    (
        Harness,
        "PREMATH_HARNESS_SESSION_PATH",
        "the lane's session; an operator sets it to name another session for a command",
    ),
    (
        Harness,
        "PREMATH_ISSUES_PATH",
        "the issue store; an operator sets it in place of `--issues-path` and `--issues`",
    ),
    (Harness, "PREMATH_ISSUE_FILE", "the issue as JSON"),
    (Harness, "PREMATH_ISSUE_ID", "the issue's id"),
    (Harness, "PREMATH_ISSUE_TITLE", "the issue's title"),
    (
        Harness,
        "PREMATH_LANE_INDEX",
        "the number of the lane, from 1; an operator sets it in place of `--lane-index`",
    ),
    (
        Harness,
        "PREMATH_LEASE_GENERATION",
        "the generation of the step's lease",
    ),
    (Harness, "PREMATH_LEASE_ID", "the id of the step's lease"),
    (
        Harness,
        "PREMATH_NOTIFY_EVENT",
        "the JSON document of a notification, for the command of `[notify]`",
    ),
    (
        Harness,
        "PREMATH_NOTIFY_KIND",
        "the event of a notification, as in `done`",
    ),
    (
        Harness,
        "PREMATH_NOTIFY_TEXT",
        "a notification in a line, for a person",
    ),
    (
        Harness,
        "PREMATH_OUTBOX",
        "requests for follow-up issues; `premath issue discover` writes there",
    ),
    (
        Harness,
        "PREMATH_PORT_BASE",
        "the first of 100 ports for the lane's servers: 20000 for the first lane, up to the 120th",
    ),
    (
        Harness,
        "PREMATH_PROMPT_FILE",
        "a rendered prompt: the issue, the last failure, the rules",
    ),
    (
        Harness,
        "PREMATH_PROVIDER",
        "the provider that works: the lane's own, or a fallback",
    ),
    (
        Harness,
        "PREMATH_STEP_ID",
        "the step's id; commands that change issues are refused while it is set",
    ),
    (
        Harness,
        "PREMATH_STEP_OUTCOME",
        "how the step ended, for `stop_cmd`",
    ),
    (
        Harness,
        "PREMATH_WORKER_ID",
        "the worker's id; an operator sets it in place of `--worker-id`",
    ),
    (Harness, "PREMATH_WORKTREE", "the worktree of the command"),
    (
        Harness,
        "PREMATH_WORLD",
        "the name of the other repository that the step works in",
    ),
    (
        Internal,
        "PREMATH_HOME",
        "a reference in a worktree's git folder, not a variable",
    ),
    (
        Internal,
        "PREMATH_MOVING",
        "a reference in a worktree's git folder, not a variable",
    ),
    (Internal, "PREMATH_PUSH_COMMIT", "the commit of a push"),
    (Internal, "PREMATH_PUSH_FROM", "the repository of a push"),
    (Internal, "PREMATH_PUSH_REF", "the branch of a push"),
    (Internal, "PREMATH_PUSH_REMOTE", "the remote of a push"),
    (
        Internal,
        "PREMATH_SUPERVISOR",
        "marks the processes of a supervisor",
    ),
];

const HEAD: &str = "\
# Environment

<!-- Written by `mise run generate` from tests/src/surface/generate/environment.rs and worker/src/environment.rs and shared/evidence/src/adapter. -->

## Set by you

Flags override environment variables, and these override `harness.toml`.

| variable | meaning |
|---|---|
";

const OF_COMMANDS: &str = "
## Set for the commands of a step

| variable | meaning |
|---|---|
";

/// Returns the page.
pub(super) fn page(root: &Path) -> String {
    let mut page = HEAD.to_owned();
    rows(&mut page, Operator);
    page.push_str(OF_COMMANDS);
    rows(&mut page, Harness);
    let source = text_of(root, PASSING);
    let words = |list: &str, end: &str| {
        let all: Vec<String> = listed(&source, list)
            .iter()
            .map(|name| format!("`{name}{end}`"))
            .collect();
        all.join(", ")
    };
    let _ = write!(
        page,
        "\n## Passed on\n\nCommands of a step get these variables of your environment, and no others. `allow` and \
         `drop` of `[env]` change the list. Values are never recorded.\n\n{}, {}\n\nThe work command also gets \
         those that agents sign in with: {}.\n",
        words("PASSED", ""),
        words("PASSED_STARTS", "*"),
        of_agents()
    );
    page
}

/// Returns what the names of agents' variables begin with.
fn of_agents() -> String {
    let agents = Agent::ALL.iter();
    let starts: BTreeSet<&str> = agents
        .flat_map(|agent| agent.spec().variables.iter().copied())
        .collect();
    let starts = starts.iter().map(|start| format!("`{start}*`"));
    starts.collect::<Vec<_>>().join(", ")
}

fn rows(page: &mut String, group: SetBy) {
    for (_, name, meaning) in VARIABLES.iter().filter(|(set_by, ..)| *set_by == group) {
        let _ = writeln!(page, "| `{name}` | {} |", cell(meaning));
    }
}

/// Returns the strings of a constant list in a source.
fn listed(source: &str, name: &str) -> Vec<String> {
    let start = format!("const {name}: [&str;");
    let list = source.split_once(&start).map_or("", |(_, rest)| rest);
    let list = list.split_once("= [").map_or("", |(_, rest)| rest);
    let list = list.split("];").next().unwrap_or_default();
    list.split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// Compares the table with the variables that the sources name.
pub(super) fn faults(root: &Path) -> Vec<Fault> {
    let is_source = |name: &String| {
        name.ends_with(".rs")
            && name.contains("/src/")
            && ["worker/", "coordinator/", "shared/"]
                .iter()
                .any(|folder| name.starts_with(folder))
    };
    let mut used: BTreeSet<String> = BTreeSet::new();
    for name in files(root).iter().filter(|name| is_source(name)) {
        let source = text_of(root, name);
        // Tests name variables that nothing reads.
        let source = source.split("#[cfg(test)]").next().unwrap_or_default();
        used.extend(named(source));
    }
    let known: BTreeSet<String> = VARIABLES
        .iter()
        .map(|(_, name, _)| (*name).to_owned())
        .collect();
    let source = "tests/src/surface/generate/environment.rs";
    let missing = used
        .difference(&known)
        .map(|name| format!("`{name}` is not in the table"));
    let unused = known
        .difference(&used)
        .map(|name| format!("no source reads or sets `{name}`"));
    missing
        .chain(unused)
        .map(|detail| Fault::at(source, 0, detail))
        .collect()
}

/// Finds the variables that a source has as strings.
fn named(source: &str) -> BTreeSet<String> {
    let part = |c: char| c.is_ascii_uppercase() || c == '_';
    let parts = source.split("\"PREMATH_").skip(1);
    let name = |rest: &str| {
        let end = rest.find(|c| !part(c))?;
        // Any other end is that of a text.
        let ends = end > 0 && (rest[end..].starts_with('"') || rest[end..].starts_with('='));
        ends.then(|| format!("PREMATH_{}", &rest[..end]))
    };
    parts.filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_in_a_source() {
        let found = named(
            "env(\"PREMATH_ONE\"); format!(\"PREMATH_{}_X\"); b\"PREMATH_TWO=1\"; \"PREMATH_ three\"; \"PREMATH_\"",
        );
        assert_eq!(Vec::from_iter(found), ["PREMATH_ONE", "PREMATH_TWO"]);
    }

    #[test]
    fn a_list_of_a_source_is_read() {
        let source = "const A: [&str; 2] = [\n \"X\",\n \"Y\",\n];\nconst B: [&str; 1] = [\"Z\"];";
        assert_eq!(listed(source, "A"), ["X", "Y"]);
        assert_eq!(listed(source, "B"), ["Z"]);
    }
}
