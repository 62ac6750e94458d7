//! Confinement with the system of a container image.

use crate::landing::TARGET;
use premath_tests::image::{BASIC, MARK, TestImage, scripted_engine};
use premath_tests::{Ended, Run, Scratch, command, issue, skipped};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// An id, as podman shows one.
const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Returns whether the namespaces work that the mode is made of.
fn has_namespaces() -> bool {
    let scratch = Scratch::with_issues(0, &[]);
    scratch.confines_by("namespaces", "confinement by container")
}

fn image() -> Option<TestImage> {
    image_of(&[], &[], &[])
}

/// Makes an image by the real podman, where that works: of the basic programs,
/// of others, of files that are programs there, and of the libraries of
/// programs elsewhere.
pub(crate) fn image_of(programs: &[&str], own: &[&Path], elsewhere: &[&Path]) -> Option<TestImage> {
    if !has_namespaces() {
        return None;
    }
    let programs: Vec<&str> = BASIC.iter().chain(programs).copied().collect();
    match TestImage::build(&programs, &[], own, elsewhere) {
        Ok(image) => Some(image),
        Err(why) => {
            skipped("confinement by container", &why);
            None
        }
    }
}

/// A file of this machine's system that the image lacks.
fn absent_in_image() -> PathBuf {
    let entries = fs::read_dir("/usr/bin").unwrap().flatten();
    let mut files: Vec<PathBuf> = entries
        .filter(|entry| !BASIC.iter().any(|name| entry.file_name() == *name))
        .map(|entry| entry.path())
        .filter(|path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file()))
        // A word of the shell would be found without a file.
        .filter(|path| path.file_name().is_some_and(|name| name.len() > 8))
        .collect();
    files.sort();
    files.swap_remove(0)
}

/// A run whose sandbox has the image, by a podman that notes its calls.
pub(crate) fn with_image(run: Run, image: &TestImage, scratch: &Scratch) -> Run {
    let calls = scratch.folder().join("calls");
    let real = image.program().display();
    let script = format!("echo \"$1\" >> '{}'\nexec '{real}' \"$@\"", calls.display());
    let path = scripted_engine(&scratch.folder().join("bin"), "podman", &script);
    let (name, value) = image.variable();
    run.env("PATH", path)
        .env(name, value)
        .env("XDG_CACHE_HOME", scratch.folder().join("cache"))
        .env("PREMATH_SANDBOX_IMAGE", TestImage::NAME)
}

