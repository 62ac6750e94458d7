//! What changes rest on.

use crate::client::{Client, Project, changes};
use premath_kernel::json::canonical;
use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::{Value, json};

/// Calls every tool that changes something, and expects one class and no
/// change.
#[track_caller]
fn nothing_changes(project: &Project, client: &mut Client, class: &str) {
    let before = project.bytes();
    for (tool, arguments) in changes() {
        client.refused(tool, arguments, class);
    }
    assert_eq!(before, project.bytes());
}

#[test]
fn without_an_instruction_nothing_is_changed_and_everything_is_read() {
    let project = Project::claiming(&["all"]).without_instruction();
    let mut client = project.serve(&[]);
    nothing_changes(&project, &mut client, "instruction_mode_unavailable");
    let refused = client.call("dep_add", json!({"issueId": "b", "dependsOnId": "a"}));
    assert!(
        refused.0["hint"]
            .as_str()
            .unwrap()
            .contains("--instruction")
    );
    assert_eq!(client.accepted("issue_ready", json!({}))["count"], 2);
}

#[test]
fn an_instruction_is_named_by_flag_environment_or_configuration() {
    let project = Project::claiming(&["issue_update"]).without_instruction();
    let path = project.instruction().display().to_string();
    let edit = json!({"id": "a", "notes": "seen"});
    let mut named = project.serve(&["--instruction", &path]);
    named.accepted("issue_update", edit.clone());
    let mut command = project.command(&["mcp-serve"]);
    command.env("PREMATH_INSTRUCTION", &path);
    Client::start(command).accepted("issue_update", edit);
}

#[test]
fn a_change_that_is_not_claimed_is_refused_and_one_that_is_is_made() {
    let names = changes().map(|(tool, _)| tool);
    for (index, (tool, arguments)) in changes().into_iter().enumerate() {
        let claim = tool;
        let project = Project::claiming(&[claim]);
        if tool.starts_with("issue_lease") {
            project.answer(&["issue", "claim", "a", "--assignee", "w"]);
        }
        let mut client = project.serve(&[]);
        for (other, arguments) in changes() {
            if other != names[index] {
                client.refused(other, arguments, "mutation.capability_claim_missing");
            }
        }
        match tool.starts_with("dep_") {
            // An edge takes a turn too.
            true => drop(client.refused(tool, arguments, "mutation.use_evidence_missing")),
            false => drop(client.accepted(tool, arguments)),
        }
    }
}

#[test]
fn an_instruction_of_another_policy_authorises_nothing_also_where_it_was_changed_meanwhile() {
    let project = Project::claiming(&["all"]);
    let mut client = project.serve(&[]);
    client.accepted("issue_update", json!({"id": "a", "notes": "seen"}));
    project.edit_instruction(|envelope| envelope["policyDigest"] = "pol1_0".into());
    nothing_changes(&project, &mut client, "mutation.policy_digest_mismatch");
    project.edit_instruction(|envelope| envelope["intent"] = " ".into());
    nothing_changes(&project, &mut client, "instruction_invalid_intent");
}

#[test]
fn a_change_says_in_its_row_what_it_rests_on_and_who_asked() {
    let project = Project::claiming(&["all"]);
    let mut client = project.serve(&[]);
    let found = client.accepted("issue_discover", json!({"parent": "a", "title": "Found"}));
    let change = &found["issue"]["instructedChange"];
    assert_eq!(change["change"], "issue_discover");
    assert_eq!(change["askedBy"], "mcp:by-hand");
    let reference = change["instructionRef"].as_str().unwrap();
    assert!(reference.starts_with("instruction://"), "{reference}");
    assert_eq!(found["queued"], false);
    assert_eq!(found["dependency"]["dependsOnId"], "a");
    let edge = &found["issue"]["dependencies"][0];
    assert_eq!(edge["createdBy"], "mcp:by-hand");
}

#[test]
fn a_lease_says_in_the_row_which_instruction_it_was_asked_for_under() {
    let project = Project::claiming(&["all"]);
    let mut client = project.serve(&[]);
    let claimed = client.accepted("issue_claim", json!({"id": "a", "assignee": "w"}));
    let lease = claimed["issue"]["lease"]["leaseId"].clone();
    let held = json!({"id": "a", "assignee": "w", "leaseId": lease});
    let renewed = client.accepted("issue_lease_renew", held.clone());
    let released = client.accepted("issue_lease_release", held);
    for (answer, change) in [
        (claimed, "issue_claim"),
        (renewed, "issue_lease_renew"),
        (released, "issue_lease_release"),
    ] {
        let said = &answer["issue"]["instructedChange"];
        assert_eq!(said["change"], change, "{answer}");
        assert_eq!(said["askedBy"], "mcp:by-hand");
        let reference = said["instructionRef"].as_str().unwrap();
        assert!(reference.starts_with("instruction://"), "{reference}");
    }
}

