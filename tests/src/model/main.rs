//! `premath-model`: the model server as a program. It prints its address, and
//! serves until it is ended.

#![expect(
    clippy::expect_used,
    reason = "a program of tests says what is not there"
)]

use premath_tests::model::{Journal, ModelServer, Scripts};
use premath_tests::workspace;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: premath-model [--scripts FOLDER] [--journal FILE] [--requests FOLDER]";

fn main() -> ExitCode {
    let mut scripts = workspace().join("tests/agents/scripts");
    let (mut journal, mut requests) = (None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().map(PathBuf::from);
        match (argument.as_str(), value) {
            ("--scripts", Some(folder)) => scripts = folder,
            ("--journal", Some(file)) => journal = Some(file),
            ("--requests", Some(folder)) => requests = Some(folder),
            _ => {
                let _ = writeln!(std::io::stderr(), "{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let scripts = match Scripts::of_folder(&scripts) {
        Ok(scripts) => scripts,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let journal = journal.map_or_else(Journal::default, |file| {
        Journal::in_file(&file).expect("the journal can be made")
    });
    let server = ModelServer::start(scripts, journal, requests).expect("loopback has a port");
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{}", server.url());
    let _ = out.flush();
    loop {
        std::thread::park();
    }
}
