//! What this machine needs for what everything else is made of.

use crate::Sizes;
use crate::figure::{self, Wrong, median, timed};
use crate::programs::{command, run};
use premath_kernel::json::canonical::sha256_hex;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

/// How often each is done.
const TIMES: usize = 100;
/// The bytes of a row of issue memory.
const ROW: usize = 600;
/// The bytes that are digested.
const DIGESTED: usize = 16 << 20;

pub(crate) fn measure(sizes: Sizes, folder: &Path) -> Result<(), Wrong> {
    fs::create_dir_all(folder)?;
    let processors = std::thread::available_parallelism()?;
    figure::note("processors", &processors.to_string());
    let kernel = rustix::system::uname();
    let release = kernel.release().to_string_lossy();
    let version: Vec<&str> = release.split('.').take(2).collect();
    figure::note("Linux", &version.join("."));
    let each = |seconds: f64| figure::time(seconds / TIMES as f64);
    let start = repeated(sizes, || {
        (0..TIMES).try_for_each(|_| run(&mut command("true")).map(drop))
    })?;
    figure::note("start and end of a process", &each(start));
    let mut file = File::create(folder.join("rows"))?;
    let append = repeated(sizes, || {
        (0..TIMES).try_for_each(|_| {
            file.write_all(&[b'x'; ROW])?;
            Ok(file.sync_data()?)
        })
    })?;
    figure::note(
        &format!("append of {ROW} bytes and fdatasync"),
        &each(append),
    );
    let bytes = vec![b'x'; DIGESTED];
    let digest = repeated(sizes, || {
        std::hint::black_box(sha256_hex(std::hint::black_box(&bytes)));
        Ok(())
    })?;
    let rate = DIGESTED as f64 / digest / 1e6;
    figure::note("SHA-256", &format!("{rate:.0} MB/s"));
    Ok(())
}

/// Returns the median of the times that something takes.
fn repeated(sizes: Sizes, mut work: impl FnMut() -> Result<(), Wrong>) -> Result<f64, Wrong> {
    let times = (0..sizes.runs).map(|_| Ok(timed(&mut work)?.1.as_secs_f64()));
    Ok(median(times.collect::<Result<_, Wrong>>()?))
}
