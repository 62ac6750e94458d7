//! The commit that a closed issue landed as.

use super::closed::ClosedWitness;
use super::shared::{SharedLanding, claims_shared, verified_in};
use super::witness::WitnessRef;
use super::{Audit, AuditRow, CommitFacts, ContradictionCode as Code};
use crate::policy::landing::LandingRecord;
use crate::record::trailers::LandingTrailers;
use crate::record::trajectory::action;

impl<'a> Audit<'a> {
    /// Compares the landing that a row records with the commit.
    pub(super) fn landing(
        &mut self,
        issue: &str,
        found: &AuditRow,
        witnesses: &[ClosedWitness<'a>],
    ) {
        let claims = claims_shared(&found.row);
        let Some(record) = &found.row.landing else {
            if claims {
                self.shared_unnamed(issue, found);
            }
            self.unlanded(issue, found, witnesses);
            return;
        };
        if let Some(world) = &found.row.world {
            if claims {
                self.shared_unnamed(issue, found);
            }
            self.note(format!(
                "{issue}: landed in another repository ({world}); run the audit there"
            ));
            return;
        }
        let Some(commit) = self.reachable(issue, record) else {
            return;
        };
        // A step that changed nothing names the commit that it began at.
        let close = witnesses.iter().find(|read| read.reference.is_close());
        let is_unchanged = close.is_some_and(|read| read.document["commit"].is_null());
        let adopted = match is_unchanged {
            true => false,
            false => self.trailers(issue, found, commit, witnesses),
        };
        let within = verified_in(commit).filter(|_| !is_unchanged);
        if let Some(tree) = &within {
            let landing = SharedLanding {
                issue,
                found,
                record,
                commit,
                tree,
                adopted,
            };
            self.shared(&landing, witnesses);
        } else if claims {
            self.shared_unnamed(issue, found);
        } else if !adopted && !found.row.recovered {
            self.verified(issue, witnesses, commit);
        }
    }

    /// Compares the commit of work that stayed on its branch, as far as the
    /// repository still has it.
    fn unlanded(&mut self, issue: &str, found: &AuditRow, witnesses: &[ClosedWitness<'a>]) {
        let facts = self.facts;
        let Some(id) = facts.commit_of(found).filter(|_| found.row.world.is_none()) else {
            return;
        };
        match facts.commit(id) {
            Some(commit) => {
                self.trailers(issue, found, commit, witnesses);
                self.verified(issue, witnesses, commit);
            }
            None => self.note(format!(
                "{issue}: its commit {id} did not land and is not in the repository; it is not compared"
            )),
        }
    }

    /// Finds a landed commit in its target's first-parent history, or in that of a branch
    /// that was merged.
    fn reachable(&mut self, issue: &str, record: &LandingRecord) -> Option<&'a CommitFacts> {
        let facts = self.facts;
        let place = format!("{issue}: {}", record.commit);
        let Some(Some(history)) = facts.targets.get(&record.target) else {
            let expected = format!("the branch {}", record.target);
            self.contradiction(Code::TargetMissing, place, expected, "none");
            return None;
        };
        let commit = history.iter().find(|commit| commit.id == record.commit);
        if commit.is_some() {
            return commit;
        }
        if !facts.strays.contains_key(&record.commit) {
            self.contradiction(Code::CommitMissing, place, "the commit", "none");
        } else if facts.since.is_none() {
            let expected = format!("it in the first-parent history of {}", record.target);
            self.contradiction(Code::CommitUnreachable, place, expected, "it is not");
        } else {
            self.note(format!(
                "{issue}: landed before --since; its commit is not compared"
            ));
        }
        None
    }

    /// Compares a commit's trailers with the row; returns whether the commit is
    /// an earlier attempt's, which the step took over.
    fn trailers(
        &mut self,
        issue: &str,
        found: &AuditRow,
        commit: &CommitFacts,
        witnesses: &[ClosedWitness<'a>],
    ) -> bool {
        let row = &found.row;
        let place = format!("{issue}: {}", commit.id);
        let trailers = match LandingTrailers::parse(&commit.message) {
            Ok(Some(trailers)) => trailers,
            Ok(None) => {
                let expected = format!("the trailers of {}", row.step_id);
                self.contradiction(Code::TrailersMissing, place, expected, "none");
                return false;
            }
            // It is in the history.
            Err(_) => return false,
        };
        let adopted = trailers.step != row.step_id && self.was_cut(&trailers.step);
        let mut differs = |key: &str, expected: &str, found: &str| {
            if expected != found {
                let place = format!("{place}: {key}");
                self.contradiction(Code::TrailerDisagrees, place, expected, found);
            }
        };
        differs("Issue", issue, &trailers.issue);
        if !adopted {
            differs("Step", &row.step_id, &trailers.step);
        }
        if let Some(tree) = &trailers.verified_tree {
            differs("Verified-Tree", &commit.tree, tree);
        }
        if let Some(witness) = trailers.witness.as_deref().filter(|_| !adopted)
            && !row.recovered
            && !row.witness_refs.contains(witness)
        {
            differs("Witness", "a witness of the row", witness);
        }
        if !adopted {
            self.of_step(&place, found, &trailers, witnesses);
        }
        adopted
    }

    /// Compares the trailers that say how the step worked with its row and its
    /// witnesses.
    fn of_step(
        &mut self,
        place: &str,
        found: &AuditRow,
        trailers: &LandingTrailers,
        witnesses: &[ClosedWitness<'a>],
    ) {
        let document = |phase: &str| {
            let mut read = witnesses.iter();
            let read = read.find(|read| read.reference.phase == phase)?;
            Some(read.document)
        };
        let mut differing: Vec<(&str, String, &str)> = Vec::new();
        let number = trailers.lease.rsplit_once('#').map(|(_, number)| number);
        let lease = document(WitnessRef::CLOSE).and_then(|document| {
            let mutation = &document["mutation"];
            let (id, number) = (&mutation["leaseId"], &mutation["leaseGeneration"]);
            Some(format!("{}#{}", id.as_str()?, number.as_u64()?))
        });
        if let Some(generation) = found.row.generation
            && number != Some(&generation.to_string())
        {
            let expected = format!("generation {generation}");
            differing.push(("Lease", expected, &trailers.lease));
        } else if let Some(lease) = lease
            && lease != trailers.lease
        {
            differing.push(("Lease", lease, &trailers.lease));
        }
        if let Some(base) = &trailers.base
            && let Some(began) = document("work").and_then(|work| work["before"]["head"].as_str())
            && base != began
        {
            differing.push(("Base", began.to_owned(), base));
        }
        // Chain and trailers are written by the same versions of the harness.
        if self.facts.chain.values.contains_key(&found.line) {
            let lacks = [
                ("Witness", trailers.witness.is_none()),
                ("Trajectory", trailers.trajectory.is_none()),
                ("Base", trailers.base.is_none()),
                (
                    "Verified-Tree",
                    trailers.verified_tree.is_none() && trailers.verified_in.is_none(),
                ),
            ];
            let lacking = lacks.into_iter().filter(|(_, lacks)| *lacks);
            differing.extend(lacking.map(|(key, _)| (key, "the trailer".to_owned(), "none")));
        }
        for (key, expected, found) in differing {
            let place = format!("{place}: {key}");
            self.contradiction(Code::TrailerDisagrees, place, expected, found);
        }
    }

    /// Returns whether a step was cut by the death of its harness.
    pub(super) fn was_cut(&self, step: &str) -> bool {
        let id = format!("{}.{step}", action::TAKE_OVER);
        let mut rows = self.facts.rows.iter();
        rows.any(|found| found.row.action == action::TAKE_OVER && *found.row.step_id == *id)
    }

    /// A verification of the step that passed judged the commit's tree.
    fn verified(&mut self, issue: &str, witnesses: &[ClosedWitness<'a>], commit: &CommitFacts) {
        let mut trees = witnesses
            .iter()
            .filter(|read| read.reference.is_verification())
            .filter(|read| super::witness::passed(read.document))
            .filter_map(|read| read.document["before"]["tree"].as_str())
            .peekable();
        if trees.peek().is_some() && !trees.clone().any(|tree| tree == commit.tree) {
            let verified: Vec<&str> = trees.collect();
            self.contradiction(
                Code::TreeUnverified,
                format!("{issue}: {}", commit.id),
                verified.join(" or "),
                &commit.tree,
            );
        }
    }
}
