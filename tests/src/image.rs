//! A container image of the tests' own: some programs of this machine, in
//! podman's storage of one test.

use crate::command;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;

/// Where programs are looked for.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What of Python's folders no test needs.
const LEFT_OUT: [&str; 6] = [
    "__pycache__",
    "*/python3*/test",
    "*/python3*/tests",
    "*/site-packages",
    "*/dist-packages",
    "*/config-3*",
];

/// Folders of the root that are links where `/usr` holds everything.
const MERGED: [&str; 4] = ["/bin", "/lib", "/lib64", "/sbin"];

/// Programs for work and verifications by a shell.
pub const BASIC: [&str; 16] = [
    "cat", "cp", "cut", "echo", "env", "git", "grep", "head", "id", "ls", "mkdir", "rm", "sh",
    "sleep", "test", "touch",
];

/// A file that is nowhere but in the image.
pub const MARK: &str = "/opt/of-the-image.txt";

/// An image, which is gone with this value.
#[derive(Debug)]
pub struct TestImage {
    folder: TempDir,
    program: PathBuf,
    id: String,
}

impl TestImage {
    /// The name of the image.
    pub const NAME: &str = "localhost/premath-test:1";

    /// Makes an image of programs and folders of this machine, of `own` files
    /// that it gets as `/usr/local/bin/<name>`, and of the libraries of programs
    /// `elsewhere`, which it does not get.
    ///
    /// # Errors
    ///
    /// Why podman cannot make images here.
    pub fn build(
        programs: &[&str],
        folders: &[&Path],
        own: &[&Path],
        elsewhere: &[&Path],
    ) -> Result<Self, String> {
        let program = program_at("podman").ok_or("podman is not installed")?;
        let folder = tempfile::Builder::new()
            .prefix("premath-image-")
            .tempdir_in("/var/tmp")
            .map_err(|error| error.to_string())?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut image = Self {
            folder,
            program,
            id: String::new(),
        };
        image.write_configuration();
        let archive = image.pack(programs, folders, own, elsewhere);
        image.podman(&[
            "import",
            "--change",
            &format!("ENV PATH={PATH}"),
            "--change",
            "ENV JAVA_HOME=/opt/java-of-the-image",
            &archive.to_string_lossy(),
            Self::NAME,
        ])?;
        fs::remove_file(archive).unwrap();
        let shown: Value = serde_json::from_str(&image.inspected()?).unwrap();
        image.id = shown[0]["Id"].as_str().unwrap().to_owned();
        Ok(image)
    }

    /// Returns the folder of everything of the image.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the image's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns podman.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Returns the variable that leads podman to the image, with its value.
    pub fn variable(&self) -> (&'static str, PathBuf) {
        ("CONTAINERS_STORAGE_CONF", self.path("storage.conf"))
    }

    /// Returns what podman shows of the image.
    ///
    /// # Errors
    ///
    /// What podman says.
    pub fn inspected(&self) -> Result<String, String> {
        self.podman(&["image", "inspect", Self::NAME])
    }

    /// Returns the ids of all containers.
    ///
    /// # Errors
    ///
    /// What podman says.
    pub fn containers(&self) -> Result<String, String> {
        self.podman(&["ps", "--all", "--quiet"])
    }

