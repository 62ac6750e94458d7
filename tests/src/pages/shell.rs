//! The blocks of a page, run in one shell.

use super::{Block, Kind, blocks, matches, renewed};
use crate::{binaries, command};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

/// The commands of one block, or one command of a console.
#[derive(Debug)]
struct Part {
    /// The block's place in the page.
    block: usize,
    /// The line of the page.
    line: usize,
    script: String,
    /// What the page shows of the output.
    shown: Option<String>,
    exit: i32,
}

/// The results of the blocks of a page.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How many blocks of commands were run.
    pub run: usize,
    /// The blocks that were not run: their line and why.
    pub not_run: Vec<(usize, String)>,
    /// What is wrong, with the line of the page.
    pub faults: Vec<String>,
    /// The page with its current output, where that is not what it shows.
    pub current: Option<String>,
}

/// A run of a page in a folder of its own.
#[derive(Debug)]
pub struct PageRun {
    text: String,
    blocks: Vec<Block>,
    folder: TempDir,
}

impl PageRun {
    /// Reads a page, and makes the folder that it runs in.
    pub fn new(page: &Path) -> Self {
        let text = fs::read_to_string(page).expect("a page can be read");
        let folder = tempfile::Builder::new()
            .prefix("premath-page-")
            .tempdir()
            .expect("a temporary folder can be made");
        Self {
            blocks: blocks(&text),
            text,
            folder,
        }
    }

    /// Runs the page.
    pub fn outcome(mut self) -> Outcome {
        let mut outcome = Outcome::default();
        for block in &mut self.blocks {
            if block.needs_namespaces && !namespaces_work() {
                block.no_run = Some("the sandbox mode `namespaces` does not work here".to_owned());
            }
            if let Some(fault) = &block.fault {
                outcome.faults.push(format!("line {}: {fault}", block.line));
            }
            match &block.no_run {
                Some(reason) => outcome.not_run.push((block.line, reason.clone())),
                None if block.has_commands() => outcome.run += 1,
                None => {}
            }
        }
        let parts = self.parts();
        if parts.is_empty() {
            return outcome;
        }
        let results = self.folder.path().join("results");
        fs::create_dir(&results).expect("a folder can be made");
        self.shell(&parts, &results);
        let mut printed = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let (code, output) = self.result(&results, index);
            if code != Some(part.exit) {
                let code = code.map_or("no exit code".to_owned(), |code| format!("exit {code}"));
                outcome.faults.push(format!(
                    "line {}: {code}, expected {}:\n{}\n{output}",
                    part.line, part.exit, part.script
                ));
            }
            if let Some(shown) = &part.shown
                && !matches(shown, &output)
            {
                outcome.faults.push(format!(
                    "line {}: the output is another:\n{}\n--- shown\n{shown}\n--- printed\n{output}",
                    part.line, part.script
                ));
                printed.push((index, output));
            }
        }
        if !printed.is_empty() {
            outcome.current = Some(self.written_again(&parts, &printed));
        }
        outcome
    }

    fn parts(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for (index, block) in self.blocks.iter().enumerate() {
            let part = |script: String| Part {
                block: index,
                line: block.line,
                script,
                shown: None,
                exit: block.exit,
            };
            match block.kind {
                _ if block.no_run.is_some() => {}
                Kind::Sh | Kind::Setup => parts.push(part(block.lines.join("\n"))),
                Kind::Apply => parts.push(part(apply(&block.lines))),
                Kind::Output => {
                    if let Some(above) = parts.last_mut() {
                        above.shown = Some(block.lines.join("\n"));
                        above.block = index;
                    }
                }
                Kind::Console => {
                    let commands = console(&block.lines);
                    let last = commands.len().saturating_sub(1);
                    for (at, (script, shown)) in commands.into_iter().enumerate() {
                        let exit = if at == last { block.exit } else { 0 };
                        parts.push(Part {
                            shown: Some(shown.join("\n")),
                            exit,
                            ..part(script.join("\n"))
                        });
                    }
                }
                Kind::Other => {}
            }
        }
        parts
    }

    /// Runs the parts in one shell, so that folders and variables carry on.
    fn shell(&self, parts: &[Part], results: &Path) {
        let mut script = String::new();
        for (index, part) in parts.iter().enumerate() {
            let out = results.join(index.to_string());
            let _ = write!(
                script,
                "page_code=0\ntrap 'page_code=$?' ERR\n{{\n{}\n}} >'{out}' 2>&1 </dev/null\n\
                 trap - ERR\necho \"$page_code\" >'{out}.code'\n",
                part.script,
                out = out.display()
            );
        }
        let file = results.join("script");
        fs::write(&file, script).expect("a script can be written");
        let home = self.folder.path().join("home");
        let work = self.work();
        for folder in [&home, &work] {
            fs::create_dir(folder).expect("a folder can be made");
        }
        let identity =
            "[user]\nname = You\nemail = you@example.com\n[init]\ndefaultBranch = main\n";
        fs::write(home.join(".gitconfig"), identity).expect("a file can be written");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = command("bash");
        shell
            .arg(&file)
            .env_clear()
            .env("HOME", &home)
            .env("PATH", format!("{}:{path}", binaries().folder().display()))
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC")
            .env("SOURCES", crate::workspace())
            .current_dir(&work);
        let ended = shell.output().expect("bash can be started");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(said.is_empty(), "the page's shell: {said}");
    }

    fn work(&self) -> PathBuf {
        let folder = fs::canonicalize(self.folder.path()).expect("the folder is there");
        folder.join("work")
    }

    fn result(&self, results: &Path, index: usize) -> (Option<i32>, String) {
        let out = results.join(index.to_string());
        let code = fs::read_to_string(out.with_extension("code")).unwrap_or_default();
        let bytes = fs::read(&out).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let text = text.replace(&self.work().display().to_string(), "DIR");
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        (
            code.trim().parse().ok(),
            lines.join("\n").trim_end().to_owned(),
        )
    }

    /// Returns the page with the current output in place of what it shows.
    fn written_again(&self, parts: &[Part], printed: &[(usize, String)]) -> String {
        let mut lines: Vec<String> = self.text.lines().map(str::to_owned).collect();
        for (at, block) in self.blocks.iter().enumerate().rev() {
            let of_block: Vec<usize> = (0..parts.len()).filter(|p| parts[*p].block == at).collect();
            let output = |part: usize| printed.iter().find(|(index, _)| *index == part);
            if !of_block.iter().any(|part| output(*part).is_some()) {
                continue;
            }
            let mut anew: Vec<String> = Vec::new();
            for part in of_block {
                let shown = parts[part].shown.clone().unwrap_or_default();
                let text = match output(part) {
                    Some((_, printed)) => renewed(&shown, printed),
                    None => shown,
                };
                if block.kind == Kind::Console {
                    let script = parts[part].script.lines().enumerate();
                    anew.extend(script.map(|(n, line)| match n {
                        0 => format!("$ {line}"),
                        _ => format!("> {line}"),
                    }));
                }
                anew.extend(text.lines().map(str::to_owned));
            }
            let from = block.line;
            lines.splice(from..from + block.lines.len(), anew);
        }
        lines.join("\n") + "\n"
    }
}

