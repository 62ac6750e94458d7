//! Verification in the clean checkout over the build state of the base, beside
//! the same command in a plain worktree that was built before, for a Rust and a
//! Node project; each step changes one module.

use crate::Sizes;
use crate::figure::{self, Wrong, median, timed};
use crate::programs::{Programs, command, run};
use crate::scratch;
use git2::{IndexAddOption, Repository, Signature};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Packages of each project, a chain of dependencies.
const PACKAGES: usize = 6;
/// Modules of a package.
const MODULES: usize = 10;
/// The package whose module each step changes.
const CHANGED: usize = 3;

/// A project, and how it is verified.
struct Project {
    name: &'static str,
    verify: String,
    /// The module that each step changes.
    module: String,
    /// What it may read beside the system and the toolchains.
    read: PathBuf,
}

pub(crate) fn measure(sizes: Sizes, programs: &Programs, folder: &Path) -> Result<(), Wrong> {
    let rust = folder.join("rust");
    write_rust_project(&rust.join("repository"))?;
    let project = Project {
        name: "Rust",
        verify: "cargo test --quiet --offline --workspace".to_owned(),
        module: format!("package-{CHANGED}/src/module_0.rs"),
        read: folder.to_path_buf(),
    };
    project.measure(sizes, programs, &rust)?;
    let node = folder.join("node");
    let compiler = match typescript(&folder.join("compiler")) {
        Ok(compiler) => compiler,
        Err(wrong) => {
            figure::note(&format!("Node project: skipped, {wrong}"), "");
            return Ok(());
        }
    };
    write_node_project(&node.join("repository"))?;
    let project = Project {
        name: "Node",
        verify: format!(
            "node {} -p . && node --test .build/",
            compiler
                .join("node_modules/typescript/lib/tsc.js")
                .display()
        ),
        module: format!("source/package_{CHANGED}/module_0.ts"),
        read: compiler,
    };
    project.measure(sizes, programs, &node)
}

impl Project {
    /// Runs a batch of issues that each change the module, and does the same by
    /// hand in a worktree.
    fn measure(&self, sizes: Sizes, programs: &Programs, folder: &Path) -> Result<(), Wrong> {
        let repository = folder.join("repository");
        let git = commit_all(&repository)?;
        let count = sizes.runs.max(3);
        let lane = folder.join("lane");
        git.worktree("lane", &lane, None)?;
        scratch::issues(&repository.join(".premath/issues.jsonl"), count, |_| None)?;
        let edit = format!("echo '// changed' >> {}", self.module);
        let mut coordinator = programs.command("harness-coordinator");
        coordinator
            .current_dir(&repository)
            .args(["--work-cmd", &edit, "--verify-cmd", &self.verify])
            .args(["--override-reason", "benchmark", "--landing", "merge"])
            .args(["--startup", "off"])
            .args(["--sandbox", "namespaces"])
            .env("PREMATH_SANDBOX_READ", &self.read)
            .arg("--worktree")
            .arg(&lane);
        run(&mut coordinator)?;
        let (warm, cold) = witnessed(&repository, count)?;
        let plain = folder.join("plain");
        git.worktree("plain", &plain, None)?;
        let verify = || {
            let mut shell = command("sh");
            shell.args(["-c", &self.verify]).current_dir(&plain);
            let (_, took) = timed(|| run(&mut shell))?;
            Ok::<f64, Wrong>(took.as_secs_f64())
        };
        let first = verify()?;
        let mut in_lane = Vec::new();
        for _ in 0..count {
            let file = plain.join(&self.module);
            fs::write(&file, fs::read_to_string(&file)? + "// changed\n")?;
            in_lane.push(verify()?);
        }
        let (warm, in_lane) = (median(warm), median(in_lane));
        let name = self.name;
        let modules = PACKAGES * MODULES;
        figure::show(
            &format!("verify a change, {name}, {modules} modules, against a run in the lane"),
            &figure::time(warm),
            &figure::time(in_lane),
            warm / in_lane,
            "<= 1.2",
        );
        figure::show(
            &format!("verify without build state, {name}, against a first build"),
            &figure::time(cold),
            &figure::time(first),
            cold / first,
            "",
        );
        Ok(())
    }
}

/// Returns how long the verifications of steps and of the last commit took.
fn witnessed(repository: &Path, count: usize) -> Result<(Vec<f64>, f64), Wrong> {
    let (mut warm, mut cold) = (Vec::new(), None);
    for entry in fs::read_dir(repository.join("artifacts/ciwitness"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // The first one with build state is on the base, before any step.
        let is_of_step = name.ends_with(".verify.json") && !name.contains(".boot.");
        if !is_of_step && !name.ends_with(".tip.json") {
            continue;
        }
        let witness: serde_json::Value = serde_json::from_slice(&fs::read(&path)?)?;
        let took = witness["durationMs"].as_f64().unwrap_or(f64::NAN) / 1e3;
        match is_of_step {
            true => warm.push(took),
            false => cold = Some(took),
        }
    }
    let cold = cold.ok_or_else(|| Wrong::because("no verification began with build state"))?;
    if warm.len() != count {
        return Err(Wrong::because(format!(
            "{} of {count} steps were verified",
            warm.len()
        )));
    }
    Ok((warm, cold))
}

fn commit_all(path: &Path) -> Result<Repository, Wrong> {
    let git = Repository::init(path)?;
    let mut index = git.index()?;
    index.add_all(["*"], IndexAddOption::DEFAULT, None)?;
    index.write()?;
    let tree = git.find_tree(index.write_tree()?)?;
    let author = Signature::now("Premath Harness bench", "bench@localhost")?;
    git.commit(Some("HEAD"), &author, &author, "bench", &tree, &[])?;
    drop(tree);
    Ok(git)
}

fn write(path: &Path, text: &str) -> Result<(), Wrong> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(fs::write(path, text)?)
}

