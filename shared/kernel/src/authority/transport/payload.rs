//! The payload of a dispatch, read field by field.

use super::TransportAction;
use crate::failure::FailureClass;
use crate::issue::lease::{AssigneeRule, ClaimRequest, LeaseKey, TTL_DEFAULT, Term};
use crate::json::field::{FieldError, some_text};
use crate::json::id::{IssueId, LeaseId};
use crate::json::path::Path;
use crate::json::read::{Text, Unknown, read};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::time::Duration;

/// What is to be done to a lease.
#[derive(Clone, Debug)]
pub enum DispatchRequest {
    /// Claims one issue.
    Claim {
        /// The issue.
        issue_id: IssueId,
        /// The lease that is wished for.
        request: ClaimRequest,
    },
    /// Claims the next issue.
    ClaimNext {
        /// The lease that is wished for.
        request: ClaimRequest,
    },
    /// Renews a lease.
    Renew {
        /// The issue.
        issue_id: IssueId,
        /// The lease that is meant.
        key: LeaseKey,
        /// How long it is to live.
        term: Term,
    },
    /// Releases a lease.
    Release {
        /// The issue.
        issue_id: IssueId,
        /// The lease that is meant.
        key: LeaseKey,
        /// When the issue may be claimed again, where a retry waits (ours; no
        /// payload says it).
        retry_at: Option<Timestamp>,
    },
    /// Reports the leases.
    State {
        /// The issue that is asked for, if any.
        issue_id: Option<IssueId>,
    },
}

/// A payload that was read.
#[derive(Clone, Debug)]
pub struct Payload {
    /// What is to be done.
    pub request: DispatchRequest,
    /// Issue memory, where the payload names it.
    pub issues_path: Option<String>,
}

/// A payload that is not a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// A field is missing or has the wrong type.
    #[error(transparent)]
    Shape(#[from] FieldError),
    /// The assignee is missing.
    #[error("`assignee` is missing: expected the name of the claimant or holder")]
    Assignee,
    /// The end of the lease is given twice.
    #[error("`leaseTtlSeconds` and `leaseExpiresAt` are both given; give one")]
    TwoTerms,
    /// The time to live is not a number of seconds.
    #[error("`leaseTtlSeconds` must be a whole number of seconds, 30 to 86400")]
    Ttl,
    /// The expiry is not a time.
    #[error("`leaseExpiresAt` must be an RFC 3339 time, for example 2026-03-05T10:00:00Z")]
    ExpiresAt,
}

impl PayloadError {
    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        match self {
            Self::Shape(_) => FailureClass::LeaseInvalidPayload,
            Self::Assignee => FailureClass::LeaseInvalidAssignee,
            Self::TwoTerms => FailureClass::LeaseBindingAmbiguous,
            Self::Ttl => FailureClass::LeaseInvalidTtl,
            Self::ExpiresAt => FailureClass::LeaseInvalidExpiresAt,
        }
    }
}

impl Payload {
    /// Returns the issue memory that a payload names, whatever else it holds.
    pub fn issues_path_of(payload: &Value) -> Option<String> {
        let path = payload.get("issuesPath")?.as_str()?.trim();
        (!path.is_empty()).then(|| path.to_owned())
    }

    /// Reads the payload of an action.
    ///
    /// # Errors
    ///
    /// The first field that does not fit, and what would be right.
    pub fn read(action: TransportAction, payload: Value) -> Result<Self, PayloadError> {
        let mut fields = PayloadFields(match payload {
            Value::Object(fields) => fields,
            other => return Err(FieldError::wrong("payload", "an object", &other).into()),
        });
        let issues_path = fields.text("issuesPath")?;
        let lease_id = fields.text("leaseId")?.map(LeaseId::from);
        let request = match action {
            TransportAction::IssueClaim => DispatchRequest::Claim {
                issue_id: fields.issue_id()?,
                request: fields.claim_request(lease_id)?,
            },
            TransportAction::IssueClaimNext => DispatchRequest::ClaimNext {
                request: fields.claim_request(lease_id)?,
            },
            TransportAction::IssueLeaseRenew => {
                let issue_id = fields.issue_id()?;
                let owner = Some(fields.assignee()?);
                if lease_id.is_none() {
                    let expected = "the id of the lease that is meant";
                    return Err(FieldError::missing("leaseId", expected).into());
                }
                DispatchRequest::Renew {
                    issue_id,
                    key: LeaseKey {
                        lease_id,
                        owner,
                        generation: fields.field("generation")?,
                    },
                    term: fields.term()?,
                }
            }
            TransportAction::IssueLeaseRelease => DispatchRequest::Release {
                issue_id: fields.issue_id()?,
                key: LeaseKey {
                    lease_id,
                    owner: fields.text("assignee")?,
                    generation: fields.field("generation")?,
                },
                retry_at: None,
            },
            TransportAction::IssueLeaseState => DispatchRequest::State {
                issue_id: fields.text("id")?.map(IssueId::from),
            },
        };
        Ok(Self {
            request,
            issues_path,
        })
    }
}

/// The fields of a payload, read in the order in which a fault of each counts:
/// each has a class of its own.
struct PayloadFields(Map<String, Value>);

