//! The three binaries, freshly built.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// A folder of binaries to test instead of freshly built ones.
const GIVEN: &str = "PREMATH_TESTS_BINARIES";

/// Where the binaries are.
#[derive(Debug)]
pub struct Binaries {
    /// `harness-coordinator`.
    pub coordinator: PathBuf,
    /// `harness-worker`.
    pub worker: PathBuf,
    /// `premath`.
    pub premath: PathBuf,
}

impl Binaries {
    /// Returns the folder of the binaries, for a `PATH`.
    pub fn folder(&self) -> &Path {
        self.premath.parent().expect("a binary is in a folder")
    }
}

/// Returns the binaries, built from what the workspace holds now, once a
/// process.
///
/// `cargo test` builds the binaries of the package under test only, and this
/// package has none of them. It does not hold its build lock while tests run. The
/// whole workspace is built: of a part of it the dependencies have other features,
/// and would be compiled once more.
pub fn binaries() -> &'static Binaries {
    static BINARIES: OnceLock<Binaries> = OnceLock::new();
    BINARIES.get_or_init(|| match std::env::var_os(GIVEN) {
        Some(folder) => {
            let folder = PathBuf::from(folder);
            Binaries {
                coordinator: folder.join("harness-coordinator"),
                worker: folder.join("harness-worker"),
                premath: folder.join("premath"),
            }
        }
        None => build(),
    })
}

/// Where the running test was built to, so that its dependencies count here.
struct Build {
    target: PathBuf,
    triple: Option<OsString>,
    profile: OsString,
}

impl Build {
    /// `<target>/[<triple>/]<profile>/deps/<test>`; a program of this package
    /// lies one higher.
    fn of_this_test() -> Self {
        let test = std::env::current_exe().expect("the running test has a path");
        let folder = test.parent().expect("a program is in a folder");
        let folder = match folder.ends_with("deps") {
            true => folder.parent().expect("a test is in <profile>/deps"),
            false => folder,
        };
        let profile = folder.file_name().expect("a profile has a name");
        let target = folder
            .ancestors()
            .skip(1)
            .find(|above| above.join("CACHEDIR.TAG").exists())
            .or_else(|| folder.parent())
            .expect("a profile is in a target folder");
        let triple = folder
            .parent()
            .filter(|parent| *parent != target)
            .and_then(Path::file_name);
        Self {
            target: target.to_path_buf(),
            triple: triple.map(OsString::from),
            profile: match profile.to_str() {
                Some("debug") => "dev".into(),
                _ => profile.into(),
            },
        }
    }
}

fn build() -> Binaries {
    let build = Build::of_this_test();
    let mut command = cargo();
    command
        .current_dir(workspace())
        .args(["build", "--locked", "--workspace", "--bins", "--quiet"])
        .args(["--message-format", "json-render-diagnostics"])
        .arg("--target-dir")
        .arg(&build.target)
        .arg("--profile")
        .arg(&build.profile)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    if let Some(triple) = &build.triple {
        command.arg("--target").arg(triple);
    }
    let built = command.output().expect("cargo can be started");
    assert!(built.status.success(), "the binaries do not build");
    let messages: Vec<serde_json::Value> = built
        .stdout
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    let executable = |name: &str| -> PathBuf {
        messages
            .iter()
            .filter(|message| {
                message["reason"] == "compiler-artifact" && message["target"]["name"] == name
            })
            .find_map(|message| message["executable"].as_str())
            .unwrap_or_else(|| panic!("cargo built no {name}"))
            .into()
    };
    Binaries {
        coordinator: executable("harness-coordinator"),
        worker: executable("harness-worker"),
        premath: executable("premath"),
    }
}

/// Returns the workspace's folder.
pub fn workspace() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package
        .parent()
        .expect("this package is in the workspace")
        .into()
}

/// Makes a command of the cargo that this process was started by, without the variables
/// that are about this package. A build script that reads one of them would run again,
/// and all that depends on it would be compiled again, here and in the next build.
pub fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = command(cargo);
    for (name, _) in std::env::vars_os() {
        let is_of_package = name.to_str().is_some_and(|name| {
            OF_PACKAGE.iter().any(|prefix| name.starts_with(prefix)) || name == "OUT_DIR"
        });
        if is_of_package {
            command.env_remove(name);
        }
    }
    command
}

/// How the variables begin that cargo sets for what it starts.
const OF_PACKAGE: [&str; 6] = [
    "CARGO_BIN_",
    "CARGO_CFG_",
    "CARGO_CRATE_",
    "CARGO_MANIFEST_",
    "CARGO_PKG_",
    "CARGO_PRIMARY_",
];

/// Makes a command: the one place from which tests start processes.
#[expect(
    clippy::disallowed_methods,
    reason = "a test runs outside the harness, like a user's shell"
)]
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}
