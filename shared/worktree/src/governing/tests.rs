use super::*;
use git2::{IndexAddOption, RepositoryInitOptions, Signature};
use premath_kernel::policy::trust::FileChange;
use tempfile::TempDir;

/// A repository with a main branch.
struct Site {
    folder: TempDir,
    git: Repository,
}

impl Site {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = RepositoryInitOptions::new();
        let options = options.initial_head("main").external_template(false);
        let git = Repository::init_opts(folder.path(), options).unwrap();
        let site = Self { folder, git };
        site.commit(files, "base");
        site
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, path: &str, content: &str) {
        let file = self.root().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }

    /// Commits everything on HEAD.
    fn commit(&self, files: &[(&str, &str)], message: &str) -> String {
        files.iter().for_each(|(path, text)| self.write(path, text));
        let mut index = self.git.index().unwrap();
        index.add_all(["*"], IndexAddOption::FORCE, None).unwrap();
        index.update_all(["*"], None).unwrap();
        index.write().unwrap();
        let tree = self.git.find_tree(index.write_tree().unwrap()).unwrap();
        let author = Signature::now("a", "a@localhost").unwrap();
        let parent = self
            .git
            .head()
            .ok()
            .and_then(|head| head.peel_to_commit().ok());
        let parents: Vec<_> = parent.iter().collect();
        self.git
            .commit(Some("HEAD"), &author, &author, message, &tree, &parents)
            .unwrap()
            .to_string()
    }

    fn branch_here(&self, name: &str) {
        let head = self.git.head().unwrap().peel_to_commit().unwrap();
        self.git.branch(name, &head, true).unwrap();
    }

    /// Puts HEAD and the checkout at a commit.
    fn reset(&self, id: &str) {
        let commit = self
            .git
            .find_object(Oid::from_str(id).unwrap(), None)
            .unwrap();
        self.git
            .reset(&commit, git2::ResetType::Hard, None)
            .unwrap();
    }

    fn survey(&self) -> GoverningSurvey {
        survey(self.root(), Governing::of_agents(["CLAUDE.md", ".claude/"])).unwrap()
    }

    /// Returns what landed of the changes since a survey.
    fn landed_since(&self, before: &GoverningSurvey) -> Vec<String> {
        let changes: Vec<FileChange> = before.files.changes_to(&self.survey().files);
        let landed = landed(self.root(), before.head.as_deref(), None, &changes).unwrap();
        landed.into_iter().collect()
    }
}

#[test]
fn a_survey_finds_what_governs_tracked_or_read() {
    let site = Site::new(&[
        ("src/main.rs", "x"),
        ("src/AGENTS.md", "x"),
        (".gitattributes", "x"),
        ("ci/verify.sh", "x"),
        ("ci/other.sh", "x"),
        (".hooks/pre-commit", "x"),
    ]);
    site.git
        .config()
        .unwrap()
        .set_str("core.hooksPath", ".hooks")
        .unwrap();
    site.write(
        "harness.toml",
        "[batch]\nverify_cmd = \"sh ci/verify.sh\"\n[prompt]\ntemplate = \"docs/prompt.md\"\n",
    );
    site.write("docs/prompt.md", "x");
    site.write("policies/control/a.json", "{}");
    site.write("CLAUDE.md", "not tracked");
    site.write(".premath/issues.jsonl", "");
    std::os::unix::fs::symlink("/dev/zero", site.root().join("policies/zero")).unwrap();
    let found = site.survey().files;
    let paths: Vec<&str> = found.0.keys().map(String::as_str).collect();
    assert_eq!(
        paths,
        [
            ".gitattributes",
            ".hooks/pre-commit",
            "ci/verify.sh",
            "docs/prompt.md",
            "harness.toml",
            "policies/control/a.json",
            "policies/zero",
            "src/AGENTS.md",
        ]
    );
}

#[test]
fn an_edit_of_the_operator_did_not_land() {
    let site = Site::new(&[("AGENTS.md", "a")]);
    let before = site.survey();
    site.branch_here("harness/integration");
    site.write("harness.toml", "");
    assert!(site.landed_since(&before).is_empty());
    site.commit(&[("AGENTS.md", "b")], "mine\n\nNext Step: none");
    assert!(site.landed_since(&before).is_empty());
}

#[test]
fn a_commit_of_a_step_landed_wherever_it_is_reached() {
    let site = Site::new(&[("AGENTS.md", "a"), ("mise.toml", "a")]);
    let before = site.survey();
    site.commit(&[("AGENTS.md", "b")], "a: b\n\nStep: w.a.1");
    site.commit(&[("mise.toml", "b")], "mine");
    assert_eq!(site.landed_since(&before), ["AGENTS.md"]);
    // A file that a step removed counts too.
    fs::remove_file(site.root().join("mise.toml")).unwrap();
    site.commit(&[], "a: c\n\nStep: w.a.2");
    assert_eq!(site.landed_since(&before), ["AGENTS.md", "mise.toml"]);
}

#[test]
fn a_commit_without_a_trailer_counts_by_its_branch_and_a_copy_by_its_content() {
    let site = Site::new(&[("AGENTS.md", "a")]);
    let before = site.survey();
    let base = before.head.clone().unwrap();
    site.commit(&[("AGENTS.md", "b")], "by an agent");
    site.branch_here("harness/salvage/a");
    assert_eq!(site.landed_since(&before), ["AGENTS.md"]);
    site.reset(&base);
    site.commit(&[("AGENTS.md", "c")], "mine");
    assert!(site.landed_since(&before).is_empty());
    site.write("AGENTS.md", "b");
    assert_eq!(site.landed_since(&before), ["AGENTS.md"]);
}

#[test]
fn content_that_was_accepted_before_did_not_land_again() {
    let site = Site::new(&[("AGENTS.md", "a")]);
    site.branch_here("harness/old/1");
    site.commit(&[("AGENTS.md", "b")], "mine");
    let before = site.survey();
    site.commit(&[("AGENTS.md", "a")], "mine, taken back");
    assert!(site.landed_since(&before).is_empty());
}

#[test]
fn where_the_accepted_commit_is_gone_every_change_counts() {
    let site = Site::new(&[("AGENTS.md", "a")]);
    let mut before = site.survey();
    before.head = Some("1".repeat(40));
    site.write("AGENTS.md", "b");
    assert_eq!(site.landed_since(&before), ["AGENTS.md"]);
}

#[test]
fn the_accepted_content_is_found_by_its_digest() {
    let site = Site::new(&[("AGENTS.md", "a\n")]);
    let head = site.survey().head.unwrap();
    let find = |digest: &str| committed(site.root(), &head, "AGENTS.md", digest);
    assert_eq!(find(&digest_of(b"a\n")).as_deref(), Some(&b"a\n"[..]));
    assert_eq!(find(&digest_of(b"b\n")), None);
    let shown = difference("AGENTS.md", b"a\n", b"b\n");
    assert!(shown.contains("-a\n+b\n"), "{shown}");
}

#[test]
fn settings_name_no_file_outside() {
    for (path, expected) in [
        (".githooks", Some(".githooks")),
        ("./a/../b", Some("b")),
        ("../x", None),
        ("/etc/x", None),
        (".git/hooks", None),
        (".", None),
    ] {
        let found = within(Path::new("/repo"), Path::new(path));
        assert_eq!(found.as_deref(), expected, "{path}");
    }
    let found = within(Path::new("/repo"), Path::new("/repo/a"));
    assert_eq!(found.as_deref(), Some("a"));
}
