//! This program.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::path::Path;

/// Returns the path at which a child process starts this same program, also
/// after its file was replaced.
pub fn itself() -> &'static Path {
    Path::new("/proc/self/exe")
}

/// Sets the name by which lists of processes show this program; of its first 15
/// bytes.
///
/// # Errors
///
/// As the system reports it.
pub fn set_name(name: &CStr) -> io::Result<()> {
    Ok(rustix::thread::set_name(name)?)
}

/// Returns the descriptors that this process has open. One of them was that of
/// the list itself and is closed.
///
/// # Errors
///
/// The system does not list them.
pub fn descriptors() -> io::Result<Vec<i32>> {
    let entries = fs::read_dir("/proc/self/fd")?;
    let number = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    Ok(entries.filter_map(number).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn an_open_file_is_among_the_descriptors() {
        let file = fs::File::open(itself()).unwrap();
        assert!(descriptors().unwrap().contains(&file.as_raw_fd()));
    }
}
