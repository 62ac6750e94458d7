//! `premath issue import`: whole, once, or not at all.

use crate::scratch::{Scratch, ids, row};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

fn text(scratch: &Scratch) -> String {
    fs::read_to_string(scratch.issues()).unwrap()
}

fn rows(text: &str) -> BTreeMap<String, Value> {
    let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
    rows.map(|row: Value| (row["id"].as_str().unwrap().to_owned(), row))
        .collect()
}

/// Imports a file twice: the second time changes nothing.
fn imported(scratch: &Scratch, name: &str, content: &str) -> Value {
    fs::write(scratch.folder.join(name), content).unwrap();
    let before = text(scratch);
    let args = ["issue", "import", name];
    let planned = scratch.json(&[&args[..], &["--dry-run"]].concat());
    assert_eq!(text(scratch), before);
    let first = scratch.json(&args);
    for same in ["count", "existing", "format"] {
        assert_eq!(planned[same], first[same], "{same}");
    }
    assert_eq!(ids(&planned), ids(&first));
    let after = text(scratch);
    let second = scratch.json(&args);
    assert_eq!(second["count"], 0);
    let existing = second["existing"].as_array().unwrap().len();
    let known = first["existing"].as_array().unwrap().len();
    assert_eq!(existing, ids(&first).len() + known);
    assert_eq!(text(scratch), after);
    first
}

/// Holds every field of imported rows against the rows of the file.
fn without_loss(imported: &str, of_file: &str) {
    let imported = rows(imported);
    for (id, row) in rows(of_file) {
        for (field, value) in row.as_object().unwrap() {
            assert_eq!(&imported[&id][field], value, "{id} {field}");
        }
    }
}

#[test]
fn a_file_of_beads_is_imported_without_loss() {
    let beads = concat!(
        r#"{"id":"gt-1","title":"One","status":"hooked","priority":0,"issue_type":"molecule","created_at":"2025-11-02T21:58:07.295058-08:00","updated_at":"2025-11-03T20:56:22-08:00","comments":[{"id":1,"text":"c"}],"odd":1.000000000000000000001,"labels":["x"]}"#,
        "\n",
        r#"{"id":"gt-2","title":"Two","status":"tombstone","priority":4,"issue_type":"task","created_at":"2025-11-02T21:58:07Z","updated_at":"2025-11-03T20:56:22Z","deleted_at":"2025-11-03T20:56:22Z","deleted_by":"x","original_type":"task","dependencies":[{"issue_id":"gt-2","depends_on_id":"gt-1","type":"relates-to","created_at":"2025-11-02T22:23:49-08:00","created_by":"stevey"}]}"#,
        "\n",
        r#"{"id":"gt-3","title":"Three","status":"open","priority":2,"issue_type":"task","created_at":"2025-11-02T21:58:07Z","updated_at":"2025-11-03T20:56:22Z","dependencies":[{"issue_id":"gt-3","depends_on_id":"gone","type":"blocks"}]}"#,
        "\n"
    );
    let scratch = Scratch::with(&row("gt-9", &[]));
    assert_eq!(imported(&scratch, "beads.jsonl", beads)["format"], "beads");
    let after = text(&scratch);
    without_loss(&after, beads);
    assert!(after.contains("1.000000000000000000001"), "{after}");
    fs::write(scratch.folder.join(".premath/issues.jsonl"), "").unwrap();
    let told = scratch.run(&["issue", "import", "beads.jsonl"]);
    assert!(
        told.stderr
            .contains("1 issue(s) depend on an issue that does not exist")
    );
}

/// The tracker of beads itself, where the shared data are on this machine.
#[test]
fn the_real_tracker_of_beads_is_imported_without_loss() {
    let manifest = env!("CARGO_MANIFEST_DIR");
    let folders = ["../../../shared/data", "../../../../shared/data"];
    let found = folders.into_iter().find_map(|folder| {
        fs::read_to_string(format!("{manifest}/{folder}/beads-issues.jsonl")).ok()
    });
    let Some(beads) = found else {
        #[expect(clippy::print_stderr, reason = "a skipped test says why")]
        {
            eprintln!("skipped: no beads-issues.jsonl in ../shared/data");
        }
        return;
    };
    let scratch = Scratch::with("");
    let first = imported(&scratch, "beads.jsonl", &beads);
    assert_eq!(ids(&first).len(), beads.lines().count());
    without_loss(&text(&scratch), &beads);
}

#[test]
fn leases_and_turns_of_another_memory_are_kept_aside() {
    let row = r#"{"id":"a","title":"t","status":"closed","closed_by_step":"w.a.1","lease_generation":7,"mutation_refs":["x"],"metadata":{"verification":"rm -rf /"},"created_at":"2026-01-01T00:00:00Z"}"#;
    let scratch = Scratch::with("");
    imported(&scratch, "rows.jsonl", &format!("{row}\n"));
    let row = &rows(&text(&scratch))["a"];
    assert_eq!(
        row["imported_fields"],
        json!({"closed_by_step": "w.a.1", "lease_generation": 7, "mutation_refs": ["x"]})
    );
    for field in ["closed_by_step", "lease_generation", "mutation_refs"] {
        assert_eq!(row.get(field), None, "{field}");
    }
    assert_eq!(row["operator_override"]["operator"], "ann");
    assert_eq!(
        row["operator_override"]["reason"],
        "imported from rows.jsonl"
    );
}

