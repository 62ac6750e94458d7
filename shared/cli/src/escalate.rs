//! `premath escalate`: hands the active issue up, by a turn of the harness's
//! own and never by the operator's override (`contracts.md` 7).

use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::operator;
use crate::paths::{self, variable};
use crate::retry::{FailureArgs, describe};
use crate::terminal::plain;
use clap::Args;
use premath_evidence::{EscalationFacts, StepDemand, TurnPolicies, escalation_grant};
use premath_kernel::authority::MutationMode;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::IssueId;
use premath_kernel::json::reference::RefSet;
use premath_kernel::policy::escalation::{IssueContext, IssueContextError};
use premath_kernel::policy::retry::{Decision, EscalationAction, RetryOutcome, decide};
use premath_kernel::record::trajectory::{RetryRecord, generation_floor};
use premath_kernel::turn::GovernanceProfile;
use premath_memory::escalation::{
    CarriedOut, CarriedOutEscalation, Escalation, escalation_row, session_source,
};
use premath_memory::roots::MemoryRoots;
use premath_memory::{IssueMemory, Trajectory, clock};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Arguments of `premath escalate`.
#[derive(Debug, Args)]
pub(crate) struct EscalateArgs {
    #[command(flatten)]
    failure: FailureArgs,
    /// Set the number of the failed attempt, from 1 [default: the last one that
    /// the rule gives]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    attempt: Option<u32>,
    /// Add a witness of the failure (repeatable)
    #[arg(long = "witness-ref", value_name = "REF")]
    witness_refs: Vec<String>,
    /// Set who escalates: the owner of the lease on the issue, or of a lease taken for the change
    #[arg(long, value_name = "NAME", default_value = "premath.escalate")]
    assignee: String,
    /// Give the reason to change issues without an instruction [default: `override_reason` of harness.toml]
    #[arg(long, value_name = "TEXT")]
    override_reason: Option<String>,
    /// Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]
    #[arg(long, value_name = "PATH")]
    issues: Option<PathBuf>,
    /// Use this trajectory [default: .premath/harness_trajectory.jsonl of the repository root]
    #[arg(long, value_name = "FILE")]
    trajectory: Option<PathBuf>,
}

/// The answer of `premath escalate`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EscalateAnswer<'a> {
    /// The issue, and which source named it; null where the action needs none.
    context: Option<&'a IssueContext>,
    /// The decision of the retry policy.
    retry: RetryRecord,
    /// Whether something was changed.
    changed: bool,
    /// The follow-up that was filed.
    filed_issue_id: Option<&'a str>,
    /// What the change rests on.
    witness_ref: Option<&'a str>,
    /// The witness of the escalation's turn; null where there was none.
    turn_witness_ref: Option<&'a str>,
    /// The witness of what the issue shows after the change; null where nothing changed.
    change_witness_ref: Option<&'a str>,
}

impl EscalateArgs {
    pub(crate) fn run(mut self) -> Finished {
        let path = paths::issues(self.issues.take());
        Finished::on("escalate", "issuesPath", path, |path| self.perform(path))
    }

    fn perform(self, path: &Path) -> Result<Answer, CliError> {
        if operator::is_inside_step() {
            return Err(CliError::InsideStep);
        }
        let active = self.failure.policy()?;
        let classes = self.failure.classes()?;
        let decision = match self.attempt {
            Some(attempt) => decide(active.policy(), &classes, attempt),
            None => {
                let first = decide(active.policy(), &classes, 1);
                decide(active.policy(), &classes, first.max_attempts)
            }
        };
        let RetryOutcome::Escalate(action) = decision.outcome else {
            return Err(CliError::NotDue {
                decision: describe(&decision),
            });
        };
        let trajectory = paths::trajectory(self.trajectory.clone())?;
        let rows = match trajectory.exists() {
            true => Trajectory::open(&trajectory)?.rows()?,
            false => Vec::new(),
        };
        let floor = |issue: &IssueId| generation_floor(&rows, issue);
        let due = Due {
            classes: &classes,
            decision: &decision,
            action,
        };
        let (context, result) = match self.escalate_issue(path, &due, &floor) {
            Ok((context, handed)) => (context, Ok(handed)),
            Err(Failed { context, error }) => (context, Err(*error)),
        };
        let failed: Vec<String> = match &result {
            Ok(_) => Vec::new(),
            Err(error) => error
                .class()
                .map(FailureClass::as_str)
                .into_iter()
                .map(str::to_owned)
                .collect(),
        };
        let row = escalation_row(
            self.assignee.trim(),
            context.as_ref().map(|context| &context.issue_id),
            &decision,
            result.as_ref().map_err(|_| failed.as_slice()),
        );
        let recorded = Trajectory::open(&trajectory).map_err(CliError::from);
        let recorded = recorded.and_then(|file| Ok(file.append(&row)?));
        // Why it failed is what a person needs first.
        let handed = result?;
        recorded?;
        Ok(answer(context.as_ref(), &decision, &handed))
    }

