//! The system folders of an image, in the place of the machine's.

use super::scene::HOME;
use super::{PrivateHome, system};
use crate::supervisor::confine::image::{Image, RootEntry};
use crate::supervisor::confine::namespaces::ViewEntry;
use premath_kernel::policy::sandbox::{ContainerImage, outermost};
use rustix::process::{getegid, geteuid};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What a view has of an image, and of the machine in its system folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageSystem {
    /// The image.
    pub named: ContainerImage,
    /// What is in its root folder.
    pub entries: Vec<RootEntry>,
    /// Files of the machine by which programs find hosts, and where they look.
    pub names: Vec<(PathBuf, PathBuf)>,
    /// The accounts and groups, with those of the user.
    accounts: [(&'static str, String); 2],
}

/// Something else in the view, over the files of the image.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Over {
    at: PathBuf,
    /// Whether it is a folder; `None` for a link.
    is_folder: Option<bool>,
}

impl ImageSystem {
    pub(super) fn of(image: &Image) -> Self {
        let text = |at: &str| image.files.text(Path::new(at)).unwrap_or_default();
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        Self {
            named: image.named.clone(),
            entries: image.files.entries(),
            names: system::names(),
            accounts: [
                ("passwd", with_user(&text("/etc/passwd"), user, group)),
                ("group", with_group(&text("/etc/group"), group)),
            ],
        }
    }

    /// Puts the files of the image below the other places of a view.
    ///
    /// # Errors
    ///
    /// What the system says about the private folders.
    pub(super) fn put_below(
        &self,
        places: &mut Vec<ViewEntry>,
        home: &PrivateHome,
    ) -> io::Result<()> {
        let mut over = Vec::new();
        for (name, text) in &self.accounts {
            let at = Path::new("/etc").join(name);
            over.push(ViewEntry::read_only_at(&home.file(name, text)?, &at));
        }
        over.extend(
            self.names
                .iter()
                .map(|(from, at)| ViewEntry::read_only_at(from, at)),
        );
        over.append(places);
        *places = self.below(&over);
        places.append(&mut over);
        Ok(())
    }

    /// Returns the places of the image's files. A place that is nowhere in the
    /// image cannot be made in its folders: they are the host's. The folders
    /// above it become the view's own, with what the image has in them.
    fn below(&self, over: &[ViewEntry]) -> Vec<ViewEntry> {
        let outer = outermost(over.iter().map(|place| place.at().to_path_buf()));
        let over: Vec<Over> = over
            .iter()
            .filter(|place| outer.contains(place.at()))
            .map(|place| Over {
                at: place.at().to_path_buf(),
                is_folder: place.is_folder(),
            })
            .collect();
        let mut places = Vec::new();
        for entry in &self.entries {
            match entry {
                RootEntry::File { from, at } => show(from, at, &over, &mut places),
                RootEntry::Link { to, at } => show_link(to, at, &over, &mut places),
            }
        }
        places
    }
}

/// Shows a file or folder of the image.
fn show(from: &Path, at: &Path, over: &[Over], places: &mut Vec<ViewEntry>) {
    let Ok(meta) = fs::symlink_metadata(from) else {
        return;
    };
    if meta.is_symlink() {
        let to = fs::read_link(from).unwrap_or_default();
        return show_link(&to, at, over, places);
    }
    // A mount under another one would keep its rights.
    if over.iter().any(|over| over.at == at) {
        return;
    }
    let mut inside = over.iter().filter(|over| over.at.starts_with(at));
    if inside.all(|over| fits(over, from, at)) {
        return places.push(ViewEntry::read_only_at(from, at));
    }
    // A file has nothing in it, so that another folder takes its place.
    let children = fs::read_dir(from).into_iter().flatten().flatten();
    let mut names: Vec<_> = children.map(|entry| entry.file_name()).collect();
    names.sort();
    for name in names {
        show(&from.join(&name), &at.join(&name), over, places);
    }
}

fn show_link(to: &Path, at: &Path, over: &[Over], places: &mut Vec<ViewEntry>) {
    if !over.iter().any(|over| over.at.starts_with(at)) {
        places.push(ViewEntry::link(to, at));
    }
}

/// Returns whether something can be mounted on what a folder of the image has
/// there.
fn fits(over: &Over, from: &Path, at: &Path) -> bool {
    let Ok(below) = over.at.strip_prefix(at) else {
        return false;
    };
    let mut here = from.to_path_buf();
    let mut names = below.iter().peekable();
    while let Some(name) = names.next() {
        here.push(name);
        let Ok(meta) = fs::symlink_metadata(&here) else {
            return false;
        };
        let wanted = match names.peek() {
            Some(_) => Some(true),
            None => over.is_folder,
        };
        if meta.is_symlink() || wanted != Some(meta.is_dir()) {
            return false;
        }
    }
    true
}

/// Returns the accounts of an image (passwd(5)) with the user's, whose home is
/// the private one.
fn with_user(accounts: &str, user: u32, group: u32) -> String {
    let number = user.to_string();
    let mut lines: Vec<String> = Vec::new();
    let mut is_there = false;
    for line in accounts.lines() {
        let mut fields: Vec<&str> = line.split(':').collect();
        if fields.len() == 7 && fields[2] == number {
            fields[5] = HOME;
            is_there = true;
        }
        lines.push(fields.join(":"));
    }
    if !is_there {
        let name = if user == 0 { "root" } else { "premath" };
        lines.push(format!("{name}:x:{user}:{group}::{HOME}:/bin/sh"));
    }
    lines.join("\n") + "\n"
}

/// Returns the groups of an image (group(5)) with the user's.
fn with_group(groups: &str, group: u32) -> String {
    let number = group.to_string();
    let is_there = groups
        .lines()
        .any(|line| line.split(':').nth(2) == Some(&number));
    let mut text = groups.trim_end().to_owned();
    if !text.is_empty() {
        text.push('\n');
    }
    if !is_there {
        let name = if group == 0 { "root" } else { "premath" };
        text.push_str(&format!("{name}:x:{group}:\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// An image with some files, and what of it is shown below others.
    fn shown(over: &[(&str, Option<bool>)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for there in ["usr/bin", "var/tmp", "var/lib/dpkg", "etc/ssl"] {
            fs::create_dir_all(root.join(there)).unwrap();
        }
        fs::write(root.join("etc/passwd"), "").unwrap();
        symlink("../run/resolv.conf", root.join("etc/resolv.conf")).unwrap();
        symlink("usr/bin", root.join("bin")).unwrap();
        let over: Vec<Over> = over
            .iter()
            .map(|(at, is_folder)| Over {
                at: PathBuf::from(at),
                is_folder: *is_folder,
            })
            .collect();
        let mut places = Vec::new();
        for name in ["bin", "etc", "usr", "var"] {
            let at = Path::new("/").join(name);
            show(&root.join(name), &at, &over, &mut places);
        }
        let line = |place: &ViewEntry| format!("{} {}", place.access(), place.at().display());
        places.iter().map(line).collect()
    }

    #[test]
    fn a_folder_is_shown_whole_where_all_that_is_over_it_has_its_place() {
        let whole = ["link /bin", "read /etc", "read /usr", "read /var"];
        assert_eq!(shown(&[]), whole);
        let over = [
            ("/var/tmp", Some(true)),
            ("/etc/passwd", Some(false)),
            ("/srv/u/repo", Some(true)),
        ];
        assert_eq!(shown(&over), whole);
    }

    #[test]
    fn a_folder_is_shown_in_parts_where_it_lacks_a_place() {
        assert_eq!(
            shown(&[("/var/lib/ci/repo", Some(true))]),
            [
                "link /bin",
                "read /etc",
                "read /usr",
                "read /var/lib/dpkg",
                "read /var/tmp"
            ]
        );
        // What has its place there is not mounted twice.
        assert_eq!(
            shown(&[("/etc/passwd", Some(false)), ("/etc/group", Some(false))]),
            [
                "link /bin",
                "link /etc/resolv.conf",
                "read /etc/ssl",
                "read /usr",
                "read /var"
            ]
        );
        // A link, a file in the place of a folder and the reverse are left out.
        assert_eq!(
            shown(&[
                ("/etc/resolv.conf", Some(false)),
                ("/etc/passwd", Some(true)),
                ("/usr/bin", Some(false)),
                ("/bin/tool", Some(false)),
                ("/var/tmp", None),
            ]),
            ["read /etc/ssl", "read /var/lib"]
        );
    }

    #[test]
    fn the_user_has_an_account_with_the_private_home() {
        assert_eq!(
            with_user("root:x:0:0:root:/root:/bin/bash\n", 1000, 7),
            "root:x:0:0:root:/root:/bin/bash\npremath:x:1000:7::/premath/home:/bin/sh\n"
        );
        assert_eq!(
            with_user("node:x:1000:1000::/nowhere:/bin/bash", 1000, 1000),
            "node:x:1000:1000::/premath/home:/bin/bash\n"
        );
        assert_eq!(with_user("", 0, 0), "root:x:0:0::/premath/home:/bin/sh\n");
        assert_eq!(with_group("root:x:0:\n", 7), "root:x:0:\npremath:x:7:\n");
        assert_eq!(with_group("root:x:0:\n", 0), "root:x:0:\n");
    }
}
