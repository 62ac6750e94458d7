//! The private folders of one command: home, temporary folder, and the layers
//! over the caches.

use crate::supervisor::confine::scratch;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The folders of one command, in a scratch folder of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrivateHome {
    root: PathBuf,
}

impl PrivateHome {
    /// Makes the folders.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub(crate) fn make(root: &Path) -> io::Result<Self> {
        let home = Self {
            root: root.to_path_buf(),
        };
        for folder in [
            home.home(),
            home.temporary(),
            home.shared_memory(),
            home.own(),
        ] {
            fs::create_dir(folder)?;
        }
        Ok(home)
    }

    /// Makes the folders again for another command, but for the home and the
    /// temporary files, which stay.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub(crate) fn renew(&self) -> io::Result<()> {
        let kept = [self.home(), self.temporary()];
        for entry in fs::read_dir(&self.root)? {
            let path = entry?.path();
            if !kept.contains(&path) {
                scratch::remove_any(&path)?;
            }
        }
        fs::create_dir(self.shared_memory())?;
        fs::create_dir(self.own())
    }

    /// Returns the home.
    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Returns the folder for temporary files.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// Returns the folder that is `/dev/shm`.
    pub(crate) fn shared_memory(&self) -> PathBuf {
        self.root.join("shm")
    }

    /// Returns the folder that covers the harness's own in a main checkout.
    pub(crate) fn own(&self) -> PathBuf {
        self.root.join("own")
    }

    /// Returns the folder of the proxy's sockets.
    pub(crate) fn sockets(&self) -> PathBuf {
        self.root.join("net")
    }

    /// Returns the folders that a command writes to, with so many layers. The
    /// kernel's own folder of a layer is none of them: it is shut.
    pub(crate) fn written(&self, layers: usize) -> Vec<PathBuf> {
        let mut folders = vec![
            self.home(),
            self.temporary(),
            self.shared_memory(),
            self.own(),
        ];
        folders.extend((0..layers).map(|number| self.root.join(format!("layer-{number}/upper"))));
        folders
    }

    /// Makes the layer over a cache; returns the folder that holds it.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub(crate) fn layer(&self, number: usize) -> io::Result<PathBuf> {
        let folder = self.root.join(format!("layer-{number}"));
        for part in ["upper", "work"] {
            fs::create_dir_all(folder.join(part))?;
        }
        Ok(folder)
    }

    /// Writes a file of git's that leads to a folder.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub(crate) fn write_git_file(&self, folder: &Path) -> io::Result<PathBuf> {
        let file = self.root.join("git");
        fs::write(&file, format!("gitdir: {}\n", folder.display()))?;
        Ok(file)
    }

    /// Makes a file that stays empty.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub(crate) fn empty_file(&self) -> io::Result<PathBuf> {
        let file = self.root.join("empty");
        fs::write(&file, "")?;
        Ok(file)
    }

    /// Writes a small file that the command reads elsewhere, such as `passwd`.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub(crate) fn file(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let file = self.root.join(name);
        fs::write(&file, text)?;
        Ok(file)
    }
}
