//! Changes that others ask for one by one, each under an instruction.
//!
//! A batch is held to everything that it does before it begins
//! ([`MutationMode`](crate::authority::MutationMode)). A surface such as the MCP server
//! does not know what it will be asked: it is bound to the policy once, and to
//! a claim with every change.

use super::LeaseAuthority;
use crate::authority::claim::ChangeMorphism;
use crate::authority::instruction::{
    BindingError, BindingFault, Instruction, InstructionLink, InstructionPolicy,
};
use crate::issue::IssueScope;

/// An operation on a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseOperation {
    /// Leasing an issue.
    Claim,
    /// Moving the expiry.
    Renew,
    /// Releasing the lease.
    Release,
}

impl LeaseOperation {
    /// Returns the change that an instruction must claim for it.
    pub const fn change(self) -> ChangeMorphism {
        match self {
            Self::Claim => ChangeMorphism::IssueClaim,
            Self::Renew => ChangeMorphism::IssueLeaseRenew,
            Self::Release => ChangeMorphism::IssueLeaseRelease,
        }
    }
}

/// An instruction that the active policy admits, and under which others ask
/// for changes.
///
/// It keeps its link private: the link would permit acting in a batch's mode,
/// which requires more.
#[derive(Debug)]
pub struct InstructedSurface {
    link: InstructionLink,
}

impl InstructedSurface {
    /// Binds an instruction to the active policy; its claims are asked for
    /// with each change.
    ///
    /// # Errors
    ///
    /// [`BindingError`]: another policy than the active one, an unknown type,
    /// a normaliser or check that is not allowed.
    pub fn bind(
        instruction: &Instruction,
        policy: &InstructionPolicy,
    ) -> Result<Self, BindingError> {
        let link = instruction.bind(policy, &[])?;
        Ok(Self { link })
    }

    /// Returns `instruction://<id>/<digest>`.
    pub(crate) fn instruction_ref(&self) -> &str {
        self.link.instruction_ref()
    }

    /// Returns what the turns must be bound to that changes rest on.
    pub(crate) const fn link(&self) -> &InstructionLink {
        &self.link
    }

    /// Authorises one change of one kind; `asked_by` is who asks, as they call
    /// themselves.
    ///
    /// # Errors
    ///
    /// [`BindingFault::Claim`] where no claim covers the kind.
    pub fn authorise(
        &self,
        kind: ChangeMorphism,
        asked_by: &str,
    ) -> Result<InstructedChange, BindingFault> {
        let InstructedRecord {
            kind,
            instruction_ref,
            asked_by,
            scope,
        } = self.record(kind, asked_by)?;
        Ok(InstructedChange {
            kind,
            instruction_ref,
            asked_by,
            scope,
        })
    }

    /// Grants one operation on leases; `asked_by` is who asks, as they call
    /// themselves.
    ///
    /// # Errors
    ///
    /// [`BindingFault::Claim`] where no claim covers it.
    pub fn lease_authority(
        &self,
        operation: LeaseOperation,
        asked_by: &str,
    ) -> Result<LeaseAuthority, BindingFault> {
        let record = self.record(operation.change(), asked_by)?;
        Ok(LeaseAuthority {
            only: Some((operation, record)),
        })
    }

    fn record(
        &self,
        kind: ChangeMorphism,
        asked_by: &str,
    ) -> Result<InstructedRecord, BindingFault> {
        if !self.link.claims().covers(kind.claim()) {
            return Err(BindingFault::Claim(kind));
        }
        Ok(InstructedRecord {
            kind,
            instruction_ref: self.instruction_ref().to_owned(),
            asked_by: asked_by.to_owned(),
            scope: self.link.scope().of_issues(),
        })
    }
}

/// What a row reports about a change that an instruction claims: which, under
/// which instruction, and who asked. It authorises nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructedRecord {
    kind: ChangeMorphism,
    instruction_ref: String,
    asked_by: String,
    scope: IssueScope,
}

impl InstructedRecord {
    /// Returns which issues the instruction covers.
    pub const fn scope(&self) -> &IssueScope {
        &self.scope
    }

