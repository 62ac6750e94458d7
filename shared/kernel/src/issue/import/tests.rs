use super::*;
use serde_json::json;

fn fields(record: &ImportRecord) -> Value {
    match &record.body {
        ImportBody::Row(text) => serde_json::from_str(text).unwrap(),
        ImportBody::Fields(fields) => Value::Object(fields.clone()),
    }
}

fn faults(text: &str, format: ImportFormat) -> Vec<(usize, String)> {
    let faults = read(text, format).unwrap_err();
    let each = faults.into_iter();
    each.map(|fault| (fault.line, fault.detail)).collect()
}

#[test]
fn formats_are_detected() {
    for (text, expected) in [
        (
            "{\"id\":\"a\",\"title\":\"t\"}\n",
            Some(ImportFormat::Beads),
        ),
        (
            "# c\n{\"id\":\"a\",\"title\":\"t\"}\n",
            Some(ImportFormat::Beads),
        ),
        ("[\n  {\"number\":1}]", Some(ImportFormat::Github)),
        ("[]", Some(ImportFormat::Github)),
        (
            "{\"number\":1,\"title\":\"t\"}\n",
            Some(ImportFormat::Github),
        ),
        ("\u{feff}Title,State\n", Some(ImportFormat::Csv)),
        ("id;title\n1;x\n", Some(ImportFormat::Csv)),
        ("# Plan\n\n- [ ] a, title\n", Some(ImportFormat::Markdown)),
        ("1. [x] done\n", Some(ImportFormat::Markdown)),
        ("[link](x) and title\n", None),
        ("just text", None),
        ("", None),
    ] {
        assert_eq!(detect(text), expected, "{text:?}");
    }
}

#[test]
fn the_last_row_of_an_id_wins_and_wrong_rows_are_named() {
    let rows = "{\"id\":\"a\",\"title\":\"1\"}\n\n# c\n{\"id\":\"b\",\"title\":\"b\"}\n{\"id\":\"a\",\"title\":\"2\",\"odd\":1.0}\n";
    let records = read(rows, ImportFormat::Beads).unwrap();
    assert_eq!(records.len(), 2);
    assert_eq!(records[0].line, 5);
    assert_eq!(
        records[0].body,
        ImportBody::Row("{\"id\":\"a\",\"title\":\"2\",\"odd\":1.0}".to_owned())
    );
    let wrong = "{\"id\":\"a\",\"title\":\"t\"}\n{\"id\":\"b\"\n[1]\n{\"title\":\"t\"}\n{\"id\":\"c\"}\n{\"id\":\"d\",\"title\":\"t\",\"priority\":\"x\"}\n";
    let found = faults(wrong, ImportFormat::Beads);
    let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [2, 3, 4, 5, 6], "{found:?}");
    assert!(found[2].1.contains("id"), "{found:?}");
    assert_eq!(found[3].1, "issue c: no title");
}

