//! A small suite in which every vector passes, to plant faults in.

use crate::{FaultKind, Files, SuiteFault, SuiteReport, run};
use serde_json::{Value, json};

/// The base that the shipped suite has too.
const CLOSED: &[u8] =
    include_bytes!("../../../../tests/conformance/harness-typestate/bases/closed.json");

/// The id of the small suite's adversarial vector.
pub(super) const ADVERSARIAL: &str = "adversarial/reason-missing";
/// The id of its near miss.
pub(super) const GOLDEN: &str = "golden/reason-given";
/// The id of its invariance pair.
pub(super) const INVARIANCE: &str = "invariance/order";
/// The id of its refusal.
pub(super) const REFUSAL: &str = "refusal/status";

/// A suite whose files can be changed.
pub(super) struct Small {
    pub(super) files: Files,
}

impl Small {
    /// Returns the suite with nothing wrong but what it does not cover.
    #[expect(clippy::too_many_lines, reason = "tests: a table is read as a whole")]
    pub(super) fn new() -> Self {
        let vectors = [
            (
                ADVERSARIAL,
                json!({
                    "schema": 1,
                    "says": "A discarded result has no reason.",
                    "document": {"base": "closed", "patch": [
                        {"op": "remove", "path": "/evidence/toolUse/1/useReason"}
                    ]},
                    "root": "mutation.use_evidence_missing",
                    "slices": [1],
                    "expect": {
                        "failureClasses": [],
                        "mutationFailureClasses": ["mutation.use_evidence_missing"]
                    }
                }),
            ),
            (
                GOLDEN,
                json!({
                    "schema": 1,
                    "says": "A discarded result has a reason.",
                    "document": {"base": "closed"},
                    "nearMissOf": ADVERSARIAL,
                    "slices": [1],
                    "expect": {}
                }),
            ),
            (
                INVARIANCE,
                json!({
                    "schema": 1,
                    "says": "The order of results does not matter.",
                    "left": {"base": "closed"},
                    "right": {"base": "closed", "patch": [
                        {"op": "move", "from": "/evidence/toolResults/2", "path": "/evidence/toolResults/0"}
                    ]}
                }),
            ),
            (
                REFUSAL,
                json!({
                    "schema": 1,
                    "says": "A status is a word of its set.",
                    "document": {"base": "closed", "patch": [
                        {"op": "replace", "path": "/evidence/toolResults/0/status", "value": "fine"}
                    ]},
                    "expect": {"error": "evidence.toolResults[0].status: must be one of"}
                }),
            ),
        ];
        let entries: Vec<Value> = vectors
            .iter()
            .map(|(id, vector)| json!({"id": id, "says": vector["says"]}))
            .collect();
        let mut suite = Self {
            files: Files::from([("bases/closed.json".to_owned(), CLOSED.to_vec())]),
        };
        let manifest = json!({
            "schema": 1,
            "manifestKind": "premath.conformance.manifest.v1",
            "vectors": entries
        });
        suite.put("manifest.json", &manifest);
        for (id, vector) in vectors {
            suite.put(&format!("{id}.json"), &vector);
        }
        suite
    }

    /// Writes a file.
    pub(super) fn put(&mut self, path: &str, value: &Value) {
        self.files
            .insert(path.to_owned(), value.to_string().into_bytes());
    }

    /// Changes a file.
    pub(super) fn edit(&mut self, path: &str, edit: impl FnOnce(&mut Value)) {
        let mut value = serde_json::from_slice(&self.files[path]).unwrap();
        edit(&mut value);
        self.put(path, &value);
    }

    /// Changes a vector.
    pub(super) fn edit_vector(&mut self, id: &str, edit: impl FnOnce(&mut Value)) {
        self.edit(&format!("{id}.json"), edit);
    }

    /// Runs the suite.
    pub(super) fn run(&self) -> SuiteReport {
        run(&self.files)
    }

    /// Runs the suite and returns the faults that are not about coverage.
    pub(super) fn faults(&self) -> Vec<SuiteFault> {
        let mut faults = self.run().faults;
        faults.retain(|fault| !fault.kind.is_coverage());
        faults
    }

    /// Expects one fault beside coverage, and returns what it says.
    pub(super) fn fault(&self, kind: FaultKind, at: &str) -> String {
        let mut faults = self.faults();
        let fault = faults.pop().expect("there is no fault");
        assert_eq!(faults, []);
        assert_eq!((fault.kind, fault.at.as_str()), (kind, at), "{fault:?}");
        fault.detail
    }

    /// Returns where faults of one kind stand.
    pub(super) fn at(&self, kind: FaultKind) -> Vec<String> {
        let faults = self.run().faults;
        let of_kind = faults.into_iter().filter(|fault| fault.kind == kind);
        of_kind.map(|fault| fault.at).collect()
    }

    /// Expects that one vector alone fails, and returns what was compared,
    /// expected and found.
    pub(super) fn differences(&self, id: &str) -> Vec<[String; 3]> {
        assert_eq!(self.faults(), []);
        let mut outcomes = self.run().outcomes;
        outcomes.retain(|outcome| !outcome.passed());
        let ids: Vec<&str> = outcomes.iter().map(|o| o.id.as_str()).collect();
        assert_eq!(ids, [id]);
        let differences = outcomes.remove(0).differences;
        differences
            .into_iter()
            .map(|d| [d.what, d.expected, d.found])
            .collect()
    }
}
