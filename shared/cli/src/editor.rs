//! A text that a person changes in an editor.

use crate::error::CliError;
use crate::paths::variable;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::{Builder, NamedTempFile};

/// What the line of a fault begins with, in a text that is opened again.
const FAULT: &str = "# error: ";

/// How often a text is opened that cannot be read.
const ROUNDS: usize = 10;

/// A text in a file that an editor opens; the file goes with it, unless it is
/// kept.
#[derive(Debug)]
pub(crate) struct Draft {
    file: NamedTempFile,
    first: String,
    text: String,
}

impl Draft {
    /// Writes a text to a file that only this user reads.
    ///
    /// # Errors
    ///
    /// [`CliError::File`].
    pub(crate) fn new(text: String) -> Result<Self, CliError> {
        let builder = Builder::new().prefix("premath-").suffix(".toml").tempfile();
        let file = builder.map_err(failed("create", &std::env::temp_dir()))?;
        let first = text.clone();
        let draft = Self { file, first, text };
        draft.write()?;
        Ok(draft)
    }

    fn write(&self) -> Result<(), CliError> {
        let path = self.file.path().to_path_buf();
        let written = fs::write(&path, &self.text);
        written.map_err(failed("write", &path))
    }

    /// Opens the text until it can be read; returns nothing where the person
    /// left it as it was.
    ///
    /// # Errors
    ///
    /// The editor failed, or the person left a text that cannot be read as it
    /// was, or wrote [`ROUNDS`] of them.
    pub(crate) fn edited<T>(
        &mut self,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, CliError> {
        let mut rounds = 0;
        loop {
            rounds += 1;
            let before = std::mem::take(&mut self.text);
            run(self.file.path())?;
            let text = fs::read_to_string(self.file.path());
            self.text = text.map_err(failed("read", self.file.path()))?;
            let is_same = self.text == before;
            if is_same && rounds == 1 {
                return Ok(None);
            }
            match read(&self.text) {
                Ok(value) => return Ok(Some(value)),
                Err(fault) if is_same || rounds == ROUNDS => return Err(CliError::Usage(fault)),
                Err(fault) => {
                    self.text = with_fault(&self.text, &fault);
                    self.write()?;
                }
            }
        }
    }

    /// Keeps the file of a text that led to an error, and names it there, if the
    /// person wrote anything.
    pub(crate) fn keep(self, error: CliError) -> CliError {
        let text = fs::read_to_string(self.file.path());
        if text.is_ok_and(|text| text == self.first) {
            return error;
        }
        match self.file.keep() {
            Ok((_, path)) => CliError::Kept {
                path,
                error: Box::new(error),
            },
            Err(_) => error,
        }
    }
}

/// Returns a text with the fault above it, instead of an earlier one.
fn with_fault(text: &str, fault: &str) -> String {
    let rest = text.lines().skip_while(|line| line.starts_with(FAULT));
    let fault = fault.lines().map(|line| format!("{FAULT}{line}"));
    let mut text: Vec<String> = fault.collect();
    text.extend(rest.map(str::to_owned));
    text.join("\n") + "\n"
}

/// Runs the person's editor on a file, as git does: `VISUAL`, else `EDITOR`, else
/// `vi`, by the shell, so that it may have arguments.
#[expect(
    clippy::disallowed_methods,
    reason = "the editor is the operator's own; it is started only where an operator may change \
              an issue, which is never inside a step"
)]
fn run(file: &Path) -> Result<(), CliError> {
    let editor = ["VISUAL", "EDITOR"].into_iter().find_map(variable);
    let editor = editor.unwrap_or_else(|| OsString::from("vi"));
    let mut script = editor.clone();
    script.push(" \"$1\"");
    let status = Command::new("/bin/sh")
        .arg("-c")
        .arg(script)
        .arg("premath")
        .arg(file)
        .status();
    let name = editor.to_string_lossy();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(CliError::Usage(format!(
            "the editor `{name}` failed ({status}); nothing was changed; set EDITOR to another one"
        ))),
        Err(source) => Err(failed("start", Path::new("/bin/sh"))(source)),
    }
}

fn failed(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CliError {
    let path: PathBuf = path.to_path_buf();
    move |source| CliError::File {
        operation,
        path,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_fault_takes_the_place_of_an_earlier_one() {
        let text = with_fault("title = \"\"\n", "one\nmore");
        assert_eq!(text, "# error: one\n# error: more\ntitle = \"\"\n");
        assert_eq!(with_fault(&text, "two"), "# error: two\ntitle = \"\"\n");
    }
}