    /// Returns the kind of change.
    pub const fn kind(&self) -> ChangeMorphism {
        self.kind
    }

    /// Returns the instruction that it rests on.
    pub fn instruction_ref(&self) -> &str {
        &self.instruction_ref
    }

    /// Returns who asked, as they call themselves.
    pub fn asked_by(&self) -> &str {
        &self.asked_by
    }
}

/// The right to one change of one kind, which an instruction claims.
///
/// Minted by [`InstructedSurface::authorise`] alone, not `Clone`, not readable
/// from a file, and used up by the change.
#[derive(Debug)]
pub struct InstructedChange {
    kind: ChangeMorphism,
    instruction_ref: String,
    asked_by: String,
    scope: IssueScope,
}

impl InstructedChange {
    /// Returns the kind of change.
    pub const fn kind(&self) -> ChangeMorphism {
        self.kind
    }

    /// Returns what the row reports about it.
    pub fn record(&self) -> InstructedRecord {
        InstructedRecord {
            kind: self.kind,
            instruction_ref: self.instruction_ref.clone(),
            asked_by: self.asked_by.clone(),
            scope: self.scope.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn surface(claims: Value, edit: impl FnOnce(&mut Value)) -> Result<InstructedSurface, String> {
        let policy = InstructionPolicy::embedded().unwrap();
        let mut envelope = json!({
            "schema": 1,
            "intent": "answer an editor",
            "scope": {"kind": "repository", "target": "."},
            "instructionType": "harness.batch",
            "typingPolicy": {"allowUnknown": false},
            "normalizerId": "premath.harness.shell.v1",
            "policyDigest": policy.policy_digest(),
            "capabilityClaims": claims,
            "requestedChecks": ["verify"],
        });
        edit(&mut envelope);
        let bytes = envelope.to_string().into_bytes();
        let instruction = Instruction::parse("20260305T100000Z-editor.json", &bytes).unwrap();
        InstructedSurface::bind(&instruction, &policy)
            .map_err(|error| error.classes()[0].to_string())
    }

    #[test]
    fn a_change_is_authorised_where_a_claim_covers_it_and_no_other_is() {
        let claims = json!(["capabilities.change_morphisms.issue_update"]);
        let surface = surface(claims, |_| ()).unwrap();
        let change = surface.authorise(ChangeMorphism::IssueUpdate, "editor");
        assert_eq!(change.unwrap().kind(), ChangeMorphism::IssueUpdate);
        for kind in ChangeMorphism::ALL {
            let refused = surface.authorise(*kind, "editor").err();
            let expected = (*kind != ChangeMorphism::IssueUpdate)
                .then_some("mutation.capability_claim_missing");
            assert_eq!(refused.map(|f| f.class().as_str()), expected);
        }
    }

    #[test]
    fn a_lease_authority_is_good_for_the_operation_that_was_claimed() {
        use LeaseOperation::{Claim, Release, Renew};
        let claims = json!(["capabilities.change_morphisms.issue_lease_renew"]);
        let surface = surface(claims, |_| ()).unwrap();
        let authority = surface.lease_authority(Renew, "editor").unwrap();
        let covered = [Claim, Renew, Release].map(|operation| authority.covers(operation));
        assert_eq!(covered, [false, true, false]);
        let record = authority.record().unwrap();
        assert_eq!(record.instruction_ref(), surface.instruction_ref());
        assert_eq!(record.kind(), ChangeMorphism::IssueLeaseRenew);
        assert_eq!(record.asked_by(), "editor");
        assert!(surface.lease_authority(Claim, "editor").is_err());
        assert!(surface.lease_authority(Release, "editor").is_err());
    }

    #[test]
    fn an_instruction_of_another_policy_binds_no_surface() {
        let all = json!(["capabilities.change_morphisms.all"]);
        let refused = surface(all.clone(), |envelope| {
            envelope["policyDigest"] = "pol1_0".into();
        });
        assert_eq!(refused.unwrap_err(), "mutation.policy_digest_mismatch");
        let refused = surface(all, |envelope| envelope["instructionType"] = "x".into());
        assert_eq!(refused.unwrap_err(), "instruction_unknown_unroutable");
    }
}
