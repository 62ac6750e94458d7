//! The kinds of documents that have a schema.

use crate::agents::AgentsAnswer;
use crate::answer::Refusal;
use crate::audit::AuditAnswer;
use crate::completions::{CompletionsAnswer, ManAnswer};
use crate::control::ControlDone;
use crate::dep::{Diagnostics, EdgeAnswer, ReplacedEdge};
use crate::doctrine::DoctrineAnswer;
use crate::escalate::EscalateAnswer;
use crate::feature::{CheckAnswer, FeatureAnswer, LedgerAnswer, NextAnswer};
use crate::form::{answer, answer_alone, read, read_with_repeats, with_place, written};
use crate::init::InitAnswer;
use crate::instruction::{InstructionCheckAnswer, InstructionNewAnswer, InstructionShowAnswer};
use crate::issue::view::EdgeItem;
use crate::issue::{
    AcceptAnswer, BlockedAnswer, ClaimAnswer, CompactAnswer, DiscoverAnswer, GraphCheckAnswer,
    ImportAnswer, IssueAnswer, IssuesAnswer, ShowAnswer, StatusAnswer,
};
use crate::join_check::JoinCheckAnswer;
use crate::observe::{AttentionAnswer, ObservationAnswer};
use crate::policy::{
    PolicyCheckAnswer, PolicyDiffAnswer, PolicyExplainAnswer, PolicySealAnswer, PolicyShowAnswer,
};
use crate::report::{ReportAnswer, ReportsAnswer};
use crate::retry::DecideAnswer;
use crate::review::ReviewAnswer;
use crate::serve::ServeAnswer;
use crate::service::ServiceAnswer;
use crate::session::{BootstrapAnswer, SessionAnswer};
use crate::trajectory::RowAnswer;
use crate::transport_dispatch::DispatchAnswer;
use crate::trust::TrustAnswer;
use crate::upkeep::{CleanAnswer, DoctorAnswer, UninstallAnswer};
use crate::why::WhyAnswer;
use crate::world::CrossingAnswer;
use harness_worker::sandbox::Explanation;
use premath_kernel::authority::instruction::{InstructionEnvelope, InstructionPolicy};
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::Issue;
use premath_kernel::issue::outbox::OutboxRequest;
use premath_kernel::policy::retry::RetryPolicy;
use premath_kernel::policy::trust::TrustRecord;
use premath_kernel::policy::turn::TurnPolicy;
use premath_kernel::record::bootstrap::Bootstrap;
use premath_kernel::record::change_witness::ChangeWitness;
use premath_kernel::record::control::{ControlAnswer, ControlRequest};
use premath_kernel::record::event::{EventLine, WorkerReport};
use premath_kernel::record::feature::FeatureLedger;
use premath_kernel::record::notification::Notification;
use premath_kernel::record::observation::Observation;
use premath_kernel::record::own_checks::{OwnCheckRecords, OwnChecksWitness};
use premath_kernel::record::plan::BatchPlan;
use premath_kernel::record::sandbox_profile::SandboxProfile;
use premath_kernel::record::session::Session;
use premath_kernel::record::trajectory::{Projection, StepRow, Throughput};
use premath_kernel::record::witness::{
    CloseWitness, CommandWitness, RefusalWitness, SharedWitness, TurnWitness,
};
use premath_kernel::record::world::{GateWitness, TransportWitness, WorldProfile};
use premath_kernel::turn::{JoinCheckInput, Normalized};
use premath_view::diff::DiffView;
use premath_view::log::LogView;
use premath_view::status::StatusView;
use schemars::Schema;
use serde_json::json;

/// The kind that lists the failure classes.
const FAILURE_CLASS: &str = "failure-class";

/// Where a schema defines them.
const CLASSES: &str = "/$defs/FailureClass";

/// A kind of document.
#[derive(Debug)]
pub(super) struct SchemaKind {
    /// Its name, and that of its file.
    pub(super) name: &'static str,
    /// What it describes, in a line.
    pub(super) title: &'static str,
    schema: fn() -> Schema,
}

