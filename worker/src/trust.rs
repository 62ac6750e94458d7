//! Whether a batch may begin with the governing files of the main checkout.

use crate::settings::{LoopFlags, SettingsError, UnacceptedFilesError, roots_of};
use premath_evidence::Agent;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::policy::governing::Governing;
use premath_kernel::policy::trust::{
    Acceptance, Acceptor, FileChange, TrustRecord, TrustVerdict, judge, listed,
};
use premath_memory::clock;
use premath_memory::roots::MemoryRoots;
use premath_memory::trust::{self, TrustFileError};
use premath_worktree::governing::{GoverningSurvey, landed, survey};
use std::collections::BTreeSet;

/// Makes sure that the operator accepts the governing files of the main
/// checkout, records what is new, and returns what there is to say.
///
/// # Errors
///
/// [`SettingsError::Untrusted`] where they are not accepted;
/// [`SettingsError::Store`] where the record cannot be read or written.
pub fn settle(flags: &LoopFlags) -> Result<Vec<String>, SettingsError> {
    let Some(found) = judged(flags)? else {
        return Ok(Vec::new());
    };
    let Judged {
        roots,
        record,
        now,
        verdict,
    } = found;
    match verdict {
        TrustVerdict::Unchanged => {
            follow(&roots, record, &now)?;
            Ok(Vec::new())
        }
        TrustVerdict::Accept(acceptance, changes) => {
            let digest = now.files.digest();
            let said = describe(acceptance, &changes, now.files.0.len(), &digest);
            write(&roots, &accepted(now, acceptance))?;
            Ok(said.into_iter().collect())
        }
    }
}

/// Finds out whether a batch may begin with the governing files; records nothing.
///
/// # Errors
///
/// As [`settle`].
pub fn look(flags: &LoopFlags) -> Result<(), SettingsError> {
    judged(flags).map(drop)
}

/// The governing files, and the verdict about them.
struct Judged {
    roots: MemoryRoots,
    record: Option<TrustRecord>,
    now: GoverningSurvey,
    verdict: TrustVerdict,
}

/// Judges the governing files; `None` where no repository or no issue memory is:
/// nothing begins there.
fn judged(flags: &LoopFlags) -> Result<Option<Judged>, SettingsError> {
    let roots = roots_of(flags)?;
    if !roots.issues.exists() {
        return Ok(None);
    }
    let record = match trust::read(&roots) {
        Ok(record) => record,
        Err(TrustFileError::Store(error)) => return Err(error.into()),
        Err(TrustFileError::Trust(error)) => return Err(UnacceptedFilesError::from(error).into()),
    };
    let now = survey(
        &roots.repository,
        Governing::of_agents(Agent::governing_files()),
    )
    .map_err(UnacceptedFilesError::from)?;
    let landed = changed_by_steps(&roots, record.as_ref(), &now, flags)?;
    let verdict = judge(
        record.as_ref(),
        &now.files,
        |change| landed.contains(&change.path),
        flags.trust.as_deref(),
    );
    let verdict = verdict.map_err(UnacceptedFilesError::from)?;
    Ok(Some(Judged {
        roots,
        record,
        now,
        verdict,
    }))
}

fn changed_by_steps(
    roots: &MemoryRoots,
    record: Option<&TrustRecord>,
    now: &GoverningSurvey,
    flags: &LoopFlags,
) -> Result<BTreeSet<String>, SettingsError> {
    let Some(record) = record else {
        return Ok(BTreeSet::new());
    };
    let changes = record.files().changes_to(&now.files);
    if changes.is_empty() {
        return Ok(BTreeSet::new());
    }
    let target = flags.landing_target.as_deref().or(now.target.as_deref());
    let landed = landed(&roots.repository, record.head.as_deref(), target, &changes);
    Ok(landed.map_err(UnacceptedFilesError::from)?)
}

/// Notes the commit that the accepted files were last seen at, so that history
/// is looked at from there.
fn follow(
    roots: &MemoryRoots,
    record: Option<TrustRecord>,
    now: &GoverningSurvey,
) -> Result<(), SettingsError> {
    match record {
        Some(mut record) if record.head != now.head => {
            record.head.clone_from(&now.head);
            write(roots, &record)
        }
        _ => Ok(()),
    }
}

fn write(roots: &MemoryRoots, record: &TrustRecord) -> Result<(), SettingsError> {
    match trust::write(roots, record) {
        Ok(()) => Ok(()),
        Err(TrustFileError::Store(error)) => Err(error.into()),
        Err(TrustFileError::Trust(error)) => Err(UnacceptedFilesError::from(error).into()),
    }
}

fn accepted(now: GoverningSurvey, acceptance: Acceptance) -> TrustRecord {
    let by = Acceptor {
        name: trust::operator(),
        acceptance,
        head: now.head,
        at: Stamp::at(clock::now().wall),
    };
    TrustRecord::new(now.files, by)
}

/// Returns what is reported about an acceptance; nothing where nothing governs.
fn describe(
    acceptance: Acceptance,
    changes: &[FileChange],
    count: usize,
    digest: &str,
) -> Option<String> {
    if count == 0 && changes.is_empty() {
        return None;
    }
    Some(match acceptance {
        Acceptance::FirstUse => {
            format!("{count} governing file(s) accepted on first use ({digest})")
        }
        _ if changes.is_empty() => format!("{count} governing file(s) accepted ({digest})"),
        _ => format!("changes of governing files accepted: {}", listed(changes)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_is_reported_in_a_line() {
        let change = FileChange {
            path: "harness.toml".to_owned(),
            kind: premath_kernel::policy::trust::ChangeKind::Changed,
        };
        let of = |acceptance, changes: &[FileChange], count| {
            describe(acceptance, changes, count, "sha256:a").unwrap_or_default()
        };
        assert_eq!(
            of(Acceptance::LocalChange, &[change], 3),
            "changes of governing files accepted: harness.toml (changed)"
        );
        assert_eq!(
            of(Acceptance::FirstUse, &[], 3),
            "3 governing file(s) accepted on first use (sha256:a)"
        );
        assert_eq!(of(Acceptance::FirstUse, &[], 0), "");
    }
}
