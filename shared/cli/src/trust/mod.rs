//! `premath trust`: shows how the files that govern batches changed since they
//! were accepted, and accepts them.

mod created;
mod show;

pub(crate) use created::accept_created;

use crate::answer::{Answer, CheckVerdict, Finished};
use crate::error::CliError;
use crate::operator;
use crate::terminal;
use clap::Args;
use premath_evidence::Agent;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::policy::governing::Governing;
use premath_kernel::policy::trust::{Acceptance, Acceptor, ChangeKind, TrustError, TrustRecord};
use premath_memory::clock;
use premath_memory::roots::MemoryRoots;
use premath_memory::trust::{self, TrustFileError};
use premath_worktree::governing::{GoverningSurvey, landed, survey};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Arguments of `premath trust`.
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// Use the repository that contains this folder [default: .]
    #[arg(long, value_name = "DIR")]
    repo_root: Option<PathBuf>,
    /// Exit 1 if the files are not accepted, and change nothing
    #[arg(long, conflicts_with_all = ["yes", "trust"])]
    check: bool,
    /// Accept without asking
    #[arg(long)]
    yes: bool,
    /// Accept if the files have this digest
    #[arg(long, value_name = "DIGEST")]
    trust: Option<String>,
}

/// The answer of `premath trust`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TrustAnswer {
    /// `accepted` where the files are, now or before, those that were accepted.
    result: CheckVerdict,
    /// The digest of the files as they are.
    digest: String,
    /// The number of governing files.
    count: usize,
    /// The acceptance that is on record; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<TrustRecord>,
    /// What changed since the acceptance before, by path.
    changes: Vec<ShownChange>,
}

/// A governing file that changed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ShownChange {
    /// The path, from the root of the repository.
    path: String,
    /// The kind of the change.
    kind: ChangeKind,
    /// Whether the change came with the work of a step.
    landed: bool,
    /// The difference, as far as it is shown.
    diff: String,
}

/// What there is to accept.
struct State {
    roots: MemoryRoots,
    record: Option<TrustRecord>,
    now: GoverningSurvey,
    changes: Vec<ShownChange>,
    notes: Vec<String>,
    /// Whether a person saw it with the question.
    is_shown: bool,
}

impl TrustArgs {
    pub(crate) fn run(self, json: bool) -> Finished {
        let folder = self.repo_root.as_deref().unwrap_or(Path::new("."));
        let roots = match MemoryRoots::discover(folder) {
            Ok(roots) => roots,
            Err(error) => return Finished::new("trust", Err(error.into())),
        };
        let path = trust::path(&roots);
        Finished::on("trust", "path", Ok(path), |_| self.perform(roots, json))
    }

    fn perform(&self, roots: MemoryRoots, json: bool) -> Result<Answer, CliError> {
        if operator::is_inside_step() && !self.check {
            return Err(CliError::TrustInsideStep);
        }
        let mut state = State::look(roots)?;
        let digest = state.now.files.digest();
        if let Some(wanted) = self.trust.as_deref().map(str::trim)
            && wanted != digest
        {
            let wanted = wanted.to_owned();
            return Err(TrustError::Digest { wanted, digest }.into());
        }
        if state.is_accepted() {
            return Ok(state.answer(CheckVerdict::Accepted));
        }
        let acceptance = match &self.trust {
            Some(_) => Acceptance::Digest,
            None => Acceptance::Operator,
        };
        let is_given = self.yes || self.trust.is_some();
        let is_accepted = match (self.check, is_given) {
            (true, _) => false,
            (false, true) => true,
            (false, false) if json => false,
            (false, false) => {
                let question = "accept these files as the governing files of this repository?";
                state.ask(question)
            }
        };
        if !is_accepted {
            let hint = format!("accept them with `premath trust --yes` or `--trust {digest}`");
            return Ok(state
                .answer(CheckVerdict::Rejected)
                .note(hint)
                .refused(true));
        }
        state.accept(acceptance)
    }
}

impl State {
    fn look(roots: MemoryRoots) -> Result<Self, CliError> {
        let mut notes = Vec::new();
        let record = match trust::read(&roots) {
            Ok(record) => record,
            Err(TrustFileError::Store(error)) => return Err(error.into()),
            Err(TrustFileError::Trust(error)) => {
                notes.push(format!("warning: {error}"));
                None
            }
        };
        let root = &roots.repository;
        let now = survey(root, Governing::of_agents(Agent::governing_files()))?;
        let mut changes = Vec::new();
        if let Some(record) = &record {
            let changed = record.files().changes_to(&now.files);
            let since = record.head.as_deref();
            let landed = landed(root, since, now.target.as_deref(), &changed)?;
            for change in changed {
                changes.push(ShownChange {
                    diff: show::difference(root, record, &change)?,
                    landed: landed.contains(&change.path),
                    path: change.path,
                    kind: change.kind,
                });
            }
        }
        Ok(Self {
            roots,
            record,
            now,
            changes,
            notes,
            is_shown: false,
        })
    }

    fn is_accepted(&self) -> bool {
        let record = self.record.as_ref();
        record.is_some_and(|record| *record.files() == self.now.files)
    }

    fn ask(&mut self, question: &str) -> bool {
        let answer = terminal::ask(&self.text(), question);
        self.is_shown = answer.is_some();
        answer.unwrap_or(false)
    }

    fn text(&self) -> String {
        if self.is_shown {
            return String::new();
        }
        show::text(self.record.as_ref(), &self.now, &self.changes)
    }

    fn answer(self, result: CheckVerdict) -> Answer {
        let text = self.text();
        let document = TrustAnswer {
            result,
            digest: self.now.files.digest(),
            count: self.now.files.0.len(),
            record: self.record,
            changes: self.changes,
        };
        let answer = Answer::new(document, text);
        self.notes.into_iter().fold(answer, Answer::note)
    }

    fn accept(mut self, acceptance: Acceptance) -> Result<Answer, CliError> {
        let text = self.text();
        let by = Acceptor {
            name: trust::operator(),
            acceptance,
            head: self.now.head.clone(),
            at: Stamp::at(clock::now().wall),
        };
        let record = TrustRecord::new(self.now.files.clone(), by);
        trust::write(&self.roots, &record)?;
        let digest = record.digest().to_owned();
        self.record = Some(record);
        let count = self.now.files.0.len();
        let document = TrustAnswer {
            result: CheckVerdict::Accepted,
            digest: digest.clone(),
            count,
            record: self.record,
            changes: self.changes,
        };
        let text = format!("{text}accepted: {count} file(s), {digest}\n");
        let answer = Answer::new(document, text);
        Ok(self.notes.into_iter().fold(answer, Answer::note))
    }
}
