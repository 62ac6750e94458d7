//! Schemas as files: written, and compared with what they would be now.

use super::kind::KINDS;
use crate::answer::Answer;
use crate::error::CliError;
use crate::terminal::plain;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// What the names of schema files end in.
const SUFFIX: &str = ".schema.json";

/// Writes every schema; what else is in the folder stays.
pub(super) fn write(dir: &Path) -> Result<Answer, CliError> {
    fs::create_dir_all(dir).map_err(CliError::file("make", dir))?;
    let mut files = Vec::new();
    for kind in KINDS {
        let path = dir.join(kind.file());
        fs::write(&path, kind.file_text()).map_err(CliError::file("write", &path))?;
        files.push(kind.file());
    }
    let text = format!("wrote {} schemas\n", files.len());
    Ok(Answer::new(
        json!({"count": files.len(), "files": files}),
        text,
    ))
}

/// Compares the folder's schemas with what they would be now.
pub(super) fn check(dir: &Path) -> Result<Answer, CliError> {
    let mut found = schemas_in(dir)?;
    let mut faults = Vec::new();
    for kind in KINDS {
        match found.remove(&kind.file()) {
            None => faults.push((kind.file(), "missing")),
            Some(text) if text != kind.file_text().as_bytes() => {
                faults.push((kind.file(), "differs"))
            }
            Some(_) => {}
        }
    }
    faults.extend(found.into_keys().map(|name| (name, "unknown")));
    let mut text = format!(
        "{}: {} schemas, {} faults\n",
        if faults.is_empty() { "ok" } else { "failed" },
        KINDS.len(),
        faults.len()
    );
    for (name, fault) in &faults {
        let _ = writeln!(text, "  {fault:<8} {}", plain(name));
    }
    let errors: Vec<_> = faults
        .iter()
        .map(|(file, fault)| json!({"file": file, "fault": fault}))
        .collect();
    let document = json!({
        "result": if faults.is_empty() { "accepted" } else { "rejected" },
        "count": KINDS.len(),
        "errors": errors,
    });
    let mut answer = Answer::new(document, text).refused(!faults.is_empty());
    if !faults.is_empty() {
        answer = answer.note(format!(
            "hint: regenerate them with `premath schema --dir {}`",
            dir.display()
        ));
    }
    Ok(answer)
}

/// Reads the schema files of a folder, by name.
fn schemas_in(dir: &Path) -> Result<BTreeMap<String, Vec<u8>>, CliError> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).map_err(CliError::file("read", dir))? {
        let path = entry.map_err(CliError::file("read", dir))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(SUFFIX) {
            let text = fs::read(&path).map_err(CliError::file("read", &path))?;
            found.insert(name.into_owned(), text);
        }
    }
    Ok(found)
}
