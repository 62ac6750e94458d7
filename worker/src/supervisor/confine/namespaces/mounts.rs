//! The files of a view, put together in a mount namespace of its own.

use super::identity;
use super::view::{Content, View, ViewEntry};
use super::while_doing;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, fstat, mkdirat, openat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount,
    fsopen, mount, mount_change, mount_remount, move_mount, open_tree, unmount,
};
use rustix::process::{chdir, pivot_root};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// Where the host's files are while a view is put together.
const HOST: &str = "/host";
/// Where the view is meanwhile.
const NEW: &str = "/view";
/// A folder that every system has, over which the first files are mounted.
const FOUNDATION: &str = "/tmp";
/// Devices that every program expects.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
/// Links in `/dev`, with their texts.
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// What of `/proc` root could change or read beyond its namespaces.
const KERNEL: [&str; 8] = [
    "sys",
    "sysrq-trigger",
    "irq",
    "bus",
    "acpi",
    "scsi",
    "kcore",
    "timer_list",
];

/// Makes the view the whole file system of this process and of its children.
pub(super) fn set_up(view: &View) -> io::Result<()> {
    found()?;
    let mut tree = MountedView::begin()?;
    tree.devices()?;
    for place in &view.places {
        tree.add(place).map_err(|error| {
            let at = place.at().display();
            io::Error::new(error.kind(), format!("cannot set up {at}: {error}"))
        })?;
    }
    tree.processes()?;
    tree.close()?;
    settle()
}

/// Moves to a small file system, with the host's below it.
fn found() -> io::Result<()> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    while_doing("cannot isolate mounts", mount_change("/", private))?;
    memory(FOUNDATION)?;
    for folder in [HOST, NEW] {
        fs::create_dir(format!("{FOUNDATION}{folder}"))?;
    }
    let host = format!("{FOUNDATION}{HOST}");
    while_doing(
        "cannot change the root",
        pivot_root(FOUNDATION, host.as_str()),
    )?;
    while_doing("cannot change the root", chdir("/"))?;
    memory(NEW)
}

/// Mounts a small file system in memory.
fn memory(at: impl AsRef<Path>) -> io::Result<()> {
    let at = at.as_ref();
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let mounted = mount("tmpfs", at, "tmpfs", flags, c"mode=755,size=4m");
    while_doing(format!("cannot mount at {}", at.display()), mounted)
}

/// Moves to the view permanently.
fn settle() -> io::Result<()> {
    let failed = "cannot change the root";
    while_doing(failed, unmount(HOST, UnmountFlags::DETACH))?;
    while_doing(failed, chdir(NEW))?;
    while_doing(failed, pivot_root(".", "."))?;
    while_doing(failed, unmount(".", UnmountFlags::DETACH))?;
    while_doing(failed, chdir("/"))
}

/// What may be done with the files of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    ReadOnly,
    Writable,
    /// Writable, and places may be created in it.
    Fresh,
    /// A folder of the view's own on the way to a place.
    Way,
    /// The mount keeps its options.
    Special,
}

/// A view in the making.
struct MountedView {
    root: OwnedFd,
    /// What was mounted where, by its path in the view.
    mounted: BTreeMap<PathBuf, Access>,
}

