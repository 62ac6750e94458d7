//! What tells one content of a file from another without reading it.

use rustix::fs::{Stat, stat};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How old a file's last change must be, so that another would show in its
/// times: longer than the tick by which kernels stamp files.
const TICK: Duration = Duration::from_millis(20);
/// The same for file systems that keep whole seconds.
const COARSE_TICK: Duration = Duration::from_secs(2);

/// What changes with every change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: i64,
    pub(crate) modified: (i64, u64),
    pub(crate) changed: (i64, u64),
}

impl FileStamp {
    /// Returns the stamp of a file, through links too; `None` where there is no file.
    pub(crate) fn at(file: &Path) -> Option<Self> {
        stat(file).ok().map(|stat| Self::of(&stat))
    }

    #[expect(
        clippy::unnecessary_cast,
        reason = "the types of the fields differ between platforms"
    )]
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as i64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u64),
        }
    }

    /// Returns whether a change from now on would show.
    pub(crate) fn is_settled(&self) -> bool {
        let (seconds, nanos) = self.changed;
        let tick = if nanos == 0 { COARSE_TICK } else { TICK };
        u64::try_from(seconds)
            .ok()
            .map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(nanos))
            .and_then(|changed| SystemTime::now().duration_since(changed).ok())
            .is_some_and(|age| age > tick)
    }
}
