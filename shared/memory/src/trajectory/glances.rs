//! Reads a trajectory for what its rows say about batches and issues, without making
//! rows of them: by blocks of lines, which threads read beside each other.

use super::read_line;
use crate::error::StoreError;
use crate::journal::{Journal, JournalLine, Tail};
use premath_kernel::record::trajectory::{RowGlance, StepRow};
use std::ops::Range;
use std::path::Path;
use std::thread;

/// How many bytes of lines a thread reads at a time.
const BLOCK: usize = 2 << 20;

/// The most threads.
const THREADS_MOST: usize = 4;

/// Where a line is in a trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinePlace {
    /// Its number, from 1.
    pub number: u64,
    /// Where it begins, in bytes.
    pub begin: u64,
}

impl LinePlace {
    /// The first line.
    pub const FIRST: Self = Self {
        number: 1,
        begin: 0,
    };
}

/// A row of which only what it says about its batch and its issue has been read.
#[derive(Debug)]
pub struct GlancedRow<'a> {
    place: LinePlace,
    seen: Seen<'a>,
}

#[derive(Debug)]
enum Seen<'a> {
    Glance(RowGlance<'a>, &'a [u8]),
    Whole(Box<StepRow>),
}

impl GlancedRow<'_> {
    /// Returns the number of its line.
    pub const fn number(&self) -> u64 {
        self.place.number
    }

    /// Returns where its line is.
    pub const fn place(&self) -> LinePlace {
        self.place
    }

    /// Returns what it says.
    pub fn glance(&self) -> RowGlance<'_> {
        match &self.seen {
            Seen::Glance(glance, _) => glance.clone(),
            Seen::Whole(row) => RowGlance::from(&**row),
        }
    }

    /// Returns the row where it had to be read as a whole, as that of a review.
    pub fn row(&self) -> Option<&StepRow> {
        match &self.seen {
            Seen::Glance(..) => None,
            Seen::Whole(row) => Some(row),
        }
    }

    /// Reads it as a whole. It is a row: a glance refuses what is not one.
    pub fn into_row(self) -> Option<StepRow> {
        match self.seen {
            Seen::Glance(_, line) => StepRow::parse(line).ok(),
            Seen::Whole(row) => Some(*row),
        }
    }
}

/// Takes the rows from a line on, in their order, without holding them; returns the
/// lines that are not rows. A file that is not there has none. `from` is
/// [`LinePlace::FIRST`], or a place that an earlier reading of the same file gave. Up to
/// 4 threads hold blocks of 2 MiB each.
///
/// # Errors
///
/// [`StoreError::Io`].
pub fn each_glance(
    path: &Path,
    from: LinePlace,
    take: impl FnMut(GlancedRow<'_>),
) -> Result<Vec<u64>, StoreError> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    Blocks::new(threads.min(THREADS_MOST), BLOCK).each(path, from, take)
}

/// Lines that are read together.
struct Blocks {
    blocks: Vec<Block>,
    /// The block that lines are put into.
    current: usize,
    /// How many bytes a block takes.
    size: usize,
    /// Where the next line begins.
    begin: u64,
}

#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    lines: Vec<(LinePlace, Range<usize>)>,
}

impl Blocks {
    fn new(count: usize, size: usize) -> Self {
        Self {
            blocks: (0..count.max(1)).map(|_| Block::default()).collect(),
            current: 0,
            size,
            begin: 0,
        }
    }

    fn each(
        mut self,
        path: &Path,
        from: LinePlace,
        mut take: impl FnMut(GlancedRow<'_>),
    ) -> Result<Vec<u64>, StoreError> {
        let mut unreadable = Vec::new();
        if !path.exists() {
            return Ok(unreadable);
        }
        self.begin = from.begin;
        let taken = |line: JournalLine<'_>| {
            if !self.put(&line) {
                self.read(path, &mut take, &mut unreadable)?;
                self.put(&line);
            }
            Ok(())
        };
        let mut journal = Journal::starting_at(path, from.begin, from.number - 1);
        journal.refresh(Tail::Peek, |_| (), taken)?;
        self.read(path, &mut take, &mut unreadable)?;
        Ok(unreadable)
    }

    /// Puts a line; returns whether there was room.
    fn put(&mut self, line: &JournalLine<'_>) -> bool {
        let size = self.size;
        let is_full = |block: &Block| block.bytes.len() >= size;
        while self.blocks.get(self.current).is_some_and(is_full) {
            self.current += 1;
        }
        let Some(block) = self.blocks.get_mut(self.current) else {
            return false;
        };
        let place = LinePlace {
            number: line.number,
            begin: self.begin,
        };
        let first = block.bytes.len();
        block.bytes.extend_from_slice(line.bytes);
        block.lines.push((place, first..block.bytes.len()));
        self.begin += line.bytes.len() as u64 + 1;
        true
    }

