//! The retry policy artifact, bound by its digest.

use super::DEFAULT_RULE_ID;
use crate::failure::FailureClass;
use crate::json::canonical;
use crate::json::document::Document;
use crate::json::field::FieldError;
use crate::json::path::Path;
use crate::json::read::{Unknown, missing, or_default, read, text, texts};
use schemars::{JsonSchema, Schema, json_schema};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// The kind of a retry policy artifact.
pub const POLICY_KIND: &str = "ci.harness.retry.policy.v1";

/// Where a repository keeps a policy of its own, from its root.
pub const POLICY_PLACE: &str = "policies/control/harness-retry-policy-v1.json";

/// The policy of a repository that has none of its own.
const EMBEDDED: &str = include_str!("../retry_policy_default.json");

/// The most attempts that a rule may give.
const MAX_ATTEMPTS: u64 = 100;

/// What happens to an issue whose attempts are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EscalationAction {
    /// Files a follow-up, linked `discovered-from`.
    IssueDiscover,
    /// Sets status blocked, with notes.
    MarkBlocked,
    /// Changes nothing.
    Stop,
}

impl EscalationAction {
    /// Returns the text used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::IssueDiscover => "issue_discover",
            Self::MarkBlocked => "mark_blocked",
            Self::Stop => "stop",
        }
    }

    /// Returns what the action does, as a phrase.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::IssueDiscover => "files a follow-up, linked discovered-from",
            Self::MarkBlocked => "sets the issue blocked, with notes",
            Self::Stop => "changes nothing",
        }
    }
}

/// No escalation action bears this text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown escalation action `{0}`")]
pub struct UnknownAction(pub String);

impl FromStr for EscalationAction {
    type Err = UnknownAction;

    fn from_str(text: &str) -> Result<Self, UnknownAction> {
        match text {
            "issue_discover" => Ok(Self::IssueDiscover),
            "mark_blocked" => Ok(Self::MarkBlocked),
            "stop" => Ok(Self::Stop),
            other => Err(UnknownAction(other.to_owned())),
        }
    }
}

impl serde::Serialize for EscalationAction {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The terms of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleTerms {
    /// How many attempts, 1 to 100.
    #[serde(deserialize_with = "attempts")]
    #[schemars(range(min = 1, max = MAX_ATTEMPTS))]
    pub max_attempts: u32,
    /// The label of the wait between two.
    #[serde(deserialize_with = "text")]
    #[schemars(regex(pattern = r"\S"))]
    pub backoff_class: String,
    /// What happens when they are used up.
    pub escalation_action: EscalationAction,
}

/// One rule of a policy.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct RetryRule {
    /// The rule's id, unique in its policy.
    #[schemars(regex(pattern = r"\S"))]
    pub rule_id: String,
    /// The classes that it decides; no other rule names them.
    #[schemars(with = "Vec<String>", length(min = 1), inner(regex(pattern = r"\S")))]
    pub failure_classes: BTreeSet<String>,
    /// The terms of the rule.
    #[schemars(flatten)]
    pub terms: RuleTerms,
}

/// A valid policy whose digest is that of its content.
///
/// Its artifact may have more fields; they are skipped, but are part of the
/// digest.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "camelCase", transform = add_head)]
pub struct RetryPolicy {
    /// The policy's id.
    #[schemars(regex(pattern = r"\S"))]
    policy_id: String,
    /// `pol1_` and the digest of the canonical policy without this field; one
    /// that does not match stops the run.
    #[schemars(regex(pattern = r"^pol1_[0-9a-f]{64}$"))]
    policy_digest: String,
    /// What a class gets that no rule names.
    default_rule: RuleTerms,
    /// The rules; a class is in one of them at most.
    #[schemars(default)]
    rules: Vec<RetryRule>,
    #[schemars(skip)]
    by_class: BTreeMap<String, usize>,
}

/// A policy that stops the run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// It does not have the shape of a policy; the source names the field.
    #[error("cannot read the retry policy")]
    Shape(#[from] FieldError),
    /// Two rules bear one id.
    #[error("the retry policy has two rules `{rule_id}`")]
    RuleIdDuplicate {
        /// The id.
        rule_id: String,
    },
    /// Two rules name one class.
    #[error("the retry policy names `{class}` in rule `{first}` and in rule `{second}`")]
    ClassDuplicate {
        /// The class.
        class: String,
        /// The rule that names it first.
        first: String,
        /// The rule that names it again.
        second: String,
    },
    /// The digest is not that of the content.
    #[error("wrong policyDigest of the retry policy: expected `{expected}`, found `{found}`")]
    DigestMismatch {
        /// The digest of the content.
        expected: String,
        /// The digest that was found.
        found: String,
    },
}

