//! `premath completions` and `premath man`: what shells and `man` read, as the
//! repository of the sources has it.

use crate::answer::{Answer, Finished};
use crate::error::CliError;
use clap::{Args, ValueEnum};
use include_dir::{Dir, File, include_dir};
use schemars::JsonSchema;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

static COMPLETIONS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../docs/completions");
static PAGES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../docs/man");

/// A shell that has completions.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum CompletionShell {
    Bash,
    Zsh,
    Fish,
}

/// A program that has completions.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Program {
    Premath,
    HarnessCoordinator,
    HarnessWorker,
}

impl Program {
    const fn name(self) -> &'static str {
        match self {
            Self::Premath => "premath",
            Self::HarnessCoordinator => "harness-coordinator",
            Self::HarnessWorker => "harness-worker",
        }
    }
}

impl CompletionShell {
    fn file(self, program: Program) -> String {
        let name = program.name();
        match self {
            Self::Bash => format!("bash/{name}"),
            Self::Zsh => format!("zsh/_{name}"),
            Self::Fish => format!("fish/{name}.fish"),
        }
    }
}

/// Arguments of `premath completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: CompletionShell,
    /// The program
    #[arg(default_value = "premath")]
    program: Program,
}

/// The answer of `premath completions`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CompletionsAnswer {
    /// The script for the shell.
    text: String,
}

impl CompletionsArgs {
    pub(crate) fn run(self) -> Finished {
        let text = embedded(&COMPLETIONS, &self.shell.file(self.program));
        let answer = text.map(|text| {
            let document = CompletionsAnswer { text: text.clone() };
            Answer::new(document, text)
        });
        Finished::new("completions", answer)
    }
}

/// Arguments of `premath man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Print this page, for example premath-issue-add
    #[arg(default_value = "premath")]
    page: String,
    /// Write every page to this folder instead, for example ~/.local/share/man/man1
    #[arg(long, value_name = "DIR", conflicts_with = "page")]
    dir: Option<PathBuf>,
}

/// The answer of `premath man`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ManAnswer {
    /// How many pages were written; 0 where one is printed.
    count: usize,
    /// The page, where one is printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl ManArgs {
    pub(crate) fn run(self) -> Finished {
        let answer = match &self.dir {
            Some(folder) => write(folder),
            None => print(&self.page),
        };
        Finished::new("man", answer)
    }
}

fn print(page: &str) -> Result<Answer, CliError> {
    let text = embedded(&PAGES, &format!("{page}.1")).map_err(|_| {
        CliError::Usage(format!(
            "no page `{page}`; pages are named as commands, for example premath-issue-add"
        ))
    })?;
    let document = ManAnswer {
        count: 0,
        text: Some(text.clone()),
    };
    Ok(Answer::new(document, text))
}

fn write(folder: &Path) -> Result<Answer, CliError> {
    let failed = |operation, path: &Path| {
        let path = path.to_path_buf();
        move |source| CliError::File {
            operation,
            path,
            source,
        }
    };
    fs::create_dir_all(folder).map_err(failed("make", folder))?;
    let mut count = 0;
    for page in PAGES.files() {
        let path = folder.join(page.path());
        fs::write(&path, page.contents()).map_err(failed("write", &path))?;
        count += 1;
    }
    let text = format!("wrote {count} pages to {}\n", folder.display());
    Ok(Answer::new(ManAnswer { count, text: None }, text))
}

fn embedded(folder: &Dir<'_>, name: &str) -> Result<String, CliError> {
    let text = folder.get_file(name).and_then(File::contents_utf8);
    let missing = || CliError::Usage(format!("no file `{name}`"));
    text.map(str::to_owned).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_has_every_program() {
        for shell in CompletionShell::value_variants() {
            for program in Program::value_variants() {
                let text = embedded(&COMPLETIONS, &shell.file(*program)).unwrap();
                assert!(text.contains(program.name()), "{shell:?} {program:?}");
            }
        }
    }
}
