//! The image of the suite: programs of this machine, exported once by the real
//! podman and the real harness, for all users of the tests.
//!
//! Podman keeps processes and files of each user that runs it. Every ground has
//! a user of its own, and looks for what is left of it, so that podman's answer
//! is played back there.

use super::tools::probe;
use premath_tests::image::{BASIC, TestImage, program_at, scripted_engine};
use premath_tests::{Scratch, binaries, command};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What hostile steps use beside the basic programs.
const PROGRAMS: &str = "[ arch awk base64 basename bash chgrp chmod chown cmp comm curl cut date \
    dd df diff dirname du expr false find flock fold free getent gzip head hostname ionice ipcmk \
    ipcs join kill ldd link ln logger ls lsns mkfifo mknod mktemp mount mv nice nl nohup nproc \
    nsenter od paste pgrep pkill prlimit printenv printf ps pwd python3 readlink realpath renice \
    rmdir script sed seq setpriv setsid sha1sum sha256sum shuf sort split stat stdbuf stty sync \
    tail tar tee timeout tmux tr true truncate tty umount uname uniq unlink unshare wc which who \
    whoami xargs yes";

/// The image with its exported files.
#[derive(Debug)]
pub(super) struct System {
    image: TestImage,
}

impl System {
    /// Returns it, made once a process; why it cannot be made.
    pub(super) fn get() -> &'static Result<Self, String> {
        static MADE: OnceLock<Result<System, String>> = OnceLock::new();
        MADE.get_or_init(Self::make)
    }

    fn make() -> Result<Self, String> {
        let programs: Vec<&str> = BASIC
            .into_iter()
            .chain(PROGRAMS.split_whitespace())
            .collect();
        let folders = [
            printed_folder("git", &["--exec-path"]),
            printed_folder("python3", &["-c", STDLIB]),
        ];
        let folders: Vec<&Path> = folders.iter().flatten().map(PathBuf::as_path).collect();
        let own = [binaries().premath.clone(), probe()];
        let own: Vec<&Path> = own.iter().map(PathBuf::as_path).collect();
        let system = Self {
            image: TestImage::build(&programs, &folders, &own, &[])?,
        };
        system.image.ends_with_this_process();
        system.export()?;
        let answer = system.path("answer.json");
        fs::write(&answer, system.image.inspected()?).unwrap();
        fs::set_permissions(&answer, fs::Permissions::from_mode(0o644)).unwrap();
        // Whatever else is asked of it must not be needed.
        let script = format!(
            "[ \"$1 $2\" = 'image inspect' ] && exec cat '{}'\nexit 9",
            answer.display()
        );
        scripted_engine(&system.podman(), "podman", &script);
        Ok(system)
    }

    /// Has the harness export the files, by podman itself.
    fn export(&self) -> Result<(), String> {
        let scratch = Scratch::with_issues(0, &[]);
        let (name, value) = self.image.variable();
        let mut run = scratch
            .premath(["sandbox", "explain"])
            .without("PREMATH_SANDBOX_WRITE")
            .env(name, value);
        for (name, value) in self.variables() {
            run = run.env(name, value);
        }
        let ended = run.args(["--sandbox", "container"]).end();
        if ended.code != Some(0) {
            return Err(ended.stderr.trim().to_owned());
        }
        // Every ground's user reads them; only this one writes.
        for folder in ["cache", "cache/premath", "cache/premath/images"] {
            let open = fs::Permissions::from_mode(0o755);
            fs::set_permissions(self.path(folder), open).unwrap();
        }
        // Every batch holds the image's lock.
        for entry in fs::read_dir(self.path("cache/premath/images")).unwrap() {
            let path = entry.unwrap().path();
            if path
                .extension()
                .is_some_and(|extension| extension == "flock")
            {
                fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
            }
        }
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.image.folder().join(name)
    }

    /// Returns the folder of the podman that the grounds have.
    pub(super) fn podman(&self) -> PathBuf {
        self.path("bin")
    }

    /// Returns the variables that lead the harness to the image.
    pub(super) fn variables(&self) -> [(&'static str, OsString); 2] {
        [
            ("XDG_CACHE_HOME", self.path("cache").into()),
            ("PREMATH_SANDBOX_IMAGE", TestImage::NAME.into()),
        ]
    }
}

/// Prints where Python's own modules are.
const STDLIB: &str = "import sysconfig; print(sysconfig.get_paths()['stdlib'])";

/// Returns the folder that a program prints.
fn printed_folder(program: &str, arguments: &[&str]) -> Option<PathBuf> {
    let program = program_at(program)?;
    let ended = command(program).args(arguments).output().ok()?;
    let text = String::from_utf8(ended.stdout).ok()?;
    let folder = PathBuf::from(text.trim());
    folder.is_dir().then_some(folder)
}
