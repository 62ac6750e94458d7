use super::policy::INSTRUCTION_POLICY_KIND;
use super::*;
use crate::authority::{MutationMode, StepIdentity};
use crate::failure::FailureClass;
use crate::json::canonical;
use crate::turn::{Close, Discover, MutationBinding};
use proptest::prelude::*;
use serde_json::{Value, json};

const NAME: &str = "20260305T100000Z-night.json";

fn policy() -> InstructionPolicy {
    InstructionPolicy::embedded().unwrap()
}

fn envelope() -> Value {
    json!({
        "schema": 1,
        "intent": "Work through what is ready tonight.",
        "scope": {"kind": "repo", "target": "here"},
        "instructionType": "harness.batch",
        "typingPolicy": {"allowUnknown": false},
        "normalizerId": "premath.harness.shell.v1",
        "policyDigest": policy().policy_digest(),
        "capabilityClaims": ["capabilities.change_morphisms"],
        "requestedChecks": ["verify"],
    })
}

fn parse(document: &Value) -> Result<Instruction, EnvelopeError> {
    Instruction::parse(NAME, document.to_string().as_bytes())
}

fn edited(edit: impl FnOnce(&mut Value)) -> Instruction {
    let mut document = envelope();
    edit(&mut document);
    parse(&document).unwrap()
}

fn classes(instruction: &Instruction) -> Vec<&'static str> {
    match instruction.bind(&policy(), BATCH_CHANGES) {
        Ok(_) => Vec::new(),
        Err(error) => error
            .classes()
            .into_iter()
            .map(FailureClass::as_str)
            .collect(),
    }
}

#[test]
fn an_envelope_has_the_identity_of_its_name_and_its_content() {
    let instruction = parse(&envelope()).unwrap();
    let digest = format!("instr1_{}", canonical::ref_digest(&envelope()));
    assert_eq!(instruction.id(), "20260305T100000Z-night");
    assert_eq!(instruction.digest(), digest);
    assert_eq!(
        instruction.reference(),
        format!("instruction://20260305T100000Z-night/{digest}")
    );
    assert_eq!(classes(&instruction), [""; 0]);
    let written = serde_json::to_value(instruction.envelope()).unwrap();
    assert_eq!(written, envelope());
}

#[test]
#[expect(clippy::too_many_lines, reason = "tests: a table is read as a whole")]
fn every_fault_of_an_envelope_has_its_class_its_field_and_what_would_be_right() {
    let table: &[(&str, Value, &str, &str)] = &[
        (
            "schema",
            json!(2),
            "instruction_invalid_schema",
            "`schema` must be 1",
        ),
        (
            "intent",
            json!(" "),
            "instruction_invalid_intent",
            "`intent` is missing",
        ),
        (
            "intent",
            json!(7),
            "instruction_invalid_intent",
            "`intent` must be a string",
        ),
        (
            "scope",
            Value::Null,
            "instruction_scope_missing",
            "kind and target",
        ),
        (
            "scope",
            json!("repo"),
            "instruction_scope_invalid",
            "must be an object",
        ),
        (
            "scope",
            json!({"kind": "repo"}),
            "instruction_scope_invalid",
            "`scope.target` is missing",
        ),
        (
            "instructionType",
            json!(["x"]),
            "instruction_instruction_type_invalid",
            "`instructionType` must be a string",
        ),
        (
            "typingPolicy",
            json!(true),
            "instruction_typing_policy_invalid",
            "`typingPolicy` must be an object",
        ),
        (
            "typingPolicy",
            json!({"allowUnknown": "yes"}),
            "instruction_typing_policy_invalid",
            "`typingPolicy.allowUnknown` must be true or false",
        ),
        (
            "normalizerId",
            Value::Null,
            "instruction_invalid_normalizer",
            "`normalizerId` is missing",
        ),
        (
            "policyDigest",
            json!(1),
            "instruction_invalid_policy_digest",
            "`policyDigest` must be a string",
        ),
        (
            "capabilityClaims",
            json!("all"),
            "instruction_capability_claims_invalid",
            "must be a list",
        ),
        (
            "capabilityClaims",
            json!(["a", "a "]),
            "instruction_capability_claims_invalid",
            "`capabilityClaims[1]` must be a text that appears once",
        ),
        (
            "requestedChecks",
            json!([]),
            "instruction_requested_checks_invalid",
            "at least one text",
        ),
        (
            "requestedChecks",
            json!(["verify", " "]),
            "instruction_requested_checks_invalid",
            "`requestedChecks[1]`",
        ),
    ];
    for (field, value, class, said) in table {
        let mut document = envelope();
        document[*field] = value.clone();
        let error = parse(&document).unwrap_err();
        assert_eq!(error.class().as_str(), *class, "{field}: {value}");
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains(said), "{field}: {source}");
    }
}

