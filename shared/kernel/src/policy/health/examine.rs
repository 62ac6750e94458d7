//! What of the facts is a finding.

use super::facts::{BaselineFacts, GitProgram, HealthFacts, IssueFault, RemoteState};
use super::git_version::GitVersion;
use super::*;
use crate::failure::FailureClass;
use crate::json::size::Size;
use crate::policy::inventory::{InventoryItem, Kind, Standing};
use jiff::tz::TimeZone;

/// Below how many free bytes the disk is low.
const DISK_LOW_BYTES: u64 = 2 << 30;
/// Below how many available bytes memory is low.
const MEMORY_LOW_BYTES: u64 = 512 << 20;
/// The years that the clock may show.
const YEARS: std::ops::RangeInclusive<i16> = 2025..=2099;
/// By how many seconds clocks may differ.
const SKEW_SECONDS: i64 = 300;

/// Returns what is wrong, in the order of the table.
pub fn examine(facts: &HealthFacts) -> Vec<HealthFinding> {
    let mut found = Vec::new();
    settings(facts, &mut found);
    git(facts, &mut found);
    baseline(facts, &mut found);
    machine(facts, &mut found);
    issues(facts, &mut found);
    left(facts, &mut found);
    found.sort_by_key(HealthFinding::place);
    found
}

fn settings(facts: &HealthFacts, found: &mut Vec<HealthFinding>) {
    const FILE: &str = "harness.toml";
    if !facts.has_settings {
        let problem = SETTINGS_MISSING.about;
        found.push(HealthFinding::of(
            &SETTINGS_MISSING,
            FILE,
            problem,
            "premath init",
        ));
    }
    for fault in &facts.settings {
        let next = fault.hint.as_deref().unwrap_or("edit harness.toml");
        found.push(HealthFinding::of(fault.check, FILE, &fault.error, next));
    }
    for agent in &facts.agents {
        if agent.is_installed && !agent.is_signed_in {
            let next = format!("premath agents check {} --try", agent.name);
            let problem = "it has no sign-in files, and no variable has its key";
            found.push(HealthFinding::of(
                &AGENT_NOT_SIGNED_IN,
                &agent.name,
                problem,
                next,
            ));
        }
    }
    if facts.unaccepted > 0 {
        let problem = match facts.unaccepted {
            1 => "1 governing file changed since they were accepted".to_owned(),
            count => format!("{count} governing files changed since they were accepted"),
        };
        let check = &GOVERNING_FILES_UNACCEPTED;
        found.push(HealthFinding::of(
            check,
            "governing files",
            problem,
            "premath trust",
        ));
    }
    if let Some(error) = &facts.no_sandbox {
        let next = "premath sandbox explain";
        found.push(HealthFinding::of(
            &SANDBOX_UNAVAILABLE,
            "sandbox",
            error,
            next,
        ));
    }
}

fn git(facts: &HealthFacts, found: &mut Vec<HealthFinding>) {
    if !facts.git.has_commit {
        let next = "git commit";
        found.push(HealthFinding::of(&NO_COMMIT, "HEAD", NO_COMMIT.about, next));
    }
    if !facts.git.has_author {
        let next = "git config user.name NAME && git config user.email ADDRESS";
        let problem = "user.name or user.email is not set: commits are made in the harness's name";
        found.push(HealthFinding::of(&AUTHOR_MISSING, "git", problem, next));
    }
    for setting in &facts.git.unusual {
        let name = setting.split(' ').next().unwrap_or(setting);
        // One that is set for all repositories is overridden in this one.
        let other = if setting.ends_with("true") {
            "false"
        } else {
            "true"
        };
        let next = format!("git config {name} {other}");
        let problem = format!("`{setting}` makes lanes differ from what is committed");
        found.push(HealthFinding::of(&GIT_SETTING_UNUSUAL, name, problem, next));
    }
    program(facts.git_program.as_ref(), found);
    if let Some(push) = &facts.push {
        if facts.git_program == Some(GitProgram::Missing) {
            let (check, next) = (&PUSH_GIT_MISSING, "install git");
            let problem = format!("`push = \"{}\"` is set, and git is missing", push.remote);
            found.push(HealthFinding::of(check, "git", problem, next));
        }
        remote(push, found);
    }
}