    fn escalate_issue(
        &self,
        path: &Path,
        due: &Due<'_>,
        floor: &dyn Fn(&IssueId) -> u64,
    ) -> Result<(Option<IssueContext>, CarriedOutEscalation), Failed> {
        let Due {
            classes,
            decision,
            action,
        } = *due;
        let none = |error| Failed {
            context: None,
            error: Box::new(error),
        };
        let mode = self.mode().map_err(none)?;
        let memory = paths::open(path, false).map_err(none)?;
        let context = match context_of(&memory).map_err(none)? {
            Ok(context) => context,
            // Nothing changes, so the issue need not be known.
            Err(_) if action == EscalationAction::Stop => {
                let handed = CarriedOutEscalation::NOTHING;
                return Ok((None, handed));
            }
            Err(error) => return Err(none(CliError::Context(error))),
        };
        let roots = MemoryRoots::discover(Path::new(".")).map_err(|error| none(error.into()))?;
        let profile = self.profile(&roots).map_err(none)?;
        let witness_refs: RefSet = self.witness_refs.iter().collect();
        let witness = witness_refs.iter().next().map(str::to_owned);
        let escalation = Escalation {
            issue_id: &context.issue_id,
            claimant: self.assignee.trim(),
            holder: None,
            generation_floor: floor(&context.issue_id),
            decision,
            failure_classes: classes,
            witness_refs: &witness_refs,
            witnesses: &roots.witnesses,
        };
        let handed = memory.escalate_issue(&mode.lease_authority(), &escalation, |step| {
            let facts = EscalationFacts {
                step,
                policies: &TurnPolicies {
                    mutation: mode.policy_digest(),
                    profile: profile.clone(),
                    turn: None,
                    demand: StepDemand::default(),
                },
                decision,
                failure_classes: classes,
                witness_ref: &witness.unwrap_or_else(|| format!("step://{}", step.step_id())),
            };
            escalation_grant(action, &facts, &mode)
        });
        match handed {
            Ok(handed) => Ok((Some(context), handed)),
            Err(error) => Err(Failed {
                context: Some(context),
                error: Box::new(error.into()),
            }),
        }
    }

    /// Returns the governance profile, where the repository claims it.
    fn profile(&self, roots: &MemoryRoots) -> Result<Option<GovernanceProfile>, CliError> {
        let package = self.failure.configuration()?.governance;
        Ok(package.profile(&roots.repository)?)
    }

    /// What the change rests on: the reason that is given, else that of the
    /// configuration.
    fn mode(&self) -> Result<MutationMode, CliError> {
        let configured = self.failure.configuration()?;
        if let Some(mode) = &configured.mutation_mode
            && mode != MutationMode::HUMAN_OVERRIDE
            && self.override_reason.is_none()
        {
            return Err(CliError::Usage(format!(
                "mutation mode `{mode}` of harness.toml is not supported by this command; give a \
                reason with --override-reason"
            )));
        }
        let reason = self
            .override_reason
            .clone()
            .or(configured.override_reason)
            .unwrap_or_default();
        let until = configured.support_until;
        MutationMode::human_override(&reason, until.as_deref(), clock::now().wall)
            .map_err(CliError::Mode)
    }
}

/// An escalation that is due.
#[derive(Clone, Copy)]
struct Due<'a> {
    classes: &'a [String],
    decision: &'a Decision,
    action: EscalationAction,
}

/// An escalation that was not carried out, and how far it got.
struct Failed {
    context: Option<IssueContext>,
    error: Box<CliError>,
}

fn answer(
    context: Option<&IssueContext>,
    decision: &Decision,
    handed: &CarriedOutEscalation,
) -> Answer {
    let issue = context.map_or("", |context| context.issue_id.as_str());
    let (text, filed) = match &handed.carried_out {
        CarriedOut::Blocked => (format!("{} is blocked", plain(issue)), None),
        CarriedOut::Discovered(id) => (
            format!("{} was filed, discovered from {}", plain(id), plain(issue)),
            Some(id.as_str()),
        ),
        CarriedOut::Nothing => ("nothing changed".to_owned(), None),
    };
    Answer::new(
        EscalateAnswer {
            context,
            retry: RetryRecord::from(decision),
            changed: handed.carried_out != CarriedOut::Nothing,
            filed_issue_id: filed,
            witness_ref: handed.witness_ref.as_deref(),
            turn_witness_ref: handed.turn_witness_ref.as_deref(),
            change_witness_ref: handed.change_witness_ref.as_deref(),
        },
        format!("{}\n{text}\n", describe(decision)),
    )
}

/// Finds the issue to escalate; the inner error says why there is none.
fn context_of(memory: &IssueMemory) -> Result<Result<IssueContext, IssueContextError>, CliError> {
    let text = |name| variable(name).map(|value| value.to_string_lossy().into_owned());
    let session = paths::session(None)?;
    Ok(memory.escalation_context(
        text("PREMATH_ACTIVE_ISSUE_ID").as_deref(),
        text("PREMATH_ISSUE_ID").as_deref(),
        &session_source(&session),
    )?)
}
