//! `premath harness-join-check` on input that it cannot judge.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot continue ends, and says where"
)]

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

/// A shell that runs the join check on `input.json`, with so much memory.
fn judged(folder: &Path, kilobytes: u64) -> Output {
    #[expect(
        clippy::disallowed_methods,
        reason = "the test plays the shell that runs premath"
    )]
    let mut command = Command::new("sh");
    let script = format!(
        "ulimit -v {kilobytes}; exec \"$0\" harness-join-check --input input.json --explain"
    );
    command
        .args(["-c", &script, env!("CARGO_BIN_EXE_premath")])
        .current_dir(folder)
        .output()
        .unwrap()
}

/// Enough for the program, and for no input of a gigabyte.
const LITTLE: u64 = 512 * 1024;

fn refused(folder: &Path, expected: &[&str]) {
    let output = judged(folder, LITTLE);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty());
    assert!(said.starts_with("harness_join_check_invalid: "), "{said}");
    assert_eq!(said.matches("harness_join_check_invalid").count(), 1);
    for text in expected.iter().chain([&"input.json"]) {
        assert!(said.contains(text), "`{text}` is not said: {said}");
    }
}

fn write(folder: &Path, text: &str) {
    fs::write(folder.join("input.json"), text).unwrap();
}

/// A turn that is accepted, with one edit of its text.
fn turn(from: &str, to: &str) -> String {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/conformance/harness-typestate/bases/closed.json"
    );
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

#[test]
fn what_is_not_json_is_named_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "{\"evidence\": nothing}");
    refused(folder.path(), &["line 1 column 15"]);
    fs::write(folder.path().join("input.json"), [0xff, 0xfe, 0x00]).unwrap();
    refused(folder.path(), &["line 1 column 1"]);
}

#[test]
fn what_nests_too_deep_is_refused_in_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &"[".repeat(4_000_000));
    refused(folder.path(), &["recursion limit exceeded"]);
    let payload = format!("\"payload\": {}0{}", "[".repeat(200), "]".repeat(200));
    write(
        folder.path(),
        &turn("\"payload\": {\n          \"exit\": 0\n        }", &payload),
    );
    refused(folder.path(), &["recursion limit exceeded"]);
}

#[test]
fn a_gigabyte_is_refused_unread() {
    let folder = tempfile::tempdir().unwrap();
    let file = File::create(folder.path().join("input.json")).unwrap();
    // No byte of it is on the disk.
    file.set_len(1 << 30).unwrap();
    refused(folder.path(), &["1073741824 bytes", "256 MiB"]);
}

#[test]
fn a_missing_field_is_named_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &turn("\"modelRef\":", "\"model\":"));
    refused(
        folder.path(),
        &["evidence.callSpec.modelRef: is missing: must be a non-empty string"],
    );
}

#[test]
fn an_unknown_word_is_named_with_the_admitted_ones() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &turn("\"modelRef\":", "\"riskTier\": \"extreme\", \"modelRef\":"),
    );
    refused(
        folder.path(),
        &["evidence.callSpec.riskTier: must be one of low, moderate, high, not \"extreme\""],
    );
}

#[test]
fn a_refused_turn_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &turn(
            "\"toolName\": \"fetch\"",
            "\"toolName\": \"fetch\", \"colour\": 1",
        ),
    );
    let accepted = judged(folder.path(), LITTLE);
    let said = String::from_utf8_lossy(&accepted.stdout);
    assert_eq!(
        said,
        "join      closed\nmutation  ready\n\nignored field: evidence.toolRequests[].colour\n"
    );
    write(
        folder.path(),
        &turn(
            "\"disposition\": \"discarded\",",
            "\"disposition\": \"discarded\", \"x\": 0,",
        ),
    );
    assert_eq!(judged(folder.path(), LITTLE).status.code(), Some(0));
    write(
        folder.path(),
        &turn(
            "\"stopReason\": \"end_turn\"",
            "\"stopReason\": \"refusal\"",
        ),
    );
    let refused = judged(folder.path(), LITTLE);
    let said = String::from_utf8_lossy(&refused.stdout);
    assert_eq!(refused.status.code(), Some(0), "the verdict is data");
    for text in [
        "join      open: protocol.stop_reason_unhandled",
        "  - protocolState.stopReason: stop reason `refusal` is not handled",
        "  required: the turn stops by tool_use, pause_turn, max_tokens or end_turn",
    ] {
        assert!(said.contains(text), "{said}");
    }
}
