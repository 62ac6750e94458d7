//! What a command in namespaces of its own has: its files, network and limits.

use crate::supervisor::message::OsText;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Everything that a command sees. What is not listed is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The places with their content, in the order in which they are mounted.
    pub places: Vec<ViewEntry>,
    /// The network; the host's where absent.
    pub network: Option<Loopback>,
    /// The bounds of the command and everything that it starts.
    pub bounds: CommandBounds,
}

/// A network with a loopback interface and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loopback {
    /// Ports whose connections go elsewhere.
    pub relays: Vec<PortRelay>,
}

/// A port of the loopback interface whose connections go to a unix socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortRelay {
    /// The port at 127.0.0.1.
    pub port: u16,
    /// The socket, as the command sees it.
    socket: OsText,
}

impl PortRelay {
    /// Makes a relay.
    pub(crate) fn new(port: u16, socket: &Path) -> Self {
        Self {
            port,
            socket: text(socket),
        }
    }

    pub(super) fn socket(&self) -> &Path {
        Path::new(&self.socket.0)
    }
}

/// The bounds of a command. A bound that is absent is not set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandBounds {
    /// Processes and threads at once.
    pub processes: Option<u64>,
    /// Open files of one process.
    pub open_files: Option<u64>,
    /// Bytes of one file.
    pub file_bytes: Option<u64>,
}

/// One place of a view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewEntry {
    /// Where the command sees it, absolute and without links.
    at: OsText,
    /// The content at the place.
    pub(super) content: Content,
}

/// What a command sees at a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Content {
    /// A file or folder of the host that it cannot change.
    ReadOnly(OsText),
    /// A file or folder of the host that it may change.
    Writable(OsText),
    /// A fresh folder of the host that is made for this command, in which
    /// places may be created.
    Fresh(OsText),
    /// A folder of the host with a layer over it that takes the changes.
    Layered {
        lower: OsText,
        upper: OsText,
        work: OsText,
    },
    /// Folders of the host, the first over the second and so on, with a layer
    /// over them that takes the changes. Without it the view cannot be made.
    Stacked {
        lower: Vec<OsText>,
        upper: OsText,
        work: OsText,
    },
    /// A folder of the host with a layer over it that takes the changes. Without the
    /// layer it is the empty folder of the changes alone.
    Seeded {
        lower: OsText,
        upper: OsText,
        work: OsText,
    },
    /// A link with this text.
    Link(OsText),
    /// An empty folder.
    Empty,
}

fn text(path: &Path) -> OsText {
    OsText(path.as_os_str().to_owned())
}

impl ViewEntry {
    fn new(at: &Path, content: Content) -> Self {
        Self {
            at: text(at),
            content,
        }
    }

    /// A file or folder that cannot be changed, where it is.
    pub(crate) fn read_only(path: &Path) -> Self {
        Self::read_only_at(path, path)
    }

    /// A folder that cannot be changed, or a link to one, as the host has it.
    pub fn as_it_is(path: &Path) -> Self {
        match std::fs::read_link(path) {
            Ok(to) => Self::link(&to, path),
            Err(_) => Self::read_only(path),
        }
    }

    /// A file or folder that cannot be changed, somewhere else.
    pub(crate) fn read_only_at(from: &Path, at: &Path) -> Self {
        Self::new(at, Content::ReadOnly(text(from)))
    }

    /// A file or folder that may be changed.
    pub fn writable(from: &Path, at: &Path) -> Self {
        Self::new(at, Content::Writable(text(from)))
    }

    /// A folder that was made for this command.
    pub(crate) fn fresh(from: &Path, at: &Path) -> Self {
        Self::new(at, Content::Fresh(text(from)))
    }

    /// A folder whose changes go to `changes`, which holds the empty folders
    /// `upper` and `work`.
    pub(crate) fn layered(lower: &Path, changes: &Path, at: &Path) -> Self {
        let content = Content::Layered {
            lower: text(lower),
            upper: text(&changes.join("upper")),
            work: text(&changes.join("work")),
        };
        Self::new(at, content)
    }

    /// Folders, the first over the others, whose changes go to `changes`, which
    /// holds the empty folders `upper` and `work`.
    pub(crate) fn stacked(lower: &[PathBuf], changes: &Path, at: &Path) -> Self {
        let content = Content::Stacked {
            lower: lower.iter().map(|path| text(path)).collect(),
            upper: text(&changes.join("upper")),
            work: text(&changes.join("work")),
        };
        Self::new(at, content)
    }

    /// A folder that the command can do without, whose changes go to `changes`, which
    /// holds the empty folders `upper` and `work`.
    pub fn seeded(lower: &Path, changes: &Path, at: &Path) -> Self {
        let content = Content::Seeded {
            lower: text(lower),
            upper: text(&changes.join("upper")),
            work: text(&changes.join("work")),
        };
        Self::new(at, content)
    }

    /// A link.
    pub(crate) fn link(to: &Path, at: &Path) -> Self {
        Self::new(at, Content::Link(text(to)))
    }

    /// An empty folder.
    pub(crate) fn empty(at: &Path) -> Self {
        Self::new(at, Content::Empty)
    }

    /// Returns where the command sees it.
    pub(crate) fn at(&self) -> &Path {
        Path::new(&self.at.0)
    }

    /// Returns whether it is a folder; none for a link, which takes no mount.
    pub(crate) fn is_folder(&self) -> Option<bool> {
        match &self.content {
            Content::ReadOnly(from) | Content::Writable(from) => Some(Path::new(&from.0).is_dir()),
            Content::Fresh(_)
            | Content::Layered { .. }
            | Content::Stacked { .. }
            | Content::Seeded { .. }
            | Content::Empty => Some(true),
            Content::Link(_) => None,
        }
    }

    /// Says what the command may do there, in one word.
    #[cfg(test)]
    pub(crate) const fn access(&self) -> &'static str {
        match self.content {
            Content::ReadOnly(_) => "read",
            Content::Writable(_) => "write",
            Content::Fresh(_) => "private",
            Content::Layered { .. } | Content::Stacked { .. } | Content::Seeded { .. } => "layered",
            Content::Link(_) => "link",
            Content::Empty => "empty",
        }
    }
}
