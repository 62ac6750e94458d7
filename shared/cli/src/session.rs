//! `premath harness-session …` (HARNESS-RUNTIME 4)

use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::paths;
use crate::terminal::plain;
use clap::{Args, Subcommand, ValueEnum};
use premath_kernel::json::canonical::value_of;
use premath_kernel::json::reference::RefSet;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::record::bootstrap::{Bootstrap, bootstrap};
use premath_kernel::record::session::{self, Session, SessionState, SessionWrite};
use premath_memory::{ProjectionLock, clock, projection};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Arguments of `premath harness-session`.
#[derive(Debug, Args)]
pub(crate) struct SessionArgs {
    /// Set the session file
    ///
    /// [default: $PREMATH_HARNESS_SESSION_PATH, else
    /// .premath/harness_session.json of this worktree]
    #[arg(long, global = true, value_name = "FILE")]
    path: Option<PathBuf>,
    #[command(subcommand)]
    command: SessionCommand,
}

#[derive(Debug, Subcommand)]
enum SessionCommand {
    /// Show the session
    Read,
    /// Write the session; omitted fields stay, an empty text clears a field
    Write(WriteArgs),
    /// Report whether the next session resumes a stopped one or attaches
    Bootstrap(BootstrapArgs),
}

#[derive(Debug, Args)]
struct WriteArgs {
    /// Override the session's id
    #[arg(long, value_name = "ID")]
    session_id: Option<String>,
    /// Set the state of the session
    #[arg(long, value_enum, default_value_t = StateArg::Stopped)]
    state: StateArg,
    /// Set the issue of the session
    #[arg(long, value_name = "ID")]
    issue_id: Option<String>,
    /// Set the summary
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// Set the next step
    #[arg(long, value_name = "TEXT")]
    next_step: Option<String>,
    /// Set the instructions (repeatable; replaces the old ones)
    #[arg(long = "instruction-ref", value_name = "REF")]
    instruction_refs: Vec<String>,
    /// Set the witnesses (repeatable; replaces the old ones)
    #[arg(long = "witness-ref", value_name = "REF")]
    witness_refs: Vec<String>,
    /// Set the site lineage (repeatable; replaces the old one)
    #[arg(long = "lineage-ref", value_name = "REF")]
    lineage_refs: Vec<String>,
    /// Record the path of this issue store and its current digest
    #[arg(long, value_name = "PATH")]
    issues: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct BootstrapArgs {
    /// Use this feature ledger [default: .premath/harness_feature_ledger.json of this worktree]
    #[arg(long, value_name = "FILE")]
    feature_ledger: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum StateArg {
    /// Work is in progress
    Active,
    /// Work was handed off
    Stopped,
}

impl SessionArgs {
    pub(crate) fn run(self) -> Finished {
        let command = self.command;
        let action = match command {
            SessionCommand::Read => "harness-session.read",
            SessionCommand::Write(_) => "harness-session.write",
            SessionCommand::Bootstrap(_) => "harness-session.bootstrap",
        };
        Finished::on(
            action,
            "path",
            paths::session(self.path),
            |path| match command {
                SessionCommand::Read => read(path),
                SessionCommand::Write(args) => args.perform(path),
                SessionCommand::Bootstrap(args) => args.perform(path),
            },
        )
    }
}

/// Reads the session.
pub(crate) fn read(path: &Path) -> Result<Answer, CliError> {
    Ok(answer(&required(path)?))
}

fn required(path: &Path) -> Result<Session, CliError> {
    projection::read_session(path)?.ok_or_else(|| CliError::Absent {
        what: "session",
        path: path.to_path_buf(),
        hint: "create one with `premath harness-session write`",
    })
}

fn answer(session: &Session) -> Answer {
    let mut text = format!(
        "{} {}\n",
        plain(&session.session_id),
        session.state.as_str()
    );
    for (name, value) in [
        ("issue", session.issue_id.as_deref()),
        ("summary", session.summary.as_deref()),
        ("next step", session.next_step.as_deref()),
    ] {
        if let Some(value) = value {
            let _ = writeln!(text, "{name:<10}{}", plain(value));
        }
    }
    let _ = writeln!(
        text,
        "{:<10}{}",
        "updated",
        plain(session.updated_at.as_str())
    );
    Answer::new(SessionAnswer { session }, text)
}

/// What `harness-session read` and `write` answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionAnswer<'a> {
    /// The session in its current state.
    session: &'a Session,
}

/// The answer of `premath harness-session bootstrap`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BootstrapAnswer<'a> {
    #[serde(flatten)]
    bootstrap: &'a Bootstrap,
    /// When the session stopped; null while it is active.
    stopped_at: Option<&'a Stamp>,
    /// The session's file.
    session_ref: String,
    /// The feature ledger's file, there or not.
    feature_ledger_ref: String,
}

