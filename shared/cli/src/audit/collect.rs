//! Collects what an audit compares.

use super::signers::Signers;
use crate::error::CliError;
use crate::paths;
use premath_kernel::issue::{Issue, Status};
use premath_kernel::policy::landing::DEFAULT_TARGET;
use premath_kernel::record::audit::{
    AuditFacts, IssueState, UnsealedChange, WitnessFile, WitnessRef, streams_of,
};
use premath_kernel::record::trailers::LandingTrailers;
use premath_kernel::record::trajectory::{StepRow, action};
use premath_memory::roots::MemoryRoots;
use premath_memory::{LineFault, StoreError, TrajectoryFileError, audit, inspect_issues};
use premath_worktree::history::History;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Reads everything; the error is of a line that cannot be read.
pub(super) fn facts(
    roots: &MemoryRoots,
    signers: Signers,
    since: Option<&str>,
) -> Result<(AuditFacts, Option<CliError>), CliError> {
    let trajectory = audit::trajectory(&roots.trajectory)?;
    let issues = inspect_issues(&roots.issues)?;
    let history = History::open(&roots.repository, signers.allowed)?;
    let unreadable = corrupt(&roots.issues, &issues.faults)
        .map(CliError::from)
        .or_else(|| {
            let error = corrupt(&roots.trajectory, &trajectory.faults)?;
            Some(TrajectoryFileError::from(error).into())
        });
    let mut facts = AuditFacts {
        trajectory: shown(roots, &roots.trajectory),
        issues_path: shown(roots, &roots.issues),
        chain: trajectory.chain,
        rows: trajectory.rows,
        issues: issues
            .rows
            .into_iter()
            .map(|(id, row)| (id.into(), state(&row.issue)))
            .collect(),
        outside: outside(&roots.issues),
        since: since.map(|name| history.resolve(name)).transpose()?,
        signatures: signers.policy,
        ..AuditFacts::default()
    };
    witnesses(roots, &mut facts)?;
    commits(&history, &mut facts)?;
    shared(roots, &mut facts)?;
    Ok((facts, unreadable))
}

fn state(issue: &Issue) -> IssueState {
    IssueState {
        is_closed: issue.status.is_terminal(),
        is_deleted: issue.status == Status::Tombstone,
        closed_by: issue.closed_by_step.as_deref().map(Into::into),
    }
}

/// Returns the changes made outside a transaction; issue memory that cannot be
/// read is reported by its lines.
fn outside(issues: &Path) -> Vec<UnsealedChange> {
    let found = paths::open(issues, false).and_then(|memory| Ok(memory.look_for_foreign_rows()?));
    let change = |row: premath_memory::ForeignRow| UnsealedChange {
        summary: row.summary(),
        closes: row.closes,
        issue: row.issue_id,
    };
    let rows = found.unwrap_or_default();
    rows.into_iter().map(change).collect()
}

/// The rows of steps that completed.
fn completed(facts: &AuditFacts) -> impl Iterator<Item = &StepRow> {
    let rows = facts.rows.iter().map(|found| &found.row);
    rows.filter(|row| row.action == action::WORKER_LOOP && row.succeeded())
}

fn witnesses(roots: &MemoryRoots, facts: &mut AuditFacts) -> Result<(), CliError> {
    let references: BTreeSet<String> = completed(facts)
        .flat_map(|row| row.witness_refs.iter().map(str::to_owned))
        .collect();
    for text in references {
        let Some(reference) = WitnessRef::parse(&text).filter(WitnessRef::is_of_step) else {
            continue;
        };
        let file = audit::witness(&roots.witnesses, &reference)?;
        if let WitnessFile::Found { document, .. } = &file {
            for name in streams_of(&reference, document) {
                if let Some(stream) = audit::stream(&roots.streams, &name)? {
                    facts.streams.insert(name, stream);
                }
            }
        }
        facts.witnesses.insert(text, file);
    }
    Ok(())
}

