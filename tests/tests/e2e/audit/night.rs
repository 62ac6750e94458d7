//! A batch that signed, and copies of its repository in which contradictions are planted.

use crate::landing::TARGET;
use git2::{Oid, Repository, Signature};
use premath_kernel::json::canonical::{self, canonical_value};
use premath_kernel::record::audit::digest_of;
use premath_kernel::record::trailers::LandingTrailers;
use premath_kernel::record::trajectory::Chain;
use premath_tests::{Ended, Scratch, binaries, issue, parse_rows};
use premath_worktree::signing::{Signer, write_commit};
use serde_json::{Value, json};
use ssh_key::private::Ed25519Keypair;
use ssh_key::{LineEnding, PrivateKey};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The step that closed the issue which landed last.
pub(super) const LAST: &str = "worker.1.c.1";

/// Makes a key below the home; the same number makes the same key.
pub(super) fn key(scratch: &Scratch, number: u8) -> PathBuf {
    let key = PrivateKey::from(Ed25519Keypair::from_seed(&[number; 32]));
    let path = scratch.home().join(format!("key-{number}"));
    fs::write(&path, key.to_openssh(LineEnding::LF).unwrap().as_bytes()).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let public = key.public_key().to_openssh().unwrap();
    fs::write(path.with_extension("pub"), format!("{public}\n")).unwrap();
    path
}

/// Runs a batch that signs: `d` comes first and changes nothing, `a`, `b` and
/// `c` land, and the epic `e` is not worked on.
pub(super) fn night() -> Scratch {
    let mut epic = issue("e");
    epic["issue_type"] = json!("epic");
    let mut first = issue("d");
    first["priority"] = json!(1);
    let rows = [issue("a"), issue("b"), issue("c"), first, epic];
    let scratch = Scratch::with_issues(1, &rows);
    key(&scratch, 1);
    key(&scratch, 2);
    let settings = "[signing]\nkey = \"~/key-1\"\n";
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    let work =
        r#"echo worked; [ "$PREMATH_ISSUE_ID" = d ] || echo x > "src/$PREMATH_ISSUE_ID.txt""#;
    scratch.landing_batch(work, "echo verified").end().exits(0);
    scratch
}

/// A copy of a repository with what the harness keeps of it.
pub(super) struct Copied<'a> {
    scratch: &'a Scratch,
    folder: TempDir,
}

