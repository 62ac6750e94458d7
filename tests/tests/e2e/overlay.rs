//! A repository on an overlay: the kernel layers nothing over it.

use premath_tests::{Run, Scratch, binaries, issue, mode_works};
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Mounts an overlay over the folder `$0`, whose changes go to `$1`, and runs the rest
/// of the arguments in the repository there.
const ON_OVERLAY: &str = r#"mount -t overlay -o "lowerdir=$0,upperdir=$1/upper,workdir=$1/work,userxattr" overlay "$0" || exit 99
cd "$0/repo" && shift && exec "$@""#;

/// Passes where it finds what an earlier verification left, and notes the issue.
const VERIFY: &str = r#"if [ -e ignored/left ]; then echo "$PREMATH_ISSUE_ID" >> "$HOME/found"; exit 0; fi
mkdir -p ignored; : > ignored/left; [ ! -e src/broken.txt ]"#;

const WORK: &str = r#"if [ "$PREMATH_ISSUE_ID" = b ]; then echo x > src/broken.txt
else echo x > "src/$PREMATH_ISSUE_ID.txt"; fi"#;

#[test]
fn verifications_run_without_a_layer_and_find_nothing_of_each_other() {
    let scratch = Scratch::with_issues(0, &["a", "b", "c"].map(issue));
    let elsewhere = Scratch::new(0);
    let changes = elsewhere.folder().join("changes");
    for part in ["upper", "work"] {
        fs::create_dir_all(changes.join(part)).unwrap();
    }
    let on_overlay = |program: &Path| -> Run {
        let run = scratch.run(Path::new("unshare"));
        let run = run.args(["-Urm", "sh", "-c", ON_OVERLAY]);
        run.arg(scratch.folder()).arg(&changes).arg(program)
    };
    let explain = ["sandbox", "explain", "--sandbox", "namespaces"];
    let explain = on_overlay(&binaries().premath).args(explain).end();
    if !mode_works(
        explain,
        "namespaces on an overlay",
        "a repository on an overlay",
    ) {
        return;
    }
    let batch = on_overlay(&binaries().coordinator).args(["--json", "--lanes", "1"]);
    let batch = batch.args(["--sandbox", "namespaces", "--override-reason", "test"]);
    let batch = batch.args(["--work-cmd", WORK, "--verify-cmd", VERIFY]);
    let ended = batch.end().exits(1);
    assert!(ended.stdout.contains("nothing can be layered over"));
    let event = ended.events().pop().unwrap();
    assert_eq!(
        event["counts"],
        json!({"blocked": 1, "closed": 2}),
        "{event}"
    );
    assert!(!changes.join("upper/home/found").exists());
    // The kernel's own folder is shut.
    let _ = fs::set_permissions(changes.join("work/work"), Permissions::from_mode(0o700));
}