impl MountedView {
    fn begin() -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = while_doing(
            "cannot open the view",
            openat(CWD, NEW, flags, Mode::empty()),
        )?;
        Ok(Self {
            root,
            mounted: BTreeMap::new(),
        })
    }

    fn devices(&mut self) -> io::Result<()> {
        for name in DEVICES {
            let at = Path::new("/dev").join(name);
            self.attach(&at, &at, Access::Special)?;
        }
        for (name, to) in LINKS {
            self.link(Path::new(to), &Path::new("/dev").join(name))?;
        }
        let at = Path::new("/dev/pts");
        drop(self.place(at, FileType::Directory)?);
        // All terminals of the machine share one bound.
        let options = c"newinstance,ptmxmode=0666,mode=620,max=256";
        let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
        let mounted = mount("devpts", within(NEW, at), "devpts", flags, options);
        while_doing("cannot mount /dev/pts", mounted)?;
        self.mounted.insert(at.to_path_buf(), Access::Special);
        Ok(())
    }

    fn processes(&mut self) -> io::Result<()> {
        let at = Path::new("/proc");
        drop(self.place(at, FileType::Directory)?);
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        let mounted = mount("proc", within(NEW, at), "proc", flags, c"");
        while_doing("cannot mount /proc", mounted)?;
        self.mounted.insert(at.to_path_buf(), Access::Special);
        if identity::is_privileged() {
            self.shut_kernel_off()?;
        }
        Ok(())
    }

    /// Makes what root could reach beyond its namespaces read-only.
    fn shut_kernel_off(&mut self) -> io::Result<()> {
        for name in KERNEL {
            let at = Path::new("/proc").join(name);
            let here = within(NEW, &at);
            let is_readable = fs::symlink_metadata(&here).is_ok_and(|meta| !meta.is_symlink());
            if !is_readable {
                continue;
            }
            let unreadable = ["kcore", "timer_list"].contains(&name);
            let source = if unreadable {
                PathBuf::from(HOST).join("dev/null")
            } else {
                here
            };
            self.attach_from(&source, &at, Access::ReadOnly)?;
        }
        Ok(())
    }

    fn add(&mut self, place: &ViewEntry) -> io::Result<()> {
        let at = place.at();
        match &place.content {
            Content::ReadOnly(from) => self.attach(Path::new(&from.0), at, Access::ReadOnly),
            Content::Writable(from) => self.attach(Path::new(&from.0), at, Access::Writable),
            Content::Fresh(from) => self.attach(Path::new(&from.0), at, Access::Fresh),
            Content::Layered { lower, upper, work } => {
                self.layer([&lower.0, &upper.0, &work.0].map(Path::new), at)
            }
            Content::Stacked { lower, upper, work } => {
                let lower: Vec<&Path> = lower.iter().map(|path| Path::new(&path.0)).collect();
                self.stack(&lower, [&upper.0, &work.0].map(Path::new), at)
            }
            Content::Seeded { lower, upper, work } => {
                self.seed([&lower.0, &upper.0, &work.0].map(Path::new), at)
            }
            Content::Link(to) => self.link(Path::new(&to.0), at),
            Content::Empty => {
                self.pave(at)?;
                drop(self.place(at, FileType::Directory)?);
                memory(within(NEW, at))?;
                self.mounted.insert(at.to_path_buf(), Access::ReadOnly);
                Ok(())
            }
        }
    }

    /// Shows a file or folder of the host.
    fn attach(&mut self, from: &Path, at: &Path, access: Access) -> io::Result<()> {
        self.attach_from(&within(HOST, from), at, access)
    }

    fn attach_from(&mut self, source: &Path, at: &Path, access: Access) -> io::Result<()> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
        let tree = while_doing("cannot open it", open_tree(CWD, source, flags))?;
        let kind = FileType::from_raw_mode(fstat(&tree)?.st_mode);
        if kind == FileType::Symlink {
            return Err(io::Error::other("it is a link"));
        }
        self.pave(at)?;
        let target = self.place(at, kind)?;
        self.put(&tree, &target, at, access)
    }

    /// Makes sure that the command cannot rename a folder above a place: it
    /// would take the place with it, and see what the place hides.
    fn pave(&mut self, at: &Path) -> io::Result<()> {
        let above: Vec<&Path> = at.ancestors().skip(1).collect();
        let mounted = above
            .iter()
            .position(|path| self.mounted.contains_key(*path));
        let Some(between) = mounted.map(|mounted| &above[..mounted]) else {
            return Ok(());
        };
        let Some(way) = between.last() else {
            return Ok(());
        };
        match self.access(way) {
            Some(Access::Fresh) => {
                drop(self.place(way, FileType::Directory)?);
                memory(within(NEW, way))?;
                self.mounted.insert(way.to_path_buf(), Access::Way);
                Ok(())
            }
            Some(Access::Writable) => between.iter().rev().try_for_each(|way| self.pin(way)),
            _ => Ok(()),
        }
    }

    /// Mounts a folder of a writable one over itself: a mount point can be
    /// neither renamed nor removed.
    fn pin(&mut self, folder: &Path) -> io::Result<()> {
        let target = self.place(folder, FileType::Directory)?;
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::AT_EMPTY_PATH;
        let tree = while_doing("cannot open it", open_tree(&target, c"", flags))?;
        self.put(&tree, &target, folder, Access::Writable)
    }

    fn put(
        &mut self,
        tree: &OwnedFd,
        target: &OwnedFd,
        at: &Path,
        access: Access,
    ) -> io::Result<()> {
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        while_doing("cannot mount", move_mount(tree, c"", target, c"", flags))?;
        self.mounted.insert(at.to_path_buf(), access);
        Ok(())
    }

    /// Shows a folder of the host with a layer over it; without the layer, and
    /// read-only, where the system has no such file systems.
    fn layer(&mut self, [lower, upper, work]: [&Path; 3], at: &Path) -> io::Result<()> {
        let Ok(tree) = self.overlay(&[lower], [upper, work]) else {
            return self.attach(lower, at, Access::ReadOnly);
        };
        let target = self.place(at, FileType::Directory)?;
        self.put(&tree, &target, at, Access::Writable)
    }

    /// Shows folders of the host above each other, with a layer over them.
    fn stack(&mut self, lower: &[&Path], layer: [&Path; 2], at: &Path) -> io::Result<()> {
        let tree = while_doing("cannot layer it", self.overlay(lower, layer))?;
        let target = self.place(at, FileType::Directory)?;
        self.put(&tree, &target, at, Access::Writable)
    }

    /// Shows a folder of the host with a layer over it; the layer's folder alone, which
    /// is empty, where the system has no such file systems. What is below it may be
    /// missing: it only saves time.
    fn seed(&mut self, [lower, upper, work]: [&Path; 3], at: &Path) -> io::Result<()> {
        let Ok(tree) = self.overlay(&[lower], [upper, work]) else {
            return self.attach(upper, at, Access::Writable);
        };
        let target = self.place(at, FileType::Directory)?;
        self.put(&tree, &target, at, Access::Writable)
    }

    /// Makes a file system of folders and a layer over them. An option of the
    /// mount is short, so that the folders get short names first.
    fn overlay(&self, lower: &[&Path], [upper, work]: [&Path; 2]) -> rustix::io::Result<OwnedFd> {
        let named = |what: &str, path: &Path| {
            let name = format!("/{what}");
            // Of the one before, which is mounted.
            let _ = unlinkat(CWD, &name, AtFlags::empty());
            symlinkat(within(HOST, path), CWD, &name).map(|()| name)
        };
        let names = lower.iter().enumerate();
        let names = names.map(|(number, path)| named(&format!("lower-{number}"), path));
        let lower = names.collect::<Result<Vec<String>, Errno>>()?.join(":");
        overlay(&lower, &named("upper", upper)?, &named("work", work)?)
    }

    fn link(&mut self, to: &Path, at: &Path) -> io::Result<()> {
        let (Some(above), Some(name)) = (at.parent(), at.file_name()) else {
            return Err(io::Error::other("the root is not a link"));
        };
        let folder = self.place(above, FileType::Directory)?;
        while_doing("cannot make the link", symlinkat(to, &folder, name))
    }

    /// Opens the file or folder to mount at, without following links. It is
    /// made where it is missing, but never in a folder of the host.
    fn place(&self, at: &Path, kind: FileType) -> io::Result<OwnedFd> {
        let mut here = self.root.as_fd().try_clone_to_owned()?;
        let mut path = PathBuf::from("/");
        let mut names = at
            .components()
            .filter(|component| *component != Component::RootDir)
            .peekable();
        while let Some(component) = names.next() {
            let Component::Normal(name) = component else {
                return Err(io::Error::other("the path is not plain"));
            };
            let is_folder = names.peek().is_some() || kind == FileType::Directory;
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let next = match openat(&here, name, flags, Mode::empty()) {
                Err(Errno::NOENT) if self.may_make_in(&path) => {
                    make(&here, name.as_bytes(), is_folder)?;
                    openat(&here, name, flags, Mode::empty())
                }
                opened => opened,
            };
            path.push(name);
            here = while_doing(path.display(), next)?;
            let found = FileType::from_raw_mode(fstat(&here)?.st_mode);
            if is_folder != (found == FileType::Directory) || found == FileType::Symlink {
                let detail = format!("{} exists and has another type", path.display());
                return Err(io::Error::other(detail));
            }
        }
        Ok(here)
    }

    /// Returns whether a folder of the view is ours to fill.
    fn may_make_in(&self, folder: &Path) -> bool {
        self.access(folder)
            .is_none_or(|access| matches!(access, Access::Fresh | Access::Way))
    }

    /// Returns what may be done in a folder; none in the view's own.
    fn access(&self, folder: &Path) -> Option<Access> {
        let mut above = folder.ancestors();
        above.find_map(|above| self.mounted.get(above).copied())
    }

    /// Sets what may be done, in every mount of the view.
    fn close(&self) -> io::Result<()> {
        let table = fs::read(format!("{HOST}/proc/thread-self/mountinfo"))
            .or_else(|_| fs::read(format!("{HOST}/proc/self/mountinfo")))?;
        let mut root = None;
        for line in table.split(|byte| *byte == b'\n') {
            let Some((at, options)) = mounted(line) else {
                continue;
            };
            let Ok(inside) = at.strip_prefix(NEW) else {
                continue;
            };
            let access = self.access(&Path::new("/").join(inside));
            let mut flags = kept(&options) | MountFlags::NOSUID | MountFlags::NODEV;
            match access {
                Some(Access::Special) => continue,
                Some(Access::ReadOnly | Access::Way) => flags |= MountFlags::RDONLY,
                Some(Access::Writable | Access::Fresh) => {}
                None => {
                    root = Some((at, flags | MountFlags::RDONLY));
                    continue;
                }
            }
            restrict(&at, flags)?;
        }
        match root {
            Some((at, flags)) => restrict(&at, flags),
            None => Err(io::Error::other("the view is not in the table of mounts")),
        }
    }
}

