//! `[limits]`: what all processes of a command together may use of the machine.

use super::keys::LimitsKeys;

/// Processes and threads at once, where nothing is set: a build of a large
/// project has a few hundred.
const PROCESSES: u64 = 4_096;
/// Open files of a process, where nothing is set.
const OPEN_FILES: u64 = 65_536;
/// Bytes of files, where nothing is set: a build of a large project fits.
const DISK: u64 = 50 << 30;
/// The share of the machine's memory, where nothing is set.
const MEMORY_SHARE: (u64, u64) = (3, 4);

/// What a command may use; unlimited where absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Bytes of memory, of all its processes together.
    pub memory: Option<u64>,
    /// Processes and threads at once.
    pub processes: Option<u64>,
    /// Open files of one process.
    pub open_files: Option<u64>,
    /// Bytes of files that it writes, and of the largest of them.
    pub disk: Option<u64>,
}

impl LimitsKeys {
    /// Puts the defaults in, and takes 0 for no bound; `machine` is the memory that there is, in bytes.
    pub(super) fn resolve(&self, machine: u64) -> Resources {
        let (share, of) = MEMORY_SHARE;
        let bound = |asked: Option<u64>, usual: u64| {
            Some(asked.unwrap_or(usual)).filter(|bound| *bound > 0)
        };
        Resources {
            memory: bound(self.memory.map(|size| size.0.0), machine / of * share),
            processes: bound(self.processes.map(|count| count.0), PROCESSES),
            open_files: bound(self.open_files.map(|count| count.0), OPEN_FILES),
            disk: bound(self.disk.map(|size| size.0.0), DISK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FileSettings;
    use super::*;
    use std::path::Path;

    fn resolved(text: &str) -> Resources {
        let text = format!("[limits]\n{text}\n");
        let file = FileSettings::parse(&text, Path::new("h.toml")).unwrap();
        file.resources.resolve(8 << 30)
    }

    #[test]
    fn a_bound_is_the_usual_one_the_asked_one_or_none() {
        let usual = resolved("");
        assert_eq!(usual.memory, Some(6 << 30));
        assert_eq!(usual.processes, Some(PROCESSES));
        let asked = resolved("memory = \"512MiB\"\nprocesses = 256\ndisk = 0");
        assert_eq!(asked.memory, Some(512 << 20));
        assert_eq!(asked.processes, Some(256));
        assert_eq!(asked.disk, None);
    }

    #[test]
    fn a_wrong_bound_is_named_with_its_line() {
        let parse = |text: &str| FileSettings::parse(text, Path::new("h.toml"));
        let error = parse("[limits]\nmemory = \"much\"\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "h.toml:2: `memory`: invalid size `much`: expected for example 20GiB, 500MB or 4096"
        );
    }
}
