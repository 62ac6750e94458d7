//! What of a repository and its machine keeps batches from running well.

use super::survey::Survey;
use crate::agents;
use crate::error::CliError;
use crate::paths;
use harness_worker::health::{git_version, remote_commit, verify_baseline};
use harness_worker::settings::{InstructionError, LoopFlags, Settings, SettingsError};
use harness_worker::telemetry;
use premath_evidence::Agent;
use premath_kernel::issue::Status;
use premath_kernel::issue::graph::Scope;
use premath_kernel::issue::lease::{self, LeaseState};
use premath_kernel::issue::word::is_known;
use premath_kernel::policy::governing::Governing;
use premath_kernel::policy::health::{
    self, AgentFacts, BaselineFacts, GitProgram, HealthCheck, HealthFacts, IssueFault,
    MachineFacts, PushFacts, RemoteState, SettingsFault,
};
use premath_kernel::policy::retry::PolicyError;
use premath_kernel::policy::turn::TurnPolicyError;
use premath_memory::cause::chain;
use premath_memory::instruction::InstructionFileError;
use premath_memory::roots::MemoryRoots;
use premath_memory::upkeep::{Amiss, file_times};
use premath_memory::{clock, trust};
use premath_platform::machine::{Memory, free_disk, network_kind};
use premath_worktree::governing::survey;
use premath_worktree::landing::{Landing, LandingError};
use premath_worktree::setup::{self, PushRemote};
use std::path::Path;

/// Looks at a repository, and runs the verification where `verify`. What cannot be
/// looked at is left out.
pub(super) fn look(
    surveyed: &Survey,
    no_sandbox: Option<String>,
    verify: bool,
) -> Result<HealthFacts, CliError> {
    let roots = &surveyed.roots;
    let root = &roots.repository;
    let now = clock::now().wall;
    let has_settings = root.join("harness.toml").exists();
    let settings = has_settings.then(|| {
        let flags = LoopFlags {
            repo_root: Some(root.clone()),
            ..LoopFlags::default()
        };
        Settings::resolve(&flags, now)
    });
    let amiss = Amiss::look(roots)?;
    let unaccepted = unaccepted(roots);
    let push = match &settings {
        Some(Ok(settings)) => push(settings),
        // A batch may get its commands by flags, of which the remote is independent.
        Some(Err(_)) => with_commands(root, now).as_ref().and_then(push),
        None => None,
    };
    let baseline = baseline(surveyed, settings.as_ref(), unaccepted, verify);
    let usable = match &settings {
        Some(Ok(settings)) => Some(settings.clone()),
        _ => with_commands(root, now),
    };
    let mut faults: Vec<SettingsFault> = usable.iter().filter_map(later_fault).collect();
    faults.extend(settings.and_then(|settings| fault(settings.err()?)));
    let text = |paths: Vec<std::path::PathBuf>| -> Vec<String> {
        let paths = paths.iter();
        paths.map(|path| path.display().to_string()).collect()
    };
    Ok(HealthFacts {
        has_settings,
        settings: faults,
        agents: agents_of(root),
        git: setup::look(root).unwrap_or_default(),
        git_program: Some(git_program(root)),
        baseline,
        push,
        machine: MachineFacts {
            disk: free_disk(root),
            memory: Memory::now().available,
            network: network_kind(root).map(str::to_owned),
            now,
        },
        files: file_times(roots),
        unaccepted,
        issues: match surveyed.is_whole() {
            true => issue_faults(&roots.issues)?,
            false => Vec::new(),
        },
        open_places: amiss.open_places,
        dead_sockets: text(amiss.dead_sockets),
        broken_live: text(amiss.broken_live),
        shows_files: amiss.shows_files,
        no_sandbox,
    })
}

/// Looks at the program `git`.
fn git_program(root: &Path) -> GitProgram {
    match agents::is_on_path("git") {
        true => GitProgram::Said(git_version(root)),
        false => GitProgram::Missing,
    }
}

/// Returns the settings where nothing but a command is missing.
fn with_commands(root: &Path, now: jiff::Timestamp) -> Option<Settings> {
    let flags = LoopFlags {
        repo_root: Some(root.to_path_buf()),
        work_cmd: Some("true".to_owned()),
        verify_cmd: Some("true".to_owned()),
        ..LoopFlags::default()
    };
    Settings::resolve(&flags, now).ok()
}