impl PayloadFields {
    fn field<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, FieldError> {
        let at = Path::Field(&Path::Root, name);
        Ok(read(self.0.remove(name), &at, &Unknown::default())?)
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, FieldError> {
        let text: Option<String> = self.field(name)?;
        Ok(text.as_deref().and_then(some_text))
    }

    fn issue_id(&mut self) -> Result<IssueId, FieldError> {
        self.field("id").map(|Text(id)| id.into())
    }

    fn assignee(&mut self) -> Result<String, PayloadError> {
        self.text("assignee")?.ok_or(PayloadError::Assignee)
    }

    fn claim_request(&mut self, lease_id: Option<LeaseId>) -> Result<ClaimRequest, PayloadError> {
        Ok(ClaimRequest {
            claimant: self.assignee()?,
            lease_id,
            term: self.term()?,
            assignees: AssigneeRule::Unassigned,
            holder: None,
            generation_floor: 0,
        })
    }

    fn term(&mut self) -> Result<Term, PayloadError> {
        let ttl: Option<Value> = self.field("leaseTtlSeconds")?;
        let until: Option<Value> = self.field("leaseExpiresAt")?;
        match (ttl, until) {
            (Some(_), Some(_)) => Err(PayloadError::TwoTerms),
            (Some(ttl), None) => {
                let seconds = ttl.as_u64().ok_or(PayloadError::Ttl)?;
                Ok(Term::Ttl(Duration::from_secs(seconds)))
            }
            (None, Some(until)) => {
                let time = until.as_str().and_then(crate::json::time::parse);
                time.map(Term::Until).ok_or(PayloadError::ExpiresAt)
            }
            (None, None) => Ok(Term::Ttl(TTL_DEFAULT)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn class(action: TransportAction, payload: Value) -> Option<&'static str> {
        let read = Payload::read(action, payload);
        read.err().map(|error| error.class().as_str())
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "tests: a table is read as a whole")]
    fn each_fault_of_a_payload_has_its_class() {
        use TransportAction::{
            IssueClaim, IssueClaimNext, IssueLeaseRelease, IssueLeaseRenew, IssueLeaseState,
        };
        let table = [
            (IssueClaim, json!([]), Some("lease_invalid_payload")),
            (
                IssueClaim,
                json!({"assignee": "w"}),
                Some("lease_invalid_payload"),
            ),
            (
                IssueClaim,
                json!({"id": 1, "assignee": "w"}),
                Some("lease_invalid_payload"),
            ),
            (
                IssueClaim,
                json!({"id": "a"}),
                Some("lease_invalid_assignee"),
            ),
            (
                IssueClaim,
                json!({"id": "a", "assignee": " "}),
                Some("lease_invalid_assignee"),
            ),
            (IssueClaim, json!({"id": "a", "assignee": "w"}), None),
            (
                IssueClaimNext,
                json!({"assignee": "w", "leaseTtlSeconds": 60, "leaseExpiresAt": "2026-03-05T10:00:00Z"}),
                Some("lease_binding_ambiguous"),
            ),
            (
                IssueClaimNext,
                json!({"assignee": "w", "leaseTtlSeconds": "60"}),
                Some("lease_invalid_ttl"),
            ),
            (
                IssueClaimNext,
                json!({"assignee": "w", "leaseTtlSeconds": -1}),
                Some("lease_invalid_ttl"),
            ),
            (
                IssueClaimNext,
                json!({"assignee": "w", "leaseExpiresAt": "soon"}),
                Some("lease_invalid_expires_at"),
            ),
            (
                IssueLeaseRenew,
                json!({"id": "a", "assignee": "w"}),
                Some("lease_invalid_payload"),
            ),
            (
                IssueLeaseRenew,
                json!({"id": "a", "leaseId": "l"}),
                Some("lease_invalid_assignee"),
            ),
            (
                IssueLeaseRenew,
                json!({"id": "a", "leaseId": "l", "assignee": "w", "generation": "1"}),
                Some("lease_invalid_payload"),
            ),
            (IssueLeaseRelease, json!({"id": "a"}), None),
            (IssueLeaseState, json!({}), None),
            (
                IssueLeaseState,
                json!({"id": 1}),
                Some("lease_invalid_payload"),
            ),
        ];
        for (action, payload, expected) in table {
            assert_eq!(
                class(action, payload.clone()),
                expected,
                "{action:?} {payload}"
            );
        }
    }

    #[test]
    fn a_payload_becomes_the_request_that_it_names() {
        let payload = json!({
            "id": " a ", "assignee": "w", "leaseId": "l", "generation": 3,
            "leaseExpiresAt": "2026-03-05T10:00:00Z", "issuesPath": "x.jsonl",
        });
        let read = Payload::read(TransportAction::IssueLeaseRenew, payload).unwrap();
        assert_eq!(read.issues_path.as_deref(), Some("x.jsonl"));
        let DispatchRequest::Renew {
            issue_id,
            key,
            term,
        } = read.request
        else {
            panic!("another request");
        };
        assert_eq!(issue_id, "a");
        assert_eq!(key.owner.as_deref(), Some("w"));
        assert_eq!(key.generation, Some(3));
        assert_eq!(term, Term::Until("2026-03-05T10:00:00Z".parse().unwrap()));
    }

    proptest! {
        #[test]
        fn any_value_is_a_request_or_refused(
            text in "[a-z0-9{}\\[\\]:,\" ]{0,40}", which in 0..TransportAction::ALL.len(),
        ) {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                let _ = Payload::read(TransportAction::ALL[which], value);
            }
        }
    }
}
