//! Bytes as what a step does to its files.
//!
//! The step itself stays in its worktree, as one that is confined: folders are
//! entered where they are folders, and no operation of its own follows a link.

use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Names that something takes for more than a name.
const NAMES: [&[u8]; 40] = [
    b"a",
    b"d",
    b"x",
    b"src",
    b".git",
    b".GIT",
    b".git ",
    b".git.",
    b".git. .",
    b"git~1",
    b"GIT~1",
    b".git::$INDEX_ALLOCATION",
    b".git:x",
    b".git\\config",
    b"..\\x",
    b"a\\.git",
    b".g\xe2\x80\x8cit",
    b"\xef\xbb\xbf.git",
    b".gi\xe2\x81\xaft",
    b".gitmodules",
    b".GitModules",
    b".gitmodules ",
    b"gitmod~1",
    b".gitignore",
    b".gitattributes",
    b".premath",
    b"artifacts",
    b".Premath",
    b"-rf",
    b"a\nb",
    b"\xff\xfe",
    b"\x1b[2J",
    b"con",
    b"HEAD",
    b"config",
    b"objects",
    b"refs",
    b"commondir",
    b" ",
    b"...",
];

/// Where links lead.
const PLACES: [&[u8]; 22] = [
    b"../outside/secret",
    b"../outside",
    b"../../outside/secret",
    b"..",
    b".",
    b"/",
    b"/etc/passwd",
    b"/dev/zero",
    b"/proc/self/environ",
    b".git",
    b".git/config",
    b"../main/.git/config",
    b".GIT/x",
    b"git~1",
    b"a",
    b"d",
    b"d/x",
    b"x",
    b".premath/x",
    b"artifacts",
    b"d/../../outside",
    b"a/../../outside/secret",
];

/// What files hold.
const TEXTS: [&[u8]; 10] = [
    b"",
    b"*\n",
    b"!*\n",
    b"/d\n**/x\n\\",
    b"* text eol=crlf filter=x ident\n",
    b"a\r\nb\r\n",
    b"gitdir: ../outside\n",
    b"[submodule \"x\"]\n\tpath = d\n\turl = -x\n\tupdate = !x\n",
    b"[submodule \"y\"]\n\tpath = src\n\turl = https://localhost/y\n",
    b"\0\xff\0",
];

/// How many operations one input has.
const OPERATIONS_MAX: usize = 400;
/// How many folders one operation nests, at most.
const NEST_MAX: u8 = 255;

/// Does what the bytes say below a worktree.
pub fn run(worktree: &Path, bytes: &[u8]) {
    let mut step = Step {
        root: worktree.to_path_buf(),
        here: worktree.to_path_buf(),
        rest: bytes,
    };
    for _ in 0..OPERATIONS_MAX {
        let Some(operation) = step.byte() else { return };
        step.perform(operation);
    }
}

struct Step<'a> {
    root: PathBuf,
    here: PathBuf,
    rest: &'a [u8],
}

impl Step<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Takes one of a list, or bytes of the input's own.
    fn text(&mut self, list: &[&[u8]]) -> Vec<u8> {
        let choice = usize::from(self.byte().unwrap_or_default());
        if let Some(known) = list.get(choice) {
            return known.to_vec();
        }
        let length = usize::from(self.byte().unwrap_or_default()).min(self.rest.len());
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken.to_vec()
    }

    /// Names something in the folder that the step is in.
    fn place(&mut self) -> PathBuf {
        let mut name = self.text(&NAMES);
        name.retain(|byte| !matches!(byte, 0 | b'/'));
        if name.is_empty() || name == b"." || name == b".." {
            name = b"dots".to_vec();
        }
        self.here.join(OsStr::from_bytes(&name))
    }

    fn perform(&mut self, operation: u8) {
        let place = self.place();
        let is_link = place.is_symlink();
        // What does not work, as over something that is there, is left out.
        let _ = match operation % 16 {
            0 | 1 => fs::create_dir(&place),
            2..=4 => self.write(&place),
            5 | 6 => symlink(OsString::from_vec(self.text(&PLACES)), &place),
            7 => self.special(&place, FileType::Fifo),
            8 => UnixListener::bind(&place).map(drop),
            9 | 10 if !is_link && place.is_dir() => {
                self.here = place;
                Ok(())
            }
            11 => {
                if self.here != self.root {
                    self.here.pop();
                }
                Ok(())
            }
            12 if place.is_dir() && !is_link => fs::remove_dir_all(&place),
            12 => fs::remove_file(&place),
            13 => {
                let to = self.place();
                match self.byte().unwrap_or_default() % 2 {
                    0 => fs::rename(&place, to),
                    _ if is_link => Ok(()),
                    _ => fs::hard_link(&place, to),
                }
            }
            14 if !is_link => {
                let mode = u32::from(self.byte().unwrap_or_default());
                fs::set_permissions(&place, Permissions::from_mode(mode << 1))
            }
            15 => self.nest(place),
            _ => Ok(()),
        };
    }

    /// Writes a file that is not there, or over one that is not a link.
    fn write(&mut self, place: &Path) -> std::io::Result<()> {
        let mut text = self.text(&TEXTS);
        text.retain(|byte| *byte != 0x07);
        let is_file = fs::symlink_metadata(place).is_ok_and(|found| found.is_file());
        let mut options = OpenOptions::new();
        options.write(true).mode(0o644);
        let options = match is_file {
            true => options.truncate(true),
            false => options.create_new(true),
        };
        options.open(place)?.write_all(&text)
    }

    fn special(&self, place: &Path, kind: FileType) -> std::io::Result<()> {
        Ok(mknodat(CWD, place, kind, Mode::from(0o644), 0)?)
    }

    /// Makes folders in each other, and stays in the last one that is there.
    fn nest(&mut self, place: PathBuf) -> std::io::Result<()> {
        let name = place.file_name().unwrap_or(OsStr::new("d")).to_owned();
        let depth = self.byte().unwrap_or_default().min(NEST_MAX);
        for _ in 0..depth {
            let below = self.here.join(&name);
            fs::create_dir(&below)?;
            self.here = below;
        }
        Ok(())
    }
}
