//! From a checkout to a commit.

use super::super::beneath::{Beneath, kind, path};
use super::super::entry_name::is_fit;
use super::super::holes::TOO_SPARSE;
use super::super::scan::StoredContent;
use super::super::{Tree, TreeError};
use super::lfs::{self, Pointer};
use super::place::RunFolder;
use super::{FilterEnd, Filters};
use crate::file_stamp::FileStamp;
use git2::{ObjectType, Oid};
use rustix::fs::FileType;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::Path;

/// The largest file that is taken, before its filter and behind it.
const FILE_MAX: u64 = 1 << 30;
/// How many files of one look may be refused by their filters before the rest
/// is refused unseen: each costs a run.
const REFUSED_MAX: usize = 20;
/// The longest line of git's with the id of an object.
const ID_MAX: u64 = 65;
/// The longest line of git's about an object.
const LINE_MAX: u64 = 200;

/// Has each file go through its filter and be written out behind it. Where one
/// is refused, those before it are there. Their ids are there at once, so that the
/// file is known at which it was ended.
const SCRIPT: &str = "GIT_FLUSH=1 git hash-object -w --stdin-paths <../names >../ids; code=$?; \
                      git cat-file --batch <../ids >../blobs || exit 97; exit $code";

/// A file on its way to a commit.
struct Taken<'a> {
    name: &'a [u8],
    filter: String,
    stamp: FileStamp,
}

impl Tree {
    /// Has files go through their filters, and stores what comes out. What is
    /// refused is remembered with the reason.
    pub(in crate::tree) fn clean(&self, names: &[&[u8]]) -> Result<(), TreeError> {
        let Some(filters) = &self.filters else {
            return Ok(());
        };
        self.cleaned.borrow_mut().clear();
        self.unfiltered.borrow_mut().clear();
        let root = self.beneath()?;
        let mut waiting = Vec::new();
        for name in names {
            if let Some(taken) = self.to_clean(filters, &root, name) {
                waiting.push(taken);
            }
        }
        let (mut refused, mut was_ended) = (0, false);
        while !waiting.is_empty() {
            let stop = match (was_ended, refused) {
                (true, _) => Some("the filter of another file was ended"),
                (_, REFUSED_MAX) => Some("too many files are refused by their filters"),
                _ => None,
            };
            if let Some(why) = stop {
                let mut ended = self.ended.borrow_mut();
                // A second one in another look: the rest would be ended one by one.
                let is_over = was_ended && ended.len() > 1;
                for taken in waiting {
                    self.refuse(taken.name, why);
                    if is_over {
                        ended.insert(taken.name.to_vec(), (taken.stamp, why.to_owned()));
                    }
                }
                break;
            }
            let done;
            (done, was_ended) = self.clean_some(filters, &root, &waiting)?;
            waiting.drain(..done);
            refused += 1;
        }
        Ok(())
    }

