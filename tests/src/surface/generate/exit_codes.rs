//! The page of exit codes, from the constants that the binaries end with.

use super::super::text_of;
use crate::surface::cell;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "\
# Exit codes

<!-- Written by `mise run generate` from shared/kernel/src/policy/exit.rs and shared/cli/src/exit.rs. -->
";

/// What ends with the codes of a file.
const SOURCES: [(&str, &str); 2] = [
    (
        "`harness-coordinator` and `harness-worker`",
        "shared/kernel/src/policy/exit.rs",
    ),
    ("`premath`", "shared/cli/src/exit.rs"),
];

/// Returns the page.
pub(super) fn page(root: &Path) -> String {
    let mut page = HEAD.to_owned();
    for (who, source) in SOURCES {
        let _ = write!(page, "\n## {who}\n\n| code | meaning |\n|---|---|\n");
        for (code, meaning) in codes(&text_of(root, source)) {
            let _ = writeln!(page, "| {code} | {} |", cell(&meaning));
        }
    }
    page
}

/// Reads the documented constants of a file.
fn codes(source: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut text: Vec<&str> = Vec::new();
    for line in source.lines() {
        if let Some(more) = line.strip_prefix("/// ") {
            text.push(more);
            continue;
        }
        if let Some((_, value)) = line.split_once(": u8 = ") {
            found.push((value.trim_end_matches(';').to_owned(), text.join(" ")));
        }
        text.clear();
    }
    found
}

#[cfg(test)]
mod tests {
    #[test]
    fn documented_constants_are_read() {
        let read = super::codes(
            "//! X\n\n/// All is\n/// well.\npub const OK: u8 = 0;\n/// Y\nfn f() {}\n",
        );
        assert_eq!(read, [("0".to_owned(), "All is well.".to_owned())]);
    }
}