impl PolicyError {
    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        match self {
            Self::Shape(_) | Self::RuleIdDuplicate { .. } | Self::ClassDuplicate { .. } => {
                FailureClass::RetryPolicyInvalid
            }
            Self::DigestMismatch { .. } => FailureClass::RetryPolicyDigestMismatch,
        }
    }
}

impl RetryPolicy {
    /// Reads a policy artifact.
    ///
    /// Fields that this build does not know are skipped, but are part of the
    /// digest.
    ///
    /// # Errors
    ///
    /// The first thing that does not fit: the shape, a rule id or class that
    /// appears twice, and last the digest.
    pub fn parse(bytes: &[u8]) -> Result<Self, PolicyError> {
        let document = Document::parse(bytes)?;
        let expected = canonical::policy_digest(document.fields());
        let (parts, _) = document.of_kind("policyKind", POLICY_KIND)?.read()?;
        let policy = Self::of(parts)?;
        if policy.policy_digest != expected {
            return Err(PolicyError::DigestMismatch {
                expected,
                found: policy.policy_digest,
            });
        }
        Ok(policy)
    }

    /// Returns the policy of a repository that has none of its own.
    ///
    /// # Errors
    ///
    /// None in a build that passed its tests.
    pub fn embedded() -> Result<Self, PolicyError> {
        Self::parse(EMBEDDED.as_bytes())
    }

    /// Returns the embedded policy's artifact, for a user to start from.
    pub const fn embedded_text() -> &'static str {
        EMBEDDED
    }

    /// Returns the digest that an artifact must carry: `pol1_` and the digest
    /// of its canonical JSON without `policyDigest`.
    ///
    /// # Errors
    ///
    /// The bytes are not a JSON object.
    pub fn digest(bytes: &[u8]) -> Result<String, PolicyError> {
        Ok(canonical::policy_digest(Document::parse(bytes)?.fields()))
    }

    fn of(parts: Parts) -> Result<Self, PolicyError> {
        let mut rules: Vec<RetryRule> = Vec::new();
        let mut by_class: BTreeMap<String, usize> = BTreeMap::new();
        for (index, row) in parts.rules.into_iter().enumerate() {
            let rule = read_rule(row, index)?;
            if rules.iter().any(|r| r.rule_id == rule.rule_id) {
                return Err(PolicyError::RuleIdDuplicate {
                    rule_id: rule.rule_id,
                });
            }
            for class in &rule.failure_classes {
                if let Some(first) = by_class.insert(class.clone(), index) {
                    return Err(PolicyError::ClassDuplicate {
                        class: class.clone(),
                        first: rules
                            .get(first)
                            .map_or_else(String::new, |r| r.rule_id.clone()),
                        second: rule.rule_id,
                    });
                }
            }
            rules.push(rule);
        }
        Ok(Self {
            policy_id: parts.policy_id,
            policy_digest: parts.policy_digest,
            default_rule: parts.default_rule,
            rules,
            by_class,
        })
    }

    /// Returns the policy's id.
    pub fn policy_id(&self) -> &str {
        &self.policy_id
    }

    /// Returns the digest that the policy is bound by.
    pub fn policy_digest(&self) -> &str {
        &self.policy_digest
    }

    /// Returns what a class gets that no rule names.
    pub const fn default_rule(&self) -> &RuleTerms {
        &self.default_rule
    }

    /// Returns the rules, in the artifact's order.
    pub fn rules(&self) -> &[RetryRule] {
        &self.rules
    }

    /// Returns the rule that names a class.
    pub(crate) fn rule_of(&self, class: &str) -> Option<&RetryRule> {
        self.by_class
            .get(class)
            .and_then(|index| self.rules.get(*index))
    }

    /// Returns what a class gets by itself: the id of its rule, and the terms.
    ///
    /// The id is [`DEFAULT_RULE_ID`] where no rule names the class. Of several
    /// classes one decides ([`decide`](super::decide)).
    pub fn place_of(&self, class: &str) -> (&str, &RuleTerms) {
        match self.rule_of(class) {
            Some(rule) => (&rule.rule_id, &rule.terms),
            None => (DEFAULT_RULE_ID, &self.default_rule),
        }
    }

    /// Returns whether the policy or the kernel knows a class word.
    pub fn knows(&self, word: &str) -> bool {
        self.by_class.contains_key(word) || word.parse::<FailureClass>().is_ok()
    }
}

