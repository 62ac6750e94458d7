//! Names an instruction in `harness.toml`, and changes nothing else there.

use crate::error::CliError;
use crate::trust::accept_created;
use premath_memory::roots::MemoryRoots;
use premath_memory::{artifact, trust};
use premath_worktree::governing::digest_of;
use std::fs;
use std::path::Path;

const FILE: &str = "harness.toml";
const KEY: &str = "instruction";
const TABLE: &str = "batch";

/// Has batches use an instruction, by its name below the root. The file stays
/// accepted where it was.
///
/// # Errors
///
/// [`CliError`] where the file cannot be read or changed.
pub(super) fn set(root: &Path, name: &str) -> Result<(), CliError> {
    let path = root.join(FILE);
    let before = fs::read_to_string(&path).map_err(CliError::file("read", &path))?;
    let Some(after) = renamed(&before, name) else {
        let text = format!(
            "cannot change {}: set {KEY} = \"{name}\" under [{TABLE}] in that file",
            path.display()
        );
        return Err(CliError::Usage(text));
    };
    let was_accepted = is_accepted(root, before.as_bytes());
    artifact::write(&path, after.as_bytes())?;
    if was_accepted && let Some(error) = accept_created(root, &[FILE]) {
        return Err(CliError::Usage(format!("{FILE} is not accepted: {error}")));
    }
    Ok(())
}

fn is_accepted(root: &Path, content: &[u8]) -> bool {
    let record = trust::read(&MemoryRoots::at(root)).ok().flatten();
    record.is_some_and(|record| record.files().0.get(FILE) == Some(&digest_of(content)))
}

/// Returns the settings with another instruction; `None` where anything else
/// would change with it.
fn renamed(text: &str, name: &str) -> Option<String> {
    let mut expected: toml::Table = text.parse().ok()?;
    let batch = expected
        .entry(TABLE)
        .or_insert_with(|| toml::Table::new().into());
    batch.as_table_mut()?.insert(KEY.to_owned(), name.into());
    let wanted = format!("{KEY} = {}", toml::Value::from(name));
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let head = format!("[{TABLE}]");
    let begin = lines.iter().position(|line| line.trim() == head);
    match begin {
        Some(begin) => {
            let below = lines[begin + 1..].iter();
            let is_key = |line: &&String| {
                let key = line.split_once('=').map(|(key, _)| key.trim());
                key == Some(KEY)
            };
            let section = below.take_while(|line| !line.starts_with('['));
            let found = section.clone().position(|line| is_key(&line));
            match found {
                Some(at) => lines[begin + 1 + at] = wanted,
                None => lines.insert(begin + 1, wanted),
            }
        }
        None => lines.extend([head, wanted]),
    }
    let after = lines.join("\n") + "\n";
    (after.parse::<toml::Table>().ok()? == expected).then_some(after)
}

#[cfg(test)]
mod tests {
    use super::renamed;

    #[test]
    fn one_line_changes_and_all_others_stay() {
        let cases = [
            (
                "# a\n[batch]\nx = 1 # b\ninstruction = \"old\" # c\n\n[landing]\ny = 2\n",
                "# a\n[batch]\nx = 1 # b\ninstruction = \"new\"\n\n[landing]\ny = 2\n",
            ),
            (
                "[batch]\n#instruction = \"x\"\n[other]\ninstruction = \"kept\"\n",
                "[batch]\ninstruction = \"new\"\n#instruction = \"x\"\n[other]\ninstruction = \
                 \"kept\"\n",
            ),
            ("", "[batch]\ninstruction = \"new\"\n"),
        ];
        for (before, after) in cases {
            assert_eq!(renamed(before, "new").as_deref(), Some(after), "{before}");
        }
    }

    #[test]
    fn what_cannot_be_changed_alone_is_left() {
        for text in [
            "batch = { instruction = \"old\" }\n",
            "[batch]\nx = '''\ninstruction = \"inner\"\n'''\n",
            "no toml",
        ] {
            assert_eq!(renamed(text, "new"), None, "{text}");
        }
    }
}
