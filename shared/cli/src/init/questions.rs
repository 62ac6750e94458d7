//! What `premath init` asks of a person on a terminal.

use premath_evidence::Agent;
use premath_kernel::json::plain::plain;
use std::io::{self, BufRead, Write};

/// How many lanes there may be.
const LANES_MAX: u16 = 64;

/// The longest answer that is read.
const ANSWER_MAX: u64 = 4_096;

/// What a repository is set up with; `None` where it is not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) agent: Option<Agent>,
    pub(super) verify: Option<String>,
    pub(super) lanes: Option<u16>,
    /// The prefix of ids; it is not asked for.
    pub(super) id_prefix: Option<String>,
}

/// What is proposed.
#[derive(Clone, Debug)]
pub(super) struct Proposal {
    /// The agents that are installed.
    pub(super) installed: Vec<Agent>,
    /// The verify command that fits the repository.
    pub(super) verify: Option<String>,
    /// The number of lanes.
    pub(super) lanes: u16,
}

/// Reads a number of lanes.
pub(super) fn lanes(text: &str) -> Result<u16, String> {
    let number = text.trim().parse().ok();
    number
        .filter(|number| (1..=LANES_MAX).contains(number))
        .ok_or_else(|| format!("expected a number from 1 to {LANES_MAX}"))
}

/// Asks what is not given yet. An empty answer takes the proposal, and so does
/// the end of the input; another answer is asked for until it fits.
pub(super) fn ask(
    given: Choice,
    proposal: &Proposal,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> io::Result<Choice> {
    let mut asked = given;
    if asked.agent.is_none() {
        let names: Vec<&str> = Agent::names().collect();
        let question = format!("coding agent ({} or none)", names.join(", "));
        let first = proposal.installed.first().map(|agent| agent.as_str());
        let read = |answer: &str| match answer {
            "none" => Ok(None),
            name => crate::agents::named(name).map(Some),
        };
        let default = first.unwrap_or("none");
        asked.agent = one(&question, default, read, input, output)?;
    }
    if asked.verify.is_none() {
        let question = "command that verifies the work (or none)";
        let default = proposal.verify.as_deref().unwrap_or("");
        let read = |answer: &str| {
            let is_given = !answer.is_empty() && answer != "none";
            Ok(is_given.then(|| answer.to_owned()))
        };
        asked.verify = one(question, default, read, input, output)?;
    }
    if asked.lanes.is_none() {
        let read = |answer: &str| lanes(answer).map(Some);
        let default = proposal.lanes.to_string();
        asked.lanes = one("number of lanes", &default, read, input, output)?;
    }
    Ok(asked)
}

fn one<T>(
    question: &str,
    default: &str,
    read: impl Fn(&str) -> Result<Option<T>, String>,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> io::Result<Option<T>> {
    loop {
        match default {
            "" => write!(output, "{question}: ")?,
            default => write!(output, "{question} [{}]: ", plain(default))?,
        }
        output.flush()?;
        let mut line = String::new();
        let is_over = io::Read::take(&mut *input, ANSWER_MAX).read_line(&mut line)? == 0;
        let answer = match line.trim() {
            "" => default,
            answer => answer,
        };
        match read(answer) {
            Ok(value) => return Ok(value),
            Err(_) if is_over => return Ok(None),
            Err(error) => writeln!(output, "{}", plain(&error))?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(given: Choice, lines: &str) -> (Choice, String) {
        let proposal = Proposal {
            installed: vec![Agent::Gemini],
            verify: Some("cargo test".to_owned()),
            lanes: 2,
        };
        let mut output = Vec::new();
        let mut input = lines.as_bytes();
        let choice = ask(given, &proposal, &mut input, &mut output).unwrap();
        (choice, String::from_utf8(output).unwrap())
    }

    fn choice(agent: Option<Agent>, verify: &str, lanes: u16) -> Choice {
        Choice {
            agent,
            verify: Some(verify.to_owned()),
            lanes: Some(lanes),
            id_prefix: None,
        }
    }

    #[test]
    fn an_empty_answer_and_the_end_of_input_take_what_is_proposed() {
        let expected = choice(Some(Agent::Gemini), "cargo test", 2);
        for lines in ["\n\n\n", "\n", ""] {
            let (asked, said) = asked(Choice::default(), lines);
            assert_eq!(asked, expected);
            assert!(said.ends_with("number of lanes [2]: "), "{said}");
        }
    }

    #[test]
    fn an_answer_that_does_not_fit_is_asked_for_again() {
        let (asked, said) = asked(Choice::default(), "clod\nnone\n ./check \n0\nx\n65\n8\n");
        assert_eq!(asked, choice(None, "./check", 8));
        assert!(said.contains("unknown agent `clod`"), "{said}");
        assert_eq!(said.matches("expected a number from 1 to 64").count(), 3);
    }

    #[test]
    fn what_is_given_is_not_asked() {
        let given = choice(Some(Agent::Codex), "true", 3);
        assert_eq!(asked(given.clone(), "x\n"), (given, String::new()));
    }
}