    /// Returns a file that has to go through its filter.
    fn to_clean<'a>(&self, filters: &Filters, root: &Beneath, name: &'a [u8]) -> Option<Taken<'a>> {
        let filter = filters.of(name).filter(|_| is_fit(name))?;
        let stat = root.look(path(name)).ok()??;
        let stamp = FileStamp::of(&stat);
        // Its filter would be ended again.
        let ended = self.ended.borrow();
        if let Some((_, why)) = ended.get(name).filter(|(of, _)| *of == stamp) {
            self.refuse(name, why);
            return None;
        }
        let is_regular = kind(&stat) == FileType::RegularFile;
        if is_regular && !self.holes.take(&stat) {
            self.refuse(name, TOO_SPARSE);
            return None;
        }
        let is_known = || self.known(name, stamp).is_some();
        (is_regular && !is_known()).then_some(Taken {
            name,
            filter,
            stamp,
        })
    }

    /// Has files go through their filters up to the first that is refused;
    /// returns how many are done, and whether the filter of the last one was ended.
    fn clean_some(
        &self,
        filters: &Filters,
        root: &Beneath,
        files: &[Taken<'_>],
    ) -> Result<(usize, bool), TreeError> {
        let place = RunFolder::make(filters, false);
        let place = place.map_err(self.refused("make a folder for", Path::new("filters")))?;
        let mut list = Vec::new();
        for (number, taken) in files.iter().enumerate() {
            if let Err(error) = self.copy_in(&place, root, taken) {
                self.refuse(taken.name, &error.to_string());
                if number == 0 {
                    return Ok((1, false));
                }
                return self.clean_some(filters, root, &files[..number]);
            }
            list.extend(quoted(taken.name));
        }
        place
            .write("names", &list)
            .map_err(self.refused("list", Path::new("filtered files")))?;
        let end = place.run(SCRIPT);
        let end = end.map_err(|why| self.filter_error("run the git filters", why))?;
        if end.was_ended {
            return self.ended_at(filters, root, (&place, &end), files);
        }
        let read = self.take_out(filters, &place, files);
        let done = match read {
            Ok(done) => done,
            Err(error) => {
                let why = format!("{error}: {}", end.said);
                return Err(self.filter_error("read what the git filters wrote", why));
            }
        };
        let Some(first) = files.get(done) else {
            filters.warn(&end.said);
            return Ok((done, false));
        };
        self.refuse(first.name, &said(&end));
        Ok((done + 1, false))
    }

    /// Refuses the file whose filter was ended. Those before it go through theirs once
    /// more: nothing was written out.
    fn ended_at(
        &self,
        filters: &Filters,
        root: &Beneath,
        (place, end): (&RunFolder<'_>, &FilterEnd),
        files: &[Taken<'_>],
    ) -> Result<(usize, bool), TreeError> {
        let failed = self.refused("read", Path::new("ids of filtered files"));
        let most = (files.len() as u64 + 1) * ID_MAX;
        let ids = place
            .written()
            .and_then(|written| written.read(Path::new("ids"), most));
        let ids = ids.map_err(failed)?.unwrap_or_default();
        let done = ids.iter().filter(|byte| **byte == b'\n').count();
        let Some(first) = files.get(done) else {
            return Err(self.filter_error("run the git filters", end.said.clone()));
        };
        if done > 0 {
            let before = self.clean_some(filters, root, &files[..done])?;
            if before != (done, false) {
                return Ok(before);
            }
        }
        let why = said(end);
        self.refuse(first.name, &why);
        let mut ended = self.ended.borrow_mut();
        ended.insert(first.name.to_vec(), (first.stamp, why));
        Ok((done + 1, true))
    }

    fn copy_in(&self, place: &RunFolder<'_>, root: &Beneath, taken: &Taken<'_>) -> io::Result<()> {
        place.make_way(&self.repository, taken.name)?;
        let file = root.open_file(path(taken.name))?;
        let file = file.ok_or(io::ErrorKind::NotFound)?;
        if file.metadata()?.len() > FILE_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut to = place.create(taken.name)?;
        io::copy(&mut file.take(FILE_MAX), &mut to).map(drop)
    }

    /// Stores what came out of the filters, in the order of the files; returns
    /// for how many that is.
    fn take_out(
        &self,
        filters: &Filters,
        place: &RunFolder<'_>,
        files: &[Taken<'_>],
    ) -> io::Result<usize> {
        let written = place.written()?;
        let blobs = written.open_file(Path::new("blobs"))?;
        let mut blobs = BufReader::new(blobs.ok_or(io::ErrorKind::NotFound)?);
        let root = self.beneath().map_err(io::Error::other)?;
        for (number, taken) in files.iter().enumerate() {
            let Some(size) = next_size(&mut blobs)? else {
                return Ok(number);
            };
            let stored = match taken.filter == lfs::FILTER && size <= lfs::POINTER_MAX {
                true => self.store_pointer(filters, &written, &mut blobs, size)?,
                false => Ok(self.store(&mut blobs, size)?),
            };
            match stored {
                Ok(id) => self.note(&root, taken, id),
                Err(why) => self.refuse(taken.name, &why),
            }
            let mut end = [0];
            blobs.read_exact(&mut end)?;
        }
        Ok(files.len())
    }

    /// Stores a text that may be a pointer to an object of Git LFS, and takes
    /// the object in; the inner error is why it is refused.
    fn store_pointer(
        &self,
        filters: &Filters,
        written: &Beneath,
        blobs: &mut BufReader<File>,
        size: u64,
    ) -> io::Result<Result<Oid, String>> {
        let mut text = Vec::new();
        blobs.by_ref().take(size).read_to_end(&mut text)?;
        let other = |error: git2::Error| io::Error::other(error.message().to_owned());
        let odb = self.repository.odb().map_err(other)?;
        if let Some(pointer) = Pointer::parse(&text) {
            let taken = lfs::take_in(&filters.definitions.lfs, written, &pointer)?;
            let id = Oid::hash_object(ObjectType::Blob, &text).map_err(other)?;
            // One that the base has may be of an object that was never fetched.
            if taken.is_err() && !self.head_holds(id) {
                return Ok(taken.map(|()| id));
            }
        }
        odb.write(ObjectType::Blob, &text).map(Ok).map_err(other)
    }

    fn store(&self, blobs: &mut BufReader<File>, size: u64) -> io::Result<Oid> {
        let other = |error: git2::Error| io::Error::other(error.message().to_owned());
        let odb = self.repository.odb().map_err(other)?;
        let length = usize::try_from(size).map_err(io::Error::other)?;
        let mut writer = odb.writer(length, ObjectType::Blob).map_err(other)?;
        if io::copy(&mut blobs.by_ref().take(size), &mut writer)? != size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        writer.finalize().map_err(other)
    }

    /// Remembers what a file's content is in a commit, while the file is as it
    /// was.
    fn note(&self, root: &Beneath, taken: &Taken<'_>, id: Oid) {
        let stamp = taken.stamp;
        let now = root.look(path(taken.name)).ok().flatten();
        if now.is_none_or(|now| FileStamp::of(&now) != stamp) {
            return self.refuse(taken.name, "it changed meanwhile");
        }
        let content = || StoredContent { stamp, id };
        let name = || taken.name.to_vec();
        if stamp.is_settled() {
            self.blobs.borrow_mut().insert(name(), content());
        }
        self.cleaned.borrow_mut().insert(name(), content());
    }

    fn refuse(&self, name: &[u8], why: &str) {
        let mut unfiltered = self.unfiltered.borrow_mut();
        unfiltered.insert(name.to_vec(), why.trim().to_owned());
    }

    /// Returns what a filtered file's content is in a commit, as it was found by
    /// [`Tree::clean`].
    pub(in crate::tree) fn cleaned(&self, name: &[u8], stamp: FileStamp) -> Option<Oid> {
        let cleaned = self.cleaned.borrow();
        let found = cleaned.get(name).filter(|found| found.stamp == stamp);
        found.map(|found| found.id)
    }

    /// Returns why a file's filter refused it.
    pub(in crate::tree) fn filter_refusal(&self, name: &[u8]) -> Option<String> {
        self.unfiltered.borrow().get(name).cloned()
    }
}

fn said(end: &FilterEnd) -> String {
    match end.said.trim() {
        "" => "its filter failed".to_owned(),
        said => format!("its filter failed: {said}"),
    }
}

/// Reads the line of git's before an object; `None` at the end.
fn next_size(blobs: &mut BufReader<File>) -> io::Result<Option<u64>> {
    let mut line = String::new();
    blobs.by_ref().take(LINE_MAX).read_line(&mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    let mut words = line.split_ascii_whitespace();
    let size = match (words.next(), words.next(), words.next(), words.next()) {
        (Some(_), Some("blob"), Some(size), None) => size.parse().ok(),
        _ => None,
    };
    match size {
        Some(size) if size <= FILE_MAX => Ok(Some(size)),
        Some(_) => Err(io::ErrorKind::FileTooLarge.into()),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Writes a name as git reads it from a line.
fn quoted(name: &[u8]) -> Vec<u8> {
    let mut line = vec![b'"'];
    for byte in name {
        match byte {
            b'"' | b'\\' => line.extend([b'\\', *byte]),
            0x20..=0x7e => line.push(*byte),
            _ => line.extend(format!("\\{byte:03o}").bytes()),
        }
    }
    line.extend(b"\"\n");
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_quoted_as_git_reads_it() {
        assert_eq!(quoted(b"a b.bin"), b"\"a b.bin\"\n");
        assert_eq!(quoted(b"\"\\\n\xc3\xa4"), b"\"\\\"\\\\\\012\\303\\244\"\n");
    }
}