/// Adds what an artifact has and a policy that was read has no field for.
fn add_head(schema: &mut Schema) {
    crate::json::schema::require(schema, "schema", crate::json::schema::version());
    crate::json::schema::require(
        schema,
        "policyKind",
        json_schema!({"type": "string", "const": POLICY_KIND}),
    );
}

/// A policy whose rules are not read yet.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parts {
    #[serde(deserialize_with = "text")]
    policy_id: String,
    #[serde(deserialize_with = "text")]
    policy_digest: String,
    default_rule: RuleTerms,
    #[serde(deserialize_with = "or_default")]
    rules: Vec<Value>,
}

/// What a rule has beside its terms, which are fields of the same object.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RuleHead {
    #[serde(deserialize_with = "text")]
    rule_id: String,
    #[serde(deserialize_with = "classes")]
    failure_classes: BTreeSet<String>,
}

fn read_rule(row: Value, index: usize) -> Result<RetryRule, FieldError> {
    let rules = Path::Field(&Path::Root, "rules");
    let at = rules.row(index);
    let unknown = Unknown::default();
    let head: RuleHead = read(Some(row.clone()), &at, &unknown)?;
    Ok(RetryRule {
        rule_id: head.rule_id,
        failure_classes: head.failure_classes,
        terms: read(Some(row), &at, &unknown)?,
    })
}

/// Reads a list of at least one class.
fn classes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<String>, D::Error> {
    let found: BTreeSet<String> = texts(deserializer)?.into_iter().collect();
    match found.is_empty() {
        true => Err(missing("a list of at least one class, none blank")),
        false => Ok(found),
    }
}