/// A verification runs only where an operator's transaction recorded it.
#[test]
fn an_imported_verification_is_not_approved() {
    let scratch = Scratch::with("");
    let record = scratch.folder.join(".premath/issues.jsonl.checks");
    scratch.json(&["issue", "add", "own", "--id", "own", "--verify", "true"]);
    let approved = fs::read_to_string(&record).unwrap();
    assert!(approved.contains("own"));
    let csv = "id,title,verify,description\na,A,touch /tmp/x,\"Verification:\n`make`\"\n";
    imported(&scratch, "issues.csv", csv);
    imported(&scratch, "tasks.md", "- [ ] T\n  Verification: `make`\n");
    // Neither by the import nor by a change of another field.
    scratch.json(&["issue", "update", "a", "--priority", "1"]);
    scratch.json(&["issue", "defer", "a"]);
    scratch.json(&["issue", "update", "a", "--description", "Clearer."]);
    assert_eq!(fs::read_to_string(&record).unwrap(), approved);
    assert_eq!(
        rows(&text(&scratch))["a"]["metadata"]["verification"],
        "touch /tmp/x"
    );
    fs::write(scratch.folder.join("b.csv"), "title,verify\nB,make\n").unwrap();
    let told = scratch.run(&["issue", "import", "b.csv"]);
    assert!(
        told.stderr.contains("have a verification of their own"),
        "{}",
        told.stderr
    );
}

#[test]
fn an_export_of_gh_gets_the_next_ids() {
    let scratch = Scratch::with(&row("bd-7", &[]));
    let github = r#"[{"number":2,"title":"Second","state":"OPEN","url":"https://x/2","assignees":[{"login":"ann"}]},
{"number":1,"title":"First","state":"CLOSED","url":"https://x/1","body":"text"}]"#;
    let first = imported(&scratch, "gh.json", github);
    assert_eq!(ids(&first), ["bd-8", "bd-9"]);
    let row = &rows(&text(&scratch))["bd-8"];
    assert_eq!(row["title"], "First");
    assert_eq!(row["external_ref"], "https://x/1");
    // An issue that was opened later is the only one that is filed.
    let more = github.replace(
        "[{\"number\":2",
        "[{\"number\":3,\"title\":\"New\",\"url\":\"https://x/3\"},{\"number\":2",
    );
    assert_eq!(ids(&imported(&scratch, "gh.json", &more)), ["bd-10"]);
    // One that was changed here stays as it is.
    scratch.json(&["issue", "update", "bd-9", "--title", "Mine"]);
    assert_eq!(scratch.json(&["issue", "import", "gh.json"])["count"], 0);
    assert_eq!(
        scratch.json(&["issue", "show", "bd-9"])["issue"]["title"],
        "Mine"
    );
}

#[test]
fn a_table_and_a_list_of_tasks_have_edges() {
    let scratch = Scratch::with(&row("bd-1", &[]));
    let csv = "id,title,depends_on\nx-1,One,bd-1\nx-2,Two,x-1\n";
    assert_eq!(ids(&imported(&scratch, "issues.csv", csv)), ["x-1", "x-2"]);
    let tasks = "- [ ] Whole\n  - [x] Part\n";
    let first = imported(&scratch, "tasks.md", tasks);
    let [whole, part] = ids(&first)[..] else {
        panic!("{first}");
    };
    assert_eq!(first["items"][1]["dependencies"][0]["dependsOnId"], whole);
    assert_eq!(first["items"][1]["status"], "closed");
    assert_ne!(whole, part);
    let ready = scratch.json(&["issue", "ready"]);
    assert_eq!(ids(&ready), ["bd-1", whole]);
}

#[test]
fn a_bad_record_is_named_and_nothing_is_filed() {
    let rows = row("a", &[]) + &row("late", &["x"]);
    let scratch = Scratch::with(&rows);
    for (name, content, said) in [
        (
            "b.jsonl",
            "{\"id\":\"n\",\"title\":\"t\"}\n{\"id\":\n",
            "b.jsonl:2: ",
        ),
        (
            "g.json",
            "[{\"number\":1,\"title\":\"t\"},\n{\"number\":2}]",
            "g.json:2: issue #2",
        ),
        (
            "c.csv",
            "title,priority\nt,1\nu,9\n",
            "c.csv:3: a priority is 0 to 4",
        ),
        (
            "d.csv",
            "title,depends_on\nt,\nu,nowhere\n",
            "d.csv:3: depends on nowhere",
        ),
        ("t.md", "- [ ] a\n- [?] b\n", "t.md:2: unknown box"),
        (
            "k.jsonl",
            "{\"id\":\"a\",\"title\":\"another\"}\n",
            "k.jsonl:1: issue a is here already",
        ),
    ] {
        fs::write(scratch.folder.join(name), content).unwrap();
        for flag in [&["--dry-run"][..], &[]] {
            let refused = scratch.run(&[&["issue", "import", name, "--json"], flag].concat());
            assert_eq!(refused.code, 1, "{name}: {}", refused.stderr);
            assert!(refused.stderr.contains(said), "{name}: {}", refused.stderr);
            assert!(refused.stderr.contains("nothing was imported"));
            assert_eq!(refused.json()["faults"].as_array().unwrap().len(), 1);
            assert_eq!(text(&scratch), rows);
        }
    }
    fs::write(
        scratch.folder.join("x.csv"),
        "id,title,depends_on\nx,X,late\n",
    )
    .unwrap();
    let cycle = scratch.run(&["issue", "import", "x.csv"]);
    assert_eq!(cycle.code, 1);
    assert!(cycle.stderr.contains("cycle"), "{}", cycle.stderr);
    fs::write(scratch.folder.join("prose"), "nothing\n").unwrap();
    let unknown = scratch.run(&["issue", "import", "prose"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("--format"), "{}", unknown.stderr);
    assert_eq!(scratch.run(&["issue", "import", "nowhere"]).code, 2);
    assert_eq!(
        scratch
            .run(&["issue", "import", "x.csv", "--format", "xml"])
            .code,
        2
    );
    assert_eq!(text(&scratch), rows);
}