#[test]
fn a_leased_issue_is_changed_only_with_its_whole_lease() {
    let project = Project::claiming(&["all"]);
    let mut client = project.serve(&[]);
    let claimed = client.accepted("issue_claim", json!({"id": "a", "assignee": "w"}));
    let lease = &claimed["issue"]["lease"];
    let key = json!({
        "leaseId": lease["leaseId"],
        "owner": lease["owner"],
        "generation": lease["generation"],
    });
    let with = |lease: Value| json!({"id": "a", "status": "open", "lease": lease});
    let before = project.bytes();
    client.refused(
        "issue_update",
        json!({"id": "a", "status": "open"}),
        "lease_contention_active",
    );
    client.refused(
        "dep_add",
        json!({"issueId": "a", "dependsOnId": "b"}),
        "lease_contention_active",
    );
    for (field, value, class) in [
        ("leaseId", json!("other"), "lease_id_mismatch"),
        ("owner", json!("other"), "lease_owner_mismatch"),
        ("generation", json!(7), "lease_generation_mismatch"),
    ] {
        let mut wrong = key.clone();
        wrong[field] = value;
        client.refused("issue_update", with(wrong), class);
    }
    assert_eq!(before, project.bytes());
    let reopened = client.accepted("issue_update", with(key));
    assert_eq!(reopened["issue"]["status"], "open");
    assert_eq!(reopened["issue"].get("lease"), None);
}

#[test]
fn arguments_are_read_as_the_seeds_spell_them() {
    let project = Project::claiming(&["all"]);
    let mut client = project.serve(&[]);
    let full = client.accepted("dep_diagnostics", json!({"graph_scope": "full"}));
    assert_eq!(full["graphScope"], "full");
    let claim = json!({"id": "a", "assignee": "w", "lease_ttl_seconds": 60});
    let claimed = client.accepted("issue_claim", claim);
    let store = claimed["issuesPath"].clone();
    let ready = client.accepted("issue_ready", json!({"issuesPath": store}));
    assert_eq!(ready["count"], 1);
    let leases = client.accepted("issue_lease_projection", json!({}));
    assert_eq!(
        (&leases["count"], &leases["items"]),
        (&json!(0), &json!([]))
    );
    assert_eq!(leases["projection"], leases["leaseProjection"]);
    let elsewhere = client.call("issue_ready", json!({"issuesPath": "/elsewhere"}));
    assert!(
        elsewhere.0["error"]
            .as_str()
            .unwrap()
            .contains("/elsewhere")
    );
}

#[test]
fn leases_go_by_the_rules_of_issue_memory() {
    let project = Project::claiming(&["all"]);
    let mut client = project.serve(&[]);
    let claim = |id: &str| json!({"id": id, "assignee": "w", "leaseTtlSeconds": 60});
    client.accepted("issue_claim", claim("a"));
    let again = client.refused("issue_claim", claim("a"), "lease_contention_active");
    assert_eq!(again["claimed"], false);
    client.refused("issue_claim", claim("none"), "lease_not_found");
    let short = json!({"id": "b", "assignee": "w", "leaseTtlSeconds": 1});
    client.refused("issue_claim", short, "lease_invalid_ttl");
    let key = json!({"id": "a", "assignee": "w", "leaseId": "lease1_a_w", "generation": 1});
    let renewed = client.accepted("issue_lease_renew", key.clone());
    assert!(renewed["issue"]["lease"]["renewedAt"].is_string());
    let released = client.accepted("issue_lease_release", key.clone());
    assert_eq!(released["issue"]["status"], "open");
    client.refused("issue_lease_release", key, "lease_missing");
}

#[test]
fn an_issue_out_of_scope_is_neither_claimed_nor_changed() {
    let project = Project::claiming(&["all"]);
    project.edit_instruction(|envelope| envelope["scope"]["issues"] = json!(["b"]));
    let mut client = project.serve(&[]);
    let before = project.bytes();
    let class = "instruction_out_of_scope";
    client.refused("issue_claim", json!({"id": "a", "assignee": "w"}), class);
    client.refused("issue_update", json!({"id": "a", "notes": "x"}), class);
    client.refused(
        "issue_discover",
        json!({"parent": "a", "title": "Found"}),
        class,
    );
    assert_eq!(before, project.bytes());
    client.accepted("issue_claim", json!({"id": "b", "assignee": "w"}));
}