#[test]
fn what_is_not_a_json_object_or_has_a_key_twice_is_not_an_envelope() {
    for (text, class) in [
        ("[]", "instruction_envelope_invalid_shape"),
        ("{\"schema\": 1,", "instruction_envelope_invalid_json"),
        (
            "{\"schema\": 1, \"capabilityClaims\": [], \"capabilityClaims\": [\"a\"]}",
            "instruction_envelope_invalid_json",
        ),
    ] {
        let error = Instruction::parse(NAME, text.as_bytes()).unwrap_err();
        assert_eq!(error.class().as_str(), class, "{text}");
    }
}

#[test]
fn a_file_is_named_by_time_and_id() {
    let bytes = envelope().to_string();
    for name in [
        "night.json",
        "x-night.json",
        "2026-.json",
        "20260305T1-a.txt",
        "-a.json",
        "",
    ] {
        let error = Instruction::parse(name, bytes.as_bytes()).unwrap_err();
        assert_eq!(
            error.class().as_str(),
            "instruction_filename_invalid",
            "{name}"
        );
    }
    let now = "2026-03-05T10:00:00.5Z".parse().unwrap();
    let name = file_name("a b/../c", now);
    assert_eq!(name, "20260305T100000Z-a%20b%2F%2E%2E%2Fc.json");
    assert!(Instruction::parse(&name, bytes.as_bytes()).is_ok());
}