/// Returns refs that were given, `None` where none were.
pub(crate) fn given(refs: Vec<String>) -> Option<RefSet> {
    (!refs.is_empty()).then(|| refs.into_iter().collect())
}

impl WriteArgs {
    fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let _alone = ProjectionLock::acquire(path)?;
        let prior = projection::read_session(path)?;
        let mut note = None;
        let mut snapshot = None;
        if let Some(issues) = &self.issues {
            let taken = paths::open(issues, false)
                .and_then(|memory| Ok(memory.view(|view| view.snapshot_ref())?));
            match taken {
                Ok(taken) => snapshot = Some(taken),
                Err(error) => {
                    // That of the issue store before is not that of this one.
                    snapshot = Some(String::new());
                    note = Some(format!("warning: no snapshot ref: {}", error.chain()));
                }
            }
        }
        let write = SessionWrite {
            session_id: self.session_id.map(Into::into),
            state: match self.state {
                StateArg::Active => SessionState::Active,
                StateArg::Stopped => SessionState::Stopped,
            },
            issue_id: self.issue_id.map(Into::into),
            summary: self.summary,
            next_step: self.next_step,
            instruction_refs: given(self.instruction_refs),
            witness_refs: given(self.witness_refs),
            lineage_refs: given(self.lineage_refs),
            issues_path: self.issues.map(|path| {
                let path = std::path::absolute(&path).unwrap_or(path);
                path.display().to_string()
            }),
            issues_snapshot_ref: snapshot,
            ..SessionWrite::default()
        };
        let session = session::write(prior, write, clock::now().wall);
        projection::write_session(path, &session)?;
        let answer = answer(&session);
        Ok(match note {
            Some(note) => answer.note(note),
            None => answer,
        })
    }
}

impl BootstrapArgs {
    fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let session = required(path)?;
        let ledger_path = paths::ledger(self.feature_ledger)?;
        let ledger = projection::read_ledger(&ledger_path)?;
        let start = bootstrap(&session, ledger.as_ref());
        let mut document = value_of(&BootstrapAnswer {
            bootstrap: &start,
            stopped_at: session.stopped_at.as_ref(),
            session_ref: path.display().to_string(),
            feature_ledger_ref: ledger_path.display().to_string(),
        });
        if let Value::Object(fields) = &mut document {
            for absent in [
                "resumeIssueId",
                "nextStep",
                "summary",
                "issuesPath",
                "issuesSnapshotRef",
            ] {
                fields.entry(absent).or_insert(Value::Null);
            }
        }
        let mut text = format!(
            "{} {}\n",
            document["mode"].as_str().unwrap_or_default(),
            plain(&start.session_id)
        );
        for (name, value) in [
            ("issue", start.resume_issue_id.as_deref()),
            ("next step", start.next_step.as_deref()),
            ("feature", start.next_feature_id.as_deref()),
        ] {
            if let Some(value) = value {
                let _ = writeln!(text, "{name:<10}{}", plain(value));
            }
        }
        Ok(Answer::new(document, text))
    }
}
