//! Toolchains that a `PATH` leads to.

use super::{HostAccess, ReadReason, Search};
use crate::supervisor::confine::image::Image;
use std::path::{Path, PathBuf};

/// How many programs of a folder are looked at.
const PROGRAMS_MAX: usize = 2_000;

/// A manager of toolchains: what its folder is called, the variable that moves
/// it, and what of it may be read; all of it where empty.
struct Manager {
    folder: &'static str,
    variable: Option<&'static str>,
    parts: &'static [&'static str],
}

/// A command has a folder of its own there.
const PRIVATE: &str = "CARGO_HOME";

const fn manager(
    folder: &'static str,
    variable: Option<&'static str>,
    parts: &'static [&'static str],
) -> Manager {
    Manager {
        folder,
        variable,
        parts,
    }
}

/// The managers that are known, by their folder in the home. None of the parts
/// holds credentials.
const MANAGERS: [Manager; 15] = [
    manager(
        ".rustup",
        Some("RUSTUP_HOME"),
        &["toolchains", "settings.toml", "update-hashes"],
    ),
    manager(".cargo", Some(PRIVATE), &["bin", "env"]),
    manager(".nvm", Some("NVM_DIR"), &["versions"]),
    manager(".pyenv", Some("PYENV_ROOT"), &[]),
    manager(".rbenv", Some("RBENV_ROOT"), &[]),
    manager(".goenv", Some("GOENV_ROOT"), &[]),
    manager(".asdf", Some("ASDF_DATA_DIR"), &[]),
    manager(".sdkman", Some("SDKMAN_DIR"), &["candidates"]),
    manager(".volta", Some("VOLTA_HOME"), &["bin", "tools"]),
    manager(
        ".local/share/mise",
        Some("MISE_DATA_DIR"),
        &["installs", "shims", "plugins"],
    ),
    manager(".local/share/pnpm", None, &["global"]),
    manager(".local/share/uv", None, &["python", "tools"]),
    manager(".bun", None, &["bin", "install/global"]),
    manager(".deno", None, &["bin"]),
    manager("go", None, &["bin"]),
];

/// Folders that make the one above a program's folder an installation.
const INSTALLATION: [&str; 4] = ["lib", "libexec", "include", "pyvenv.cfg"];

pub(super) fn add(host: &mut HostAccess, search: &Search<'_>) {
    let entries: Vec<PathBuf> = std::env::split_paths(&search.path)
        .filter(|path| path.is_absolute())
        .filter_map(|path| std::fs::canonicalize(path).ok())
        .collect();
    let managers = managers(search);
    for folder in &entries {
        if is_home(folder, search) {
            continue;
        }
        if host.may_read(folder) {
            // One of the system's: its variables are for a command too.
            add_of_manager(host, folder, &managers, search);
            continue;
        }
        add_folder(host, folder, &managers, search);
        for target in programs_elsewhere(folder) {
            if let (false, Some(above)) = (host.may_read(&target), target.parent()) {
                host.reads(&target, ReadReason::Path);
                add_installation(host, above, &managers, search);
            }
        }
    }
}

/// Takes the folders of managers from what an image declares; its files are
/// there already.
pub(super) fn add_of_image(host: &mut HostAccess, image: &Image) {
    let variables = MANAGERS.iter().filter_map(|manager| manager.variable);
    for variable in variables.filter(|variable| *variable != PRIVATE) {
        if let Some(value) = image.variable(variable) {
            host.variables.push((variable, value.into()));
        }
    }
}

/// A manager that is here: its folder, and what of it may be read.
struct Found {
    root: PathBuf,
    manager: &'static Manager,
}

fn managers(search: &Search<'_>) -> Vec<Found> {
    let here = |manager: &'static Manager| {
        let moved = manager.variable.and_then(search.variable);
        let moved = moved.filter(|path| path.is_absolute());
        let root = moved.or_else(|| Some(search.home?.join(manager.folder)))?;
        let root = std::fs::canonicalize(root).ok()?;
        Some(Found { root, manager })
    };
    MANAGERS.iter().filter_map(here).collect()
}

fn add_folder(host: &mut HostAccess, folder: &Path, managers: &[Found], search: &Search<'_>) {
    host.reads(folder, ReadReason::Path);
    add_installation(host, folder, managers, search);
}

/// Adds what programs of a folder need beside themselves.
fn add_installation(host: &mut HostAccess, folder: &Path, managers: &[Found], search: &Search<'_>) {
    if add_of_manager(host, folder, managers, search) {
        return;
    }
    // A package of npm's needs those beside it.
    let is_modules = |path: &&Path| path.file_name().is_some_and(|name| name == "node_modules");
    let modules = folder.ancestors().filter(is_modules).last();
    if let Some(modules) = modules {
        return host.reads(modules, ReadReason::Path);
    }
    let is_of_programs = folder
        .file_name()
        .is_some_and(|name| name == "bin" || name == "sbin");
    let Some(above) = folder.parent().filter(|_| is_of_programs) else {
        return;
    };
    let is_shared = search
        .home
        .is_some_and(|home| above == home.join(".local") || home.starts_with(above));
    let is_installation = INSTALLATION.iter().any(|name| above.join(name).exists());
    if is_shared {
        // Python's packages of this user; the rest there is other programs' data.
        host.reads(&above.join("lib"), ReadReason::Path);
    } else if is_installation && above != Path::new("/") {
        host.reads(above, ReadReason::Path);
    }
}