#[test]
fn each_fault_of_the_binding_has_its_class() {
    let digit = |document: &mut Value| {
        let digest = document["policyDigest"].as_str().unwrap().to_owned();
        let last = if digest.ends_with('0') { "1" } else { "0" };
        document["policyDigest"] = format!("{}{last}", &digest[..digest.len() - 1]).into();
    };
    type Edit<'a> = &'a dyn Fn(&mut Value);
    let table: [(Edit<'_>, &[&str]); 8] = [
        (&digit, &["mutation.policy_digest_mismatch"]),
        (
            &|d| d["instructionType"] = json!("harness.revolution"),
            &["instruction_unknown_unroutable"],
        ),
        (
            &|d| d["instructionType"] = Value::Null,
            &["instruction_unknown_unroutable"],
        ),
        (
            &|d| d["normalizerId"] = json!("nf.other"),
            &["instruction_normalizer_not_allowed"],
        ),
        (
            &|d| d["requestedChecks"] = json!(["verify", "rm"]),
            &["instruction_check_not_allowed"],
        ),
        (
            &|d| d["capabilityClaims"] = json!(["capabilities.change_morphisms.issue_update"]),
            &["mutation.capability_claim_missing"],
        ),
        (
            &|d| d["capabilityClaims"] = Value::Null,
            &["mutation.capability_claim_missing"],
        ),
        (
            &|d| {
                digit(d);
                d["capabilityClaims"] = json!([]);
            },
            &[
                "mutation.policy_digest_mismatch",
                "mutation.capability_claim_missing",
            ],
        ),
    ];
    for (edit, expected) in table {
        assert_eq!(classes(&edited(edit)), expected);
    }
}

#[test]
fn an_unknown_type_is_reported_and_runs_only_where_the_envelope_allows_it() {
    let unknown = edited(|d| {
        d["instructionType"] = json!("harness.revolution");
        d["typingPolicy"]["allowUnknown"] = json!(true);
    });
    let link = unknown.bind(&policy(), BATCH_CHANGES).unwrap();
    assert_eq!(
        link.classification().to_string(),
        "unknown(type_not_recognized)"
    );
    assert_eq!(
        serde_json::to_value(policy().classify(None)).unwrap(),
        json!({"state": "unknown", "reason": "type_missing"})
    );
    assert_eq!(
        policy().classify(Some("harness.batch")).to_string(),
        "typed(harness.batch)"
    );
}

#[test]
fn the_policy_is_bound_by_its_digest() {
    let mut document: Value = serde_json::from_str(InstructionPolicy::embedded_text()).unwrap();
    let parse = |d: &Value| InstructionPolicy::parse(d.to_string().as_bytes());
    document["allowedChecks"] = json!(["verify", "x"]);
    let error = parse(&document).unwrap_err();
    assert_eq!(error.class().as_str(), "instruction_policy_digest_mismatch");
    document["policyDigest"] = canonical::policy_digest(document.as_object().unwrap()).into();
    assert!(parse(&document).unwrap().allowed_checks().contains("x"));
    document["allowedNormalizers"] = json!([]);
    let error = parse(&document).unwrap_err();
    assert_eq!(error.class().as_str(), "instruction_policy_invalid_shape");
}

#[test]
fn a_policy_of_another_implementation_is_read_and_knows_the_usual_types() {
    let mut document = json!({
        "schema": 1,
        "policyKind": INSTRUCTION_POLICY_KIND,
        "policyId": "policy.other.v1",
        "allowedChecks": ["build"],
        "allowedNormalizers": ["normalizer.ci.v1"],
    });
    document["policyDigest"] = canonical::policy_digest(document.as_object().unwrap()).into();
    let policy = InstructionPolicy::parse(document.to_string().as_bytes()).unwrap();
    for kind in ["harness.batch", "ci.gate.check"] {
        assert_eq!(
            policy.classify(Some(kind)).to_string(),
            format!("typed({kind})")
        );
    }
}

#[test]
fn a_check_that_the_policy_allows_and_is_not_run_binds_nothing() {
    let mut document = json!({
        "schema": 1,
        "policyKind": INSTRUCTION_POLICY_KIND,
        "policyId": "p",
        "allowedChecks": ["lint", "verify"],
        "allowedNormalizers": ["premath.harness.shell.v1"],
    });
    document["policyDigest"] = canonical::policy_digest(document.as_object().unwrap()).into();
    let policy = InstructionPolicy::parse(document.to_string().as_bytes()).unwrap();
    let instruction = edited(|d| {
        d["policyDigest"] = policy.policy_digest().into();
        d["requestedChecks"] = json!(["lint", "verify"]);
    });
    assert_eq!(instruction.faults(&policy, &[]), []);
    let refused = instruction.bind(&policy, &[]).unwrap_err();
    assert_eq!(refused.classes(), [FailureClass::InstructionCheckUnbound]);
    let said = "it requests the check `lint`, but the harness runs only `startup`, `verify`";
    assert_eq!(refused.faults[0].to_string(), said);
}

#[test]
fn a_mode_binds_a_turn_to_policy_claims_normaliser_and_instruction() {
    let claims = BATCH_CHANGES.iter().map(|kind| kind.claim());
    let instruction = edited(|d| d["capabilityClaims"] = claims.collect());
    let mode = MutationMode::instruction_linked(&instruction, &policy()).unwrap();
    let step = StepIdentity {
        issue_id: "a".into(),
        worker_id: "w".into(),
        owner: "w".into(),
        lease_id: "l".into(),
        generation: 1,
        session_id: "s".into(),
    };
    let binding = MutationBinding::of_mode(step, &mode, None);
    assert_eq!(binding.mutation_policy_digest, policy().policy_digest());
    assert_eq!(
        binding.normalizer.as_deref(),
        Some("premath.harness.shell.v1")
    );
    assert_eq!(binding.instruction_ref, Some(instruction.reference()));
    assert!(
        binding
            .claims
            .covers(<Close as crate::turn::MutationKind>::CLAIM)
    );
    assert!(
        !binding
            .claims
            .covers(<Discover as crate::turn::MutationKind>::CLAIM)
    );
    assert!(
        mode.describe()
            .starts_with("mode instruction-linked: Work through")
    );
}

proptest! {
    /// Whatever is there, the verdict is a value, and only an envelope with the
    /// active digest, a known type and the claims is admitted.
    #[test]
    fn nothing_but_a_whole_envelope_is_admitted(
        digest in any::<bool>(), kind in "[a-z.]{0,14}", allow in any::<bool>(),
        taken in proptest::sample::subsequence(crate::authority::claim::ChangeMorphism::ALL.to_vec(), 0..=9),
        checks in proptest::collection::btree_set("verify|startup|other", 0..3),
    ) {
        let claims: Vec<&str> = taken.iter().map(|kind| kind.claim()).collect();
        let mut document = envelope();
        document["instructionType"] = kind.clone().into();
        document["typingPolicy"]["allowUnknown"] = allow.into();
        document["capabilityClaims"] = json!(claims);
        document["requestedChecks"] = json!(checks);
        if !digest {
            document["policyDigest"] = "pol1_0".into();
        }
        let Ok(instruction) = parse(&document) else {
            prop_assert!(checks.is_empty());
            return Ok(());
        };
        let right = digest
            && (allow || kind == "harness.batch")
            && BATCH_CHANGES.iter().all(|kind| taken.contains(kind))
            && !checks.contains("other");
        prop_assert_eq!(instruction.bind(&policy(), BATCH_CHANGES).is_ok(), right);
    }

    /// Order, white space and the order of keys are not part of an identity;
    /// every value is.
    #[test]
    fn the_digest_is_that_of_the_content(intent in "[a-z]{1,9}", spaces in 0..4_usize) {
        let mut document = envelope();
        document["intent"] = intent.clone().into();
        let instruction = parse(&document).unwrap();
        let spaced = document.to_string().replace(':', &format!(":{}", " ".repeat(spaces)));
        let again = Instruction::parse(NAME, spaced.as_bytes()).unwrap();
        // A colon in a text is content; the envelope's texts have none.
        prop_assert_eq!(again.digest(), instruction.digest());
        document["intent"] = format!("{intent}x").into();
        let other = parse(&document).unwrap();
        prop_assert_ne!(other.digest(), instruction.digest());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64), name in ".{0,30}") {
        let _ = Instruction::parse(&name, &bytes);
        let _ = InstructionPolicy::parse(&bytes);
    }
}
