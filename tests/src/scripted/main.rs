//! The scripted agent: `premath-scripted-agent FORMAT [--do WORD]
//! [--outside FILE]… [--victim ISSUE] [--limits FOLDER] < PROMPT`.
//!
//! Without `--do`, the issue's title says what it does. It is started like a
//! real agent, and reads its prompt like one.

use premath_evidence::Agent;
use premath_tests::scripted::{Misbehaviour, ScriptedTask, Stage, play};
use std::io::{Read, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let played = stage().and_then(|stage| play(&stage).map_err(|error| error.to_string()));
    played.unwrap_or_else(|error| {
        let _ = writeln!(std::io::stderr(), "premath-scripted-agent: {error}");
        ExitCode::from(2)
    })
}

fn stage() -> Result<Stage, String> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let agent = Agent::named(&name).ok_or_else(|| format!("unknown agent `{name}`"))?;
    let issue = variable("PREMATH_ISSUE_ID").unwrap_or_else(|| "issue".to_owned());
    let attempt = variable("PREMATH_LEASE_GENERATION").and_then(|text| text.parse().ok());
    let mut stage = Stage {
        agent,
        wish: ScriptedTask::of_title(&variable("PREMATH_ISSUE_TITLE").unwrap_or_default()),
        attempt: attempt.unwrap_or(1),
        issue,
        outside: Vec::new(),
        victim: None,
        issues: variable("PREMATH_ISSUES_PATH").map(Into::into),
        limits: None,
    };
    while let Some(flag) = arguments.next() {
        let value = arguments.next();
        let value = value.ok_or_else(|| format!("`{flag}` lacks its value"))?;
        match flag.as_str() {
            "--do" => {
                stage.wish = ScriptedTask {
                    misbehaviour: value.parse::<Misbehaviour>()?,
                    once: false,
                }
            }
            "--outside" => stage.outside.push(value.into()),
            "--victim" => stage.victim = Some(value),
            "--limits" => stage.limits = Some(value.into()),
            _ => return Err(format!("`{flag}` is unknown")),
        }
    }
    let mut prompt = String::new();
    let read = std::io::stdin().read_to_string(&mut prompt);
    read.map_err(|error| format!("the prompt: {error}"))?;
    match prompt.contains(&stage.issue) {
        true => Ok(stage),
        false => Err(format!("the prompt does not refer to {}", stage.issue)),
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