fn restrict(at: &Path, flags: MountFlags) -> io::Result<()> {
    let what = format!("cannot restrict {}", at.display());
    while_doing(what, mount_remount(at, flags | MountFlags::BIND, c""))
}

/// Makes a folder, or an empty file to mount at.
fn make(folder: &OwnedFd, name: &[u8], is_folder: bool) -> io::Result<()> {
    if is_folder {
        let mode = Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH;
        return while_doing("cannot make a folder", mkdirat(folder, name, mode));
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let made = openat(folder, name, flags, Mode::RUSR | Mode::WUSR);
    while_doing("cannot make a file", made.map(drop))
}

fn overlay(lower: &str, upper: &str, work: &str) -> rustix::io::Result<OwnedFd> {
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "lowerdir", lower)?;
    fsconfig_set_string(context.as_fd(), "upperdir", upper)?;
    fsconfig_set_string(context.as_fd(), "workdir", work)?;
    fsconfig_set_flag(context.as_fd(), "userxattr")?;
    // The layer is deleted after the command. Without this its unmount writes the
    // whole file system below it to disk.
    let _ = fsconfig_set_flag(context.as_fd(), "volatile");
    fsconfig_create(context.as_fd())?;
    fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )
}

/// Returns a path below another root.
fn within(root: &str, path: &Path) -> PathBuf {
    Path::new(root).join(path.strip_prefix("/").unwrap_or(path))
}