/// A workspace of packages, each with modules of generic code and tests.
fn write_rust_project(folder: &Path) -> Result<(), Wrong> {
    let packages: Vec<String> = (0..PACKAGES).map(|n| format!("\"package-{n}\"")).collect();
    let members = packages.join(", ");
    write(
        &folder.join("Cargo.toml"),
        &format!("[workspace]\nresolver = \"2\"\nmembers = [{members}]\n"),
    )?;
    write(&folder.join(".gitignore"), "/target/\n")?;
    let mut lock = "version = 4\n".to_owned();
    for package in 0..PACKAGES {
        let before = package.checked_sub(1);
        let uses = before.map(|n| format!("package-{n} = {{ path = \"../package-{n}\" }}\n"));
        write(
            &folder.join(format!("package-{package}/Cargo.toml")),
            &format!(
                "[package]\nname = \"package-{package}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\n{}",
                uses.unwrap_or_default()
            ),
        )?;
        write!(
            lock,
            "\n[[package]]\nname = \"package-{package}\"\nversion = \"0.1.0\"\n"
        )?;
        if let Some(before) = before {
            write!(lock, "dependencies = [\n \"package-{before}\",\n]\n")?;
        }
        let mut modules = String::new();
        for module in 0..MODULES {
            writeln!(modules, "pub mod module_{module};")?;
            let path = format!("package-{package}/src/module_{module}.rs");
            write(&folder.join(path), &rust_module(before, module))?;
        }
        write(
            &folder.join(format!("package-{package}/src/lib.rs")),
            &modules,
        )?;
    }
    write(&folder.join("Cargo.lock"), &lock)
}

fn rust_module(before: Option<usize>, module: usize) -> String {
    let mut text = "use std::collections::BTreeMap;\n".to_owned();
    for number in 0..12 {
        let _ = writeln!(
            text,
            "pub fn count_{number}<K: Ord + Clone>(keys: &[K]) -> BTreeMap<K, usize> {{\n    \
             let mut found = BTreeMap::new();\n    for key in keys {{ *found.entry(key.clone()).or_insert({number}) += 1; }}\n    \
             found\n}}"
        );
    }
    let sum = match before {
        Some(before) => format!("package_{before}::module_{module}::sum(keys) + keys.len()"),
        None => "keys.len()".to_owned(),
    };
    let _ = writeln!(text, "pub fn sum(keys: &[String]) -> usize {{ {sum} }}");
    let _ = writeln!(
        text,
        "#[cfg(test)]\nmod tests {{\n    use super::*;\n    #[test]\n    fn it_counts() {{\n        \
         let keys = [\"a\".to_owned(), \"b\".to_owned()];\n        assert_eq!(count_3(&keys).len(), 2);\n        \
         assert!(sum(&keys) >= 2);\n    }}\n}}"
    );
    text
}

/// A project of the TypeScript compiler's incremental mode, with tests.
fn write_node_project(folder: &Path) -> Result<(), Wrong> {
    write(&folder.join(".gitignore"), "/.build/\n")?;
    write(
        &folder.join("tsconfig.json"),
        r#"{"compilerOptions": {"target": "es2022", "module": "commonjs", "strict": true, "types": [],
"incremental": true, "tsBuildInfoFile": ".build/info", "outDir": ".build", "rootDir": "source"}, "include": ["source"]}
"#,
    )?;
    for package in 0..PACKAGES {
        for module in 0..MODULES {
            let mut text = String::new();
            if let Some(before) = package.checked_sub(1) {
                writeln!(
                    text,
                    "import {{ sum as below }} from \"../package_{before}/module_{module}\";"
                )?;
            } else {
                writeln!(
                    text,
                    "const below = (keys: string[]): number => keys.length;"
                )?;
            }
            for number in 0..12 {
                writeln!(
                    text,
                    "export function count_{number}<K>(keys: K[]): Map<K, number> {{\n  const found = new Map<K, number>();\n  \
                     for (const key of keys) found.set(key, (found.get(key) ?? {number}) + 1);\n  return found;\n}}"
                )?;
            }
            writeln!(
                text,
                "export function sum(keys: string[]): number {{ return below(keys) + count_3(keys).size; }}"
            )?;
            let path = format!("source/package_{package}/module_{module}.ts");
            write(&folder.join(path), &text)?;
        }
    }
    write(
        &folder.join("source/all.test.ts"),
        &format!(
            "import {{ sum }} from \"./package_{}/module_0\";\n\
             declare function require(name: string): any;\n\
             require(\"node:test\")(\"it sums\", () => {{ if (sum([\"a\"]) < 1) throw new Error(\"wrong\"); }});\n",
            PACKAGES - 1
        ),
    )
}

/// Installs the TypeScript compiler; returns the folder.
fn typescript(folder: &Path) -> Result<PathBuf, Wrong> {
    fs::create_dir_all(folder)?;
    run(command("npm")
        .args([
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "typescript@5",
        ])
        .current_dir(folder))?;
    Ok(folder.to_path_buf())
}
