//! The keys of the live view, apart from how a terminal reports them.

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Backspace.
    Backspace,
    /// Tab.
    Tab,
    /// The arrow up.
    Up,
    /// The arrow down.
    Down,
    /// The arrow to the left.
    Left,
    /// The arrow to the right.
    Right,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the begin.
    Home,
    /// To the end.
    End,
}

/// The keys of the first screen, each with what it does.
pub(super) const MAIN: [(&str, &str); 13] = [
    ("Up Down  k j", "select a lane or an outcome"),
    ("Tab", "go to the outcomes, and back to the lanes"),
    ("Enter  l", "show what the lane or the attempt prints"),
    ("p", "pause: start no new attempts; running ones continue"),
    ("r", "resume: start attempts again"),
    (
        "d",
        "drain: finish the running attempts, then end the batch",
    ),
    ("c", "cancel the selected lane's attempt; its work is saved"),
    ("+  -", "raise or lower the priority of the selected issue"),
    ("P", "set the priority of any issue"),
    ("o", "reopen the issue of the selected outcome, with a note"),
    ("b", "show the next batch, where several run"),
    ("?", "show or hide this help"),
    ("q", "leave the view; the batch continues"),
];

/// The keys of a lane's stream, each with what it does.
pub(super) const STREAM: [(&str, &str); 7] = [
    ("Up Down  k j", "scroll by a line"),
    ("PgUp PgDn  Space", "scroll by a page"),
    ("Home End  g G", "go to the begin or the end"),
    ("f", "follow what comes, or stay"),
    ("/", "search; n goes to the next place, N to the one before"),
    ("?", "show or hide this help"),
    ("q  Esc  h", "go back to the lanes"),
];
