//! The issues that no batch works on until a person acts.

use premath_kernel::json::id::IssueId;
use premath_kernel::json::plain::shell_word;

/// How many issues a text names.
const NAMED: usize = 10;

/// Issues that are set aside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetAside {
    /// The issues, by id.
    pub issues: Vec<IssueId>,
    /// In how many batches in a row they failed.
    pub after: u32,
}

impl SetAside {
    /// Says which they are, and how they are taken up; `None` where there are none.
    pub(crate) fn text(&self) -> Option<String> {
        let words = self.issues.iter().map(|id| shell_word(id.as_str()));
        let words: Vec<String> = words.take(NAMED).collect();
        let more = match self.issues.len() > words.len() {
            true => " …",
            false => "",
        };
        (!words.is_empty()).then(|| {
            format!(
                "{} issue(s) are set aside: they failed in {} batches in a row; `premath retry \
                 {}{more}` takes them up",
                self.issues.len(),
                self.after,
                words.join(" "),
            )
        })
    }
}
