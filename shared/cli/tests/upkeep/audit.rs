//! `premath audit` on files that cannot be read completely.

use crate::scratch::Scratch;
use std::fs;

#[test]
fn an_unreadable_issue_is_printed_before_the_contradictions_that_result_from_it() {
    let scratch = Scratch::new();
    scratch.closed(scratch.first);
    let issues = scratch.root.join(".premath/issues.jsonl");
    let text = fs::read_to_string(&issues).unwrap();
    fs::write(&issues, text.replacen('{', "{\"x\":", 1)).unwrap();
    for args in [&["audit"][..], &["audit", "--all"]] {
        let audit = scratch.run(args);
        assert_eq!(audit.code, 1, "{}{}", audit.stdout, audit.stderr);
        let mut lines = audit.stdout.lines();
        let first = lines.next().unwrap();
        assert!(first.starts_with("unreadable: "), "{first}");
        assert!(first.contains("issues.jsonl:1:"), "{first}");
        assert!(first.contains("not an issue row"), "{first}");
        assert!(lines.next().unwrap().starts_with("false: "));
    }
    let document = scratch.run(&["audit", "--json"]).json();
    assert_eq!(document["result"], "rejected");
    let note = document["notes"][0].as_str().unwrap();
    assert!(note.contains("issues.jsonl:1:"), "{note}");
}