#[test]
fn an_export_of_gh_is_read_whole() {
    let text = r#"[
  {"number": 12, "title": "Crash", "body": "It crashes.", "state": "OPEN",
   "labels": [{"name": "bug", "color": "f00"}, {"name": "priority: high"}],
   "assignees": [{"login": "ann"}], "url": "https://example.org/r/issues/12",
   "createdAt": "2026-01-02T03:04:05Z", "milestone": {"title": "v1"}},
  {"number": 3, "title": "Old", "state": "CLOSED", "closedAt": "2026-01-01T00:00:00Z"}
]"#;
    let records = read(text, ImportFormat::Github).unwrap();
    assert_eq!(records[0].key, ImportKey::Reference("gh-3".to_owned()));
    assert_eq!(records[0].line, 6);
    assert_eq!(fields(&records[0])["closed_at"], "2026-01-01T00:00:00Z");
    let second = fields(&records[1]);
    assert_eq!(records[1].line, 2);
    let url = "https://example.org/r/issues/12";
    assert_eq!(records[1].key, ImportKey::Reference(url.to_owned()));
    assert_eq!(
        (&second["title"], &second["issue_type"], &second["priority"]),
        (&json!("Crash"), &json!("bug"), &json!(1))
    );
    assert_eq!(second["labels"], json!(["bug", "priority: high"]));
    assert_eq!(second["assignee"], "ann");
    let github = &second["metadata"]["github"];
    assert_eq!(github["milestone"]["title"], "v1");
    assert_eq!(github["labels"][0]["color"], "f00");
    // One object a line, as `--jq '.[]'` prints.
    let lines = "{\"number\":1,\"title\":\"a\"}\n{\"number\":2,\"title\":\"b\"}\n";
    let records = read(lines, ImportFormat::Github).unwrap();
    assert_eq!(records.iter().map(|r| r.line).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn what_is_no_issue_of_github_is_named_by_its_line() {
    let text = "[\n{\"title\":\"no number\"},\n{\"number\":1},\n{\"number\":2,\"title\":\"t\",\"state\":\"ODD\"},\n7,\n{\"number\":3,\"title\":\"t\"},\n{\"number\":3,\"title\":\"t\"}]";
    let lines: Vec<usize> = faults(text, ImportFormat::Github)
        .into_iter()
        .map(|(line, _)| line)
        .collect();
    assert_eq!(lines, [2, 3, 4, 5, 7]);
    let cut = faults("[\n{\"number\":1,", ImportFormat::Github);
    assert_eq!(cut[0].0, 2);
    let cut = faults(
        "{\"number\":1,\"title\":\"t\"}\n{\"num",
        ImportFormat::Github,
    );
    assert_eq!(cut.len(), 1, "{cut:?}");
}

#[test]
fn a_table_is_read_with_quotes_lists_and_columns_of_its_own() {
    let text = "ID,Title,Status,Priority,Labels,Depends On,Parent,Team,Description,Verify\r\n\
        a-1,\"First, \"\"quoted\"\"\",Done,high,\"x;y\",,,core,\"two\nlines\",make\r\n\
        a-2,Second,,,,\"a-1, a-0\",a-1,,,\n\n";
    let records = read(text, ImportFormat::Csv).unwrap();
    let first = fields(&records[0]);
    assert_eq!(
        first,
        json!({"title": "First, \"quoted\"", "status": "closed", "priority": 1,
            "labels": ["x", "y"], "description": "two\nlines",
            "metadata": {"verification": "make", "csv": {"Team": "core"}}})
    );
    assert_eq!(records[1].line, 4);
    let to = |id: &str| ImportTarget::Issue(id.to_owned());
    assert_eq!(
        records[1].edges,
        [
            (to("a-1"), EdgeKind::parse("")),
            (to("a-0"), EdgeKind::parse("")),
            (to("a-1"), EdgeKind::ParentChild)
        ]
    );
}

#[test]
fn a_wrong_line_of_a_table_is_named() {
    let text = "id,title,priority,status\na,t,9,open\nb,t\nc,,1,open\nd,t,1,odd\ne,t,,\ne,t,,\n";
    let found = faults(text, ImportFormat::Csv);
    let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [2, 3, 4, 5, 7], "{found:?}");
    assert!(found[4].1.contains("line 6"), "{found:?}");
    assert_eq!(faults("title\n\"a\n", ImportFormat::Csv)[0].0, 2);
    assert_eq!(faults("name it\nx\n", ImportFormat::Csv)[0].0, 1);
}

#[test]
fn tasks_are_read_with_their_parts_and_texts() {
    let text = "# Plan\nprose\n- [ ] One\n  more on it\n\n      code\n  - [x] Part\n  * [ ] Other part\n1. [X] Two\n```\n- [ ] no task\n```\n- [link](x) too\n- [ ] One\n";
    let records = read(text, ImportFormat::Markdown).unwrap();
    let titles: Vec<Value> = records.iter().map(|r| fields(r)["title"].clone()).collect();
    assert_eq!(titles, ["One", "Part", "Other part", "Two", "One"]);
    let one = fields(&records[0]);
    assert_eq!(one["description"], "more on it\n\n    code");
    assert_eq!(one["metadata"]["markdown"]["section"], "Plan");
    let part = (ImportTarget::Record(0), EdgeKind::ParentChild);
    assert_eq!(records[1].edges, std::slice::from_ref(&part));
    assert_eq!(records[2].edges, [part]);
    assert_eq!(fields(&records[1])["status"], "closed");
    assert_eq!(fields(&records[3])["status"], "closed");
    assert!(records[3].edges.is_empty());
    // Equal titles are two tasks, and each is found again.
    assert_ne!(records[0].key, records[4].key);
    let again = read(text, ImportFormat::Markdown).unwrap();
    assert_eq!(records, again);
}

#[test]
fn a_task_that_is_none_is_named() {
    let text = "- [ ] a\n- [-] b\n- [ ]\n";
    let lines: Vec<usize> = faults(text, ImportFormat::Markdown)
        .into_iter()
        .map(|(line, _)| line)
        .collect();
    assert_eq!(lines, [2, 3]);
}
