//! The tasks of a mise file, as far as the checks need them.

/// One task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// The line that it begins in, from 1.
    pub line: usize,
    /// The lines that it runs.
    pub run: Vec<String>,
}

/// Reads the tasks of a mise file: `[tasks.<name>]` with a `run` of one line or
/// of a text between triple quotes.
pub fn tasks(text: &str) -> Vec<Task> {
    let mut tasks: Vec<Task> = Vec::new();
    let mut open = false;
    for (number, line) in text.lines().enumerate() {
        let name = line
            .strip_prefix("[tasks.")
            .and_then(|rest| rest.strip_suffix(']'));
        if let Some(name) = name {
            tasks.push(Task {
                name: name.trim_matches('"').to_owned(),
                line: number + 1,
                run: Vec::new(),
            });
            continue;
        }
        let Some(task) = tasks.last_mut() else {
            continue;
        };
        if open {
            match line.strip_suffix("\"\"\"") {
                Some(_) => open = false,
                None => task.run.push(line.to_owned()),
            }
        } else if line == "run = \"\"\"" {
            open = true;
        } else if let Some(run) = line.strip_prefix("run = \"") {
            task.run.push(run.trim_end_matches('"').to_owned());
        }
    }
    tasks
}

#[cfg(test)]
mod tests {
    use super::tasks;

    #[test]
    fn a_task_runs_a_line_or_several() {
        let text = "[tasks.a]\nrun = \"cargo x\"\n\n[tasks.b]\ndescription = \"d\"\nrun = \"\"\"\none\ntwo\n\"\"\"\n";
        let found = tasks(text);
        assert_eq!(found[0].run, ["cargo x"]);
        assert_eq!((found[1].name.as_str(), found[1].line), ("b", 4));
        assert_eq!(found[1].run, ["one", "two"]);
    }
}
