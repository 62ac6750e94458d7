//! What a confined command cannot do, with real processes, for the user who
//! runs the tests: more is kept from root's commands.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot continue fails"
)]

use fs2::FileExt;
use harness_worker::supervisor::confine::landlock::Lists;
use harness_worker::supervisor::confine::namespaces::{CommandBounds, Loopback, View, ViewEntry};
use harness_worker::supervisor::{
    Ceilings, CommandSpec, Exit, ExitCause, Resource, Supervisor, shell,
};
use premath_kernel::policy::sandbox::SandboxMode;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Where programs are.
const SYSTEM: [&str; 8] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/proc", "/dev",
];

/// The bytes of a file, and of all of them.
const FILES: u64 = 64 << 20;

/// A folder of one command, and its outcome.
struct Ran {
    folder: TempDir,
    exit: Exit,
}

impl Ran {
    fn output(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.folder.path().join(name)).unwrap();
        read("out") + &read("err")
    }
}

/// Runs a shell command in the folder `work`, which it may write to, in each
/// mode that works here.
fn in_each_mode(script: &str, ceilings: &Ceilings, check: impl Fn(SandboxMode, &Ran)) {
    for mode in [SandboxMode::Namespaces, SandboxMode::Landlock] {
        if works(mode) {
            check(mode, &run(mode, script, ceilings.clone()));
        }
    }
}

/// Tries a mode as the harness would, by its own binary.
fn works(mode: SandboxMode) -> bool {
    let exit = run(mode, ":", Ceilings::default()).exit;
    if exit.is_unconfined() {
        let _ = writeln!(std::io::stderr(), "skipped: {mode:?}: {:?}", exit.cause);
    }
    !exit.is_unconfined()
}

fn run(mode: SandboxMode, script: &str, ceilings: Ceilings) -> Ran {
    run_with(mode, script, ceilings, |_, _| ())
}

/// Runs a command with what a function adds to it, given the folder around `work`.
fn run_with(
    mode: SandboxMode,
    script: &str,
    mut ceilings: Ceilings,
    more: impl FnOnce(&Path, &mut CommandSpec),
) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let work = fs::canonicalize(folder.path()).unwrap().join("work");
    fs::create_dir(&work).unwrap();
    ceilings.measure([work.as_path()]);
    let mut spec = shell(script);
    spec.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    spec.cwd = work.clone();
    spec.limit = Duration::from_secs(30);
    spec.ceilings = ceilings;
    confined(mode, &work, &mut spec);
    more(work.parent().unwrap(), &mut spec);
    let lock = File::create(folder.path().join("lock")).unwrap();
    lock.try_lock_exclusive().unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_harness-worker"));
    let streams = ["out", "err"].map(|name| File::create(folder.path().join(name)).unwrap());
    let exit = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            let mut supervisor = Supervisor::start(binary, lock.into()).unwrap();
            let [out, err] = streams;
            let mut running = supervisor.begin(spec, out, err).await.unwrap();
            running.wait().await.unwrap()
        });
    Ran { folder, exit }
}

fn confined(mode: SandboxMode, work: &Path, spec: &mut CommandSpec) {
    let bounds = CommandBounds {
        file_bytes: Some(FILES),
        ..CommandBounds::default()
    };
    let system = SYSTEM.map(PathBuf::from);
    let system = system.iter().filter(|path| path.exists());
    if mode == SandboxMode::Landlock {
        let null = Path::new("/dev/null");
        spec.lists = Some(Lists::new([work, null], system.map(PathBuf::as_path)));
        spec.bounds = bounds;
        return;
    }
    // Namespaces have their own of these.
    let system = system.filter(|path| !path.starts_with("/proc") && !path.starts_with("/dev"));
    let mut places: Vec<ViewEntry> = system.map(|path| ViewEntry::as_it_is(path)).collect();
    places.push(ViewEntry::writable(work, work));
    spec.view = Some(View {
        places,
        network: Some(Loopback::default()),
        bounds,
    });
}

