//! Durable claims, beside a bare loop that appends the same bytes and syncs.

use crate::Sizes;
use crate::claimer::Claimer;
use crate::figure::{self, Wrong, median, timed};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// In how many parts claims and baseline take turns.
const TURNS: usize = 10;
const THREADS: usize = 4;
const SMALL: usize = 1_000;

pub(crate) fn measure(sizes: Sizes, folder: &Path) -> Result<(), Wrong> {
    for threads in [1, THREADS] {
        let folder = folder.join(format!("claims-{threads}"));
        let mut claimer = Claimer::on(&folder, sizes.claims)?;
        let mut bare = Bare::beside(&claimer)?;
        let (mut claims, mut appends, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..TURNS {
            let (lines, claimed) = claimer.claim(sizes.claims / TURNS, threads)?;
            let appended = bare.append(&lines)?;
            claims.push(claimed);
            appends.push(appended);
            ratios.push(claimed / appended);
        }
        let all: BTreeSet<String> = claimer.claimed.iter().cloned().collect();
        if all.len() != sizes.claims / TURNS * TURNS {
            return Err(Wrong::because("an issue was claimed twice, or none"));
        }
        figure::show(
            &format!(
                "claims of {} issues, {threads} thread(s), against append and fdatasync",
                sizes.claims
            ),
            &rate(median(claims)),
            &rate(median(appends)),
            median(ratios),
            ">= 0.60",
        );
    }
    // The same number of claims on both, in turns.
    let mut large = Claimer::on(&folder.join("claims-large"), sizes.large)?;
    let mut small = Claimer::on(&folder.join("claims-small"), SMALL)?;
    let (mut at_large, mut at_small, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let (_, slow) = large.claim(SMALL / TURNS, 1)?;
        let (_, fast) = small.claim(SMALL / TURNS, 1)?;
        at_large.push(slow);
        at_small.push(fast);
        ratios.push(fast / slow);
    }
    figure::show(
        &format!("a claim at {} issues, against one at {SMALL}", sizes.large),
        &figure::time(median(at_large).recip()),
        &figure::time(median(at_small).recip()),
        median(ratios),
        "<= 1.3",
    );
    Ok(())
}

fn rate(per_second: f64) -> String {
    format!("{per_second:.0} /s")
}

/// The baseline: a file that the same rows are appended to.
struct Bare {
    file: File,
}

impl Bare {
    /// Begins with the same bytes as the memory has.
    fn beside(claimer: &Claimer) -> Result<Self, Wrong> {
        let path: PathBuf = claimer.memory.path().with_file_name("bare.jsonl");
        fs::copy(claimer.memory.path(), &path)?;
        let file = File::options().append(true).open(&path)?;
        file.sync_all()?;
        Ok(Self { file })
    }

    /// Appends lines one by one, each synced; returns how many a second.
    fn append(&mut self, lines: &[String]) -> Result<f64, Wrong> {
        let ((), elapsed) = timed(|| {
            for line in lines {
                self.file.write_all(line.as_bytes())?;
                self.file.sync_data()?;
            }
            Ok(())
        })?;
        Ok(lines.len() as f64 / elapsed.as_secs_f64())
    }
}
