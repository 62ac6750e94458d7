//! `ci-hygiene-check`: what is committed holds no machine's paths, no half
//! merge and no garbage, every task's command is there, and every dependency and
//! every public item of a library is used.

use super::task::tasks;
use super::{Fault, dependencies, files, text_of, visibility};
use std::path::Path;

/// The most bytes of a committed file.
const LARGEST: u64 = 512 * 1024;

/// Folders whose files are data of tests, byte for byte.
const DATA: [&str; 2] = ["tests/data/", "tests/conformance/"];

/// Words that a task's line may begin with beside those that are looked up.
const PLAIN: [&str; 6] = [
    "mkdir",
    "objcopy",
    "printf",
    "test",
    "target/ci-tools/bin/mdbook",
    "RUSTDOCFLAGS='-D",
];

/// Where people have their folders.
fn homes() -> [String; 3] {
    // In parts, so that this file does not hold what it looks for.
    ["home", "Users", "root"].map(|folder| format!("/{folder}/"))
}

/// Checks a checkout.
pub fn faults(root: &Path) -> Vec<Fault> {
    let names = files(root);
    let mut faults = Vec::new();
    let here = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    let mut paths = homes().to_vec();
    // A checkout right below the root has no path of a machine.
    if here.components().count() > 2 {
        paths.extend(here.to_str().map(str::to_owned));
    }
    for name in &names {
        let size = std::fs::metadata(root.join(name)).map_or(0, |meta| meta.len());
        if size > LARGEST {
            let detail = format!("{size} bytes are more than {LARGEST}");
            faults.push(Fault::at(name, 0, detail));
            continue;
        }
        let bytes = std::fs::read(root.join(name)).unwrap_or_default();
        if let Ok(text) = std::str::from_utf8(&bytes) {
            check(name, text, &paths, &mut faults);
        }
    }
    faults.extend(dependencies::faults(root, &names));
    faults.extend(visibility::faults(root, &names));
    check_tasks(root, &mut faults);
    check_readme(root, &mut faults);
    faults
}

fn check(name: &str, text: &str, paths: &[String], faults: &mut Vec<Fault>) {
    let is_data = DATA.iter().any(|folder| name.starts_with(folder));
    // A carriage return is white space at the end.
    for (number, line) in text.split('\n').enumerate() {
        let mut fault = |detail: &str| faults.push(Fault::at(name, number + 1, detail));
        let marks = ["<<<<<<< ", ">>>>>>> "];
        if marks.iter().any(|mark| line.starts_with(mark)) {
            fault("a conflict marker");
        }
        if is_data {
            continue;
        }
        if let Some(path) = paths.iter().find(|path| names_path(line, path)) {
            fault(&format!("a machine's path: {path}"));
        }
        if line.trim_end() != line {
            fault("white space at the end of the line");
        }
    }
    if is_data || text.is_empty() {
        return;
    }
    if !text.ends_with('\n') {
        faults.push(Fault::at(name, 0, "no line end at the end"));
    } else if text.ends_with("\n\n") {
        faults.push(Fault::at(name, 0, "empty lines at the end"));
    }
}

/// Returns whether a line has a path, and not only as a part of another.
fn names_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line.get(..at).and_then(|head| head.chars().next_back());
        let after = line
            .get(at + path.len()..)
            .and_then(|rest| rest.chars().next());
        let part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '~' | '>' | '}');
        !before.is_some_and(part) && after.is_none_or(|c| c.is_alphanumeric() || c == '/')
    })
}

fn check_tasks(root: &Path, faults: &mut Vec<Fault>) {
    let manifests: String = files(root)
        .iter()
        .filter(|name| name.ends_with("Cargo.toml"))
        .map(|name| text_of(root, name))
        .collect();
    let file = "mise.toml";
    for task in tasks(&text_of(root, file)) {
        if task.run.is_empty() {
            let detail = format!("task {} runs nothing", task.name);
            faults.push(Fault::at(file, task.line, detail));
        }
        for line in &task.run {
            if let Some(missing) = missing(root, &manifests, line) {
                let detail = format!("task {}: {missing}", task.name);
                faults.push(Fault::at(file, task.line, detail));
            }
        }
    }
}

/// Reports what a task's line needs and is not there.
fn missing(root: &Path, manifests: &str, line: &str) -> Option<String> {
    // A value that a command gives begins with that command.
    let line = line.split_once("=$(").map_or(line, |(_, command)| command);
    let words: Vec<&str> = line.split_whitespace().collect();
    let first = words.iter().position(|word| !is_assignment(word));
    let words = first.and_then(|at| words.get(at..)).unwrap_or_default();
    let named = |flags: &[&str]| {
        let at = words.iter().position(|word| flags.contains(word))?;
        words.get(at + 1).copied()
    };
    match *words.first()? {
        "cargo" => {
            let own = words.iter().take_while(|word| **word != "--").count();
            let name = |flags: &[&str]| named(flags).filter(|_| own > 0);
            [name(&["--bin"]), name(&["-p", "--package"])]
                .into_iter()
                .flatten()
                .find(|name| !manifests.contains(&format!("name = \"{name}\"")))
                .map(|name| format!("the workspace has no `{name}`"))
        }
        "bash" | "sh" | "python3" => words
            .get(1)
            .filter(|path| !root.join(path).is_file())
            .map(|path| format!("there is no {path}")),
        word if PLAIN.contains(&word) => None,
        word if root.join(word).is_file() => None,
        word => Some(format!("nothing is known about the command `{word}`")),
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
    }) || word == "warnings'"
}

/// The commands that the README begins with are those that `.ci/run` runs.
fn check_readme(root: &Path, faults: &mut Vec<Fault>) {
    let script = text_of(root, ".ci/run");
    let readme = text_of(root, "README.md");
    let fence = readme.split("```sh\n").nth(1).unwrap_or_default();
    let commands: Vec<&str> = fence
        .split("```")
        .next()
        .unwrap_or_default()
        .lines()
        .collect();
    if commands.is_empty() {
        faults.push(Fault::at("README.md", 0, "it begins with no command"));
    }
    for command in commands {
        if !script.contains(&format!("'{command}'")) {
            let detail = format!("it does not run the README's `{command}`");
            faults.push(Fault::at(".ci/run", 0, detail));
        }
    }
}