fn attempts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let given = u64::deserialize(deserializer)?;
    let attempts = u32::try_from(given).ok();
    let attempts = attempts.filter(|_| (1..=MAX_ATTEMPTS).contains(&given));
    attempts.ok_or_else(|| {
        let expected = "a whole number from 1 to 100";
        D::Error::invalid_value(Unexpected::Unsigned(given), &expected)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn embedded() -> Value {
        serde_json::from_str(EMBEDDED).unwrap()
    }

    fn bind(mut document: Value) -> Vec<u8> {
        let digest = RetryPolicy::digest(document.to_string().as_bytes()).unwrap();
        document["policyDigest"] = digest.into();
        document.to_string().into_bytes()
    }

    #[test]
    fn the_embedded_policy_is_the_table_of_the_contract() {
        let policy = RetryPolicy::embedded().unwrap();
        let rows: Vec<_> = policy
            .rules()
            .iter()
            .map(|r| {
                (
                    r.rule_id.as_str(),
                    r.terms.max_attempts,
                    r.terms.backoff_class.as_str(),
                    r.terms.escalation_action.as_str(),
                )
            })
            .collect();
        assert_eq!(
            rows,
            [
                ("transient_retry", 3, "exponential_short", "issue_discover"),
                ("operational_retry", 2, "fixed_short", "issue_discover"),
                ("governance_no_retry", 1, "none", "mark_blocked"),
                ("semantic_no_retry", 1, "none", "mark_blocked"),
                ("landing_retry", 2, "none", "mark_blocked"),
            ]
        );
        assert_eq!(policy.default_rule().max_attempts, 1);
        assert_eq!(
            policy.default_rule().escalation_action,
            EscalationAction::Stop
        );
        assert_eq!(policy.rules()[2].failure_classes.len(), 11);
        for class in policy.rules().iter().flat_map(|r| &r.failure_classes) {
            let is_known = class.parse::<FailureClass>().is_ok();
            assert!(is_known || is_of_a_wrapper(class), "{class}");
        }
    }

    /// Returns whether wrappers of pipelines report a class, which the harness
    /// itself never does.
    fn is_of_a_wrapper(class: &str) -> bool {
        ["pipeline_", "proposal_", "required_"]
            .iter()
            .any(|start| class.starts_with(start))
            || class == "instruction_runtime_invalid"
    }

    #[test]
    fn the_classes_of_wrappers_have_rules() {
        let policy = RetryPolicy::embedded().unwrap();
        for (class, rule) in [
            ("pipeline_missing_witness", "operational_retry"),
            ("required_witness_runtime_invalid", "operational_retry"),
            ("instruction_runtime_invalid", "operational_retry"),
            ("proposal_discharge_failed", "semantic_no_retry"),
        ] {
            assert_eq!(policy.rule_of(class).unwrap().rule_id, rule, "{class}");
        }
    }

    #[test]
    fn every_class_of_the_gate_has_a_rule() {
        use crate::failure::Family;
        let policy = RetryPolicy::embedded().unwrap();
        for class in FailureClass::ALL {
            if class.family() == Family::Typestate {
                assert!(policy.rule_of(class.as_str()).is_some(), "{class}");
            }
        }
    }

    #[test]
    fn a_class_has_the_place_that_decides_when_it_is_alone() {
        let policy = RetryPolicy::embedded().unwrap();
        for class in FailureClass::ALL {
            let (rule_id, terms) = policy.place_of(class.as_str());
            let decision = crate::policy::retry::decide(&policy, &[class.as_str()], 1);
            assert_eq!(rule_id, decision.rule_id, "{class}");
            assert_eq!(terms.max_attempts, decision.max_attempts, "{class}");
            assert_eq!(terms.backoff_class, decision.backoff_class, "{class}");
        }
        assert_eq!(policy.place_of("of_my_own").0, DEFAULT_RULE_ID);
    }

    #[test]
    fn a_change_without_its_digest_is_shown_both() {
        let mut document = embedded();
        let found = document["policyDigest"].as_str().unwrap().to_owned();
        document["rules"][0]["maxAttempts"] = json!(4);
        let bytes = document.to_string().into_bytes();
        let expected = RetryPolicy::digest(&bytes).unwrap();
        let error = RetryPolicy::parse(&bytes).unwrap_err();
        assert_eq!(error, PolicyError::DigestMismatch { expected, found });
        assert_eq!(error.class(), FailureClass::RetryPolicyDigestMismatch);
        let policy = RetryPolicy::parse(&bind(document)).unwrap();
        assert_eq!(policy.rules()[0].terms.max_attempts, 4);
    }

    #[test]
    fn white_space_and_key_order_do_not_change_the_digest_and_an_unknown_field_does() {
        let pretty = serde_json::to_string_pretty(&embedded()).unwrap();
        assert!(RetryPolicy::parse(pretty.as_bytes()).is_ok());
        let mut document = embedded();
        document["note"] = json!("x");
        assert!(RetryPolicy::parse(document.to_string().as_bytes()).is_err());
        assert!(RetryPolicy::parse(&bind(document)).is_ok());
    }

    #[test]
    fn a_wrong_policy_says_what_is_wrong() {
        type Edit = fn(&mut Value);
        let table: [(Edit, &str); 10] = [
            (|d| d["schema"] = json!(2), "schema"),
            (|d| d["policyKind"] = json!("x"), "policyKind"),
            (|d| d["policyId"] = json!(""), "policyId"),
            (|d| d["defaultRule"] = Value::Null, "defaultRule"),
            (
                |d| d["rules"][0]["maxAttempts"] = json!(0),
                "rules[0].maxAttempts",
            ),
            (
                |d| d["rules"][0]["maxAttempts"] = json!(101),
                "rules[0].maxAttempts",
            ),
            (
                |d| d["rules"][1]["escalationAction"] = json!("shrug"),
                "rules[1].escalationAction",
            ),
            (
                |d| d["rules"][1]["backoffClass"] = json!(" "),
                "rules[1].backoffClass",
            ),
            (
                |d| d["rules"][1]["failureClasses"] = json!([]),
                "rules[1].failureClasses",
            ),
            (
                |d| d["rules"][1]["failureClasses"] = json!([" "]),
                "rules[1].failureClasses[0]",
            ),
        ];
        for (edit, field) in table {
            let mut document = embedded();
            edit(&mut document);
            match RetryPolicy::parse(&bind(document)) {
                Err(PolicyError::Shape(error)) => assert_eq!(error.field(), Some(field)),
                other => panic!("{field}: {other:?}"),
            }
        }
    }

    #[test]
    fn no_id_and_no_class_appears_twice() {
        let mut document = embedded();
        document["rules"][1]["ruleId"] = json!("transient_retry");
        assert!(matches!(
            RetryPolicy::parse(&bind(document)),
            Err(PolicyError::RuleIdDuplicate { .. })
        ));
        let mut document = embedded();
        document["rules"][1]["failureClasses"] = json!(["flaky_io"]);
        let error = RetryPolicy::parse(&bind(document)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the retry policy names `flaky_io` in rule `transient_retry` and in rule `operational_retry`"
        );
        assert_eq!(error.class(), FailureClass::RetryPolicyInvalid);
    }
}
