//! A first batch of one's own with a real agent, by the commands of the README.

use premath_evidence::Agent;
use premath_tests::agents::{Installed, Profile, missing};
use premath_tests::model::{Journal, ModelServer, Scripts};
use premath_tests::{PATIENCE, Scratch, binaries, processes_in, skipped, workspace};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// The heading above the commands.
const HEADING: &str = "## Your own repository in five commands";

/// The most commands that a first batch may take.
const COMMANDS_MAX: usize = 10;

/// Returns the commands of the first block after the heading, as they are typed.
fn commands() -> Vec<String> {
    let readme = fs::read_to_string(workspace().join("README.md")).unwrap();
    let (_, section) = readme.split_once(HEADING).expect("the heading");
    let (_, block) = section.split_once("```sh\n").expect("a block");
    let (block, _) = block.split_once("```").expect("its end");
    block.lines().map(str::to_owned).collect()
}

/// A project that `cargo test` tests, with one commit.
fn project(scratch: &Scratch) -> PathBuf {
    let root = scratch.folder().join("calculator");
    fs::create_dir_all(root.join("src")).unwrap();
    let manifest = "[package]\nname = \"calculator\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    fs::write(root.join("Cargo.toml"), manifest).unwrap();
    fs::write(root.join(".gitignore"), "/target\n/Cargo.lock\n").unwrap();
    fs::write(root.join("src/lib.rs"), "pub fn one() -> u32 { 1 }\n").unwrap();
    sh(
        scratch,
        &root,
        "git init --quiet && git add . && git commit --quiet -m start",
    )
    .exits(0);
    root
}

/// Lets steps reach the model server, the provider of the agent in this test.
fn allow(file: &Path, host: &str) {
    let text = fs::read_to_string(file).unwrap();
    let (key, set) = (
        "#work = \"public\"",
        format!("work = \"allow\"\nallow = [{host:?}]"),
    );
    assert_eq!(text.matches(key).count(), 1);
    fs::write(file, text.replace(key, &set)).unwrap();
}

fn sh(scratch: &Scratch, root: &Path, line: &str) -> premath_tests::Ended {
    let run = scratch.run(Path::new("/bin/sh")).args(["-c", line]);
    run.within(root).end()
}

/// The folder of the toolchain: rustup finds none in the home of the test.
fn toolchain() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO")).parent()?.parent()?;
    root.join("bin/rustc").exists().then(|| root.to_path_buf())
}

/// What the model answers: a function and its test.
fn scripts(scratch: &Scratch) -> Scripts {
    let scripts = scratch.folder().join("scripts");
    fs::create_dir_all(&scripts).unwrap();
    let script = json!({"about": "A function and its test.", "turns": [
        {"answer": {"calls": [{"shell": "ls src"}]}},
        {"answer": {"calls": [{"write": {"path": "src/line.rs", "content":
            "pub fn line() -> u32 { 7 }\n#[test]\nfn seven() { assert_eq!(line(), 7); }\n"}}]}},
        {"answer": {"calls": [{"shell": "echo 'mod line; pub use line::line;' >> src/lib.rs"}]}},
        {"answer": {"text": "Done."}},
    ]});
    fs::write(scripts.join("line.json"), script.to_string()).unwrap();
    Scripts::of_folder(&scripts).unwrap()
}

fn first_batch(agent: Agent) {
    let Some(installed) = Installed::find(agent) else {
        return skipped("a first batch of a real agent", &missing(agent));
    };
    let Some(toolchain) = toolchain() else {
        return skipped(
            "a first batch of a real agent",
            "the toolchain is not found",
        );
    };
    let scratch = Scratch::new(0);
    let root = project(&scratch);
    let scripts = scripts(&scratch);
    let server = ModelServer::start(scripts, Journal::default(), None).unwrap();
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let profile = Profile::set_up(&installed, home.path(), &server.url());
    let ours = binaries().folder();
    let agents = installed.program.parent().unwrap().to_path_buf();
    let path = std::env::var("PATH").unwrap();
    let path = format!(
        "{}:{}:{}/bin:{path}",
        ours.display(),
        agents.display(),
        toolchain.display()
    );
    let readable = format!("{}:{}", ours.display(), toolchain.display());
    let typed = commands();
    assert!((3..=COMMANDS_MAX).contains(&typed.len()), "{typed:?}");
    let mut printed = String::new();
    for line in &typed {
        // The agent that is installed, and the text that everyone writes alone.
        let line = line
            .replace("--agent codex", &format!("--agent {}", agent.as_str()))
            .replace("\"…\"", "\"Print it. play:line:line\"");
        let mut run = scratch.run(Path::new("/bin/sh")).args(["-c", &line]);
        run = run.within(&root).env("PATH", &path);
        for (name, value) in profile.environment() {
            run = run.env(name, value);
        }
        run = run.env("PREMATH_SANDBOX_READ", &readable);
        let run = run.without("PREMATH_SANDBOX_WRITE");
        let ended = run.start().wait_within(PATIENCE * 3).exits(0);
        printed = ended.stdout;
        if line.starts_with("premath init") {
            let host = server.url().trim_start_matches("http://").to_owned();
            allow(&root.join("harness.toml"), &host);
        }
    }
    assert!(printed.contains("CLOSED (1)"), "{printed}");
    assert!(
        printed.contains("Report the line number of a syntax error"),
        "{printed}"
    );
    let landed = sh(&scratch, &root, "git show harness/integration:src/line.rs").exits(0);
    assert!(landed.stdout.contains("fn line()"), "{}", landed.stdout);
    assert_eq!(processes_in(&scratch.folder()), [""; 0]);
}

#[test]
fn a_first_batch_with_claude_takes_the_commands_of_the_readme() {
    first_batch(Agent::Claude);
}

#[test]
fn a_first_batch_with_codex_takes_the_commands_of_the_readme() {
    first_batch(Agent::Codex);
}