/// Looks at the remote that the landing target is pushed to, and asks one that is not
/// on this machine.
fn push(settings: &Settings) -> Option<PushFacts> {
    let rule = &settings.landing;
    let remote = rule.push.clone()?;
    let (root, target) = (&settings.roots.repository, &rule.target);
    let state = match setup::push_remote(root, &remote, target) {
        PushRemote::Known(state) => state,
        PushRemote::Elsewhere => match remote_commit(settings, &remote, target) {
            Ok(Some(commit)) => setup::push_of(root, target, &commit),
            Ok(None) => RemoteState::Usable,
            Err(why) => RemoteState::NoAnswer(why),
        },
    };
    Some(PushFacts {
        remote,
        target: target.clone(),
        state,
    })
}

/// Returns what is known about the verification without any work. It runs only by
/// settings that a batch could begin with.
fn baseline(
    surveyed: &Survey,
    settings: Option<&Result<Settings, SettingsError>>,
    unaccepted: usize,
    verify: bool,
) -> BaselineFacts {
    let unrun = |why: &str| BaselineFacts::Unrun(why.to_owned());
    match settings {
        _ if !verify => {
            let red = surveyed.known_red.map(BaselineFacts::KnownRed);
            red.unwrap_or_default()
        }
        Some(Ok(_)) if unaccepted > 0 => unrun("governing files changed since they were accepted"),
        Some(Ok(settings)) => verify_baseline(settings.clone()),
        Some(Err(_)) => unrun("a batch that starts now is refused"),
        None => unrun("no verify command is set"),
    }
}

/// Returns why settings that hold by themselves still refuse a batch.
fn later_fault(settings: &Settings) -> Option<SettingsFault> {
    if let Err(error) = telemetry::require_headers(settings) {
        return fault(error);
    }
    let repository = settings.roots.repository.clone();
    let error = match Landing::look(settings.landing.clone(), repository) {
        // Another check says that there is no commit.
        Ok(()) | Err(LandingError::Unborn { .. }) => return None,
        Err(error) => error,
    };
    Some(SettingsFault {
        check: &health::LANDING_TARGET_UNUSABLE,
        hint: error.hint(),
        error: chain(&error),
    })
}

/// Returns which finding refused settings are; `None` where another fact says it.
fn fault(error: SettingsError) -> Option<SettingsFault> {
    let check: &'static HealthCheck = match &error {
        SettingsError::CommandMissing { name: "work" } => &health::WORK_COMMAND_MISSING,
        SettingsError::CommandMissing { .. } => &health::VERIFY_COMMAND_MISSING,
        SettingsError::ProgramMissing { agent: Some(_), .. } => &health::AGENT_MISSING,
        SettingsError::ProgramMissing { .. } => &health::PROGRAM_MISSING,
        SettingsError::Value { .. } | SettingsError::Config(_) => &health::SETTINGS_INVALID,
        SettingsError::Mode(_) => &health::OVERRIDE_NOT_ADMITTED,
        SettingsError::Instruction(error) => match error {
            InstructionError::Missing
            | InstructionError::File(InstructionFileError::EnvelopeFile(_)) => {
                &health::INSTRUCTION_MISSING
            }
            InstructionError::Adapter { .. } => &health::INSTRUCTION_OTHER_EVIDENCE,
            _ => &health::INSTRUCTION_REFUSED,
        },
        SettingsError::Governance(_) => &health::GOVERNANCE_REFUSED,
        SettingsError::Policy { source, .. } => match source {
            PolicyError::DigestMismatch { .. } => &health::RETRY_POLICY_UNSEALED,
            _ => &health::POLICY_INVALID,
        },
        SettingsError::TurnPolicy { source, .. } => match source {
            TurnPolicyError::DigestMismatch { .. } => &health::TURN_POLICY_UNSEALED,
            _ => &health::POLICY_INVALID,
        },
        SettingsError::Network(_) => &health::NETWORK_UNENFORCED,
        SettingsError::Signing(_) => &health::SIGNING_KEY_UNUSABLE,
        SettingsError::Store(_) | SettingsError::Telemetry(_) => &health::SETTINGS_INVALID,
        SettingsError::Sandbox(_) | SettingsError::Untrusted(_) => return None,
    };
    let hint = error.hint();
    Some(SettingsFault {
        check,
        error: CliError::from(error).chain(),
        hint,
    })
}

