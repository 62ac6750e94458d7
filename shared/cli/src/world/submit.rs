//! `premath world submit`: the chain from the turn's context to the record.

use crate::answer::Answer;
use crate::error::CliError;
use crate::operator::step_id;
use crate::paths;
use crate::terminal::plain;
use clap::{Args, ValueEnum};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::{IssueId, StepId};
use premath_kernel::json::reference::RefSet;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::record::session::{self, SessionState, SessionWrite};
use premath_kernel::record::trajectory::CrossingResult;
use premath_kernel::record::trajectory::{StepRow, action};
use premath_kernel::record::world::{Crossing, GateWitness, TransportWitness, WorkContext};
use premath_memory::roots::MemoryRoots;
use premath_memory::world::{LocalWorld, cross_to, keep_crossing};
use premath_memory::{Trajectory, artifact, clock, projection};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What is handed to whom.
#[derive(Debug, Args)]
pub(super) struct SubmitArgs {
    /// Submit to the repository that contains this folder
    #[arg(long, value_name = "DIR")]
    world: PathBuf,
    /// Submit this turn witness, artifacts/ciwitness/STEP.turn.json
    #[arg(long, value_name = "FILE")]
    turn: PathBuf,
    /// Exit 1 unless the crossing reaches this
    #[arg(long, value_enum)]
    require: Option<RequireArg>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RequireArg {
    /// The other world's gate admits the turn
    Accepted,
}

/// The answer of `premath world submit`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CrossingAnswer<'a> {
    /// The outcome of the crossing.
    result: CrossingResult,
    /// Why it was refused: the gate's classes where it was asked, else the
    /// transport's.
    failure_classes: &'a BTreeSet<FailureClass>,
    /// The witness of the transport.
    transport: &'a TransportWitness,
    /// What the other world's gate said; null where it was not asked.
    gate: Option<&'a GateWitness>,
    /// The witnesses of the crossing, as the row names them.
    witness_refs: &'a RefSet,
    /// The step id of the crossing's trajectory row.
    step_id: &'a StepId,
}

impl SubmitArgs {
    pub(super) fn perform(self, trajectory: &Path) -> Result<Answer, CliError> {
        if step_id().is_some() {
            return Err(CliError::InsideStep);
        }
        let started = Stamp::at(clock::now().wall);
        let home = MemoryRoots::discover(Path::new("."))?.repository;
        let journal = Trajectory::open(trajectory)?;
        let context = context(&self.turn, &journal)?;
        let (step, issue) = (context.step_id().clone(), context.issue_id().cloned());
        let mut lineage = context.lineage().clone();
        let turn_ref = context.turn_ref().to_owned();
        let from = LocalWorld::find(&home);
        let to = LocalWorld::find(&self.world);
        let crossing = cross_to(context, &from, &to);
        let mut witnesses: RefSet = [turn_ref].into_iter().collect();
        lineage.extend(&crossing.transport.mapped_context_ref);
        // What has no world of its own to be kept in is in the answer.
        witnesses.extend(&keep_crossing(&crossing, &from, &to)?);
        let there = crossing.transport.to_world.as_deref().unwrap_or("unknown");
        let row_id = StepId::from(format!("{step}.world.{there}"));
        let result = crossing.result();
        let mut row = StepRow::new(
            row_id.clone(),
            action::WORLD_SUBMIT,
            result.as_str(),
            clock::now().wall,
        );
        row.issue_id = issue.clone();
        row.started_at = Some(started);
        row.lineage_refs = lineage.clone();
        row.witness_refs = witnesses.clone();
        let classes = crossing.failure_classes().iter();
        row.failure_classes = classes.map(|class| class.as_str().to_owned()).collect();
        journal.append(&row)?;
        record_in_session(issue.as_ref(), &witnesses, &lineage)?;
        let answer = CrossingAnswer {
            result,
            failure_classes: crossing.failure_classes(),
            transport: &crossing.transport,
            gate: crossing.gate.as_ref(),
            witness_refs: &witnesses,
            step_id: &row_id,
        };
        let short = match self.require {
            None => false,
            Some(RequireArg::Accepted) => result != CrossingResult::Accepted,
        };
        Ok(Answer::new(&answer, text(&crossing)).refused(short))
    }
}

/// The harness computes the context of the turn, and the lineage of its step.
fn context(file: &Path, journal: &Trajectory) -> Result<WorkContext, CliError> {
    let bytes = artifact::read(file)?.ok_or_else(|| CliError::Absent {
        what: "turn witness",
        path: file.to_path_buf(),
        hint: "a step writes it: `artifacts/ciwitness/STEP.turn.json`",
    })?;
    let wrong = |detail: String| CliError::Usage(format!("{}: {detail}", file.display()));
    let witness: Value =
        serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    let step = witness["stepId"].as_str().unwrap_or_default().to_owned();
    let rows = journal.rows()?;
    let row = rows
        .iter()
        .find(|row| *row.step_id == *step && row.action == action::WORKER_LOOP);
    WorkContext::compute(witness, row).map_err(|error| wrong(error.to_string()))
}

/// Adds the crossing to the worktree's session, unless the session is active.
fn record_in_session(
    issue: Option<&IssueId>,
    witnesses: &RefSet,
    lineage: &RefSet,
) -> Result<(), CliError> {
    let path = paths::session(None)?;
    let Some(session) = projection::read_session(&path)? else {
        return Ok(());
    };
    if session.state != SessionState::Stopped || session.issue_id.as_ref() != issue {
        return Ok(());
    }
    let mut refs = session.witness_refs.clone();
    refs.extend(witnesses);
    let mut parts = session.lineage_refs.clone();
    parts.extend(lineage);
    let write = SessionWrite {
        witness_refs: Some(refs),
        lineage_refs: Some(parts),
        issues_snapshot_ref: Some(String::new()),
        ..SessionWrite::default()
    };
    let session = session::write(Some(session), write, clock::now().wall);
    Ok(projection::write_session(&path, &session)?)
}

fn text(crossing: &Crossing) -> String {
    let listed = |classes: &BTreeSet<FailureClass>| {
        let words: Vec<&str> = classes.iter().map(|class| class.as_str()).collect();
        match words.is_empty() {
            true => String::new(),
            false => format!(": {}", words.join(", ")),
        }
    };
    let transport = &crossing.transport;
    let mut text = match &transport.mapped_context_ref {
        Some(mapped) if crossing.gate.is_some() => {
            format!("transport  carried: {}\n", plain(mapped))
        }
        _ => format!("transport  failed{}\n", listed(&transport.failure_classes)),
    };
    if let Some(detail) = &transport.detail {
        text.push_str(&format!("  {}\n", plain(detail)));
    }
    match &crossing.gate {
        None => text.push_str("gate       not asked\n"),
        Some(gate) => text.push_str(&format!(
            "gate       {} by {}{}\n",
            crossing.result().as_str(),
            plain(&gate.world),
            listed(&gate.failure_classes)
        )),
    }
    text
}
