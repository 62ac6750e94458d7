//! The blocks of a page.

/// What a block is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Commands.
    Sh,
    /// Commands after `$ `, with their output.
    Console,
    /// What the block above it prints.
    Output,
    /// Keys for `harness.toml`.
    Apply,
    /// Commands that a reader does not see.
    Setup,
    /// Anything else.
    Other,
}

/// One block of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// What it is.
    pub kind: Kind,
    /// The line of its opening, from 1.
    pub line: usize,
    /// Its lines.
    pub lines: Vec<String>,
    /// The exit code that its last failing command has.
    pub exit: i32,
    /// Whether it runs only where the sandbox mode `namespaces` works.
    pub needs_namespaces: bool,
    /// Why it is not run.
    pub no_run: Option<String>,
    /// What is wrong with its info string.
    pub fault: Option<String>,
}

impl Block {
    /// Returns whether the block has commands for a reader.
    pub fn has_commands(&self) -> bool {
        matches!(self.kind, Kind::Sh | Kind::Console)
    }
}

/// Reads the blocks of a page.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open: Option<Block> = None;
    // Whether only empty lines are between here and a block of commands.
    let mut below_commands = false;
    for (index, line) in text.lines().enumerate() {
        let ends = |block: &Block| match block.kind {
            Kind::Setup => line.trim() == "-->",
            _ => line.trim_end() == "```",
        };
        match &mut open {
            Some(block) if ends(block) => {
                below_commands = block.kind == Kind::Sh && block.no_run.is_none();
                found.extend(open.take());
            }
            Some(block) => block.lines.push(line.to_owned()),
            None if line.starts_with("```") => {
                let mut block = read_info(line.trim_start_matches('`'), index + 1);
                if block.kind == Kind::Output && !below_commands {
                    block.kind = Kind::Other;
                }
                open = Some(block);
            }
            None if line.trim() == "<!-- setup" => {
                let mut block = read_info("", index + 1);
                block.kind = Kind::Setup;
                open = Some(block);
            }
            None => below_commands &= line.trim().is_empty(),
        }
    }
    if let Some(mut block) = open {
        block.fault = Some("the block has no end".to_owned());
        found.push(block);
    }
    found
}

fn read_info(info: &str, line: usize) -> Block {
    let (language, rest) = info.split_once(',').unwrap_or((info, ""));
    let mut block = Block {
        kind: match language {
            "sh" => Kind::Sh,
            "console" => Kind::Console,
            "text" => Kind::Output,
            _ => Kind::Other,
        },
        line,
        lines: Vec::new(),
        exit: 0,
        needs_namespaces: false,
        no_run: None,
        fault: None,
    };
    let reason = rest.strip_prefix("no-run=\"");
    if let Some(reason) = reason.and_then(|rest| rest.strip_suffix('"')) {
        block.no_run = Some(reason.to_owned());
    } else {
        for word in rest.split(',').filter(|word| !word.is_empty()) {
            read_word(word, language, &mut block);
        }
    }
    if block.no_run.as_deref() == Some("") {
        block.fault = Some("no-run needs a reason".to_owned());
    }
    block
}

fn read_word(word: &str, language: &str, block: &mut Block) {
    let code = word.strip_prefix("exit=").map(str::parse);
    match (word, language, code) {
        (_, _, Some(Ok(code))) => block.exit = code,
        ("needs-namespaces", _, _) => block.needs_namespaces = true,
        ("apply", "toml", _) => block.kind = Kind::Apply,
        _ => block.fault = Some(format!("`{word}` has no meaning after `{language}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_into_its_blocks() {
        let page = "<!-- setup\nmkdir x\n-->\n```sh\nls\n```\n\n```text\nx\n```\n\nText\n\n\
                    ```text\nno output\n```\n```sh,no-run=\"needs an account\"\na\n```\n\n\
                    ```text\nnor this\n```\n```console,exit=1\n$ false\n```\n```toml,apply\n[a]\n```\n";
        let kinds: Vec<Kind> = blocks(page)
            .iter()
            .map(|block| block.kind.clone())
            .collect();
        use Kind::{Apply, Console, Other, Output, Setup, Sh};
        assert_eq!(kinds, [Setup, Sh, Output, Other, Sh, Other, Console, Apply]);
        let read = blocks(page);
        assert_eq!(read[4].no_run.as_deref(), Some("needs an account"));
        assert_eq!(read[6].exit, 1);
        assert_eq!(read[1].line, 4);
        assert_eq!(read[1].lines, ["ls"]);
    }

    #[test]
    fn an_info_string_that_is_not_known_is_a_fault() {
        for info in ["sh,norun", "sh,no-run=\"\"", "sh,exit=x", "toml,run"] {
            assert!(read_info(info, 1).fault.is_some(), "{info}");
        }
        assert_eq!(
            blocks("```sh\nx\n")[0].fault.as_deref(),
            Some("the block has no end")
        );
    }
}
