//! Work that no verification judged by itself: it rests on a later commit of the
//! target, whose tree contains it and was verified.

use super::closed::ClosedWitness;
use super::witness::{WitnessRef, digest_of, passed};
use super::{Audit, AuditFacts, AuditRow, CommitFacts, ContradictionCode as Code, WitnessFile};
use crate::policy::landing::{LandingRecord, SHARED_ROUND};
use crate::record::trailers::LandingTrailers;
use crate::record::trajectory::{SharedVerification, StepRow};

/// A landed commit that names the tree of a later one.
pub(super) struct SharedLanding<'r, 'a> {
    pub(super) issue: &'r str,
    pub(super) found: &'r AuditRow,
    pub(super) record: &'r LandingRecord,
    pub(super) commit: &'a CommitFacts,
    /// The tree that was verified.
    pub(super) tree: &'r str,
    /// Whether a later step took the commit over.
    pub(super) adopted: bool,
}

/// A commit that was verified for those below it.
struct Leader {
    trailers: LandingTrailers,
    witness: String,
}

/// Returns the tree of a later commit that a commit names.
pub(super) fn verified_in(commit: &CommitFacts) -> Option<String> {
    let trailers = LandingTrailers::parse(&commit.message).ok().flatten();
    trailers.and_then(|trailers| trailers.verified_in)
}

/// Returns whether a row says that the verification of other work counts.
pub(super) fn claims_shared(row: &StepRow) -> bool {
    let witness = row.verification.as_ref();
    let witness = witness.and_then(|said| WitnessRef::parse(said.witness_ref.as_deref()?));
    row.shared_verification.is_some() || witness.is_some_and(|witness| witness.is_shared())
}

impl<'a> Audit<'a> {
    /// Records that a row claims the verification of other work, and its commit
    /// does not.
    pub(super) fn shared_unnamed(&mut self, issue: &str, found: &AuditRow) {
        let place = format!("{issue}: {}", self.row_place(found.line));
        let expected = "a landed commit with the trailer Verified-In";
        self.contradiction(Code::SharedDisagrees, place, expected, "none");
    }

