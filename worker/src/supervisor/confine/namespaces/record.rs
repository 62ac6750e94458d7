//! The document that goes along the chain of processes which confines a
//! command: the order at its head, the report after it.
//!
//! It is an anonymous file of the supervisor's and the standard input of the
//! two processes in between. The command itself never has it.

use super::view::View;
use crate::supervisor::message::OsText;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

/// The bytes that hold the length of the order.
const HEAD: u64 = 8;
/// The bytes after the order that hold the report; the last of them says that
/// the init is ready.
const REPORT: u64 = 4096;

/// What is to be run, and in what view.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) view: View,
    /// Whether the command reads from the terminal that its errors go to.
    pub(super) has_terminal: bool,
    pub(super) program: OsText,
    pub(super) args: Vec<OsText>,
    pub(super) env: Vec<(OsText, OsText)>,
    pub(super) cwd: OsText,
}

/// The outcome of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::supervisor) enum OrderEnd {
    /// The command ended, with a code or by a signal.
    Ended {
        code: Option<i32>,
        signal: Option<i32>,
        /// How many of its processes were left.
        left: u32,
    },
    /// The program could not be started in the view.
    NotStarted { errno: i32, message: String },
    /// The view could not be made.
    NotConfined { message: String },
}

/// The document.
#[derive(Debug)]
pub(in crate::supervisor) struct Record {
    file: File,
    report_at: u64,
}

impl Record {
    /// Writes an order down.
    pub(super) fn make(order: &Order) -> io::Result<Self> {
        let body = serde_json::to_vec(order)?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("premath-order", flags)?);
        let report_at = HEAD + body.len() as u64;
        file.write_all_at(&(body.len() as u64).to_le_bytes(), 0)?;
        file.write_all_at(&body, HEAD)?;
        // Of a fixed size, so that the report always has room.
        ftruncate(&file, report_at + REPORT)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
        Ok(Self { file, report_at })
    }

    /// Opens the record that this process got as its standard input.
    pub(super) fn inherited() -> io::Result<(Self, Order)> {
        let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let mut head = [0; HEAD as usize];
        file.read_exact_at(&mut head, 0)?;
        let length = u64::from_le_bytes(head);
        let size = file.metadata()?.len();
        if HEAD + length + REPORT != size {
            return Err(io::Error::other("the order's size field is wrong"));
        }
        let mut body = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        file.read_exact_at(&mut body, HEAD)?;
        let order = serde_json::from_slice(&body)?;
        let report_at = HEAD + length;
        Ok((Self { file, report_at }, order))
    }

    /// Returns another handle to it, for the next process.
    pub(super) fn share(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Writes the report. A message that is too long is cut.
    pub(super) fn report(&self, outcome: &OrderEnd) -> io::Result<()> {
        let mut outcome = outcome.clone();
        if let OrderEnd::NotStarted { message, .. } | OrderEnd::NotConfined { message } =
            &mut outcome
        {
            *message = message.chars().take(500).collect();
        }
        let body = serde_json::to_vec(&outcome)?;
        self.file.write_all_at(&body, self.report_at)
    }

    /// Notes that the init receives signals from now on.
    pub(super) fn note_ready(&self) -> io::Result<()> {
        self.file.write_all_at(&[1], self.report_at + REPORT - 1)
    }

    /// Returns whether the init receives signals.
    pub(super) fn is_ready(&self) -> bool {
        let mut ready = [0];
        let read = self
            .file
            .read_exact_at(&mut ready, self.report_at + REPORT - 1);
        read.is_ok() && ready == [1]
    }

    /// Reads the report; none where none was written.
    pub(in crate::supervisor) fn outcome(&self) -> Option<OrderEnd> {
        let mut body = vec![0; REPORT as usize];
        self.file.read_exact_at(&mut body, self.report_at).ok()?;
        let end = body.iter().position(|byte| *byte == 0)?;
        serde_json::from_slice(&body[..end]).ok()
    }
}
