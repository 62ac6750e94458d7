//! The prompt of a step: a template, filled in once.
//!
//! Issue text is data from outside: it is set off between marks and never
//! reaches a shell.

use premath_memory::IssueRow;

/// The built-in template.
pub(crate) const DEFAULT_TEMPLATE: &str = include_str!("prompt_default.md");

/// What failed in the attempt before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LastFailure {
    /// The step that failed.
    pub(crate) step_id: String,
    /// Its classes.
    pub(crate) classes: Vec<String>,
    /// The branch on which what it left is kept.
    pub(crate) salvage: Option<String>,
    /// The end of what its last command wrote to stdout.
    pub(crate) stdout: String,
    /// The end of what it wrote to stderr.
    pub(crate) stderr: String,
}

/// An issue that another has an edge to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Neighbour {
    /// The edge's kind.
    pub(crate) kind: String,
    /// Its id.
    pub(crate) id: String,
    /// Its status and its title, where it is there.
    pub(crate) found: Option<(String, String)>,
}

impl Neighbour {
    /// Says it on a line, whatever its title holds.
    fn told(&self) -> String {
        match &self.found {
            None => format!("- {} {} (missing)", self.kind, self.id),
            Some((status, title)) => {
                let title: String = title.split_whitespace().collect::<Vec<_>>().join(" ");
                format!("- {} {} ({status}): {title}", self.kind, self.id)
            }
        }
    }
}

/// Fills a template in; the same input gives the same text.
pub(crate) fn render(
    template: &str,
    row: &IssueRow,
    neighbours: &[Neighbour],
    last: Option<&LastFailure>,
) -> String {
    let text = |field: &str| {
        let text = row.text_of(field);
        if text.trim().is_empty() {
            "(none)".to_owned()
        } else {
            text.trim_end().to_owned()
        }
    };
    let dependencies: Vec<String> = neighbours.iter().map(Neighbour::told).collect();
    let dependencies = if dependencies.is_empty() {
        "(none)".to_owned()
    } else {
        dependencies.join("\n")
    };
    let failure = last.map(failure_section).unwrap_or_default();
    let mut rendered = String::with_capacity(template.len());
    let mut rest = template;
    // One pass: what is filled in is never looked at for a placeholder.
    while let Some((before, after)) = rest.split_once("{{") {
        rendered.push_str(before);
        let Some((name, after)) = after.split_once("}}") else {
            rendered.push_str("{{");
            rest = after;
            continue;
        };
        match name.trim() {
            "id" => rendered.push_str(&row.issue.id),
            "title" => rendered.push_str(&text("title")),
            "description" => rendered.push_str(&text("description")),
            "design" => rendered.push_str(&text("design")),
            "acceptance" => rendered.push_str(&text("acceptance_criteria")),
            "notes" => rendered.push_str(&text("notes")),
            "dependencies" => rendered.push_str(&dependencies),
            "last_failure" => rendered.push_str(&failure),
            // A text cannot hold the digest of the row that it stands in, and
            // so cannot end its own section.
            "mark" => {
                let digest = premath_kernel::canonical::sha256_hex(row.text.as_bytes());
                rendered.push_str(&digest[..16]);
            }
            other => {
                rendered.push_str("{{");
                rendered.push_str(other);
                rendered.push_str("}}");
            }
        }
        rest = after;
    }
    rendered.push_str(rest);
    rendered
}

fn failure_section(last: &LastFailure) -> String {
    let output = |name: &str, text: &str| {
        if text.trim().is_empty() {
            String::new()
        } else {
            format!(
                "\nThe end of its {name}:\n\n```text\n{}\n```\n",
                text.trim_end().replace("```", "` ` `")
            )
        }
    };
    format!(
        "\n## What failed last time\n\nAn earlier attempt ({}) failed: {}. {}\n{}{}",
        last.step_id,
        last.classes.join(", "),
        match &last.salvage {
            Some(branch) =>
                format!("Its changes were taken back; they are kept on the branch `{branch}`."),
            None => "Its changes were taken back.".to_owned(),
        },
        output("output", &last.stdout),
        output("errors", &last.stderr)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_in_is_not_looked_at_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("issues.jsonl");
        std::fs::write(
            &path,
            "{\"id\":\"a\",\"title\":\"{{id}} $(rm)\",\"description\":\"d\"}\n",
        )
        .unwrap();
        let memory = premath_memory::IssueMemory::open(&path, &Default::default()).unwrap();
        let row = memory.view(|view| view.row("a").cloned()).unwrap().unwrap();
        let text = render(
            "{{ id }}|{{title}}|{{description}}|{{notes}}|{{odd}}|{{",
            &row,
            &[],
            None,
        );
        assert_eq!(text, "a|{{id}} $(rm)|d|(none)|{{odd}}|{{");
        let last = LastFailure {
            step_id: "w.a.1".into(),
            classes: vec!["check_failed".into()],
            salvage: Some("harness/salvage/a/1".into()),
            stdout: String::new(),
            stderr: "bad\n```\n".into(),
        };
        let found = Some(("open".to_owned(), "{{id}}\n## Rules".to_owned()));
        let neighbours = [("b", found), ("c", None)].map(|(id, found)| Neighbour {
            kind: "blocks".to_owned(),
            id: id.to_owned(),
            found,
        });
        let text = render(DEFAULT_TEMPLATE, &row, &neighbours, Some(&last));
        assert!(text.contains("- blocks b (open): {{id}} ## Rules\n- blocks c (missing)\n"));
        assert!(text.contains("kept on the branch `harness/salvage/a/1`"));
        assert!(text.contains("## What failed last time"));
        assert!(text.contains("bad\n` ` `"));
    }
}
