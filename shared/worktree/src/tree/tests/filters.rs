//! Files that go through filters, with one that exchanges letters in the place
//! of git and a command.

use super::lane::Lane;
use super::*;
use crate::tree::filter::{FilterDefinitions, FilterEnd, FilterError, FilterRun, FilterRunner};
use git2::Index;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Does what git does with a filter; it refuses files with the word `poison`, and does not
/// end at those with the word `endless`.
#[derive(Debug, Default)]
struct Rotation {
    runs: Arc<AtomicUsize>,
}

fn rotated(text: &[u8], by: u8) -> Vec<u8> {
    let turn = |byte: &u8| match byte {
        b'a'..=b'z' => (byte - b'a' + by) % 26 + b'a',
        other => *other,
    };
    text.iter().map(turn).collect()
}

impl Rotation {
    fn check_out(run: &FilterRun<'_>) -> FilterEnd {
        let git = Repository::open_bare(run.git).unwrap();
        for entry in Index::open(&run.git.join("index")).unwrap().iter() {
            let blob = git.find_blob(entry.id).unwrap();
            let at = run.files.join(std::str::from_utf8(&entry.path).unwrap());
            fs::write(at, rotated(blob.content(), 25)).unwrap();
        }
        FilterEnd {
            passed: true,
            was_ended: false,
            said: String::new(),
        }
    }

    fn write_out(run: &FilterRun<'_>) -> FilterEnd {
        let names = fs::read_to_string(run.folder.join("names")).unwrap();
        let (mut blobs, mut ids) = (Vec::new(), String::new());
        let mut passed = true;
        for name in names.lines() {
            let text = fs::read(run.files.join(name.trim_matches('"'))).unwrap();
            if text.starts_with(b"endless") {
                fs::write(run.folder.join("ids"), ids).unwrap();
                let count = run.folder.with_file_name("ended");
                let before = fs::read(&count).unwrap_or_default();
                fs::write(count, [&before[..], b"."].concat()).unwrap();
                return FilterEnd {
                    passed: false,
                    was_ended: true,
                    said: "it took too long".to_owned(),
                };
            }
            passed = !text.starts_with(b"poison");
            if !passed {
                break;
            }
            let text = rotated(&text, 1);
            let id = Oid::hash_object(ObjectType::Blob, &text).unwrap();
            ids.push_str(&format!("{id}\n"));
            blobs.extend(format!("{id} blob {}\n", text.len()).bytes());
            blobs.extend(text);
            blobs.push(b'\n');
        }
        fs::write(run.folder.join("blobs"), blobs).unwrap();
        let said = "no poison\n".to_owned();
        FilterEnd {
            passed,
            was_ended: false,
            said,
        }
    }
}

impl FilterRunner for Rotation {
    fn run(&self, run: &FilterRun<'_>) -> Result<FilterEnd, String> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        // Nothing of the lane is there, and the git folder is the harness's.
        assert!(run.git.starts_with(run.folder) && run.files.starts_with(run.folder));
        let attributes = run.files.join(".gitattributes");
        assert_eq!(fs::read_to_string(attributes).unwrap(), ATTRIBUTES);
        let config = fs::read_to_string(run.git.join("config")).unwrap();
        assert!(config.contains("[filter \"rot\"]\n\tclean = \"rotate 1\"\n"));
        Ok(match run.script.contains("checkout-index") {
            true => Self::check_out(run),
            false => Self::write_out(run),
        })
    }
}

const ATTRIBUTES: &str = "# filter=no\n*.rot filter=rot\n";

fn find(lane: &Lane) -> Result<Option<FilterDefinitions>, FilterError> {
    FilterDefinitions::find(lane.main.workdir().unwrap())
}

/// Stages attributes in the operator's checkout.
fn stage(lane: &Lane, name: &str, text: &str) {
    let at = lane.main.workdir().unwrap().join(name);
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    fs::write(at, text).unwrap();
    let mut index = lane.main.index().unwrap();
    index.read(true).unwrap();
    index.add_path(Path::new(name)).unwrap();
    index.write().unwrap();
}

