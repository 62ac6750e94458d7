//! The files of a repository that a command line itself names: the scripts that
//! it runs, and what its build tool reads.
//!
//! This reads a shell command the way a person skims it. It sees scripts in the
//! place of a program and the script of an interpreter. It does not see what a
//! script reads in turn: `[protect] paths` names such files.

use std::collections::BTreeSet;

/// What a command line names of a repository, by paths from its root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandFiles {
    /// Files that are there and decide what the command does.
    pub deciding: BTreeSet<String>,
    /// Files that would decide but are not there, or hold much else beside
    /// what the command runs, as `package.json` does.
    pub touching: BTreeSet<String>,
}

/// How deep `sh -c` within `sh -c` is read.
const DEPTH: usize = 4;

/// Programs that run the file that they are given.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "node", "deno", "bun", "ruby", "perl",
    "php", "pwsh", "Rscript", "lua", "tclsh", ".", "source",
];

/// Words that come before the program that counts.
const PREFIXES: &[&str] = &[
    "exec", "env", "time", "nice", "nohup", "command", "builtin", "if", "then", "else", "elif",
    "while", "until", "do", "!", "{", "timeout", "sudo", "setsid", "stdbuf", "xargs", "eval",
];

/// Programs that read a file by a name of their own.
const BUILD_TOOLS: &[(&str, &[&str])] = &[
    ("make", &["GNUmakefile", "makefile", "Makefile"]),
    ("gmake", &["GNUmakefile", "makefile", "Makefile"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("task", &["Taskfile.yml", "Taskfile.yaml"]),
    ("rake", &["Rakefile"]),
    ("nox", &["noxfile.py"]),
    ("tox", &["tox.ini"]),
    ("gradlew", &["build.gradle", "build.gradle.kts"]),
];

/// Programs that run scripts of `package.json`.
const NODE_TOOLS: &[&str] = &["npm", "yarn", "pnpm", "bun"];

/// Options of interpreters that take the next word.
const VALUE_OPTIONS: &[&str] = &["-r", "--require", "--import", "--loader", "-W", "-X", "-I"];

/// Returns the files that a command names; `exists` returns whether the
/// repository has a file at a path.
pub fn files_of(command: &str, exists: impl Fn(&str) -> bool) -> CommandFiles {
    let mut reader = Reader {
        exists: &exists,
        found: CommandFiles::default(),
        folder: String::new(),
    };
    reader.read(command, 0);
    reader.found
}

struct Reader<'a> {
    exists: &'a dyn Fn(&str) -> bool,
    found: CommandFiles,
    /// Where `cd` led, from the root.
    folder: String,
}

impl Reader<'_> {
    fn read(&mut self, command: &str, depth: usize) {
        if depth > DEPTH {
            return;
        }
        for words in simple_commands(command) {
            self.simple(&words, depth);
        }
    }

    /// Reads one program and its arguments.
    fn simple(&mut self, words: &[String], depth: usize) {
        let mut words = words;
        while let Some((first, rest)) = words.split_first() {
            let is_prefix = PREFIXES.contains(&base_name(first))
                || first.starts_with('-')
                || is_quantity(first)
                || is_assignment(first);
            if !is_prefix {
                break;
            }
            words = rest;
        }
        let Some((first, arguments)) = words.split_first() else {
            return;
        };
        let program = base_name(first);
        if first.contains('/') {
            self.script(first);
        }
        if program == "cd" || program == "pushd" {
            if let Some(folder) = arguments.first().and_then(|word| self.resolve(word)) {
                self.folder = folder;
            }
        } else if is_interpreter(program) {
            self.interpreter(program, arguments, depth);
        } else {
            self.build_tool(program, arguments);
        }
    }

    fn interpreter(&mut self, program: &str, arguments: &[String], depth: usize) {
        let mut arguments = arguments.iter();
        while let Some(word) = arguments.next() {
            let is_shell = program.ends_with("sh");
            if is_shell && is_short_option(word, 'c') {
                let next = arguments.next().cloned();
                self.read(&next.unwrap_or_default(), depth + 1);
                return;
            }
            if word == "-m" && program.starts_with("python") {
                let module = arguments.next().map(|name| name.replace('.', "/"));
                for tail in [".py", "/__main__.py"] {
                    self.script_where_it_is(&format!("{}{tail}", module.as_deref().unwrap_or("-")));
                }
                return;
            }
            if is_shell && (is_short_option(word, 'o') || is_short_option(word, 'O')) {
                // The name of an option, as in `-euo pipefail`.
                let _ = arguments.next();
            } else if VALUE_OPTIONS.contains(&&**word) {
                if let Some(value) = arguments.next() {
                    self.script_where_it_is(value);
                }
            } else if let Some((_, value)) = word.split_once('=').filter(|_| word.starts_with('-'))
            {
                self.script_where_it_is(value);
            } else if !word.starts_with('-') && word != "run" {
                self.script(word);
                return;
            }
        }
    }

    fn build_tool(&mut self, program: &str, arguments: &[String]) {
        let mut folder = String::new();
        let mut named = Vec::new();
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            let long = word.split_once('=');
            match word.as_str() {
                "-C" | "--directory" | "--prefix" | "--dir" | "--cwd" => {
                    folder = rest.next().cloned().unwrap_or_default();
                }
                "-f" | "--file" | "--makefile" | "--justfile" => named.extend(rest.next().cloned()),
                _ => match long {
                    Some(("--directory" | "--prefix" | "--dir" | "--cwd", value)) => {
                        value.clone_into(&mut folder);
                    }
                    Some(("--file" | "--makefile" | "--justfile", value)) => {
                        named.push(value.to_owned());
                    }
                    _ => {}
                },
            }
        }
        let within = |name: &str| match folder.as_str() {
            "" => name.to_owned(),
            folder => format!("{folder}/{name}"),
        };
        if NODE_TOOLS.contains(&program)
            && let Some(path) = self.resolve(&within("package.json"))
        {
            self.found.touching.insert(path);
        }
        let Some((_, names)) = BUILD_TOOLS.iter().find(|(tool, _)| *tool == program) else {
            return;
        };
        if named.is_empty() {
            for name in *names {
                self.script(&within(name));
            }
        }
        for name in named {
            self.script(&within(&name));
        }
    }

    /// Takes a file that decides, or would if it were there.
    fn script(&mut self, word: &str) {
        if let Some(path) = self.resolve(word) {
            if (self.exists)(&path) {
                self.found.deciding.insert(path);
            } else {
                self.found.touching.insert(path);
            }
        }
    }

    fn script_where_it_is(&mut self, word: &str) {
        if let Some(path) = self.resolve(word)
            && (self.exists)(&path)
        {
            self.found.deciding.insert(path);
        }
    }

    /// Returns a word as a path from the root; `None` where it leads out of the
    /// repository or depends on a variable.
    fn resolve(&self, word: &str) -> Option<String> {
        let roots = ["$PREMATH_WORKTREE/", "${PREMATH_WORKTREE}/"];
        let from_root = roots.iter().find_map(|root| word.strip_prefix(root));
        let here = ["$PWD/", "${PWD}/"];
        let here = here.iter().find_map(|root| word.strip_prefix(root));
        let (base, word) = match from_root {
            Some(rest) => ("", rest),
            None => (self.folder.as_str(), here.unwrap_or(word)),
        };
        if word.starts_with(['/', '~', '$']) || word.contains(['$', '*', '`']) {
            return None;
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in base.split('/').chain(word.split('/')) {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()?),
                part => parts.push(part),
            }
        }
        (!parts.is_empty()).then(|| parts.join("/"))
    }
}

fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn is_interpreter(program: &str) -> bool {
    let numbered = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&program) || matches!(numbered, "python" | "pypy" | "ruby" | "perl")
}

/// Returns whether a word is a group of short options with that one in it.
fn is_short_option(word: &str, option: char) -> bool {
    word.strip_prefix('-')
        .is_some_and(|group| !group.starts_with('-') && group.contains(option))
}

/// Returns whether a word is a number or a duration, as `timeout` and `nice`
/// take.
fn is_quantity(word: &str) -> bool {
    let number = word.trim_end_matches(['s', 'm', 'h', 'd']);
    !number.is_empty()
        && number
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Splits a shell command into its simple commands, quotes taken off. What a
/// command reads by `<` counts among its words, what it writes by `>` does not.
fn simple_commands(command: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word = String::new();
    let mut quote = None;
    let mut skip_next = false;
    let mut chars = command.chars();
    let end_word = |word: &mut String, commands: &mut Vec<Vec<String>>, skip: &mut bool| {
        if word.is_empty() {
            return;
        }
        let word = std::mem::take(word);
        if !std::mem::take(skip)
            && let Some(last) = commands.last_mut()
        {
            last.push(word);
        }
    };
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None | Some('"'), '\\') => word.extend(chars.next()),
            (Some(_), c) => word.push(c),
            (None, '<' | '>') => {
                // The descriptor of a redirection, as in `2>`, is not a word.
                if word.bytes().all(|byte| byte.is_ascii_digit()) {
                    word.clear();
                }
                end_word(&mut word, &mut commands, &mut skip_next);
                skip_next = c == '>';
            }
            (None, ';' | '|' | '&' | '(' | ')' | '\n' | '`') => {
                if skip_next && c == '&' {
                    continue;
                }
                end_word(&mut word, &mut commands, &mut skip_next);
                skip_next = false;
                commands.push(Vec::new());
            }
            (None, '#') if word.is_empty() => {
                for c in chars.by_ref() {
                    if c == '\n' {
                        break;
                    }
                }
                commands.push(Vec::new());
            }
            (None, c) if c.is_whitespace() => {
                end_word(&mut word, &mut commands, &mut skip_next);
            }
            (None, c) => word.push(c),
        }
    }
    end_word(&mut word, &mut commands, &mut skip_next);
    commands.retain(|words| !words.is_empty());
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    const THERE: &[&str] = &[
        "verify.sh",
        "ci/run",
        "ci/verify.sh",
        "Makefile",
        "sub/Makefile",
        "justfile",
        "check.py",
        "tests/run.py",
        "tools/ci/__main__.py",
        "setup.js",
        "other.mk",
        "package.json",
        "work.txt",
        "sub/verify.sh",
    ];

    fn deciding(command: &str) -> Vec<String> {
        let files = files_of(command, |path| THERE.contains(&path));
        files.deciding.into_iter().collect()
    }

    #[test]
    fn scripts_that_a_command_names_are_found() {
        for (command, expected) in [
            ("./verify.sh", &["verify.sh"][..]),
            ("ci/run --all", &["ci/run"]),
            ("sh verify.sh work.txt", &["verify.sh"]),
            ("bash -euo pipefail ci/verify.sh", &["ci/verify.sh"]),
            ("bash -c './verify.sh && make'", &["Makefile", "verify.sh"]),
            ("sh < verify.sh", &["verify.sh"]),
            ("exec env A=b nice ./ci/run", &["ci/run"]),
            ("CI=1 timeout -k 5 30 sh verify.sh", &["verify.sh"]),
            ("python3.12 -W error check.py", &["check.py"]),
            ("python -m tests.run", &["tests/run.py"]),
            ("python3 -m tools.ci", &["tools/ci/__main__.py"]),
            ("python -m pytest work.txt", &[]),
            ("node --require ./setup.js check.js", &["setup.js"]),
            ("node --import=./setup.js check.js", &["setup.js"]),
            ("make test", &["Makefile"]),
            ("make -C sub test", &["sub/Makefile"]),
            ("make --directory=sub", &["sub/Makefile"]),
            ("make -f other.mk", &["other.mk"]),
            ("just check", &["justfile"]),
            ("cd sub && ./verify.sh", &["sub/verify.sh"]),
            ("cd sub; sh ../verify.sh", &["verify.sh"]),
            ("if test -f work.txt; then sh verify.sh; fi", &["verify.sh"]),
            ("out=$(./verify.sh) || exit 1", &["verify.sh"]),
            ("\"$PREMATH_WORKTREE\"/ci/run", &["ci/run"]),
            ("! sh 'verify.sh' 2>&1 > work.txt", &["verify.sh"]),
            (". ./verify.sh", &["verify.sh"]),
            ("# sh verify.sh\nmake", &["Makefile"]),
        ] {
            assert_eq!(deciding(command), expected, "{command}");
        }
    }

    #[test]
    fn what_a_command_only_looks_at_is_none_of_them() {
        for command in [
            "test -f work.txt",
            "grep -q done work.txt",
            "cat work.txt | sort",
            "cargo test --quiet",
            "/bin/sh /etc/verify.sh",
            "sh ../verify.sh",
            "sh $DIR/verify.sh",
            "echo verify.sh > work.txt",
            "cmp ci/run work.txt",
            "",
            "'",
            "cd ../.. && sh verify.sh; true",
        ] {
            let expected: &[&str] = match command {
                // A folder outside cannot be followed: the script of that name
                // counts where it would be without the `cd`.
                "cd ../.. && sh verify.sh; true" => &["verify.sh"],
                _ => &[],
            };
            assert_eq!(deciding(command), expected, "{command}");
        }
    }

    #[test]
    fn what_is_not_there_or_holds_more_is_only_touched() {
        let files = files_of("npm test && sh absent.sh && make", |_| false);
        assert!(files.deciding.is_empty());
        for path in ["package.json", "absent.sh", "Makefile"] {
            assert!(files.touching.contains(path), "{path}");
        }
        let files = files_of("pnpm --dir web test", |_| true);
        assert_eq!(
            files.touching.into_iter().collect::<Vec<_>>(),
            ["web/package.json"]
        );
    }

    #[test]
    fn nested_shells_end() {
        let mut command = "sh verify.sh".to_owned();
        for _ in 0..8 {
            command = format!("sh -c {command:?}");
        }
        assert!(deciding(&command).is_empty());
    }
}