fn calls(scratch: &Scratch) -> Vec<String> {
    let text = fs::read_to_string(scratch.folder().join("calls")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The work of an issue: it notes what it sees.
fn look() -> String {
    let absent = absent_in_image();
    let absent = absent.display();
    format!(
        r#"cat {MARK} > src/seen.txt
say() {{ echo "$1" >> src/seen.txt; }}
[ -e '{absent}' ] || say 'no {absent}'
for at in /usr /etc /opt /; do ( : > "$at/written" ) 2> /dev/null && say "wrote $at"; done
say "java $JAVA_HOME"
say "user $(id -un) $(grep -c ^of-the-image: /etc/passwd)"
[ -e /run/of-the-image ] || say 'no state of the image'
git status --short > /dev/null && say 'git works'
[ -e /etc/hosts ] && say 'names are found'
echo 127 > /dev/null; true"#
    )
}

fn profile(scratch: &Scratch) -> Value {
    let folder = scratch.root.join("artifacts/ciwitness");
    let mut files = fs::read_dir(folder).unwrap().flatten();
    let file = files
        .find(|entry| {
            let name = entry.file_name();
            name.to_string_lossy().starts_with("sandbox1_")
        })
        .unwrap();
    serde_json::from_slice(&fs::read(file.path()).unwrap()).unwrap()
}

#[test]
fn the_system_is_the_images_and_a_batch_closes_its_issue() {
    let Some(image) = image() else { return };
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let verify = format!("grep -q image {MARK} src/seen.txt");
    let run = scratch
        .landing_batch(&look(), &verify)
        .env("JAVA_HOME", "/opt/java-of-the-machine");
    let ended = with_image(run, &image, &scratch).end().exits(0);
    assert_eq!(scratch.issue("a")["status"], "closed");
    let seen = scratch.file_on(TARGET, "src/seen.txt").unwrap();
    let user = match rustix::process::geteuid().is_root() {
        true => "root",
        false => "premath",
    };
    let expected = [
        "only in the image".to_owned(),
        format!("no {}", absent_in_image().display()),
        "java /opt/java-of-the-image".to_owned(),
        format!("user {user} 1"),
        "no state of the image".to_owned(),
        "git works".to_owned(),
        "names are found".to_owned(),
    ];
    assert_eq!(seen.lines().collect::<Vec<_>>(), expected);
    let started = ended.events();
    let started = started
        .iter()
        .find(|event| event["event"] == "batch.started");
    let started = started.unwrap();
    assert_eq!(started["sandbox"], "container");
    assert_eq!(started["sandboxImage"]["id"], image.id());
    let profile = profile(&scratch);
    assert_eq!(profile["mode"], "container");
    assert_eq!(profile["image"]["name"], TestImage::NAME);
    assert_eq!(profile["image"]["id"], image.id());
    let read = profile["read"].as_array().unwrap();
    assert!(read.iter().any(|path| path == "{image}/usr"), "{profile}");
    assert!(!read.iter().any(|path| path == "/usr"), "{profile}");
    // No container ran, and none is left; the files are there for the next batch.
    assert_eq!(
        calls(&scratch),
        ["image", "create", "export", "rm"],
        "podman was called"
    );
    assert_eq!(image.containers().unwrap().trim(), "");
    scratch.write_issues(format!("{}\n", issue("b")).as_bytes());
    let run = scratch.landing_batch("echo x > src/b.txt", "true");
    with_image(run, &image, &scratch).end().exits(0);
    assert_eq!(calls(&scratch).split_off(4), ["image"]);
    assert_eq!(scratch.issue("b")["status"], "closed");
}

#[test]
fn what_a_command_may_open_does_not_open_the_files_of_the_image() {
    let Some(image) = image() else { return };
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    // The cache is in the home, which the environment of tests opens.
    let work = r#"( : > "$HOME_OF_USER/.cache/premath/images/x" ) 2> /dev/null && exit 1
echo x > src/a.txt"#;
    let run = scratch
        .batch(work, "true")
        .env("HOME_OF_USER", scratch.home())
        .env("PREMATH_ENV_ALLOW", "HOME_OF_USER");
    let ended = with_image(run, &image, &scratch)
        .without("XDG_CACHE_HOME")
        .end()
        .exits(0);
    let warning = "which holds the files of the image; it stays read-only";
    assert!(ended.stdout.contains(warning), "{}", ended.stdout);
    assert_eq!(scratch.issue("a")["status"], "closed");
}

#[test]
fn the_commands_of_premath_know_the_mode() {
    let Some(image) = image() else { return };
    let scratch = Scratch::with_issues(0, &[]);
    let run = |arguments: &[&str]| {
        let run = scratch.premath(arguments.iter().copied());
        with_image(run, &image, &scratch).end()
    };
    let explained = run(&["sandbox", "explain", "--json"]).exits(0);
    let explained: Value = serde_json::from_str(&explained.stdout).unwrap();
    assert_eq!(explained["mode"], "container");
    assert_eq!(explained["image"]["id"], image.id());
    let read = explained["read"].as_array().unwrap();
    let has = |path: &str| {
        read.iter()
            .any(|item| item["path"] == path && item["source"] == "image")
    };
    assert!(has("/usr") && has("/opt") && !has("/run"), "{explained}");
    let tried = run(&["sandbox", "try", "--", "cat", MARK, "src/base.txt"]).exits(0);
    assert_eq!(tried.stdout, "only in the image\nbase\n");
    run(&[
        "sandbox",
        "try",
        "--sandbox",
        "namespaces",
        "--",
        "cat",
        MARK,
    ])
    .exits(1)
    .says("No such file or directory");
    let doctor = run(&["doctor", "--json"]).exits(0);
    let doctor: Value = serde_json::from_str(&doctor.stdout).unwrap();
    assert_eq!(doctor["sandbox"]["mode"], "container", "{doctor}");
    // A program that the image lacks is found missing before anything runs.
    fs::write(
        scratch.root.join("harness.toml"),
        format!(
            "[sandbox]\nmode = \"container\"\nimage = {:?}\n",
            TestImage::NAME
        ),
    )
    .unwrap();
    let absent = absent_in_image();
    let program = absent.file_name().unwrap().to_str().unwrap();
    let batch = scratch.batch_on(std::slice::from_ref(&scratch.root), program, "true");
    with_image(batch, &image, &scratch)
        .without("PREMATH_SANDBOX_IMAGE")
        .end()
        .exits(2)
        .says(&format!(
            "program `{program}` of the work command not found on PATH of the image"
        ));
}

/// A batch whose podman is a script; nothing may come of it.
fn refused(name: &str, script: &str, says: &str) -> (Scratch, Ended) {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let before = scratch.issue_bytes();
    let path = scripted_engine(&scratch.folder().join("bin"), name, script);
    let ended = scratch
        .batch("true", "true")
        .env("PATH", path)
        .env("XDG_CACHE_HOME", scratch.folder().join("cache"))
        .args(["--sandbox", "container", "--sandbox-image", "some/image:1"])
        .end()
        .exits(3)
        .says("the sandbox `container` does not work here: ")
        .says(says)
        .says("hint: set an image that `podman image inspect`")
        .says("refused before dispatch: sandbox_unavailable");
    assert_eq!(scratch.issue_bytes(), before);
    let kept = fs::read_dir(scratch.folder().join("cache/premath/images"));
    for entry in kept.into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_whole = says.contains("/bin/sh") && name == ID;
        assert!(is_whole || name.ends_with(".flock"), "{name} is left");
    }
    (scratch, ended)
}

/// A stand-in that knows the image, and exports by some commands.
fn exporting(commands: &str) -> String {
    format!(
        r#"case $1 in
image) echo '[{{"Id":"sha256:{ID}","Config":{{"Env":["PATH=/bin"]}}}}]' ;;
create) echo made ;;
export) {commands} ;;
rm) : ;;
*) exit 9 ;;
esac"#
    )
}