/// A temporary folder on an overlay can take the changes of none.
#[test]
fn a_seed_that_cannot_be_layered_is_an_empty_folder_of_the_commands_own() {
    if !works(SandboxMode::Namespaces) {
        return;
    }
    let seed = |folder: &Path, spec: &mut CommandSpec| {
        for name in ["work/cache", "layer/upper", "layer/work"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        // Nothing can be layered over a file.
        fs::write(folder.join("lower"), "x").unwrap();
        let [lower, layer, at] = ["lower", "layer", "work/cache"].map(|name| folder.join(name));
        let view = spec.view.as_mut().unwrap();
        view.places.push(ViewEntry::seeded(&lower, &layer, &at));
    };
    let script = "ls cache; echo mine > cache/mine; cat cache/mine";
    let mode = SandboxMode::Namespaces;
    let ran = run_with(mode, script, Ceilings::default(), seed);
    assert_eq!(ran.output(), "mine\n", "{:?}", ran.exit);
    let is_in = |name: &str| ran.folder.path().join(name).join("mine").exists();
    assert!(is_in("layer/upper"));
    assert!(!is_in("work/cache"));
}

/// Control groups of the machine could be written to by root in a namespace of
/// users, which has them mounted.
#[test]
fn no_namespace_is_made_and_nothing_is_mounted() {
    let script = r#"mkdir at
for kind in cgroup2 tmpfs ramfs; do
  mount -t $kind none at && echo "mounted: $kind"
  unshare --user --map-root-user --mount --cgroup mount -t $kind none at && echo "mounted: $kind below"
done
for kind in user mount cgroup ipc net pid; do unshare --$kind true && echo "made: $kind"; done; echo end"#;
    in_each_mode(script, &Ceilings::default(), |mode, ran| {
        let output = ran.output();
        let found: Vec<&str> = output
            .lines()
            .filter(|line| line.starts_with("mounted: ") || line.starts_with("made: "))
            .collect();
        // Root under Landlock may make namespaces other than those of users;
        // Landlock refuses the mounts.
        let is_root = rustix::process::geteuid().is_root();
        let found: Vec<_> = found
            .into_iter()
            .filter(|line| {
                let is_made = line.starts_with("made: ") && !line.ends_with("user");
                !(is_root && mode == SandboxMode::Landlock && is_made)
            })
            .collect();
        assert!(found.is_empty(), "{mode:?}: {found:?}");
        assert!(output.contains("end\n"), "{mode:?}: {output}");
    });
}

/// A handler that the machine starts for a core runs as root, outside; by a bound
/// of 1 none is started, by one of 0 it is (core(5)).
#[test]
fn a_crash_starts_no_handler() {
    let script = r#"n=0; until grep -q 'Max core file size *1 *1 ' /proc/self/limits; do
  n=$((n+1)); [ $n -gt 200 ] && break; sleep 0.01; done
ulimit -c 0 2>/dev/null; python3 - <<'END'
import resource
try: resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except OSError: pass
END
grep core /proc/self/limits; sh -c 'kill -SEGV $$'; ls; echo end"#;
    in_each_mode(script, &Ceilings::default(), |mode, ran| {
        let output = ran.output();
        let limit = output.lines().find(|line| line.starts_with("Max core"));
        let numbers: Vec<&str> = limit.unwrap().split_whitespace().skip(4).take(2).collect();
        assert_eq!(numbers, ["1", "1"], "{mode:?}: {output}");
        assert!(
            !output.lines().any(|line| line.starts_with("core")),
            "{output}"
        );
        assert!(output.contains("end\n"), "{mode:?}: {output}");
    });
}

/// In a folder that hands its group on, folders have the bit that programs may
/// not set.
#[test]
fn tools_work_in_a_folder_that_hands_its_group_on() {
    let script = r#"set -e; export HOME=$PWD
mkdir -p a/b; echo x > a/b/c; cp -r a d; chmod +x a/b/c; install -d e; install -m 755 a/b/c e
git init -q repo; cd repo; echo x > x; git add x
git -c user.name=a -c user.email=a@localhost commit -qm x; git status --short; git gc -q
mkdir ../u; tar cf - x | tar xf - -C ../u; python3 -c 'import shutil; shutil.copytree("../a", "../f", copy_function=shutil.copy)'
stat -c %a ../a ../a/b"#;
    let open = format!("chmod 2775 . 2>/dev/null || :; {script}");
    for mode in [SandboxMode::Namespaces, SandboxMode::Landlock] {
        if works(mode) {
            let ran = run(mode, &open, Ceilings::default());
            assert_eq!(ran.exit.code, Some(0), "{mode:?}: {}", ran.output());
        }
    }
}

/// A command that stays below its bound is left alone, whatever it holds.
#[test]
fn what_is_held_is_bounded_and_a_little_of_it_is_not() {
    let holds = |mebibytes: u32| {
        format!(
            r#"python3 - <<'END'
import os, socket, time
ends = socket.socketpair()
for number in range({mebibytes} // 16):
    fd = os.memfd_create("x")
    for _ in range(16): os.write(fd, b"x" * (1 << 20))
    if number % 2:
        socket.send_fds(ends[0], [b"x"], [fd]); os.close(fd)
time.sleep(1.5)
END"#
        )
    };
    let mut ceilings = Ceilings::default();
    ceilings.memory = Some(256 << 20);
    in_each_mode(&holds(32), &ceilings, |mode, ran| {
        assert_eq!(
            ran.exit.cause,
            ExitCause::Exited,
            "{mode:?}: {}",
            ran.output()
        );
        assert_eq!(ran.exit.code, Some(0), "{mode:?}: {}", ran.output());
    });
    in_each_mode(&holds(640), &ceilings, |mode, ran| {
        let exceeded = ExitCause::Exceeded(Resource::Memory);
        assert_eq!(ran.exit.cause, exceeded, "{mode:?}: {}", ran.output());
    });
}

/// Not every machine has it; where it has, the tests above mean something.
#[test]
fn the_tools_of_these_tests_are_there() {
    for tool in ["unshare", "python3", "git", "tar"] {
        let found = Command::new(tool).arg("--version").output();
        assert!(found.is_ok(), "{tool} is needed");
    }
}