/// Reads where something is mounted, and how, off a line of `mountinfo`
/// (proc_pid_mountinfo(5)).
fn mounted(line: &[u8]) -> Option<(PathBuf, String)> {
    let mut fields = line.split(|byte| *byte == b' ');
    let at = unescaped(fields.nth(4)?);
    let options = String::from_utf8_lossy(fields.next()?).into_owned();
    Some((PathBuf::from(OsString::from_vec(at)), options))
}

/// Undoes the octal escapes of `mountinfo`.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let escape = after
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match escape {
            Some(byte) => {
                plain.push(byte);
                rest = &after[3..];
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    plain
}

/// Returns the flags of a mount that cannot be taken from it.
fn kept(options: &str) -> MountFlags {
    let mut flags = MountFlags::empty();
    let mut has_time = false;
    for option in options.split(',') {
        flags |= match option {
            "ro" => MountFlags::RDONLY,
            "nosuid" => MountFlags::NOSUID,
            "nodev" => MountFlags::NODEV,
            "noexec" => MountFlags::NOEXEC,
            "nodiratime" => MountFlags::NODIRATIME,
            "noatime" => MountFlags::NOATIME,
            "relatime" => MountFlags::RELATIME,
            _ => MountFlags::empty(),
        };
        has_time |= matches!(option, "noatime" | "relatime");
    }
    if !has_time {
        flags |= MountFlags::STRICTATIME;
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_table_is_read_with_its_escapes() {
        let line = b"36 35 98:0 / /view/a\\040b rw,nosuid,relatime master:1 - ext4 /dev/x rw";
        let (at, options) = mounted(line).unwrap();
        assert_eq!(at, Path::new("/view/a b"));
        assert_eq!(kept(&options), MountFlags::NOSUID | MountFlags::RELATIME);
        assert_eq!(mounted(b""), None);
        assert_eq!(unescaped(b"a\\0"), b"a\\0");
    }
}