/// Reads the witnesses of the commits whose trees other commits name as verified.
fn shared(roots: &MemoryRoots, facts: &mut AuditFacts) -> Result<(), CliError> {
    let commits = facts.targets.values().flatten().flatten();
    let trailers = commits.filter_map(|commit| LandingTrailers::parse(&commit.message).ok()?);
    let trailers: Vec<LandingTrailers> = trailers.collect();
    let named: BTreeSet<&String> = trailers
        .iter()
        .filter_map(|trailers| trailers.verified_in.as_ref())
        .collect();
    for trailers in &trailers {
        let is_named = |tree: &String| named.contains(tree);
        let Some(text) = trailers.witness.as_ref().filter(|text| {
            trailers.verified_tree.as_ref().is_some_and(is_named)
                && !facts.witnesses.contains_key(*text)
        }) else {
            continue;
        };
        if let Some(reference) = WitnessRef::parse(text).filter(WitnessRef::is_of_step) {
            let file = audit::witness(&roots.witnesses, &reference)?;
            facts.witnesses.insert(text.clone(), file);
        }
    }
    Ok(())
}

fn commits(history: &History, facts: &mut AuditFacts) -> Result<(), CliError> {
    let landings: Vec<(String, String)> = completed(facts)
        .filter(|row| row.world.is_none())
        .filter_map(|row| row.landing.as_ref())
        .map(|record| (record.target.clone(), record.commit.clone()))
        .collect();
    let mut targets: BTreeMap<String, _> = BTreeMap::new();
    for (target, _) in &landings {
        if !targets.contains_key(target) {
            let commits = match facts.since.as_deref() {
                Some(since) => history.first_parents(target, Some(since))?,
                None => {
                    let of_target = landings.iter().filter(|(other, _)| other == target);
                    let wanted = of_target.map(|(_, id)| id.clone()).collect();
                    history.with_merged(target, &wanted)?
                }
            };
            targets.insert(target.clone(), commits);
        }
    }
    if !targets.contains_key(DEFAULT_TARGET)
        && let Some(commits) = history.first_parents(DEFAULT_TARGET, facts.since.as_deref())?
    {
        targets.insert(DEFAULT_TARGET.to_owned(), Some(commits));
    }
    facts.targets = targets;
    for (target, id) in landings {
        let held = facts.targets.get(&target).and_then(Option::as_ref);
        if held.is_some_and(|commits| commits.iter().any(|commit| commit.id == id)) {
            continue;
        }
        if let Some(commit) = history.commit(&id)? {
            facts.strays.insert(id, commit);
        }
    }
    facts.unclosed = history.marked()?;
    let held = facts.targets.values().flatten().flatten();
    let held: BTreeSet<&str> = held.map(|commit| commit.id.as_str()).collect();
    let mut others = closed_at(facts);
    others.retain(|id| !held.contains(id.as_str()));
    for id in others {
        if let Some(commit) = history.commit(&id)? {
            facts.strays.insert(id, commit);
        }
    }
    Ok(())
}

/// The commits that the witnesses of closes name.
fn closed_at(facts: &AuditFacts) -> BTreeSet<String> {
    let named = facts.witnesses.iter().filter_map(|(text, file)| {
        let reference = WitnessRef::parse(text)?;
        match file {
            WitnessFile::Found { document, .. } if reference.is_close() => {
                document["commit"].as_str().map(str::to_owned)
            }
            _ => None,
        }
    });
    named.collect()
}

fn corrupt(path: &Path, faults: &[LineFault]) -> Option<StoreError> {
    faults.first().map(|fault| StoreError::Corrupt {
        path: path.to_path_buf(),
        line: fault.line,
        column: fault.column,
        detail: fault.detail.clone(),
    })
}

/// Returns a path as it is shown: from the repository root.
fn shown(roots: &MemoryRoots, path: &Path) -> String {
    let within = path.strip_prefix(&roots.repository).unwrap_or(path);
    within.display().to_string()
}
