//! `premath-agents`: installs the agents, and records what they print when the
//! model server plays scripts to them.

use premath_evidence::Agent;
use premath_tests::agents::{
    Installed, Recorded, form, install, missing, playable, record, recordings,
};
use premath_tests::model::{Hooked, Scripts};
use premath_tests::workspace;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::process::ExitCode;

const USAGE: &str = "usage: premath-agents install [AGENT…]
       premath-agents record [--agent AGENT] [--script NAME]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments
        .first()
        .is_some_and(|first| first == premath_hook::MODE)
    {
        return premath_hook::main(std::env::args_os().skip(2));
    }
    let done = match arguments.split_first() {
        Some((first, rest)) if first == "install" => agents_of(Agent::ALL, rest).map(|agents| {
            install(&agents);
            true
        }),
        Some((first, rest)) if first == "record" => {
            asked(rest).and_then(|asked| record_all(&asked))
        }
        _ => None,
    };
    match done {
        Some(true) => ExitCode::SUCCESS,
        Some(false) => ExitCode::FAILURE,
        None => {
            let _ = writeln!(std::io::stderr(), "{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// What is to be recorded.
#[derive(Default)]
struct Asked {
    agents: Vec<Agent>,
    script: Option<String>,
}

fn agents_of(all: &[Agent], names: &[String]) -> Option<Vec<Agent>> {
    if names.is_empty() {
        return Some(all.to_vec());
    }
    let named = |name: &String| Agent::named(name).filter(|agent| all.contains(agent));
    names.iter().map(named).collect()
}

fn asked(arguments: &[String]) -> Option<Asked> {
    let mut asked = Asked::default();
    for pair in arguments.chunks(2) {
        match pair {
            [flag, name] if flag == "--agent" => {
                asked.agents.extend(agents_of(
                    &playable().collect::<Vec<_>>(),
                    std::slice::from_ref(name),
                )?);
            }
            [flag, name] if flag == "--script" => asked.script = Some(name.clone()),
            _ => return None,
        }
    }
    if asked.agents.is_empty() {
        asked.agents = playable().collect();
    }
    Some(asked)
}

fn line_of(agent: Agent, name: &str, recorded: &Recorded) -> String {
    let hooks = recorded.hooks.as_ref().map(|hooks| hooks.lines().count());
    let hooks = hooks.map_or_else(String::new, |events| format!("{events} events of hooks, "));
    format!(
        "{} {name}: {} lines, {hooks}{}",
        agent.as_str(),
        recorded.stream.lines().count(),
        recorded.run.trim_end()
    )
}

/// Records, and says what changed in form; false where nothing could be.
fn record_all(asked: &Asked) -> Option<bool> {
    let mut out = std::io::stdout();
    let mut say = |line: String| {
        let _ = writeln!(out, "{line}");
        let _ = out.flush();
    };
    let scripts = match Scripts::of_folder(&workspace().join("tests/agents/scripts")) {
        Ok(scripts) => scripts,
        Err(error) => {
            say(format!("error: {error}"));
            return Some(false);
        }
    };
    if let Some(name) = &asked.script {
        scripts.get(name)?;
    }
    let mut all = true;
    for agent in &asked.agents {
        let Some(installed) = Installed::find(*agent) else {
            say(missing(*agent));
            all = false;
            continue;
        };
        let (mut before, mut after) = (BTreeSet::new(), BTreeSet::new());
        for name in scripts.names() {
            let script = scripts.get(name)?;
            let wanted = asked.script.as_deref().is_none_or(|wanted| wanted == name);
            if !wanted || !script.is_for(*agent) {
                continue;
            }
            if script.hooks != Hooked::Only {
                let stored = recordings(*agent).join(format!("{name}.jsonl"));
                before.extend(form::form(&fs::read_to_string(&stored).unwrap_or_default()));
                let recorded = record(&installed, name, &scripts, false);
                after.extend(form::form(&recorded.stream));
                recorded.write(*agent, name);
                say(line_of(*agent, name, &recorded));
            }
            if script.hooks != Hooked::Never {
                let recorded = record(&installed, name, &scripts, true);
                recorded.write(*agent, name);
                say(line_of(*agent, name, &recorded));
            }
        }
        let changes = form::changes(&before, &after);
        say(format!(
            "{}: {} change(s) in form",
            agent.as_str(),
            changes.len()
        ));
        changes.into_iter().for_each(&mut say);
    }
    Some(all)
}