/// Adds what the manager has whose programs are in a folder; `false` where there is
/// none.
fn add_of_manager(
    host: &mut HostAccess,
    folder: &Path,
    managers: &[Found],
    search: &Search<'_>,
) -> bool {
    let is_its = |found: &&Found| folder.starts_with(&found.root);
    let Some(found) = managers.iter().find(is_its) else {
        return false;
    };
    add_manager(host, found, search);
    // The programs of cargo are those of rustup.
    if found.manager.folder == ".cargo" {
        let is_rustup = |other: &&Found| other.manager.folder == ".rustup";
        let rustup = managers.iter().find(is_rustup);
        rustup
            .into_iter()
            .for_each(|found| add_manager(host, found, search));
    }
    true
}

/// Adds what a manager has, unless steps can write a part of it.
fn add_manager(host: &mut HostAccess, found: &Found, search: &Search<'_>) {
    let folders: Vec<PathBuf> = match found.manager.parts {
        [] => vec![found.root.clone()],
        parts => parts.iter().map(|part| found.root.join(part)).collect(),
    };
    if folders.iter().any(|folder| search.steps.meet(folder)) {
        host.left_out.insert(found.root.clone());
        return;
    }
    for folder in &folders {
        host.reads(folder, ReadReason::Path);
    }
    if let Some(variable) = found.manager.variable
        && variable != PRIVATE
        && !host.variables.iter().any(|(name, _)| *name == variable)
    {
        host.variables.push((variable, found.root.clone().into()));
    }
}

fn is_home(folder: &Path, search: &Search<'_>) -> bool {
    folder == Path::new("/") || search.home.is_some_and(|home| home.starts_with(folder))
}

/// Returns where the links of a folder lead.
fn programs_elsewhere(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let links = entries
        .take(PROGRAMS_MAX)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let mut targets: Vec<PathBuf> = links
        .filter_map(|entry| std::fs::canonicalize(entry.path()).ok())
        .filter(|target| target.is_file() && !target.starts_with(folder))
        .collect();
    targets.sort();
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host_of(path: &[&Path], home: &Path) -> HostAccess {
        host_with(HostAccess::default(), path, home, |_| None)
    }

    fn host_with(
        mut host: HostAccess,
        path: &[&Path],
        home: &Path,
        variable: fn(&str) -> Option<PathBuf>,
    ) -> HostAccess {
        let search = Search::plain(home, std::env::join_paths(path).unwrap(), variable);
        add(&mut host, &search);
        host
    }

    #[test]
    fn a_toolchain_is_read_and_the_credentials_beside_it_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        for there in [
            ".cargo/bin",
            ".rustup/toolchains/x/bin",
            ".local/bin",
            ".local/lib",
            "a/bin",
            "b/bin",
            "b/lib",
        ] {
            std::fs::create_dir_all(home.join(there)).unwrap();
        }
        std::fs::write(home.join(".cargo/credentials.toml"), "x").unwrap();
        let path = [".cargo/bin", ".local/bin", "a/bin", "b/bin"].map(|name| home.join(name));
        let host = host_of(&path.each_ref().map(PathBuf::as_path), &home);
        for name in [
            ".cargo/bin",
            ".rustup/toolchains/x",
            ".local/bin",
            ".local/lib",
            "a/bin",
            "b/lib",
        ] {
            assert!(host.may_read(&home.join(name)), "{name}");
        }
        for name in [".cargo/credentials.toml", ".local/share", "a", "", "c"] {
            assert!(!host.may_read(&home.join(name)), "{name}");
        }
        assert_eq!(
            host.variables,
            [("RUSTUP_HOME", home.join(".rustup").into())]
        );
    }

    /// As the images of Rust have them, below `/usr`.
    #[test]
    fn a_toolchain_of_the_systems_has_its_variable() {
        // A test has no variables of its own; a command finds these folders.
        static SYSTEM: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
        let folder = tempfile::tempdir().unwrap();
        let system = folder.path().canonicalize().unwrap();
        for there in ["cargo/bin", "rustup/toolchains/x/bin"] {
            std::fs::create_dir_all(system.join(there)).unwrap();
        }
        let system = SYSTEM.get_or_init(|| system);
        let variable: fn(&str) -> Option<PathBuf> = |name| {
            let folder = match name {
                "CARGO_HOME" => "cargo",
                "RUSTUP_HOME" => "rustup",
                _ => return None,
            };
            Some(SYSTEM.get()?.join(folder))
        };
        let mut host = HostAccess::default();
        host.reads(system, ReadReason::Path);
        let path = system.join("cargo/bin");
        let host = host_with(host, &[&path], Path::new("/nonexistent"), variable);
        assert_eq!(
            host.variables,
            [("RUSTUP_HOME", system.join("rustup").into())]
        );
    }

    #[test]
    fn a_home_in_the_path_opens_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let host = host_of(&[&home, Path::new("/"), Path::new("relative")], &home);
        assert!(host.read.is_empty());
    }
}
