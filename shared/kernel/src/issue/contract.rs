//! What an issue must state before it is worked on: when it counts as done, and
//! which command shows that (HARNESS-RUNTIME 9, `issue-graph-check`).

/// Words that a verification command begins with.
const COMMANDS: [&str; 18] = [
    "mise run",
    "python3",
    "cargo",
    "premath",
    "sh",
    "bash",
    "nix develop -c",
    "uv run",
    "pytest",
    "make",
    "just",
    "npm",
    "npx",
    "pnpm",
    "yarn",
    "go",
    "ctest",
    "git",
];

/// How the title of an epic begins.
const EPIC: &str = "[EPIC]";

/// Returns whether a title says that the issue is an epic.
pub fn is_titled_epic(title: &str) -> bool {
    title.trim().starts_with(EPIC)
}

/// Returns whether a text has a line that begins an acceptance section:
/// `Acceptance:` or `Acceptance criteria:`, in any letter case. A heading of
/// Markdown counts too.
pub fn has_acceptance_section(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim().to_ascii_lowercase();
        let heading = line.starts_with('#');
        let line = line.trim_start_matches(['#', '*', ' ']);
        line.strip_prefix("acceptance").is_some_and(|rest| {
            let rest = rest.trim_start();
            let rest = rest.strip_prefix("criteria").unwrap_or(rest);
            let rest = rest.trim_matches([' ', '*']);
            rest.starts_with(':') || heading && rest.is_empty()
        })
    })
}

/// Returns whether a text names a command that verifies: a line that is one,
/// perhaps in a list, or one between backticks.
pub fn has_verification_command(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim();
        let item = line.strip_prefix(['-', '*']).unwrap_or(line).trim_start();
        is_command(item) || line.split('`').skip(1).step_by(2).any(is_command)
    })
}

/// Returns whether a text begins like a command.
pub(super) fn is_command(text: &str) -> bool {
    let text = text.trim().to_ascii_lowercase();
    let is_own = text.starts_with("./") && text.len() > 2;
    is_own
        || COMMANDS.iter().any(|word| {
            text.strip_prefix(word)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '`']))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acceptance_section_is_a_line_of_its_own() {
        for (text, expected) in [
            ("Acceptance:", true),
            ("x\n  acceptance criteria : it works\n", true),
            ("## Acceptance\n- a", true),
            ("**Acceptance criteria:**", true),
            ("Acceptance", false),
            ("the acceptance: none", false),
            ("Acceptances: x", false),
            ("", false),
        ] {
            assert_eq!(has_acceptance_section(text), expected, "{text}");
        }
    }

    #[test]
    fn a_verification_command_is_a_line_or_is_between_backticks() {
        for (text, expected) in [
            ("cargo test", true),
            ("- `mise run test`", true),
            ("* ./verify.sh --all", true),
            ("It is done when `npm test` passes.", true),
            ("It is done when cargo is.", false),
            ("`cargoes`", false),
            ("shall be done", false),
            ("`src/a.rs` changes", false),
            ("", false),
        ] {
            assert_eq!(has_verification_command(text), expected, "{text}");
        }
    }

    #[test]
    fn an_epic_is_titled_at_the_beginning() {
        assert!(is_titled_epic("[EPIC] x"));
        assert!(!is_titled_epic("x [EPIC]"));
    }
}