/// Returns whether commands are confined by namespaces here.
fn namespaces_work() -> bool {
    static WORK: OnceLock<bool> = OnceLock::new();
    *WORK.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let premath = |words: &[&str]| {
            let mut run = command(&binaries().premath);
            let output = run.args(words).current_dir(folder.path()).output();
            String::from_utf8_lossy(&output.expect("premath can be started").stdout).into_owned()
        };
        premath(&["init"]);
        premath(&["sandbox", "explain"]).starts_with("commands are confined by namespaces")
    })
}

/// Reads a console into commands and what each prints.
fn console(lines: &[String]) -> Vec<(Vec<String>, Vec<String>)> {
    let mut commands: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for line in lines {
        if let Some(first) = line.strip_prefix("$ ") {
            commands.push((vec![first.to_owned()], Vec::new()));
        } else if let Some((script, shown)) = commands.last_mut() {
            match line.strip_prefix("> ") {
                Some(more) if shown.is_empty() => script.push(more.to_owned()),
                _ => shown.push(line.clone()),
            }
        }
    }
    // An empty line before a prompt is for the eye.
    let shorten = |(script, mut shown): (Vec<String>, Vec<String>)| {
        while shown.last().is_some_and(String::is_empty) {
            shown.pop();
        }
        (script, shown)
    };
    commands.into_iter().map(shorten).collect()
}

/// Makes the commands that put keys into `harness.toml`, below their tables.
fn apply(lines: &[String]) -> String {
    let mut script = String::new();
    let mut table = "";
    for line in lines.iter().filter(|line| !line.trim().is_empty()) {
        if line.starts_with('[') {
            table = line.split(']').next().unwrap_or_default();
            let _ = writeln!(script, "grep -qF '{table}]' harness.toml");
        } else if !line.starts_with('#') {
            let key = line.replace('\'', "'\\''");
            let table = table.trim_start_matches('[');
            let _ = writeln!(
                script,
                "key='{key}' awk '{{ print }} /^\\[{table}\\]/ {{ print ENVIRON[\"key\"] }}' \
                 harness.toml >harness.toml.new && mv harness.toml.new harness.toml"
            );
        }
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_console_is_commands_with_their_output() {
        let lines = ["$ a \\", "> b", "x", "", "$ c"].map(str::to_owned);
        let read = console(&lines);
        assert_eq!(read.len(), 2);
        assert_eq!(read[0].0, ["a \\", "b"]);
        assert_eq!(read[0].1, ["x"]);
        assert!(read[1].1.is_empty());
    }
}
