//! The programs of a ground, and its end.

use super::Ground;
use premath_tests::binaries;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

impl Drop for Ground {
    fn drop(&mut self) {
        self.bystanders.clear();
        let folder = self.scratch.folder();
        self.user.ends_all(&folder, &[]);
        unlock(&folder);
    }
}

/// Makes every folder one that can be emptied; folders are nested deeper than
/// one path reaches.
fn unlock(folder: &Path) {
    let _ = premath_tests::command("chmod")
        .args(["-R", "u+rwX"])
        .arg(folder)
        .stderr(std::process::Stdio::null())
        .status();
    let _ = premath_tests::command("rm")
        .arg("-rf")
        .arg(folder.join("repo-lanes"))
        .stderr(std::process::Stdio::null())
        .status();
}

pub(super) fn coordinator_at(tools: &Path) -> PathBuf {
    let name = binaries().coordinator.file_name().unwrap();
    tools.join(name)
}

/// Returns the program that hostile steps reach beyond a shell with.
pub(super) fn probe() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_premath-probe"))
}

/// Returns a folder of the programs that any user reaches: where they were
/// built, or links to them in the ground's own.
pub(super) fn reachable_tools(folder: &Path) -> PathBuf {
    let probe = probe();
    let built = binaries().folder();
    let is_open = |path: &Path| {
        fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o005 == 0o005)
    };
    if probe.parent() == Some(built) && built.ancestors().all(is_open) {
        return built.to_path_buf();
    }
    let tools = folder.join("bin");
    fs::create_dir_all(&tools).unwrap();
    let all = binaries();
    for program in [&all.coordinator, &all.worker, &all.premath, &probe] {
        let to = tools.join(program.file_name().unwrap());
        if fs::hard_link(program, &to).is_err() {
            fs::copy(program, &to).unwrap();
        }
    }
    tools
}