/// Judges the program `git`.
fn program(git: Option<&GitProgram>, found: &mut Vec<HealthFinding>) {
    let (check, problem) = match git {
        None => return,
        Some(GitProgram::Missing) => {
            let problem = "filters, and the commands of many steps, need it";
            (&GIT_MISSING, problem.to_owned())
        }
        Some(GitProgram::Said(said)) => match GitVersion::read(said) {
            Some(version) if version >= GitVersion::LEAST => return,
            Some(version) => {
                let least = GitVersion::LEAST;
                (&GIT_OLD, format!("it is {version}; {least} is needed"))
            }
            None => (&GIT_OLD, format!("it does not say its version: {said}")),
        },
    };
    let next = format!("install git {} or later", GitVersion::LEAST);
    found.push(HealthFinding::of(check, "git", problem, next));
}

/// Judges the remote of pushes.
fn remote(push: &PushFacts, found: &mut Vec<HealthFinding>) {
    let (remote, target) = (&push.remote, &push.target);
    let set_url = || format!("git remote set-url {remote} URL");
    let (check, problem, next) = match &push.state {
        RemoteState::Usable => return,
        RemoteState::Missing => (
            &PUSH_REMOTE_MISSING,
            format!("`push = \"{remote}\"` is set, and git has no such remote"),
            format!("git remote add {remote} URL"),
        ),
        RemoteState::NoRepository => (
            &PUSH_REMOTE_UNREACHABLE,
            "it is a folder without a repository".to_owned(),
            set_url(),
        ),
        RemoteState::NoAnswer(why) => (
            &PUSH_REMOTE_UNREACHABLE,
            why.clone(),
            format!("git ls-remote {remote}"),
        ),
        RemoteState::Diverged(count) => {
            let commits = match count {
                Some(1) => "1 commit".to_owned(),
                Some(count) => format!("{count} commits"),
                None => "commits".to_owned(),
            };
            (
                &PUSH_REFUSED,
                format!("its {target} has {commits} that {target} here does not have"),
                format!("git fetch {remote}, and merge {remote}/{target} into your branch"),
            )
        }
    };
    found.push(HealthFinding::of(check, remote, problem, next));
}

/// Judges the verification without any work.
fn baseline(facts: &HealthFacts, found: &mut Vec<HealthFinding>) {
    let (check, problem, next) = match &facts.baseline {
        BaselineFacts::NotRun | BaselineFacts::Passed => return,
        BaselineFacts::Red(problem) => (&BASELINE_RED, problem.clone(), "repair the branch"),
        BaselineFacts::Unrun(why) => (&BASELINE_UNVERIFIED, why.clone(), "repair what it names"),
        BaselineFacts::KnownRed(red) => {
            let next = "premath doctor --verify";
            (&BASELINE_WAS_RED, red.describe(), next)
        }
    };
    found.push(HealthFinding::of(check, "verification", problem, next));
}

fn machine(facts: &HealthFacts, found: &mut Vec<HealthFinding>) {
    let machine = &facts.machine;
    if let Some(free) = machine.disk.filter(|free| *free < DISK_LOW_BYTES) {
        let problem = format!("{} are free", Size(free));
        let next = "premath clean --older-than 1d";
        found.push(HealthFinding::of(&DISK_LOW, "disk", problem, next));
    }
    if let Some(free) = machine.memory.filter(|free| *free < MEMORY_LOW_BYTES) {
        let problem = format!("{} are available", Size(free));
        let next = "use fewer lanes: count under [worktrees]";
        found.push(HealthFinding::of(&MEMORY_LOW, "memory", problem, next));
    }
    if let Some(kind) = &machine.network {
        let problem = format!("the repository is on {kind}, whose locks cannot be relied on");
        let next = "move the repository to a local disk";
        let check = &NETWORK_FILE_SYSTEM;
        found.push(HealthFinding::of(check, "file system", problem, next));
    }
    let year = machine.now.to_zoned(TimeZone::UTC).year();
    if !YEARS.contains(&year) {
        let problem = format!("it shows the year {year}");
        let next = "set the clock, for example with `timedatectl set-ntp true`";
        found.push(HealthFinding::of(&CLOCK_WRONG, "clock", problem, next));
        return;
    }
    for file in &facts.files {
        let ahead = file.at.as_second() - machine.now.as_second();
        if ahead > SKEW_SECONDS {
            let problem = format!("it was changed {ahead} seconds in the future");
            let next = format!("set the clock, or `touch {}`", file.path);
            let check = &FILE_TIME_IN_FUTURE;
            found.push(HealthFinding::of(check, &file.path, problem, next));
        }
    }
}

