//! The page of agents, from what the adapters describe.

use premath_evidence::Agent;
use std::fmt::Write;

const HEAD: &str = "\
# Agents

<!-- Written by `mise run generate` from shared/evidence/src/adapter. -->

The harness has an adapter for each of these coding agents. [Agents](../guides/agents.md) describes \
how to use one. `NAME_cmd` under `[agent]` replaces a command line.
";

/// Returns the page.
pub(super) fn page() -> String {
    let mut page = HEAD.to_owned();
    for agent in Agent::ALL {
        let spec = agent.spec();
        let files = &spec.files;
        let folder = |name: &&str| format!("~/{}/{name}", files.folder);
        let of_folder = files.copied.iter().map(folder);
        let beside = files.beside.iter().map(|name| format!("~/{name}"));
        let copied: Vec<String> = of_folder.chain(beside).collect();
        let renewed: Vec<String> = files.renewed.iter().map(folder).collect();
        let moved = match files.folder_variable {
            Some(variable) => format!(" `{variable}` names another folder."),
            None => String::new(),
        };
        let starts: Vec<String> = spec.variables.iter().map(|s| format!("{s}*")).collect();
        let governing: Vec<String> = spec.governing_files.iter().map(|s| (*s).into()).collect();
        let _ = write!(
            page,
            "\n## {title}\n\nName: `{name}`. Install it with `{install}`.\n\n```text\n{line}\n```\n\n- Copied into the private home of the work command: \
             {copied}.{moved}\n- Copied back after a renewal: {renewed}.\n- Variables that the work \
             command gets: {starts}.\n- Protected in every folder of the repository: {governing}.\n",
            title = spec.title,
            name = spec.name,
            install = spec.install_command(),
            line = spec.command_line,
            copied = quoted(&copied),
            renewed = quoted(&renewed),
            starts = quoted(&starts),
            governing = quoted(&governing),
        );
    }
    page
}

fn quoted(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| format!("`{item}`")).collect();
    items.join(", ")
}