    /// Has the image removed when this process has ended, for one that is kept
    /// to its end.
    pub fn ends_with_this_process(&self) {
        let script = "cat > /dev/null; chmod -R u+rwX \"$1\"; rm -rf \"$1\"";
        let waiting = command("sh")
            .args(["-c", script, "sh"])
            .arg(self.folder())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Its input ends with this process.
        std::mem::forget(waiting);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn podman(&self, arguments: &[&str]) -> Result<String, String> {
        let (name, value) = self.variable();
        let ended = command(&self.program)
            .args(arguments)
            .env(name, value)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        match ended.status.success() {
            true => Ok(String::from_utf8_lossy(&ended.stdout).into_owned()),
            false => Err(said.lines().last().unwrap_or("podman fails").to_owned()),
        }
    }

    /// The plainest storage, which needs no mounts, in the folder.
    fn write_configuration(&self) {
        let [graph, run] = ["storage", "run"].map(|name| self.path(name).display().to_string());
        let text = format!(
            "[storage]\ndriver = \"vfs\"\ngraphroot = {graph:?}\nrunroot = {run:?}\n\
             rootless_storage_path = {graph:?}\n"
        );
        fs::write(self.path("storage.conf"), text).unwrap();
    }

    /// Packs the root of the image.
    fn pack(
        &self,
        programs: &[&str],
        folders: &[&Path],
        own: &[&Path],
        elsewhere: &[&Path],
    ) -> PathBuf {
        let stage = self.path("stage");
        let bin = stage.join("usr/local/bin");
        fs::create_dir_all(&bin).unwrap();
        for file in own {
            let to = bin.join(file.file_name().unwrap());
            fs::copy(file, to).unwrap();
        }
        let mark = stage.join(MARK.trim_start_matches('/'));
        fs::create_dir_all(mark.parent().unwrap()).unwrap();
        fs::write(mark, "only in the image\n").unwrap();
        fs::create_dir_all(stage.join("etc")).unwrap();
        fs::write(
            stage.join("etc/passwd"),
            "root:x:0:0:root:/root:/bin/sh\nof-the-image:x:64999:64999::/nowhere:/bin/sh\n",
        )
        .unwrap();
        fs::create_dir_all(stage.join("run/of-the-image")).unwrap();
        let needing = own.iter().chain(elsewhere);
        let mut needing: Vec<PathBuf> = needing
            .map(|file| fs::canonicalize(file).unwrap())
            .collect();
        for folder in folders {
            add_loadable(folder, &mut needing);
        }
        let mut paths = paths_of(programs, &needing);
        paths.extend(folders.iter().map(|folder| folder.to_path_buf()));
        let list: String = paths
            .iter()
            .map(|path| format!("{}\n", path.strip_prefix("/").unwrap().display()))
            .collect();
        fs::write(self.path("list"), list).unwrap();
        let archive = self.path("root.tar");
        let status = command("tar")
            .args(["--create", "--owner=0", "--group=0", "--numeric-owner"])
            .args(LEFT_OUT.map(|pattern| format!("--exclude={pattern}")))
            .arg("--file")
            .arg(&archive)
            .args(["--directory", "/", "--files-from"])
            .arg(self.path("list"))
            .arg("--directory")
            .arg(&stage)
            .args(["usr", "opt", "etc", "run"])
            .status();
        assert!(status.unwrap().success(), "tar makes the image");
        fs::remove_dir_all(stage).unwrap();
        archive
    }
}

/// Returns a program of this machine that an image can have.
pub fn program_at(program: &str) -> Option<PathBuf> {
    std::env::split_paths(PATH)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// Returns programs, the links that lead to them, and the libraries of these and
/// of others.
fn paths_of(programs: &[&str], others: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut paths = BTreeSet::new();
    for link in MERGED.map(Path::new) {
        if link.is_symlink() {
            paths.insert(link.to_path_buf());
        }
    }
    let mut all = others.to_vec();
    for program in programs {
        // A word of the shell as a rule; its absence fails the test that needs it.
        let Some(path) = program_at(program) else {
            continue;
        };
        all.push(fs::canonicalize(&path).unwrap());
        add(path, &mut paths);
    }
    let listed = command("ldd").args(&all).output().unwrap();
    for word in String::from_utf8_lossy(&listed.stdout).split_whitespace() {
        // `<name> => <path> (<address>)`, or the loader's path alone.
        let path = Path::new(word.trim_end_matches(':'));
        if path.is_absolute() && path.is_file() && !others.iter().any(|other| other == path) {
            add(path.to_path_buf(), &mut paths);
        }
    }
    paths
}

/// Adds the programs and libraries of a folder.
fn add_loadable(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(meta) = entry.metadata() else { continue };
        if meta.is_dir() {
            add_loadable(&entry.path(), found);
        }
        let is_library = entry.file_name().to_string_lossy().contains(".so");
        if meta.is_file() && (is_library || meta.permissions().mode() & 0o111 != 0) {
            found.push(entry.path());
        }
    }
}

/// Adds a file with the links that lead to it.
fn add(path: PathBuf, paths: &mut BTreeSet<PathBuf>) {
    let mut path = path;
    loop {
        let above = fs::canonicalize(path.parent().unwrap()).unwrap();
        path = above.join(path.file_name().unwrap());
        let to = fs::read_link(&path);
        paths.insert(path.clone());
        match to {
            Ok(to) => path = above.join(to),
            Err(_) => return,
        }
    }
}

/// Makes a folder with a stand-in for podman or docker: a shell script, which
/// has its arguments as its own.
pub fn scripted_engine(folder: &Path, name: &str, script: &str) -> OsString {
    fs::create_dir_all(folder).unwrap();
    let program = folder.join(name);
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    folder.as_os_str().to_owned()
}