impl<'a> Copied<'a> {
    pub(super) fn of(scratch: &'a Scratch) -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(&scratch.root, folder.path());
        Self { scratch, folder }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn audit(&self, arguments: &[&str]) -> Ended {
        let root = self.folder.path().to_str().unwrap();
        let run = self.scratch.run(&binaries().premath);
        let run = run.args(["audit", "--repo-root", root]);
        run.args(arguments.iter().copied()).end()
    }

    pub(super) fn git(&self) -> Repository {
        Repository::open(self.folder.path()).unwrap()
    }

    fn trajectory(&self) -> PathBuf {
        self.path(".premath/harness_trajectory.jsonl")
    }

    /// Changes the lines of a file.
    pub(super) fn lines(&self, name: &str, change: impl FnOnce(&mut Vec<String>)) {
        let path = self.path(name);
        let text = fs::read_to_string(&path).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        change(&mut lines);
        assert_ne!(lines.join("\n"), text.trim_end(), "nothing was changed");
        fs::write(&path, lines.join("\n") + "\n").unwrap();
    }

    /// Changes the lines of the trajectory, and nothing else.
    pub(super) fn rows_as_they_are(&self, change: impl FnOnce(&mut Vec<String>)) {
        self.lines(".premath/harness_trajectory.jsonl", change);
    }

    /// Changes the rows of the trajectory, and computes the chain again.
    pub(super) fn rows(&self, change: impl FnOnce(&mut Vec<Value>)) {
        let mut rows = parse_rows(&fs::read(self.trajectory()).unwrap());
        let before = rows.clone();
        change(&mut rows);
        assert_ne!(before, rows, "nothing was changed");
        let mut chain = Chain::default();
        let mut text = String::new();
        for row in &rows {
            let (line, _) = chain.line(&canonical_value(row));
            chain.follow(line.as_bytes());
            text.push_str(&line);
            text.push('\n');
        }
        fs::write(self.trajectory(), text).unwrap();
    }

    /// Changes the row of a step, and computes the chain again.
    pub(super) fn row(&self, step: &str, change: impl FnOnce(&mut Value)) {
        self.rows(|rows| {
            let mut found = rows.iter_mut();
            change(found.find(|row| row["stepId"] == step).unwrap());
        });
    }

    /// Changes a reference of a step's row, and computes the chain again.
    pub(super) fn reference(&self, step: &str, start: &str, with: Option<&str>) {
        self.row(step, |row| {
            let list = row["witnessRefs"].as_array_mut().unwrap();
            list.retain(|text| !text.as_str().unwrap().starts_with(start));
            list.extend(with.map(|text| json!(text)));
            list.sort_by_key(|text| text.as_str().unwrap().to_owned());
        });
    }

    pub(super) fn witness_path(&self, step: &str, phase: &str) -> PathBuf {
        self.path(&format!("artifacts/ciwitness/{step}.{phase}.json"))
    }

    /// Changes a witness, and nothing else.
    pub(super) fn witness(
        &self,
        step: &str,
        phase: &str,
        change: impl FnOnce(&mut Value),
    ) -> Value {
        let path = self.witness_path(step, phase);
        let mut document: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let before = document.clone();
        change(&mut document);
        assert_ne!(before, document, "nothing was changed");
        fs::write(&path, serde_json::to_vec_pretty(&document).unwrap()).unwrap();
        document
    }

    /// Changes a witness, the reference that its row has to it, and the chain.
    pub(super) fn forge_witness(&self, step: &str, phase: &str, change: impl FnOnce(&mut Value)) {
        let document = self.witness(step, phase, change);
        let start = format!("ciwitness://{step}/{phase}/");
        let reference = format!("{start}{}", digest_of(&document));
        self.reference(step, &start, Some(&reference));
        if phase == "verify" {
            self.row(step, |row| {
                row["verification"]["witnessRef"] = json!(reference)
            });
        }
    }

    /// Changes a field of the last step's right to close, with all that names it.
    pub(super) fn forge_right(&self, name: &str, value: &Value) {
        let mut right = Value::Null;
        self.forge_witness(LAST, "mutation", |document| {
            document["mutation"][name] = value.clone();
            right = document["mutation"].clone();
        });
        let digest = canonical::ref_digest(&right);
        let right = format!("mutation-ready://c/close/{digest}");
        self.reference(LAST, "mutation-ready://", Some(&right));
    }

    fn target(&self) -> String {
        format!("refs/heads/{TARGET}")
    }

    pub(super) fn tip(&self) -> Oid {
        self.git().refname_to_id(&self.target()).unwrap()
    }

    pub(super) fn move_target(&self, to: Oid) {
        let git = self.git();
        git.reference(&self.target(), to, true, "a contradiction")
            .unwrap();
    }

    /// Writes a commit in the place of the target's last one, or on it, and
    /// moves the target there.
    pub(super) fn commit(&self, forged: Forged<'_>, is_on_top: bool) -> Oid {
        let git = self.git();
        let tip = git.find_commit(self.tip()).unwrap();
        let parent = match is_on_top {
            true => tip.clone(),
            false => tip.parent(0).unwrap(),
        };
        let tree = forged.tree.map_or(tip.tree_id(), |tree| tree);
        let tree = git.find_tree(tree).unwrap();
        let signer = forged.key.map(|number| key(self.scratch, number));
        let signer = signer.map(|path| Signer::load(&path).unwrap());
        let author = Signature::now("Scratch", "scratch@localhost").unwrap();
        let message = forged.message;
        let id = write_commit(&git, signer.as_ref(), &author, message, &tree, &[&parent]);
        let id = id.unwrap();
        self.move_target(id);
        id
    }

    /// Has the row and the close of the last landing name another commit.
    pub(super) fn name_commit(&self, id: &str) {
        self.row(LAST, |row| row["landing"]["commit"] = json!(id));
        self.forge_witness(LAST, "mutation", |document| {
            document["landing"]["commit"] = json!(id);
            document["commit"] = json!(id);
        });
    }

    /// Puts a commit in the place of the last landing, with a good signature,
    /// and has everything else name it.
    pub(super) fn forge_message(&self, message: &str) {
        let id = self.commit(Forged::saying(message), false);
        self.name_commit(&id.to_string());
    }

    /// Returns the message of the last landing.
    pub(super) fn message(&self) -> String {
        let git = self.git();
        let tip = git.find_commit(self.tip()).unwrap();
        tip.message().unwrap().to_owned()
    }

    /// Changes the trailers of the last landing, with a good signature, and has
    /// everything else name that commit.
    pub(super) fn forge_trailers(&self, change: impl FnOnce(&mut LandingTrailers)) {
        let mut trailers = LandingTrailers::parse(&self.message()).unwrap().unwrap();
        let before = trailers.clone();
        change(&mut trailers);
        assert_ne!(before, trailers, "nothing was changed");
        self.forge_message(&trailers.message("issue c", None));
    }

    /// Returns a tree that holds one more file.
    pub(super) fn other_tree(&self) -> Oid {
        let git = self.git();
        let tip = git.find_commit(self.tip()).unwrap();
        let blob = git.blob(b"not verified\n").unwrap();
        let mut tree = git.treebuilder(Some(&tip.tree().unwrap())).unwrap();
        tree.insert("evil.txt", blob, 0o100_644).unwrap();
        tree.write().unwrap()
    }
}

/// A commit that no landing wrote.
pub(super) struct Forged<'a> {
    pub(super) message: &'a str,
    /// The key that signs it.
    pub(super) key: Option<u8>,
    /// Another tree than the last landing's.
    pub(super) tree: Option<Oid>,
}

impl<'a> Forged<'a> {
    pub(super) fn saying(message: &'a str) -> Self {
        Self {
            message,
            key: Some(1),
            tree: None,
        }
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let place = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&place).unwrap();
            copy(&entry.path(), &place);
        } else {
            fs::copy(entry.path(), &place).unwrap();
        }
    }
}