fn issues(facts: &HealthFacts, found: &mut Vec<HealthFinding>) {
    for fault in &facts.issues {
        found.push(match fault {
            IssueFault::Cycle(ids) => {
                let first = ids.first().map_or("", String::as_str);
                let on = ids.get(1).map_or(first, String::as_str);
                HealthFinding::of(
                    &DEPENDENCY_CYCLE,
                    first,
                    match ids.len() {
                        1 => "it depends on itself".to_owned(),
                        _ => format!("they depend on each other: {}", ids.join(", ")),
                    },
                    format!("premath dep remove {first} {on}"),
                )
            }
            IssueFault::Missing { issue, depends_on } => HealthFinding::of(
                &DEPENDENCY_MISSING,
                issue,
                format!("it depends on {depends_on}, which does not exist"),
                format!("premath dep remove {issue} {depends_on}"),
            ),
            IssueFault::Status { issue, status } => HealthFinding::of(
                &STATUS_UNKNOWN,
                issue,
                format!("unknown status `{status}`: it is never ready"),
                format!("premath issue update {issue} --status open"),
            ),
            IssueFault::Unleased(issue) => HealthFinding::of(
                &IN_PROGRESS_WITHOUT_LEASE,
                issue,
                "in progress without a lease: no batch takes it",
                format!("premath issue update {issue} --status open  # if no person works on it"),
            ),
        });
    }
}

fn left(facts: &HealthFacts, found: &mut Vec<HealthFinding>) {
    for place in &facts.open_places {
        let problem = format!("mode {:03o}: other users can read it", place.mode & 0o777);
        found.push(HealthFinding::of(
            &PRIVATE_PLACE_OPEN,
            &place.path,
            problem,
            "",
        ));
    }
    for path in &facts.dead_sockets {
        let problem = CONTROL_SOCKET_LEFT.about;
        found.push(HealthFinding::of(&CONTROL_SOCKET_LEFT, path, problem, ""));
    }
    for path in &facts.broken_live {
        let problem = LIVE_FILE_INVALID.about;
        found.push(HealthFinding::of(&LIVE_FILE_INVALID, path, problem, ""));
    }
    if facts.shows_files {
        let (check, file) = (&FILES_NOT_IGNORED, ".git/info/exclude");
        found.push(HealthFinding::of(check, file, check.about, ""));
    }
}

/// Returns the finding that an item of the inventory is, if it is one.
pub fn of_item(item: &InventoryItem) -> Option<HealthFinding> {
    if !item.is_finding() {
        return None;
    }
    let is_removable = item.standing == Standing::Removable;
    let check = match (item.kind, is_removable) {
        (Kind::Memory, _) if item.failure_class == Some(FailureClass::TrajectoryCorrupt) => {
            &RUN_LOG_LINE_UNREADABLE
        }
        (Kind::Memory, _) => &ISSUE_LINE_UNREADABLE,
        (Kind::Issue, _) => match item.failure_class {
            Some(FailureClass::LeaseStale) => &LEASE_STALE,
            Some(FailureClass::MemoryChangedOutside) => &ISSUES_CHANGED_OUTSIDE,
            _ => &CLOSE_UNACCOUNTED,
        },
        (Kind::Target, _) => &LANDING_TARGET_GONE,
        (Kind::Worktree, true) => &WORKTREE_GONE,
        (Kind::Worktree, false) => &WORKTREE_UNUSABLE,
        (Kind::StepBranch, true) => &STEP_BRANCH_LEFT,
        (Kind::SalvageBranch, false) => &SALVAGE_LEFT,
        (Kind::SalvageBranch | Kind::Branch, true) => &BRANCH_LEFT,
        (Kind::Mark, true) => &MARK_LEFT,
        (Kind::Lock, true) => &GIT_LOCK_STALE,
        (Kind::SalvageFolder, true) => &SALVAGE_FOLDER_LEFT,
        (Kind::Torn, false) => &TORN_LINE,
        (Kind::Torn, true) => &TORN_FILE_LEFT,
        (Kind::Temporary, true) => &TEMPORARY_FILE_LEFT,
        _ => &OTHER_LEFT,
    };
    let next = item.advice.as_deref().unwrap_or("look at it");
    Some(HealthFinding::of(check, &item.name, &item.reason, next))
}
