//! A server bound to one step: the agent reads issues and queues follow-up
//! work, and cannot change issues (`contracts.md` 8).

use super::tool::{DiscoverInput, ToolArguments};
use crate::answer::Answer;
use crate::error::CliError;
use crate::issue;
use crate::operator::step_id;
use crate::paths::{step_runs, variable};
use premath_kernel::issue::lease::{LeaseKey, fence};
use premath_kernel::issue::outbox::{AskedUnder, OutboxRequest};
use premath_kernel::json::id::{IssueId, LeaseId, StepId};
use premath_kernel::json::token::decode;
use premath_memory::{ChangeError, IssueMemory, clock};
use std::fmt;
use std::path::PathBuf;

/// The lease that a server is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BoundLease {
    issue: IssueId,
    lease_id: LeaseId,
    generation: u64,
    /// What the environment of a step does not say.
    owner: Option<String>,
    step: Option<StepId>,
    outbox: Option<PathBuf>,
}

impl fmt::Display for BoundLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "lease {} of issue {}, generation {}",
            self.lease_id, self.issue, self.generation
        )
    }
}

impl BoundLease {
    /// Finds the lease: the one given, or that of the step in the environment.
    /// Inside a step a server is always bound, and to no other lease.
    ///
    /// # Errors
    ///
    /// [`CliError::Usage`].
    pub(super) fn find(given: Option<&str>) -> Result<Option<Self>, CliError> {
        let text = |name: &str| variable(name).map(|v| v.to_string_lossy().into_owned());
        let of_step = match step_id() {
            Some(step) => Some(Self::of_step(step.into(), text)?),
            None => None,
        };
        let given = given.map(Self::parse).transpose()?;
        let mut bound = match (given, of_step) {
            (Some(given), Some(step)) => {
                let same = |lease: &Self| {
                    (
                        lease.issue.clone(),
                        lease.lease_id.clone(),
                        lease.generation,
                    )
                };
                if same(&given) != same(&step) {
                    return Err(CliError::Usage(format!(
                        "--lease is {given}, but the step runs under {step}"
                    )));
                }
                Some(Self {
                    owner: given.owner,
                    ..step
                })
            }
            (given, step) => given.or(step),
        };
        // Some clients keep the environment from the servers that they start.
        if bound.is_none() && step_runs()? {
            return Err(CliError::Usage(
                "a step runs in this worktree, but its PREMATH_ variables are not set: pass them \
                 to the server, or name the lease with --lease"
                    .to_owned(),
            ));
        }
        if let Some(bound) = &mut bound {
            bound.outbox = variable("PREMATH_OUTBOX").map(PathBuf::from);
        }
        Ok(bound)
    }

    fn of_step(step: StepId, text: impl Fn(&str) -> Option<String>) -> Result<Self, CliError> {
        let needed = |name: &str| {
            text(name).ok_or_else(|| {
                CliError::Usage(format!(
                    "PREMATH_STEP_ID is set, but {name} is not: the step's lease is unknown"
                ))
            })
        };
        let generation = needed("PREMATH_LEASE_GENERATION")?;
        Ok(Self {
            issue: needed("PREMATH_ISSUE_ID")?.into(),
            lease_id: needed("PREMATH_LEASE_ID")?.into(),
            generation: generation.parse().map_err(|_| {
                CliError::Usage(format!(
                    "invalid PREMATH_LEASE_GENERATION `{generation}`: expected a whole number"
                ))
            })?,
            owner: None,
            step: Some(step),
            outbox: None,
        })
    }

    fn parse(text: &str) -> Result<Self, CliError> {
        let parts: Option<Vec<String>> = text.split(':').map(decode).collect();
        let wrong = || {
            CliError::Usage(format!(
                "invalid --lease `{text}`: expected ISSUE:LEASE_ID:GENERATION:OWNER, with `:` in a \
                 part written as %3A"
            ))
        };
        match parts.as_deref() {
            Some([issue, lease_id, generation, owner]) => Ok(Self {
                issue: issue.as_str().into(),
                lease_id: lease_id.as_str().into(),
                generation: generation.parse().map_err(|_| wrong())?,
                owner: Some(owner.clone()),
                step: None,
                outbox: None,
            }),
            _ => Err(wrong()),
        }
    }

