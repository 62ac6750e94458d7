//! Changes that rest on an instruction.

use super::*;
use premath_kernel::authority::InstructedSurface;
use premath_kernel::authority::claim::ChangeMorphism;
use premath_kernel::authority::instruction::{Instruction, InstructionPolicy};
use serde_json::json;

fn surface() -> InstructedSurface {
    let policy = InstructionPolicy::embedded().unwrap();
    let envelope = json!({
        "schema": 1,
        "intent": "test",
        "scope": {"kind": "repo", "target": "here"},
        "instructionType": "harness.batch",
        "typingPolicy": {"allowUnknown": false},
        "normalizerId": "premath.harness.shell.v1",
        "policyDigest": policy.policy_digest(),
        "capabilityClaims": ["capabilities.change_morphisms"],
        "requestedChecks": ["verify"],
    });
    let bytes = envelope.to_string().into_bytes();
    let instruction = Instruction::parse("20260305T100000Z-test.json", &bytes).unwrap();
    InstructedSurface::bind(&instruction, &policy).unwrap()
}

fn title(id: &str) -> IssueChange {
    let edit = IssueEdit {
        title: Some("new".into()),
        ..IssueEdit::default()
    };
    IssueChange::Update {
        id: id.into(),
        edit,
    }
}

#[test]
fn a_right_to_one_kind_of_change_makes_no_other() {
    let scratch = Scratch::new(&rows(2));
    let memory = scratch.open();
    let before = scratch.text();
    for kind in ChangeMorphism::ALL {
        let right = surface().authorise(*kind, "test").unwrap();
        let made = memory.instruct(right, title("x-0000"), LeaseKey::default());
        if *kind == ChangeMorphism::IssueUpdate {
            let row = made.unwrap();
            assert_eq!(row.value()["instructed_change"]["change"], "issue_update");
            assert_eq!(row.value()["instructed_change"]["asked_by"], "test");
        } else {
            let class = made.unwrap_err().class();
            assert_eq!(class, FailureClass::MutationCapabilityClaimMissing);
        }
    }
    assert_eq!(scratch.text().lines().count(), before.lines().count() + 1);
}

#[test]
fn a_lease_authority_for_one_operation_grants_no_other() {
    let scratch = Scratch::new(&rows(2));
    let memory = scratch.open();
    let of = |operation| surface().lease_authority(operation, "test").unwrap();
    let class = FailureClass::MutationCapabilityClaimMissing;
    let renew = of(LeaseOperation::Renew);
    let refused = memory
        .claim(&renew, &"x-0000".into(), wish("a"))
        .unwrap_err();
    assert_eq!(refused.class(), class);
    let claim = of(LeaseOperation::Claim);
    let change = |row: &IssueRow| row.value()["instructed_change"]["change"].clone();
    let claimed = memory.claim(&claim, &"x-0000".into(), wish("a")).unwrap();
    assert_eq!(change(&claimed.row), "issue_claim");
    let key = LeaseKey::default;
    let term = Term::Ttl(TTL_DEFAULT);
    let refused = memory
        .renew(&claim, &"x-0000".into(), key(), term)
        .unwrap_err();
    assert_eq!(refused.class(), class);
    let refused = memory
        .release(&renew, &"x-0000".into(), key(), None)
        .unwrap_err();
    assert_eq!(refused.class(), class);
    let renewed = memory.renew(&renew, &"x-0000".into(), key(), term).unwrap();
    assert_eq!(change(&renewed), "issue_lease_renew");
    let release = of(LeaseOperation::Release);
    let released = memory
        .release(&release, &"x-0000".into(), key(), None)
        .unwrap();
    assert_eq!(change(&released), "issue_lease_release");
}

#[test]
fn a_key_that_names_a_lease_must_fit_also_where_none_is() {
    let scratch = Scratch::new(&rows(1));
    let memory = scratch.open();
    let right = || {
        surface()
            .authorise(ChangeMorphism::IssueUpdate, "test")
            .unwrap()
    };
    let key = LeaseKey {
        lease_id: Some("l".into()),
        owner: Some("a".into()),
        generation: Some(1),
    };
    let refused = memory.instruct(right(), title("x-0000"), key).unwrap_err();
    assert_eq!(refused.class(), FailureClass::LeaseMissing);
    memory
        .instruct(right(), title("x-0000"), LeaseKey::default())
        .unwrap();
}