fn configure(lane: &Lane, key: &str, value: &str) {
    let mut config = lane.main.config().unwrap();
    config.set_str(&format!("filter.rot.{key}"), value).unwrap();
}

/// A lane that was made without filters, of a repository that has one; counts
/// its runs.
fn filtered() -> (Lane, Arc<AtomicUsize>) {
    let mut lane = Lane::provisioned();
    stage(&lane, ".gitattributes", ATTRIBUTES);
    configure(&lane, "clean", "rotate 1");
    for name in ["two.rot", "d/one.rot"] {
        lane.write(name, "lffq\n");
    }
    lane.tree.commit(&TEXT).unwrap().unwrap();
    lane.base = lane.tree.base().unwrap();
    let definitions = Arc::new(find(&lane).unwrap().unwrap());
    let runner = Rotation::default();
    let runs = runner.runs.clone();
    let folder = lane.at("../filters");
    let filters = Filters::new(definitions, &folder, Box::new(runner)).unwrap();
    lane.tree.use_filters(Arc::new(filters));
    (lane, runs)
}

fn read(lane: &Lane, name: &str) -> String {
    fs::read_to_string(lane.at(name)).unwrap()
}

/// A file of the tree that the files make.
fn kept(lane: &Lane, name: &str) -> String {
    let tree = lane.tree.keep_content(&lane.base.commit).unwrap();
    let tree = lane.main.find_tree(Oid::from_str(&tree).unwrap()).unwrap();
    let entry = tree.get_path(Path::new(name)).unwrap();
    let blob = lane.main.find_blob(entry.id()).unwrap();
    String::from_utf8(blob.content().to_vec()).unwrap()
}

#[test]
fn a_filter_counts_where_an_attribute_of_the_operators_names_it() {
    let lane = Lane::new();
    assert!(find(&lane).unwrap().is_none());
    configure(&lane, "clean", "x");
    assert!(find(&lane).unwrap().is_none());
    // Those of a lane do not count.
    lane.write(".gitattributes", "* filter=evil\n");
    assert!(find(&lane).unwrap().is_none());
    stage(&lane, "deep/.gitattributes", ATTRIBUTES);
    assert!(find(&lane).unwrap().is_some());
    stage(&lane, ".gitattributes", "*.x filter=other\n");
    let error = find(&lane).unwrap_err().to_string();
    assert!(error.contains("`other`"), "{error}");
    let mut config = lane.main.config().unwrap();
    config.set_bool("filter.other.required", false).unwrap();
    let found = find(&lane).unwrap().unwrap();
    assert!(!found.settings().contains("other"), "it has no command");
}

/// libgit2 skips a line with such a pattern, and the files would be taken as they are.
#[test]
fn a_pattern_in_quotes_that_converts_is_refused() {
    let lane = Lane::new();
    configure(&lane, "clean", "x");
    for (text, place) in [
        ("\"my secrets/*.key\" filter=rot\n", Some(":1: ")),
        ("*.txt text\n \"a\\\"b\" -text\n", Some(":2: ")),
        ("# \"\n\"a b\" binary\n\"c d\" -text\n", None),
        ("[attr]made linguist-generated -diff\n\"a b\" made\n", None),
        ("[attr]big filter=rot\n\"a b\" big\n", Some(":2: ")),
        ("\"a b\" linguist-generated\n\"filter\" -diff\n", None),
        ("my[[:space:]]secrets/*.key filter=rot\n", None),
    ] {
        stage(&lane, ".gitattributes", text);
        let error = find(&lane).err().map(|error| error.to_string());
        assert_eq!(error.is_some(), place.is_some(), "{text}: {error:?}");
        if let (Some(error), Some(place)) = (error, place) {
            assert!(error.contains(&format!(".gitattributes{place}")), "{error}");
        }
    }
}

