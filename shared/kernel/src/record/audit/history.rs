//! The first-parent history of landing targets: what claims to be the
//! harness's must be.

use super::{Audit, CommitFacts, ContradictionCode as Code, SignaturePolicy, SignatureState};
use crate::record::trailers::LandingTrailers;
use crate::record::trajectory::ChainHead;

impl Audit<'_> {
    pub(super) fn history(&mut self) {
        let facts = self.facts;
        for (target, history) in &facts.targets {
            let mut last: Option<(u64, &str)> = None;
            // The oldest first, as they landed.
            for commit in history.iter().flatten().rev() {
                let trailers = match LandingTrailers::parse(&commit.message) {
                    Ok(None) => continue,
                    Ok(Some(trailers)) => trailers,
                    Err(error) => {
                        self.contradiction(
                            Code::TrailersForged,
                            format!("{target}: {}", commit.id),
                            "trailers as the harness writes them",
                            error.to_string(),
                        );
                        continue;
                    }
                };
                self.report.landings += 1;
                self.claim(target, commit, &trailers);
                if let Some(line) = self.anchor(target, commit, trailers.trajectory) {
                    match last {
                        Some((before, id)) if line < before => self.contradiction(
                            Code::AnchorOutOfOrder,
                            format!("{target}: {}", commit.id),
                            format!("line {before} or later, for {id} names it"),
                            format!("line {line}"),
                        ),
                        _ => last = Some((line, &commit.id)),
                    }
                }
                self.signature(target, commit);
            }
        }
    }

    /// The step that a commit claims has a row, which names this commit.
    fn claim(&mut self, target: &str, commit: &CommitFacts, trailers: &LandingTrailers) {
        let facts = self.facts;
        let place = format!("{target}: {}", commit.id);
        let rows = || {
            let step = trailers.step.as_str();
            facts.steps().filter(move |found| found.row.step_id == step)
        };
        let issue = facts.issues.get(&trailers.issue);
        let is_open = issue.is_some_and(|issue| {
            !issue.is_closed || issue.closed_by.as_ref() == Some(&trailers.step)
        });
        if rows().next().is_none() && is_open && facts.unclosed.contains(&commit.id) {
            self.note(format!(
                "{place}: {} has not closed its issue yet",
                trailers.step
            ));
            return;
        }
        if rows().next().is_none() && !self.was_cut(&trailers.step) {
            self.contradiction(
                Code::ClaimWithoutRow,
                place,
                format!("a row of {}", trailers.step),
                "none",
            );
            return;
        }
        let landed = rows()
            .filter(|found| found.row.world.is_none())
            .find_map(|found| facts.commit_of(found))
            .filter(|id| *id != commit.id);
        if let Some(id) = landed {
            self.contradiction(
                Code::ClaimOfAnother,
                place,
                format!("{} as {id}", trailers.step),
                "this commit",
            );
        }
    }

    /// Returns the line of the chain value that a commit names.
    fn anchor(
        &mut self,
        target: &str,
        commit: &CommitFacts,
        value: Option<ChainHead>,
    ) -> Option<u64> {
        let place = format!("{target}: {}", commit.id);
        let Some(value) = value else {
            self.note(format!("{place}: not anchored: it names no chain value"));
            return None;
        };
        let line = self.facts.chain.line_of(value);
        if line.is_none() {
            self.contradiction(
                Code::AnchorUnknown,
                place,
                format!("a row with the chain value {value}"),
                "none",
            );
        }
        line
    }

    fn signature(&mut self, target: &str, commit: &CommitFacts) {
        let place = format!("{target}: {}", commit.id);
        let good = "a good signature by an allowed signer";
        match &commit.signature {
            SignatureState::Good => {}
            SignatureState::None => {
                if self.facts.signatures == SignaturePolicy::Required {
                    self.contradiction(Code::SignatureMissing, place, good, "none");
                }
            }
            SignatureState::Foreign => {
                if self.facts.signatures == SignaturePolicy::Required {
                    self.contradiction(Code::SignatureMissing, place, good, "one of another kind");
                } else {
                    self.note(format!("{place}: its signature is not of SSH; not judged"));
                }
            }
            SignatureState::Bad(why) => self.contradiction(Code::SignatureBad, place, good, why),
            SignatureState::Unjudged(key) => self.note(format!(
                "{place}: signed by {key}; which keys may sign is not configured"
            )),
            SignatureState::Refused { key, why } => {
                self.contradiction(Code::SignerRefused, place, good, format!("{key}: {why}"));
            }
        }
    }
}