/// Attack 10: a client of the MCP server closed an issue without evidence.
#[test]
fn an_instruction_alone_closes_or_blocks_no_issue() {
    let scratch = Scratch::new(&rows(1));
    let memory = scratch.open();
    let before = scratch.text();
    for status in ["closed", " closed ", "tombstone", "blocked"] {
        let right = surface()
            .authorise(ChangeMorphism::IssueUpdate, "test")
            .unwrap();
        let edit = IssueEdit {
            status: Some(status.to_owned()),
            ..IssueEdit::default()
        };
        let update = IssueChange::Update {
            id: "x-0000".to_owned(),
            edit,
        };
        let refused = memory.instruct(right, update, LeaseKey::default());
        let class = refused.unwrap_err().class();
        assert_eq!(class, FailureClass::MutationUseEvidenceMissing, "{status}");
        let right = surface()
            .authorise(ChangeMorphism::IssueAdd, "test")
            .unwrap();
        let new = NewIssue {
            title: "t".to_owned(),
            status: Some(status.to_owned()),
            ..NewIssue::default()
        };
        let refused = memory.instruct(right, IssueChange::Add(new), LeaseKey::default());
        let class = refused.unwrap_err().class();
        assert_eq!(class, FailureClass::MutationUseEvidenceMissing, "{status}");
    }
    assert_eq!(scratch.text(), before);
    for status in ["open", "deferred"] {
        let right = surface()
            .authorise(ChangeMorphism::IssueUpdate, "test")
            .unwrap();
        let edit = IssueEdit {
            status: Some(status.to_owned()),
            ..IssueEdit::default()
        };
        let id = "x-0000".to_owned();
        let update = IssueChange::Update { id, edit };
        memory.instruct(right, update, LeaseKey::default()).unwrap();
    }
}

/// An instruction's change has the authority of the batch, and not of a person
/// who wrote the text.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "tests: it plays the premath command"
)]
fn a_verification_that_an_instruction_wrote_is_not_an_operators() {
    let scratch = Scratch::new(&rows(2));
    let memory = scratch.open();
    let update = |id: &str, description: &str| IssueChange::Update {
        id: id.to_owned(),
        edit: IssueEdit {
            description: Some(description.to_owned()),
            ..IssueEdit::default()
        },
    };
    let right = || {
        surface()
            .authorise(ChangeMorphism::IssueUpdate, "test")
            .unwrap()
    };
    let instruct = |id, description| {
        let change = update(id, description);
        memory
            .instruct(right(), change, LeaseKey::default())
            .unwrap();
    };
    instruct("x-0000", "Verification: `true`");
    let found = memory.own_checks().unwrap();
    assert!(found.written.is_empty());
    assert_eq!(found.unknown, ["x-0000"]);
    // The operator writes one, and an instruction takes it out of the row.
    let operator = || OperatorOverride::new("ann", Some("test".to_owned()));
    memory
        .operate(operator(), update("x-0000", "Verification: `sh check.sh`"))
        .unwrap();
    assert!(memory.own_checks().unwrap().unknown.is_empty());
    instruct("x-0000", "Nothing to verify");
    let found = memory.own_checks().unwrap();
    let written = &found.written["x-0000"];
    assert_eq!(
        (&*written.command, &*written.operator),
        ("sh check.sh", "ann")
    );
    assert_eq!(found.unknown, ["x-0000"]);
    // Another field of the operator's leaves the text to who wrote it.
    instruct("x-0001", "Verification: `true`");
    let edit = IssueEdit {
        priority: Some(1),
        ..IssueEdit::default()
    };
    let id = "x-0001".to_owned();
    memory
        .operate(operator(), IssueChange::Update { id, edit })
        .unwrap();
    assert_eq!(memory.own_checks().unwrap().written.len(), 1);
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "tests: it plays the premath command"
)]
fn a_verification_that_was_in_a_text_is_not_that_of_who_edits_the_text() {
    let scratch = Scratch::new(&rows(2));
    let memory = scratch.open();
    let described = |text: &str| IssueEdit {
        description: Some(text.to_owned()),
        ..IssueEdit::default()
    };
    let verified = |command: &str| IssueEdit {
        verification: Some(command.to_owned()),
        ..IssueEdit::default()
    };
    let operate = |change| {
        let ann = OperatorOverride::new("ann", Some("test".to_owned()));
        memory.operate(ann, change).unwrap();
    };
    let revise = |edit: IssueEdit| {
        let was = memory.view(|view| IssueEdit::of(view.row("x-0000").unwrap()));
        operate(IssueChange::Revise {
            id: "x-0000".to_owned(),
            was: Box::new(was.unwrap()),
            edit: Box::new(edit),
        });
    };
    let update = |edit| {
        let id = "x-0001".to_owned();
        operate(IssueChange::Update { id, edit });
    };
    for id in ["x-0000", "x-0001"] {
        let right = surface().authorise(ChangeMorphism::IssueUpdate, "test");
        let edit = described("Do it.\nVerification: `true`");
        let id = id.to_owned();
        let change = IssueChange::Update { id, edit };
        let key = LeaseKey::default();
        memory.instruct(right.unwrap(), change, key).unwrap();
    }
    revise(described("Do it now.\nVerification: `true`"));
    let found = memory.own_checks().unwrap();
    assert!(found.written.is_empty(), "{found:?}");
    assert_eq!(found.unknown, ["x-0000", "x-0001"]);
    revise(described("Do it now.\nVerification: `sh mine.sh`"));
    let found = memory.own_checks().unwrap();
    assert_eq!(found.written["x-0000"].command, "sh mine.sh");
    // The command that is cleared hid one that is not the operator's.
    update(verified("sh own.sh"));
    assert_eq!(memory.own_checks().unwrap().written.len(), 2);
    update(verified(""));
    let found = memory.own_checks().unwrap();
    assert_eq!(found.written.len(), 1);
    assert_eq!(found.unknown, ["x-0001"]);
}
