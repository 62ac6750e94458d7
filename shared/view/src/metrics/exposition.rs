//! The text format: families with their samples, each family in one place.

use premath_kernel::json::plain::{cut_at, plain};
use std::fmt::{Display, Write};

/// The longest value of a label, in bytes.
const VALUE_MAX: usize = 160;

/// Labels with their values.
pub(super) type Labels<'a> = &'a [(&'static str, &'a str)];

/// What a family's samples are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A figure that goes up and down.
    Gauge,
    /// A figure that only goes up.
    Counter,
}

/// A name with samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
}

/// The text.
#[derive(Debug)]
pub(super) struct Exposition {
    repository: String,
    text: String,
}

/// A family whose samples are added now. Its head is written with the first one.
#[derive(Debug)]
pub(super) struct Samples<'a> {
    out: &'a mut Exposition,
    family: Family,
    is_begun: bool,
}

impl Exposition {
    pub(super) fn new(repository: &str) -> Self {
        Self {
            repository: repository.to_owned(),
            text: String::new(),
        }
    }

    pub(super) fn family(&mut self, family: Family) -> Samples<'_> {
        Samples {
            out: self,
            family,
            is_begun: false,
        }
    }

    pub(super) fn text(self) -> String {
        self.text
    }
}

impl Samples<'_> {
    /// Adds a sample; of a figure that is not known, none.
    pub(super) fn sample(&mut self, labels: Labels<'_>, figure: Option<impl Display>) {
        let Some(figure) = figure else { return };
        let Family { name, kind, help } = self.family;
        let text = &mut self.out.text;
        if !std::mem::replace(&mut self.is_begun, true) {
            let kind = match kind {
                Kind::Gauge => "gauge",
                Kind::Counter => "counter",
            };
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        }
        let repository = value(&self.out.repository);
        let _ = write!(text, "{name}{{repository=\"{repository}\"");
        for (label, of) in labels {
            let _ = write!(text, ",{label}=\"{}\"", value(of));
        }
        let _ = writeln!(text, "}} {figure}");
    }
}

/// Escapes the value of a label. Control characters are written out, because the
/// text may be printed to a terminal.
fn value(text: &str) -> String {
    let text = plain(text);
    let text = cut_at(&text, VALUE_MAX);
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Writes a number of parts, 10^`places` of which are one, exactly.
pub(super) fn decimal(parts: u64, places: u32) -> String {
    let one = 10_u64.pow(places);
    let (whole, rest) = (parts / one, parts % one);
    if rest == 0 {
        return whole.to_string();
    }
    let width = usize::try_from(places).unwrap_or(0);
    let rest = format!("{rest:0width$}");
    format!("{whole}.{}", rest.trim_end_matches('0'))
}