    /// Finds the commit that the work rests on, and compares it with what row and
    /// witness name.
    pub(super) fn shared(
        &mut self,
        landing: &SharedLanding<'_, 'a>,
        witnesses: &[ClosedWitness<'a>],
    ) {
        self.report.shared += 1;
        if landing.adopted && self.is_verified_since(landing, witnesses) {
            return;
        }
        let leader = match self.leader(landing) {
            Ok(leader) => leader,
            Err(found) => {
                let place = format!("{}: {}", landing.issue, landing.commit.id);
                let expected = format!(
                    "a commit with the tree {} and a verification that passed on it, with nothing but commits of the same verification in between",
                    landing.tree
                );
                self.contradiction(Code::SharedUnverified, place, expected, found);
                return;
            }
        };
        if !landing.adopted && !landing.found.row.recovered {
            self.shared_evidence(landing, &leader, witnesses);
        }
    }

    /// Compares the row and the witness of the work with the commit that it rests
    /// on.
    fn shared_evidence(
        &mut self,
        landing: &SharedLanding<'_, 'a>,
        leader: &Leader,
        witnesses: &[ClosedWitness<'a>],
    ) {
        let place = format!("{}: {}", landing.issue, self.row_place(landing.found.line));
        let read = witnesses.iter().find(|read| read.reference.is_shared());
        let Some(read) = read else {
            let expected = format!("a `{SHARED_ROUND}` witness");
            self.contradiction(Code::WitnessLacking, place, expected, "none");
            return;
        };
        let document = read.document;
        let text = |value: &serde_json::Value| value.as_str().unwrap_or("none").to_owned();
        let said = landing.found.row.shared_verification.as_ref();
        let said = |part: fn(&SharedVerification) -> &String| {
            said.map_or_else(|| "none".to_owned(), |said| part(said).clone())
        };
        let found = [
            ("tree", landing.tree, text(&document["verified"]["tree"])),
            (
                "witness",
                &leader.witness,
                text(&document["verifiedWitnessRef"]),
            ),
            (
                "step",
                leader.trailers.step.as_str(),
                text(&document["verifiedStepId"]),
            ),
            ("own tree", &landing.commit.tree, text(&document["ownTree"])),
            ("tree of the row", landing.tree, said(|said| &said.tree)),
            (
                "witness of the row",
                &leader.witness,
                said(|said| &said.witness_ref),
            ),
        ];
        for (what, expected, found) in found {
            if expected != found {
                let place = format!("{place}: {what}");
                self.contradiction(Code::SharedDisagrees, place, expected, found);
            }
        }
    }

    /// Returns the first commit from the work's on that was verified by itself, if
    /// it is what the work names.
    fn leader(&self, landing: &SharedLanding<'_, 'a>) -> Result<Leader, String> {
        let tree = landing.tree;
        for commit in self.facts.from(landing) {
            let trailers = LandingTrailers::parse(&commit.message).ok().flatten();
            let Some(trailers) = trailers else {
                return Err(format!("{}, which no step landed", commit.id));
            };
            match &trailers.verified_in {
                Some(within) if within == tree => continue,
                Some(within) => return Err(format!("{}, verified in {within}", commit.id)),
                None if commit.tree != tree => {
                    return Err(format!("{} with the tree {}", commit.id, commit.tree));
                }
                None => {}
            }
            let witness = trailers.witness.clone();
            let witness = witness.ok_or_else(|| format!("{} without a witness", commit.id))?;
            self.must_have_passed(&trailers, &witness, tree)?;
            return Ok(Leader { trailers, witness });
        }
        Err("no such commit".to_owned())
    }

    /// Looks at the witness of a verification; the error says what is wrong.
    fn must_have_passed(
        &self,
        trailers: &LandingTrailers,
        text: &str,
        tree: &str,
    ) -> Result<(), String> {
        let reference = WitnessRef::parse(text);
        let reference = reference
            .filter(|reference| reference.is_verification() && reference.step_id == trailers.step)
            .ok_or_else(|| {
                format!("the witness {text}, which is not of a verification of the step")
            })?;
        let Some(WitnessFile::Found { document, .. }) = self.facts.witnesses.get(text) else {
            return Err(format!("no document of {text}"));
        };
        if digest_of(document) != reference.digest {
            return Err(format!("another document than {text}"));
        }
        match passed(document) && document["before"]["tree"] == tree {
            true => Ok(()),
            false => Err(format!("{text}, which did not pass on that tree")),
        }
    }

    /// Returns whether the step that took the commit over verified the target as
    /// it was then.
    fn is_verified_since(
        &self,
        landing: &SharedLanding<'_, 'a>,
        witnesses: &[ClosedWitness<'a>],
    ) -> bool {
        let mut own = witnesses
            .iter()
            .filter(|read| read.reference.is_verification() && passed(read.document));
        own.any(|read| {
            let tree = read.document["before"]["tree"].as_str();
            let mut commits = self.facts.from(landing);
            commits.any(|commit| Some(commit.tree.as_str()) == tree)
        })
    }
}

impl AuditFacts {
    /// Returns the commits of the target from a landed one on, the oldest first.
    fn from<'f>(
        &'f self,
        landing: &SharedLanding<'_, '_>,
    ) -> impl Iterator<Item = &'f CommitFacts> + use<'f> {
        let history = self.targets.get(&landing.record.target);
        let history = history
            .and_then(Option::as_ref)
            .map_or(&[][..], Vec::as_slice);
        let at = history
            .iter()
            .position(|commit| commit.id == landing.commit.id);
        history[..at.map_or(0, |at| at + 1)].iter().rev()
    }
}