/// A reference that no record of the harness has gives no right.
#[test]
fn a_turn_that_the_harness_did_not_record_admits_nothing() {
    let project = Project::claiming(&["all"]);
    let mut client = project.serve(&[]);
    let before = project.bytes();
    let digest = "0".repeat(64);
    for turn in [
        "".to_owned(),
        format!("ciwitness://w.a.1/verify/{digest}"),
        format!("ciwitness://w.a.1/turn/{digest}"),
        format!("mutation-ready://a/close/{digest}"),
    ] {
        let close = json!({"id": "a", "status": "closed", "turn": turn});
        client.refused("issue_update", close, "mutation.use_evidence_missing");
        let edge = json!({"issueId": "b", "dependsOnId": "a", "turn": turn});
        client.refused("dep_add", edge, "mutation.use_evidence_missing");
    }
    assert_eq!(before, project.bytes());
}

/// Attack 10: a client closed an issue without evidence.
#[test]
fn a_status_that_needs_evidence_is_refused_whatever_is_claimed() {
    let project = Project::claiming(&["all"]);
    let mut client = project.serve(&[]);
    let before = project.bytes();
    for status in ["closed", "tombstone", "blocked"] {
        let edit = json!({"id": "a", "status": status, "notes": "done"});
        let refused = client.refused("issue_update", edit, "mutation.use_evidence_missing");
        let hint = refused["hint"].as_str().unwrap();
        assert!(hint.contains("premath issue update"), "{hint}");
        // One that others wait for would release them.
        let add = json!({"id": "new", "title": "t", "status": status});
        client.refused("issue_add", add, "mutation.use_evidence_missing");
    }
    assert_eq!(before, project.bytes());
    client.accepted("issue_update", json!({"id": "a", "status": "open"}));
}

#[test]
fn a_client_gives_no_issue_the_label_by_which_an_operator_lets_it_close() {
    let project = Project::claiming(&["all"]);
    let mut client = project.serve(&[]);
    for (tool, arguments) in [
        ("issue_add", json!({"title": "t", "labels": ["no-change"]})),
        (
            "issue_discover",
            json!({"parent": "a", "title": "t", "labels": [" no-change "]}),
        ),
    ] {
        let (answer, is_error) = client.call(tool, arguments);
        assert!(is_error, "{tool}");
        let said = answer["error"].as_str().unwrap();
        assert!(said.contains("given by an operator only"), "{tool}: {said}");
    }
    let listed = client.accepted("issue_list", json!({}));
    let items = listed["items"].as_array().unwrap();
    assert!(items.iter().all(|issue| issue["title"] != "t"));
}

#[test]
fn faults_that_a_check_finds_are_data() {
    let project = Project::claiming(&["issue_add"]);
    let mut client = project.serve(&[]);
    let added = client.accepted(
        "issue_add",
        json!({"title": "[EPIC] t", "issueType": "task"}),
    );
    assert_eq!(added["issue"]["title"], "[EPIC] t");
    let checked = client.accepted("issue_check", json!({}));
    assert_eq!(checked["result"], "rejected");
    let instruction = client.accepted("instruction_check", json!({}));
    // A batch does more than file issues.
    assert_eq!(instruction["result"], "rejected");
    assert_eq!(instruction["covers"], json!(["issue_add"]));
    let (refused, is_error) = client.call(
        "dep_replace",
        json!({"issueId": "c", "dependsOnId": "a", "toType": "related"}),
    );
    assert!(is_error);
    assert_eq!(
        refused["failureClasses"],
        json!(["mutation.capability_claim_missing"])
    );
}

#[test]
fn nothing_is_changed_under_a_policy_package_that_is_not_pinned() {
    let project = Project::claiming(&["all"]);
    let write = |path: &str, text: &str| {
        let path = project.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let mut client = project.serve(&[]);
    let claims = json!({"profileOverlayClaims": ["profile.doctrine_inf_governance.v0"]});
    write("draft/CAPABILITY-REGISTRY.json", &claims.to_string());
    write("package.json", "{}\n");
    nothing_changes(&project, &mut client, "governance.policy_package_unpinned");
    let settings = std::fs::read_to_string(project.root.join("harness.toml")).unwrap();
    let pinned = |digest: &str| {
        let package = "[governance]\npackage = \"package.json\"";
        let table = format!("{package}\nexpected_digest = \"sha256:{digest}\"");
        write("harness.toml", &settings.replace("[governance]", &table));
    };
    pinned(&"0".repeat(64));
    nothing_changes(&project, &mut client, "governance.policy_package_mismatch");
    pinned(&canonical::sha256_hex(b"{}\n"));
    client.accepted("issue_update", json!({"id": "a", "notes": "seen"}));
    // A step may have put it there: the server does not wait for a pipe.
    let file = project.root.join("harness.toml");
    std::fs::remove_file(&file).unwrap();
    mkfifoat(CWD, &file, Mode::RUSR | Mode::WUSR).unwrap();
    let before = project.bytes();
    let (refused, _) = client.call("issue_update", json!({"id": "a", "notes": "again"}));
    assert!(refused["error"].to_string().contains("a pipe"), "{refused}");
    assert_eq!(project.bytes(), before);
}
