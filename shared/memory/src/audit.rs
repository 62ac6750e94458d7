//! What an audit reads of the files: the trajectory line by line, witnesses,
//! streams. Reading changes nothing.

use crate::artifact;
use crate::error::StoreError;
use crate::inspect::{LineFault, fault, lines, read};
use crate::trajectory::read_line;
use flate2::read::GzDecoder;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::lease::LeaseRefusal;
use premath_kernel::json::canonical::hex;
use premath_kernel::record::audit::{AuditRow, StreamFile, StreamName, WitnessFile, WitnessRef};
use premath_kernel::record::recorded_turn::RecordedTurn;
use premath_kernel::record::trajectory::{ChainReport, check_chain};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// A trajectory, read line by line.
#[derive(Clone, Debug, Default)]
pub struct AuditedTrajectory {
    /// The chain of its lines, computed again.
    pub chain: ChainReport,
    /// The rows that can be read, each with its line.
    pub rows: Vec<AuditRow>,
    /// The lines that cannot be read, with the faults.
    pub faults: Vec<LineFault>,
}

/// Reads a trajectory; a file that is not there is empty.
///
/// # Errors
///
/// [`StoreError::Io`].
pub fn trajectory(path: &Path) -> Result<AuditedTrajectory, StoreError> {
    let bytes = match read(path) {
        Err(StoreError::Missing { .. }) => Vec::new(),
        read => read?,
    };
    let mut found = AuditedTrajectory {
        chain: check_chain(lines(&bytes).map(|line| line.bytes)),
        ..AuditedTrajectory::default()
    };
    for line in lines(&bytes) {
        match read_line(path, &line) {
            Ok(Some(row)) => found.rows.push(AuditRow {
                line: line.number,
                row,
            }),
            Ok(None) => {}
            Err(error) => found.faults.extend(fault(error)),
        }
    }
    Ok(found)
}

/// Reads the file of a witness that belongs to a step.
///
/// # Errors
///
/// [`StoreError::Io`].
pub fn witness(folder: &Path, reference: &WitnessRef) -> Result<WitnessFile, StoreError> {
    let file = artifact::of_step(folder, &reference.step_id, &reference.phase, "json");
    let path = file.display().to_string();
    let Some(bytes) = artifact::read(&file)? else {
        return Ok(WitnessFile::Missing { path });
    };
    Ok(match serde_json::from_slice(&bytes) {
        Ok(document) => WitnessFile::Found { path, document },
        Err(error) => WitnessFile::Unreadable {
            path,
            detail: error.to_string(),
        },
    })
}

/// Reads a turn that the harness recorded, by the reference of its witness.
///
/// # Errors
///
/// [`LeaseRefusal`]: it is not such a reference, the trajectory was altered, or
/// [`RecordedTurn::read`] refuses the turn. A file that cannot be read is none.
pub fn recorded_turn(
    journal: &Path,
    witnesses: &Path,
    reference: &str,
) -> Result<RecordedTurn, LeaseRefusal> {
    let refuse = |detail: String| LeaseRefusal {
        class: FailureClass::MutationUseEvidenceMissing,
        detail,
    };
    let named = WitnessRef::parse(reference).filter(WitnessRef::is_turn);
    let named = named.ok_or_else(|| {
        refuse(format!(
            "`{reference}` is not the reference of a turn's witness"
        ))
    })?;
    let rows = trajectory(journal).map_err(|error| refuse(error.to_string()))?;
    if !rows.chain.breaks.is_empty() || !rows.faults.is_empty() {
        let detail = "the trajectory was altered; see `premath audit`";
        return Err(refuse(detail.to_owned()));
    }
    match witness(witnesses, &named).map_err(|error| refuse(error.to_string()))? {
        WitnessFile::Found { document, .. } => {
            RecordedTurn::read(&named, &document, rows.rows.iter().map(|found| &found.row))
        }
        WitnessFile::Missing { path } => Err(refuse(format!("there is no {path}"))),
        WitnessFile::Unreadable { path, detail } => Err(refuse(format!("{path}: {detail}"))),
    }
}

/// Sums a stream up as it is now, an agent's after decompression; `None` where
/// there is no file.
///
/// # Errors
///
/// [`StoreError::Io`].
pub fn stream(folder: &Path, name: &StreamName) -> Result<Option<StreamFile>, StoreError> {
    let plain = artifact::of_step(folder, &name.step_id, &name.phase, name.stream);
    let mut packed = plain.clone().into_os_string();
    packed.push(".gz");
    let packed = PathBuf::from(packed);
    if let Some(file) = open(&packed)? {
        let found = sum(&packed, GzDecoder::new(BufReader::new(file)));
        // One that cannot be unpacked holds nothing that was reported.
        return Ok(Some(found.unwrap_or_else(|error| StreamFile {
            path: packed.display().to_string(),
            bytes: 0,
            sha256: error.to_string(),
        })));
    }
    open(&plain)?
        .map(|file| sum(&plain, BufReader::new(file)))
        .transpose()
        .map_err(StoreError::io("read", &plain))
}

fn open(path: &Path) -> Result<Option<File>, StoreError> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io("open", path)(error)),
    }
}

fn sum(path: &Path, mut bytes: impl Read) -> io::Result<StreamFile> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 1 << 16];
    let mut total = 0;
    loop {
        let read = bytes.read(&mut chunk)?;
        if read == 0 {
            break;
        }
        hash.update(&chunk[..read]);
        total += read as u64;
    }
    Ok(StreamFile {
        path: path.display().to_string(),
        bytes: total,
        sha256: hex(&hash.finalize()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_stream_is_summed_up_alike_whether_it_is_packed_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let name = StreamName {
            step_id: "w.a.1".into(),
            phase: "work".into(),
            stream: "stdout",
        };
        assert_eq!(stream(folder.path(), &name).unwrap(), None);
        let path = folder.path().join("w.a.1.work.stdout");
        fs::write(&path, "said\n").unwrap();
        let plain = stream(folder.path(), &name).unwrap().unwrap();
        let packed = artifact::compress(&path).unwrap();
        let unpacked = stream(folder.path(), &name).unwrap().unwrap();
        assert_eq!(
            (plain.bytes, &plain.sha256),
            (unpacked.bytes, &unpacked.sha256)
        );
        assert_eq!(
            plain.sha256,
            premath_kernel::json::canonical::sha256_hex(b"said\n")
        );
        fs::write(packed, "no gzip").unwrap();
        let broken = stream(folder.path(), &name).unwrap().unwrap();
        assert_ne!(broken.sha256, plain.sha256);
    }

    #[test]
    fn a_trajectory_is_read_with_its_lines_past_those_that_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        assert!(trajectory(&path).unwrap().rows.is_empty());
        let writer = crate::Trajectory::open(&path).unwrap();
        let row = |step: &str| {
            let at = jiff::Timestamp::UNIX_EPOCH;
            premath_kernel::record::trajectory::StepRow::new(step, "worker.loop", "completed", at)
        };
        writer.append(&row("1")).unwrap();
        let mut text = fs::read_to_string(&path).unwrap();
        text.push_str("\nno row\n");
        fs::write(&path, text).unwrap();
        let found = trajectory(&path).unwrap();
        assert_eq!(found.rows[0].line, 1);
        assert_eq!((found.faults.len(), found.chain.breaks.len()), (1, 0));
        assert_eq!(found.chain.uncovered, [3]);
    }
}