    /// Returns why a change is not made.
    pub(super) fn refusal(&self, arguments: &ToolArguments) -> CliError {
        match arguments.issue().filter(|asked| self.issue != *asked) {
            Some(asked) => self.another(asked),
            None => CliError::BoundToLease {
                issue: self.issue.clone(),
            },
        }
    }

    fn another(&self, asked: &str) -> CliError {
        CliError::BoundToAnother {
            issue: self.issue.clone(),
            asked: asked.into(),
        }
    }

    /// Leaves a request in the step's outbox, marked with lease and step,
    /// while the lease is in force.
    pub(super) fn discover(
        &self,
        memory: &IssueMemory,
        arguments: ToolArguments,
    ) -> Result<Answer, CliError> {
        let tool = arguments.tool();
        let input: DiscoverInput = arguments.read()?;
        if self.issue != *input.parent {
            return Err(self.another(&input.parent));
        }
        if let Some(name) = input.beyond_a_request() {
            return Err(CliError::Arguments {
                tool,
                detail: format!("`{name}` is not supported inside a step"),
            });
        }
        issue::titled(&input.title)?;
        self.in_force(memory)?;
        let outbox = self.outbox.as_deref().ok_or(CliError::NoOutbox)?;
        let step = self.step.clone().unwrap_or_else(|| {
            let owner = self.owner.as_deref().unwrap_or_default();
            format!("{owner}.{}.{}", self.issue, self.generation).into()
        });
        let asked_under = AskedUnder {
            step_id: step.clone(),
            lease_id: self.lease_id.clone(),
            generation: self.generation,
        };
        let request = OutboxRequest {
            title: input.title.trim().to_owned(),
            description: Some(input.description.unwrap_or_default()),
            priority: input.priority,
            issue_type: input.issue_type,
            labels: Some(issue::words(input.labels.unwrap_or_default())),
            parent: Some(input.parent),
            asked_under: Some(asked_under),
        };
        issue::queue(outbox, &step, request)
    }

    fn in_force(&self, memory: &IssueMemory) -> Result<(), CliError> {
        let key = LeaseKey {
            lease_id: Some(self.lease_id.as_str().into()),
            owner: self.owner.clone(),
            generation: Some(self.generation),
        };
        let found = memory.view(|view| match view.issue(&self.issue) {
            Some(issue) => fence(issue, &key, &clock::observe()),
            None => Err(issue::no_such(&self.issue)),
        })?;
        Ok(found.map_err(ChangeError::Refused)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_reads_in_four_parts_and_a_colon_within_one_is_encoded() {
        let bound = BoundLease::parse("a%3Ab:lease1_a_w:3:w.1").unwrap();
        assert_eq!(bound.issue, "a:b");
        assert_eq!((bound.generation, bound.owner.as_deref()), (3, Some("w.1")));
        for wrong in ["", "a", "a:l:3", "a:l:x:w", "a:l:3:w:z", "a::3:w"] {
            assert!(BoundLease::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_step_that_does_not_say_its_lease_is_served_nothing() {
        let all = [
            ("PREMATH_ISSUE_ID", "a"),
            ("PREMATH_LEASE_ID", "l"),
            ("PREMATH_LEASE_GENERATION", "2"),
        ];
        let find = |left_out: &str| {
            BoundLease::of_step("w.a.2".into(), |name| {
                let found = all.iter().find(|(there, _)| *there == name);
                found
                    .filter(|(there, _)| *there != left_out)
                    .map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(find("").unwrap().generation, 2);
        for (name, _) in all {
            assert!(find(name).unwrap_err().to_string().contains(name));
        }
    }
}
