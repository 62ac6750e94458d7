//! What happens to an agent, whatever its format.

/// One thing that happens.
pub(crate) enum Beat<'a> {
    /// The agent is up.
    Begin,
    /// The model prints text.
    Say(&'a str),
    /// The model asks for a call.
    Call(&'a Call),
    /// A call ends.
    Done(&'a Call, End<'a>),
    /// The model continues, and the end of its call is never reported.
    Lost,
    /// So many tokens were used up by one answer of the model.
    Used(u64),
    /// The agent is done; so many tokens in all.
    Finished(u64),
    /// The agent failed, and says why.
    Failed(&'a str),
    /// The provider refuses until a time, in seconds since 1970.
    Refused(u64),
}

/// How a call ends.
#[derive(Clone, Copy)]
pub(crate) enum End<'a> {
    Ok(&'a str),
    Error(&'a str),
    /// A command ended without a status.
    NoCode,
}

/// A call of the agent.
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) deed: Deed,
}

/// What a call does.
pub(crate) enum Deed {
    Command(String),
    Write { path: String, content: String },
}

/// How an agent says what happens.
pub(crate) trait Format {
    /// Returns the lines that say it; none where the format does not.
    fn lines(&mut self, beat: &Beat<'_>) -> Vec<String>;
}