/// Returns the agents that `harness.toml` names.
fn agents_of(root: &Path) -> Vec<AgentFacts> {
    let text = std::fs::read_to_string(root.join("harness.toml")).unwrap_or_default();
    let table: toml::Table = text.parse().unwrap_or_default();
    let named = |key: &str| -> Vec<String> {
        match table.get("agent").and_then(|agent| agent.get(key)) {
            Some(toml::Value::String(list)) => list.split(',').map(str::to_owned).collect(),
            Some(toml::Value::Array(list)) => {
                let names = list.iter().filter_map(toml::Value::as_str);
                names.map(str::to_owned).collect()
            }
            _ => Vec::new(),
        }
    };
    let mut agents: Vec<Agent> = ["use", "fallback"]
        .into_iter()
        .flat_map(named)
        .filter_map(|name| Agent::named(name.trim()))
        .collect();
    agents.sort();
    agents.dedup();
    let facts = |agent: Agent| AgentFacts {
        name: agent.as_str().to_owned(),
        is_installed: agents::is_on_path(agent.spec().program),
        is_signed_in: agents::is_signed_in(agent),
    };
    agents.into_iter().map(facts).collect()
}

/// Counts the governing files that changed since they were accepted; those of a
/// repository that never accepted any are accepted by its first batch. What cannot be
/// read counts as a change.
fn unaccepted(roots: &MemoryRoots) -> usize {
    let record = match trust::read(roots) {
        Ok(Some(record)) => record,
        Ok(None) => return 0,
        Err(_) => return 1,
    };
    let governing = Governing::of_agents(Agent::governing_files());
    let now = survey(&roots.repository, governing);
    now.map_or(1, |now| record.files().changes_to(&now.files).len())
}

fn issue_faults(issues: &Path) -> Result<Vec<IssueFault>, CliError> {
    let memory = paths::open(issues, false)?;
    let diagnosis = memory.diagnose(Scope::Active)?;
    let mut faults: Vec<IssueFault> = Vec::new();
    for id in &diagnosis.self_loops {
        faults.push(IssueFault::Cycle(vec![id.to_string()]));
    }
    for cycle in diagnosis.cycles.iter().filter(|cycle| cycle.len() > 1) {
        let ids = cycle.iter().map(ToString::to_string);
        faults.push(IssueFault::Cycle(ids.collect()));
    }
    for edge in &diagnosis.dangling {
        faults.push(IssueFault::Missing {
            issue: edge.issue_id.to_string(),
            depends_on: edge.depends_on_id.to_string(),
        });
    }
    let seen = clock::observe();
    memory.view(|view| {
        for row in view.rows() {
            let issue = row.issue.id.to_string();
            match &row.issue.status {
                status if !is_known(status) => faults.push(IssueFault::Status {
                    issue,
                    status: status.as_str().to_owned(),
                }),
                Status::InProgress
                    if lease::state(Some(&row.issue), &seen) == LeaseState::Unleased =>
                {
                    faults.push(IssueFault::Unleased(issue));
                }
                _ => {}
            }
        }
    })?;
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;
    use premath_kernel::issue::word::KNOWN_STATUSES;
    use premath_kernel::policy::health::CHECKS;
    use std::fmt::Write;

    #[test]
    fn only_a_status_that_is_not_known_is_a_fault() {
        let folder = tempfile::tempdir().unwrap();
        let issues = folder.path().join("issues.jsonl");
        let statuses = KNOWN_STATUSES.into_iter().chain(["odd"]);
        let rows: String = statuses
            .filter(|status| *status != "in_progress")
            .map(|status| {
                let row = format!(r#"{{"id":"{status}","title":"t","status":"{status}"}}"#);
                format!("{row}\n")
            })
            .collect();
        std::fs::write(&issues, rows).unwrap();
        let faults = issue_faults(&issues).unwrap();
        let odd = IssueFault::Status {
            issue: "odd".to_owned(),
            status: "odd".to_owned(),
        };
        assert_eq!(faults, [odd]);
    }

    #[test]
    fn the_page_has_every_check_as_the_table_has_it() {
        let page = include_str!("../../../../docs/reference/doctor.md");
        let rows = CHECKS.iter().fold(String::new(), |mut rows, check| {
            let fix = if check.is_fixable { "yes" } else { "-" };
            let _ = writeln!(
                rows,
                "| `{}` | {} | {} | {fix} |",
                check.id,
                check.severity.word(),
                check.about
            );
            rows
        });
        let found: String = page
            .lines()
            .filter(|line| line.starts_with("| `"))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(found, rows);
    }
}