#[test]
fn only_files_that_git_reads_attributes_from_are_never_filtered() {
    let lane = Lane::new();
    stage(&lane, ".gitattributes", "* filter=rot\n");
    configure(&lane, "clean", "x");
    let definitions = Arc::new(find(&lane).unwrap().unwrap());
    let runner = Box::new(Rotation::default());
    let filters = Filters::new(definitions, &lane.at("../filters"), runner).unwrap();
    for name in [
        ".gitlab-token",
        "d/.github-secret",
        ".gitignore",
        ".git-credentials",
    ] {
        assert_eq!(
            filters.of(name.as_bytes()).as_deref(),
            Some("rot"),
            "{name}"
        );
    }
    for name in [
        ".gitattributes",
        "d/.GitAttributes",
        ".gitmodules",
        ".lfsconfig",
    ] {
        assert_eq!(filters.of(name.as_bytes()), None, "{name}");
    }
}

#[test]
fn a_lane_that_was_made_without_filters_is_filled_once() {
    let (lane, runs) = filtered();
    lane.write("two.rot", "changed\n");
    lane.tree.fill_filtered().unwrap();
    assert_eq!(read(&lane, "d/one.rot"), "keep\n");
    assert_eq!(read(&lane, "two.rot"), "changed\n");
    assert_eq!(lane.tree.changes().unwrap(), ["two.rot"]);
    let before = runs.load(Ordering::SeqCst);
    lane.tree.fill_filtered().unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), before);
}

