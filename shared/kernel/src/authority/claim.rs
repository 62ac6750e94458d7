//! Claims: which changes of issue memory an instruction permits (`contracts.md`
//! 8).

use std::collections::BTreeSet;

macro_rules! morphisms {
    ($( $(#[$doc:meta])* $variant:ident = $name:literal; )+) => {
        /// A kind of change of issue memory that an instruction can claim.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ChangeMorphism { $( $(#[$doc])* $variant, )+ }

        impl ChangeMorphism {
            /// Every kind, in the order of the contract.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )+ ];

            /// Returns the kind's name, as in `issue_claim`.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )+ }
            }

            /// Returns the claim of this kind and no other.
            pub const fn claim(self) -> &'static str {
                match self {
                    $( Self::$variant => concat!("capabilities.change_morphisms.", $name), )+
                }
            }
        }
    };
}

morphisms! {
    /// Filing an issue.
    IssueAdd = "issue_add";
    /// Leasing an issue.
    IssueClaim = "issue_claim";
    /// Moving a lease's expiry.
    IssueLeaseRenew = "issue_lease_renew";
    /// Releasing a lease.
    IssueLeaseRelease = "issue_lease_release";
    /// Changing fields and status: closing and blocking too.
    IssueUpdate = "issue_update";
    /// Filing an issue that was found while working on another.
    IssueDiscover = "issue_discover";
    /// Adding an edge.
    DepAdd = "dep_add";
    /// Removing an edge.
    DepRemove = "dep_remove";
    /// Replacing an edge by another.
    DepReplace = "dep_replace";
}

/// The claim that covers every change of issue memory, with or without `.all`
/// behind it.
pub const EVERY_CHANGE: &str = "capabilities.change_morphisms";

/// The claims that a change may rest on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimSet(Claims);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Claims {
    All,
    Named(BTreeSet<String>),
}

impl ClaimSet {
    /// Covers every change, under
    /// [`MutationMode::HumanOverride`](crate::authority::MutationMode::HumanOverride).
    pub(crate) const fn operator_override() -> Self {
        Self(Claims::All)
    }

    /// Covers what an instruction claims, each claim trimmed.
    pub(crate) fn named<T: AsRef<str>>(claims: impl IntoIterator<Item = T>) -> Self {
        Self(Claims::Named(
            claims
                .into_iter()
                .map(|claim| claim.as_ref().trim().to_owned())
                .collect(),
        ))
    }

    /// Returns whether a claim is covered (`contracts.md` 8).
    pub(crate) fn covers(&self, claim: &str) -> bool {
        match &self.0 {
            Claims::All => true,
            Claims::Named(claims) => {
                let below = claim.strip_prefix(EVERY_CHANGE);
                let of_change = below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
                let all = format!("{EVERY_CHANGE}.all");
                claims.contains(claim)
                    || of_change && (claims.contains(EVERY_CHANGE) || claims.contains(&all))
            }
        }
    }

    /// Returns the kinds of change that are covered, in the order of the contract.
    pub fn covered(&self) -> impl Iterator<Item = ChangeMorphism> {
        let kinds = ChangeMorphism::ALL.iter().copied();
        kinds.filter(|kind| self.covers(kind.claim()))
    }
}

/// Returns whether a claim refers to changes of issue memory and covers none
/// that there is: an error of its author.
pub fn covers_nothing(claim: &str) -> bool {
    claim.starts_with(&format!("{EVERY_CHANGE}."))
        && ClaimSet::named([claim]).covered().next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(claims: &[&str]) -> Vec<&'static str> {
        let set = ClaimSet::named(claims);
        set.covered().map(ChangeMorphism::name).collect()
    }

    #[test]
    fn a_claim_covers_its_own_kind_and_the_two_general_ones_cover_all() {
        for kind in ChangeMorphism::ALL {
            assert_eq!(names(&[kind.claim()]), [kind.name()]);
            assert!(!covers_nothing(kind.claim()));
        }
        for all in [EVERY_CHANGE, " capabilities.change_morphisms.all "] {
            assert_eq!(names(&[all]).len(), ChangeMorphism::ALL.len());
        }
        assert_eq!(names(&["capabilities", "issue_claim", ""]), [""; 0]);
    }

    #[test]
    fn a_claim_of_a_change_that_there_is_not_covers_nothing() {
        assert!(covers_nothing("capabilities.change_morphisms.issue_delete"));
        assert!(!covers_nothing("capabilities.change_morphisms.all"));
        assert!(!covers_nothing("capabilities.instruction_typing"));
    }
}