    /// Reads all lines that were put, and empties the blocks.
    fn read(
        &mut self,
        path: &Path,
        take: &mut impl FnMut(GlancedRow<'_>),
        unreadable: &mut Vec<u64>,
    ) -> Result<(), StoreError> {
        let filled = &self.blocks[..self.blocks.len().min(self.current + 1)];
        let read: Vec<_> = thread::scope(|scope| {
            let (first, others) = filled.split_at(1);
            let others: Vec<_> = others
                .iter()
                .map(|block| {
                    let read = thread::Builder::new().spawn_scoped(scope, || block.read(path));
                    (block, read)
                })
                .collect();
            let first = first.iter().map(|block| block.read(path));
            let mut read: Vec<_> = first.collect();
            for (block, other) in others {
                read.push(match other.map(|other| other.join()) {
                    Ok(Ok(rows)) => rows,
                    Ok(Err(panic)) => std::panic::resume_unwind(panic),
                    // The machine has no thread left.
                    Err(_) => block.read(path),
                });
            }
            read
        });
        for row in read.into_iter().flatten() {
            match row {
                Ok(row) => take(row),
                Err(StoreError::Corrupt { line, .. }) => unreadable.push(line),
                Err(error) => return Err(error),
            }
        }
        for block in &mut self.blocks {
            block.bytes.clear();
            block.lines.clear();
        }
        self.current = 0;
        Ok(())
    }
}

impl Block {
    fn read(&self, path: &Path) -> Vec<Result<GlancedRow<'_>, StoreError>> {
        let lines = self.lines.iter();
        let rows = lines.filter_map(|(place, range)| {
            let place = *place;
            let bytes = &self.bytes[range.clone()];
            if let Some(glance) = RowGlance::read(bytes) {
                let seen = Seen::Glance(glance, bytes);
                return Some(Ok(GlancedRow { place, seen }));
            }
            let line = JournalLine {
                number: place.number,
                bytes,
                is_whole: true,
            };
            let row = read_line(path, &line).transpose()?;
            Some(row.map(|row| GlancedRow {
                place,
                seen: Seen::Whole(Box::new(row)),
            }))
        });
        rows.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use premath_kernel::record::trajectory::action;

    /// What is known about a line from a glance, or from the whole row.
    type Found = (LinePlace, Option<StepRow>);

    fn glances(
        path: &Path,
        from: LinePlace,
        threads: usize,
        size: usize,
    ) -> (Vec<Found>, Vec<u64>) {
        let mut found = Vec::new();
        let blocks = Blocks::new(threads, size);
        let unreadable = blocks.each(path, from, |row| {
            let place = row.place();
            let glance = format!("{:?}", row.glance());
            let row = row.into_row();
            let whole = row
                .as_ref()
                .map(|row| format!("{:?}", RowGlance::from(row)));
            assert_eq!(Some(glance), whole);
            found.push((place, row));
        });
        (found, unreadable.unwrap())
    }

    /// Reads each line as a row.
    fn plain(text: &str) -> (Vec<Found>, Vec<u64>) {
        let (mut found, mut unreadable, mut begin) = (Vec::new(), Vec::new(), 0);
        for (number, line) in (1..).zip(text.split('\n')) {
            let place = LinePlace { number, begin };
            begin += line.len() as u64 + 1;
            match StepRow::parse(line.as_bytes()) {
                _ if line.trim().is_empty() => {}
                Ok(row) => found.push((place, Some(row))),
                Err(_) => unreadable.push(number),
            }
        }
        (found, unreadable)
    }

    /// A log with rows of ours and of other programs, and with lines that cannot be read as rows.
    fn log() -> String {
        let mut text = String::new();
        for number in 0..60 {
            let mut row = StepRow::new(
                format!("s{number}"),
                [action::WORKER_LOOP, action::REVIEWED, "x"][number % 3],
                "completed",
                jiff::Timestamp::UNIX_EPOCH,
            );
            row.issue_id = Some(format!("bd/{}", number % 7).as_str().into());
            row.batch_id = (number % 5 > 0).then(|| "hb".into());
            let line = row.line().unwrap();
            match number % 10 {
                3 => text.push_str(&line.replace('/', "\\/")),
                5 => text.push_str(&line.replace("\"schema\":1", "\"schema\":2")),
                6 => text.push_str("\n \t"),
                7 => text.push_str("# comment"),
                9 => text.push_str(&line[..line.len() / 2]),
                _ => text.push_str(&line),
            }
            text.push('\n');
        }
        text
    }

    #[test]
    fn glances_are_the_rows_of_a_log_in_blocks_of_any_size_on_any_number_of_threads() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let missing = glances(&path, LinePlace::FIRST, 2, 1);
        assert_eq!(missing, (Vec::new(), Vec::new()));
        let mut text = log();
        // The last line may have no end.
        text.push_str(text.clone().lines().next().unwrap());
        std::fs::write(&path, &text).unwrap();
        let expected = plain(&text);
        assert!(!expected.0.is_empty() && !expected.1.is_empty());
        for threads in 1..4 {
            for size in [1, 100, 1000, 1 << 20] {
                let found = glances(&path, LinePlace::FIRST, threads, size);
                assert_eq!(found, expected, "{threads} threads, {size} bytes");
            }
        }
    }

    #[test]
    fn what_is_read_from_a_line_on_has_its_numbers_of_the_whole_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let text = log();
        std::fs::write(&path, &text).unwrap();
        let (all, unreadable) = plain(&text);
        for (index, (place, _)) in all.iter().enumerate() {
            let (found, broken) = glances(&path, *place, 2, 500);
            assert_eq!(found, all[index..]);
            let later = unreadable.iter().filter(|line| **line > place.number);
            assert_eq!(broken, later.copied().collect::<Vec<_>>());
        }
    }
}