#[test]
fn files_that_are_as_they_were_cost_no_run() {
    let (lane, runs) = filtered();
    lane.tree.fill_filtered().unwrap();
    lane.tree.settle_index();
    lane.write("src/plain.txt", "plain\n");
    // Files that are as new as the index are looked at again.
    let settled = || {
        let before = runs.load(Ordering::SeqCst);
        lane.tree.settle_index();
        assert_eq!(lane.tree.changes().unwrap(), ["src/plain.txt"]);
        runs.load(Ordering::SeqCst) == before
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    while !settled() {
        assert!(Instant::now() < deadline, "each look runs the filter");
        lane.tree.reset(&lane.base, &Ignored::Stay).unwrap();
        lane.write("src/plain.txt", "plain\n");
    }
}

#[test]
fn a_changed_file_goes_through_its_filter_both_ways() {
    let (lane, _) = filtered();
    lane.tree.fill_filtered().unwrap();
    lane.write("two.rot", "more\n");
    lane.write("new.rot", "new\n");
    lane.write("new.txt", "new\n");
    let [two, new, plain] = ["two.rot", "new.rot", "new.txt"].map(|name| kept(&lane, name));
    assert_eq!((&*two, &*new, &*plain), ("npsf\n", "ofx\n", "new\n"));
    assert_eq!(kept(&lane, "d/one.rot"), "lffq\n");
    lane.tree.reset(&lane.base, &Ignored::Stay).unwrap();
    assert_eq!(read(&lane, "two.rot"), "keep\n");
    assert_eq!(lane.tree.changes().unwrap(), [""; 0]);
    fs::set_permissions(
        lane.at("two.rot"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    assert_eq!(lane.tree.changes().unwrap(), ["two.rot"]);
}

/// Asserts that a file with this text is refused with a reason and put aside, that those
/// before and behind it are saved, and that the lane goes back.
fn is_refused_alone(text: &str, why: &str) -> Lane {
    let (lane, _) = filtered();
    lane.tree.fill_filtered().unwrap();
    for name in ["a.rot", "z.rot"] {
        lane.write(name, "fine\n");
    }
    lane.write("m.rot", text);
    let error = lane.tree.keep_content(&lane.base.commit).unwrap_err();
    assert_eq!(error.class(), FailureClass::WorktreeFilter);
    let error = error.to_string();
    assert!(error.contains("m.rot") && error.contains(why), "{error}");
    let salvage = lane.tree.take_back(&lane.base, 1, &TEXT, None).unwrap();
    let salvage = salvage.unwrap();
    let is_saved = |name: &str| {
        let saved = lane.tree.find_commit(&salvage.branches[0]).unwrap();
        saved.tree().unwrap().get_path(Path::new(name)).is_ok()
    };
    for (name, is_there) in [("a.rot", true), ("m.rot", false), ("z.rot", true)] {
        assert_eq!(is_saved(name), is_there, "{name}");
    }
    assert!(salvage.folder.unwrap().join("m.rot").exists());
    assert_eq!(lane.tree.changes().unwrap(), [""; 0]);
    assert_eq!(read(&lane, "two.rot"), "keep\n");
    lane
}

#[test]
fn a_refused_file_is_named_and_put_aside() {
    is_refused_alone("poison\n", "no poison");
}

#[test]
fn a_file_whose_filter_does_not_end_goes_through_it_once() {
    let lane = is_refused_alone("endless\n", "it took too long");
    assert_eq!(fs::read(lane.at("../filters/ended")).unwrap(), b".");
}

#[test]
fn many_files_whose_filters_do_not_end_cost_two_of_them() {
    let (lane, _) = filtered();
    lane.tree.fill_filtered().unwrap();
    for number in 0..9 {
        lane.write(&format!("{number}.rot"), "endless\n");
    }
    for _ in 0..4 {
        lane.tree.keep_content(&lane.base.commit).unwrap_err();
    }
    assert_eq!(fs::read(lane.at("../filters/ended")).unwrap(), b"..");
    // The next step has its own files.
    lane.tree.take_back(&lane.base, 1, &TEXT, None).unwrap();
    lane.tree.start_at(&lane.base, "bd-2", 1).unwrap();
    lane.write("0.rot", "fine\n");
    assert_eq!(kept(&lane, "0.rot"), "gjof\n");
}

#[test]
fn what_git_itself_changes_counts_as_filtered() {
    let lane = Lane::new();
    assert!(find(&lane).unwrap().is_none());
    stage(&lane, ".gitattributes", "# ident\n* -ident\n");
    assert!(find(&lane).unwrap().is_none());
    let text = "*.id ident\n*.u16 text working-tree-encoding=UTF-16LE\n*.txt text\n";
    stage(&lane, ".gitattributes", text);
    let definitions = Arc::new(find(&lane).unwrap().unwrap());
    let runner = Box::new(Rotation::default());
    let filters = Filters::new(definitions, &lane.at("../filters"), runner).unwrap();
    for (name, attribute) in [
        ("a.id", Some("ident")),
        ("d/a.u16", Some("working-tree-encoding")),
        ("a.txt", None),
        (".gitattributes", None),
    ] {
        assert_eq!(filters.of(name.as_bytes()).as_deref(), attribute, "{name}");
    }
}

/// What a step writes decides neither which filter a file has nor where it is
/// written to.
#[test]
fn attributes_and_links_of_a_step_change_nothing() {
    let (lane, _) = filtered();
    lane.tree.fill_filtered().unwrap();
    lane.write(".gitattributes", "*.rot -filter\n*.txt filter=rot\n");
    lane.write("new.rot", "new\n");
    lane.write("new.txt", "new\n");
    let found = ["new.rot", "new.txt"].map(|name| kept(&lane, name));
    assert_eq!(found, ["ofx\n", "new\n"]);
    fs::remove_file(lane.at("two.rot")).unwrap();
    std::os::unix::fs::symlink("../precious/x", lane.at("two.rot")).unwrap();
    lane.tree.reset(&lane.base, &Ignored::Stay).unwrap();
    assert_eq!(read(&lane, "two.rot"), "keep\n");
    let precious = lane.at("../precious/x");
    assert_eq!(fs::read_to_string(precious).unwrap(), "mine\n");
}

#[test]
fn a_worktree_that_git_fills_whole_goes_through_filters_too() {
    let (lane, _) = filtered();
    // Every file is converted then, and libgit2 writes all of them at once.
    let mut config = lane.main.config().unwrap();
    config.set_bool("core.autocrlf", true).unwrap();
    lane.tree.before_command();
    for entry in fs::read_dir(lane.at("")).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true if entry.file_name() == ".git" => {}
            true => fs::remove_dir_all(entry.path()).unwrap(),
            false if entry.file_name() == ".git" => {}
            false => fs::remove_file(entry.path()).unwrap(),
        }
    }
    lane.tree.fill_head().unwrap();
    assert_eq!(read(&lane, "two.rot"), "keep\n");
    assert_eq!(read(&lane, "d/one.rot"), "keep\n");
}
