//! The rules of an ignore file, parsed once for each text.

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// The longest text whose rules are kept, in bytes. A step may write any text.
const KEPT_TEXT_MAX: usize = 8 << 10;
/// The most texts that are kept. An automaton may grow to 2 MB for each thread.
const KEPT_MOST: usize = 16;

type Parsed = Option<Arc<Gitignore>>;

/// Every scan needs the same few texts, and making their automata costs more than the
/// scan of a small repository.
static KEPT: LazyLock<Mutex<HashMap<Vec<u8>, Parsed>>> = LazyLock::new(Mutex::default);

/// Returns the rules of a text; none where they cannot be made.
pub(super) fn parsed(text: &[u8]) -> Parsed {
    if text.len() > KEPT_TEXT_MAX {
        return made(text);
    }
    let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(rules) = kept().get(text) {
        return rules.clone();
    }
    let rules = made(text);
    let mut kept = kept();
    if kept.len() >= KEPT_MOST {
        kept.clear();
    }
    kept.insert(text.to_vec(), rules.clone());
    rules
}

fn made(text: &[u8]) -> Parsed {
    let mut builder = GitignoreBuilder::new("");
    for line in String::from_utf8_lossy(text).lines() {
        // A pattern that is none matches nothing, as in git.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ignores(text: &str, path: &str) -> bool {
        parsed(text.as_bytes())
            .unwrap()
            .matched(path, false)
            .is_ignore()
    }

    #[test]
    fn a_text_has_its_own_rules_however_many_there_were() {
        for _ in 0..2 {
            for number in 0..=KEPT_MOST {
                let text = format!("*.{number}\n");
                assert!(ignores(&text, &format!("a.{number}")));
                assert!(!ignores(&text, &format!("a.{number}0")));
            }
        }
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(kept.len() <= KEPT_MOST);
    }

    #[test]
    fn a_long_text_is_not_kept() {
        let text = format!("#{}\nx\n", "-".repeat(KEPT_TEXT_MAX));
        assert!(ignores(&text, "x"));
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(!kept.contains_key(text.as_bytes()));
    }
}