/// Every kind, in the order in which they are listed. A new one is a line.
pub(super) const KINDS: &[SchemaKind] = &[
    kind("issue", "A row of .premath/issues.jsonl", read::<Issue>),
    kind(
        "harness-toml",
        "harness.toml, for editors that check TOML by a JSON schema",
        harness_worker::settings::schema,
    ),
    kind(
        "trajectory-row",
        "A row of .premath/harness_trajectory.jsonl",
        written::<StepRow>,
    ),
    kind(
        "session",
        ".premath/harness_session.json",
        written::<Session>,
    ),
    kind(
        "feature-ledger",
        ".premath/harness_feature_ledger.json",
        written::<FeatureLedger>,
    ),
    kind(
        "retry-policy",
        "policies/control/harness-retry-policy-v1.json",
        read::<RetryPolicy>,
    ),
    kind(
        "turn-policy",
        "policies/control/harness-turn-policy-v1.json",
        read::<TurnPolicy>,
    ),
    kind(
        "instruction",
        "instructions/<timestamp>-<id>.json: what authorises a batch",
        read::<InstructionEnvelope>,
    ),
    kind(
        "instruction-policy",
        "policies/control/harness-instruction-policy-v1.json",
        read::<InstructionPolicy>,
    ),
    kind(
        "issue-checks",
        ".premath/issues.jsonl.checks: verifications that operators wrote into issues",
        read::<OwnCheckRecords>,
    ),
    kind(
        "outbox-request",
        "A line of $PREMATH_OUTBOX: an issue to file with the step",
        read::<OutboxRequest>,
    ),
    kind(
        "join-check-input",
        "What premath harness-join-check judges; words may have any letter case",
        read_with_repeats::<JoinCheckInput>,
    ),
    kind(
        "turn-normalized",
        "A turn in normal form: what its digests are taken over",
        written::<Normalized>,
    ),
    kind(
        "answer-harness-join-check",
        "premath harness-join-check --json",
        written::<JoinCheckAnswer>,
    ),
    kind(
        "witness-sandbox",
        "artifacts/ciwitness/sandbox1_<digest>.json: what commands may write",
        written::<SandboxProfile>,
    ),
    kind(
        "witness-command",
        "artifacts/ciwitness/<step>.<phase>.json of a command",
        written::<CommandWitness>,
    ),
    kind(
        "witness-shared",
        "artifacts/ciwitness/<step>.shared.json of work that was verified with other work",
        written::<SharedWitness>,
    ),
    kind(
        "witness-checks",
        "artifacts/ciwitness/<row>.checks.json: the verifications of issues that a batch may run",
        written::<OwnChecksWitness<'_>>,
    ),
    kind(
        "witness-turn",
        "artifacts/ciwitness/<step>.turn.json",
        written::<TurnWitness<'_>>,
    ),
    kind(
        "witness-mutation",
        "artifacts/ciwitness/<step>.mutation.json",
        written::<CloseWitness<'_>>,
    ),
    kind(
        "witness-change",
        "artifacts/ciwitness/<step>.<phase>.json of an issue that was blocked (blocked) or filed \
         (filed, follow-up)",
        written::<ChangeWitness<'_>>,
    ),
    kind(
        "witness-refusal",
        "artifacts/ciwitness/<row>.refusal.json of a batch refused at the start",
        written::<RefusalWitness>,
    ),
    kind(
        "coordinator-event",
        "A line of harness-coordinator --json; the last one is the batch's report",
        written::<EventLine<'_>>,
    ),
    kind(
        "worker-report",
        "harness-worker --json",
        written::<WorkerReport<'_>>,
    ),
    kind(FAILURE_CLASS, "A failure class", written::<FailureClass>),
    kind(
        "trajectory-projection",
        "The result of a trajectory query",
        written::<Projection<'_>>,
    ),
    kind(
        "throughput",
        "Throughput of the lanes, from the trajectory",
        written::<Throughput>,
    ),
    kind(
        "bootstrap",
        "How the next session continues",
        written::<Bootstrap>,
    ),
    kind(
        "answer-refusal",
        "premath … --json when a command is refused or fails",
        written::<Refusal>,
    ),
    kind("answer-init", "premath init --json", || {
        answer::<InitAnswer>(&["init"], "path")
    }),
    kind(
        "answer-issue",
        "premath issue add, update, renew, release --json",
        || {
            answer::<IssueAnswer<'_>>(
                &[
                    "issue.add",
                    "issue.update",
                    "issue.lease_renew",
                    "issue.lease_release",
                ],
                "issuesPath",
            )
        },
    ),
    kind(
        "answer-issue-statuses",
        "premath issue close, reopen, defer, delete --json",
        || {
            answer::<StatusAnswer<'_>>(
                &["issue.close", "issue.reopen", "issue.defer", "issue.delete"],
                "issuesPath",
            )
        },
    ),
    kind("answer-issue-import", "premath issue import --json", || {
        answer::<ImportAnswer<'_>>(&["issue.import"], "issuesPath")
    }),
    kind("answer-issues", "premath issue list, ready --json", || {
        answer::<IssuesAnswer<'_>>(&["issue.list", "issue.ready"], "issuesPath")
    }),
    kind("answer-issue-show", "premath issue show --json", || {
        answer::<ShowAnswer<'_>>(&["issue.show"], "issuesPath")
    }),
    kind(
        "answer-issue-blocked",
        "premath issue blocked --json",
        || answer::<BlockedAnswer<'_>>(&["issue.blocked"], "issuesPath"),
    ),
    kind("answer-issue-check", "premath issue check --json", || {
        answer::<GraphCheckAnswer>(&["issue.check"], "issuesPath")
    }),
    kind(
        "answer-issue-claim",
        "premath issue claim, claim-next --json",
        || answer::<ClaimAnswer<'_>>(&["issue.claim", "issue.claim_next"], "issuesPath"),
    ),
    kind(
        "answer-issue-discover",
        "premath issue discover --json",
        || answer::<DiscoverAnswer<'_>>(&["issue.discover"], "issuesPath"),
    ),
    kind(
        "answer-issue-compact",
        "premath issue compact --json",
        || answer::<CompactAnswer>(&["issue.compact"], "issuesPath"),
    ),
    kind(
        "answer-issue-accept-changes",
        "premath issue accept-changes --json",
        || answer::<AcceptAnswer>(&["issue.accept_changes"], "issuesPath"),
    ),
    kind("answer-dep-edge", "premath dep add, remove --json", || {
        answer::<EdgeAnswer<'_, EdgeItem<'_>>>(&["dep.add", "dep.remove"], "issuesPath")
    }),
    kind("answer-dep-replace", "premath dep replace --json", || {
        answer::<EdgeAnswer<'_, ReplacedEdge>>(&["dep.replace"], "issuesPath")
    }),
    kind(
        "answer-dep-diagnostics",
        "premath dep diagnostics --json",
        || answer::<Diagnostics>(&["dep.diagnostics"], "issuesPath"),
    ),
    kind(
        "answer-instruction-new",
        "premath instruction new --json",
        || answer_alone::<InstructionNewAnswer>(&["instruction.new"]),
    ),
    kind(
        "answer-instruction-check",
        "premath instruction check --json",
        || answer::<InstructionCheckAnswer>(&["instruction.check"], "path"),
    ),
    kind(
        "answer-instruction-show",
        "premath instruction show --json",
        || answer::<InstructionShowAnswer>(&["instruction.show"], "path"),
    ),
    kind(
        "answer-transport-dispatch",
        "premath transport-dispatch --json",
        || with_place(written::<DispatchAnswer<'_>>(), "issuesPath"),
    ),
    kind(
        "answer-doctrine-check",
        "premath doctrine check --json",
        || answer_alone::<DoctrineAnswer>(&["doctrine.check"]),
    ),
    kind(
        "answer-session",
        "premath harness-session read, write --json",
        || answer::<SessionAnswer<'_>>(&["harness-session.read", "harness-session.write"], "path"),
    ),
    kind(
        "answer-session-bootstrap",
        "premath harness-session bootstrap --json",
        || answer::<BootstrapAnswer<'_>>(&["harness-session.bootstrap"], "path"),
    ),
    kind(
        "answer-feature-read",
        "premath harness-feature read --json",
        || answer::<LedgerAnswer<'_>>(&["harness-feature.read"], "path"),
    ),
    kind(
        "answer-feature-write",
        "premath harness-feature write --json",
        || answer::<FeatureAnswer<'_>>(&["harness-feature.write"], "path"),
    ),
    kind(
        "answer-feature-check",
        "premath harness-feature check --json",
        || answer::<CheckAnswer>(&["harness-feature.check"], "path"),
    ),
    kind(
        "answer-feature-next",
        "premath harness-feature next --json",
        || answer::<NextAnswer<'_>>(&["harness-feature.next"], "path"),
    ),
    kind(
        "answer-trajectory-append",
        "premath harness-trajectory append --json",
        || answer::<RowAnswer<'_>>(&["harness-trajectory.append"], "path"),
    ),
    kind(
        "answer-trajectory-query",
        "premath harness-trajectory query --json",
        || answer::<Projection<'_>>(&["harness-trajectory.query"], "path"),
    ),
    kind(
        "control-request",
        "A line that a client sends to the socket of a batch",
        read::<ControlRequest>,
    ),
    kind(
        "control-answer",
        "The line that a batch answers",
        written::<ControlAnswer>,
    ),
    kind(
        "answer-batch",
        "premath batch pause, resume, drain, stop, lanes --json",
        || {
            answer_alone::<ControlDone>(&[
                "batch.pause",
                "batch.resume",
                "batch.drain",
                "batch.stop",
                "batch.lanes_add",
                "batch.lanes_remove",
            ])
        },
    ),
    kind(
        "answer-issue-control",
        "premath cancel, premath retry ISSUE --json",
        || answer::<ControlDone>(&["cancel", "retry"], "issuesPath"),
    ),
    kind("answer-retry-decide", "premath retry decide --json", || {
        answer_alone::<DecideAnswer<'_>>(&["retry.decide"])
    }),
    kind("answer-policy-show", "premath policy show --json", || {
        answer_alone::<PolicyShowAnswer>(&["policy.show"])
    }),
    kind(
        "answer-policy-explain",
        "premath policy explain --json",
        || answer_alone::<PolicyExplainAnswer>(&["policy.explain"]),
    ),
    kind("answer-policy-seal", "premath policy seal --json", || {
        answer::<PolicySealAnswer>(&["policy.seal"], "path")
    }),
    kind("answer-policy-check", "premath policy check --json", || {
        answer::<PolicyCheckAnswer>(&["policy.check"], "path")
    }),
    kind("answer-policy-diff", "premath policy diff --json", || {
        answer_alone::<PolicyDiffAnswer>(&["policy.diff"])
    }),
    kind("answer-escalate", "premath escalate --json", || {
        answer::<EscalateAnswer<'_>>(&["escalate"], "issuesPath")
    }),
    kind("answer-agents-check", "premath agents check --json", || {
        answer_alone::<AgentsAnswer>(&["agents.check"])
    }),
    kind("answer-completions", "premath completions --json", || {
        answer_alone::<CompletionsAnswer>(&["completions"])
    }),
    kind("answer-man", "premath man --json", || {
        answer_alone::<ManAnswer>(&["man"])
    }),
    kind("answer-kpi", "premath kpi --json", || {
        answer::<Throughput>(&["kpi"], "path")
    }),
    kind(
        "world",
        "policies/control/harness-world-v1.json: what a world offers, and whose turns it takes",
        read::<WorldProfile>,
    ),
    kind(
        "witness-transport",
        "artifacts/ciwitness/<step>.<world>.transport-….json: what a transport between worlds did",
        written::<TransportWitness>,
    ),
    kind(
        "witness-gate",
        "artifacts/ciwitness/<step>.<world>.gate-….json: what the gate of another world said",
        written::<GateWitness>,
    ),
    kind("answer-world-submit", "premath world submit --json", || {
        answer::<CrossingAnswer<'_>>(&["world.submit"], "path")
    }),
    kind(
        "observation",
        "artifacts/observation/latest.json: what the last batch left",
        read::<Observation>,
    ),
    kind(
        "answer-observe",
        "premath observe latest|instruction --json",
        || answer::<ObservationAnswer>(&["observe.latest", "observe.instruction"], "repository"),
    ),
    kind(
        "answer-observe-attention",
        "premath observe needs_attention --json",
        || answer::<AttentionAnswer>(&["observe.needs_attention"], "repository"),
    ),
    kind("answer-status", "premath status --json", || {
        answer::<StatusView>(&["status"], "issuesPath")
    }),
    kind(
        "answer-plan",
        "premath plan --json, harness-coordinator --dry-run --json",
        || answer::<BatchPlan>(&["plan"], "issuesPath"),
    ),
    kind(
        "notification",
        "What the command of [notify] gets on its stdin, and its webhook as its body",
        written::<Notification>,
    ),
    kind(
        "answer-service",
        "premath service install|uninstall|show --json",
        || answer_alone::<ServiceAnswer>(&["service.install", "service.uninstall", "service.show"]),
    ),
    kind("answer-why", "premath why --json", || {
        answer::<WhyAnswer>(&["why"], "issuesPath")
    }),
    kind("answer-serve", "premath serve --json", || {
        answer_alone::<ServeAnswer>(&["serve"])
    }),
    kind("answer-logs", "premath logs --json", || {
        answer_alone::<LogView>(&["logs"])
    }),
    kind("answer-diff", "premath diff --json", || {
        answer::<DiffView>(&["diff"], "repository")
    }),
    kind("answer-report", "premath report --json", || {
        answer::<ReportAnswer>(&["report"], "path")
    }),
    kind("answer-review", "premath review --json", || {
        answer::<ReviewAnswer>(&["review"], "path")
    }),
    kind("answer-report-list", "premath report --list --json", || {
        answer::<ReportsAnswer>(&["report.list"], "reportsPath")
    }),
    kind(
        "trust",
        ".premath/trust.json: the governing files that the operator accepted",
        read::<TrustRecord>,
    ),
    kind("answer-trust", "premath trust --json", || {
        answer::<TrustAnswer>(&["trust"], "path")
    }),
    kind(
        "answer-sandbox-explain",
        "premath sandbox explain --json",
        || answer::<Explanation>(&["sandbox.explain"], "repository"),
    ),
    kind("answer-doctor", "premath doctor --json", || {
        answer::<DoctorAnswer>(&["doctor"], "repository")
    }),
    kind("answer-audit", "premath audit --json", || {
        answer::<AuditAnswer>(&["audit"], "repository")
    }),
    kind("answer-clean", "premath clean --json", || {
        answer::<CleanAnswer>(&["clean"], "repository")
    }),
    kind("answer-uninstall", "premath uninstall --json", || {
        answer::<UninstallAnswer>(&["uninstall"], "repository")
    }),
];