/// A step could have put it there; it would run unconfined.
#[test]
fn a_program_in_a_worktree_is_not_run_for_the_image() {
    if !has_namespaces() {
        return;
    }
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let mark = scratch.folder().join("was-run");
    let script = format!(": > '{}'; exit 125", mark.display());
    for folder in [scratch.root.join("bin"), scratch.lanes[0].join("bin")] {
        let path = scripted_engine(&folder, "podman", &script);
        let run = scratch.batch("true", "true").env("PATH", path);
        let run = run.args(["--sandbox-image", "some/image:1"]);
        run.end()
            .exits(3)
            .says("neither podman nor docker is in PATH");
        assert!(!mark.exists(), "{}", folder.display());
    }
}

#[test]
fn a_batch_without_its_image_is_refused() {
    if !has_namespaces() {
        return;
    }
    refused("other", "", "neither podman nor docker is in PATH");
    let unknown = "echo \"Error: $2 $3: no such image\" >&2; exit 125";
    refused(
        "podman",
        unknown,
        "`podman pull some/image:1` failed: Error: some/image:1",
    );
    let fails = exporting("echo some bytes; echo 'storage is broken' >&2; exit 4");
    refused(
        "podman",
        &fails,
        "`podman export made` failed: storage is broken",
    );
    refused(
        "docker",
        &exporting("exit 0"),
        "the image `some/image:1` has no program /bin/sh",
    );
    let odd = "echo '[{\"Id\":\"../../x\"}]'";
    refused("podman", odd, "`../../x` is not an image id");
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let batch = || {
        scratch
            .batch("true", "true")
            .args(["--sandbox", "container"])
    };
    batch()
        .end()
        .exits(3)
        .says("does not work here: no image is set");
    batch()
        .env("XDG_CACHE_HOME", scratch.root.join("cache"))
        .args(["--sandbox-image", "x"])
        .end()
        .exits(3)
        .says("it is in the repository; set XDG_CACHE_HOME");
}

#[test]
fn an_archive_that_leads_out_of_the_image_is_refused() {
    if !has_namespaces() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("inside")).unwrap();
    fs::write(at("evil.txt"), "evil\n").unwrap();
    let pack = |archive: &str, arguments: &[&str]| {
        let status = command("tar")
            .arg("--create")
            .arg("--file")
            .arg(at(archive))
            .arg("--directory")
            .arg(at("inside"))
            .args(arguments)
            .status();
        assert!(status.unwrap().success());
        exporting(&format!("exec /bin/cat '{}'", at(archive).display()))
    };
    // A name that leads up, as `tar` itself would not unpack it.
    let script = pack("up.tar", &["--absolute-names", "../evil.txt"]);
    let (scratch, _) = refused(
        "podman",
        &script,
        "the entry `../evil.txt` leads out of the image",
    );
    assert!(
        !scratch
            .folder()
            .join("cache/premath/images/evil.txt")
            .exists()
    );
    // A link, and a file below it.
    std::os::unix::fs::symlink("../../..", at("inside/out")).unwrap();
    pack("link.tar", &["out"]);
    fs::remove_file(at("inside/out")).unwrap();
    fs::create_dir(at("inside/out")).unwrap();
    fs::write(at("inside/out/evil.txt"), "evil\n").unwrap();
    let status = command("tar")
        .args(["--append", "--file"])
        .arg(at("link.tar"))
        .arg("--directory")
        .arg(at("inside"))
        .arg("out/evil.txt")
        .status();
    assert!(status.unwrap().success());
    let script = exporting(&format!("exec /bin/cat '{}'", at("link.tar").display()));
    let (scratch, _) = refused("podman", &script, "it is below a link or a file");
    assert!(!scratch.folder().join("evil.txt").exists());
    assert!(!Path::new("/evil.txt").exists());
}