const fn kind(name: &'static str, title: &'static str, schema: fn() -> Schema) -> SchemaKind {
    SchemaKind {
        name,
        title,
        schema,
    }
}

impl SchemaKind {
    /// Returns the kind of that name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// Returns the name of the file that its schema is shipped in.
    pub(super) fn file(&self) -> String {
        format!("{}.schema.json", self.name)
    }

    /// Returns the schema of the kind.
    pub(super) fn schema(&self) -> Schema {
        let mut schema = (self.schema)();
        schema.insert("title".to_owned(), self.title.into());
        schema
    }

    /// Returns its schema as text.
    pub(super) fn text(&self) -> String {
        format!("{:#}\n", self.schema().to_value())
    }

    /// Returns its schema as it is stored in its file: the failure classes are
    /// in a file of their own beside it.
    pub(super) fn file_text(&self) -> String {
        let mut schema = self.schema().to_value();
        let file = Self::named(FAILURE_CLASS).map(Self::file);
        if let (Some(classes), Some(file)) = (schema.pointer_mut(CLASSES), file) {
            *classes = json!({"$ref": file});
        }
        format!("{schema:#}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_kind_has_a_name_of_its_own_and_a_schema_that_is_always_the_same() {
        let names: BTreeSet<_> = KINDS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), KINDS.len());
        for kind in KINDS {
            let file_name = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(kind.name.chars().all(file_name), "{}", kind.name);
            assert!(kind.text().ends_with("}\n"), "{}", kind.name);
            assert_eq!(kind.text(), kind.text(), "{}", kind.name);
        }
    }

    #[test]
    fn one_file_lists_the_failure_classes() {
        let lists = |kind: &&SchemaKind| kind.file_text().contains("\"tool.schema_invalid\"");
        let listing: Vec<_> = KINDS.iter().filter(lists).map(|kind| kind.name).collect();
        assert_eq!(listing, [FAILURE_CLASS]);
        let doctor = SchemaKind::named("answer-doctor").unwrap();
        assert!(doctor.text().contains("\"tool.schema_invalid\""));
        assert!(doctor.file_text().contains("\"failure-class.schema.json\""));
    }
}
