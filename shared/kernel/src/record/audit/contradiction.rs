//! The contradictions that an audit finds.

use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

macro_rules! contradictions {
    ($( $variant:ident = $text:literal; )+) => {
        /// What contradicts something else, as a code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum ContradictionCode { $( #[doc = $text] $variant, )+ }

        impl ContradictionCode {
            /// All codes.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )+ ];

            /// Returns the description of this contradiction, in one line.
            pub const fn text(self) -> &'static str {
                match self { $( Self::$variant => $text, )+ }
            }
        }
    };
}

contradictions! {
    RowAltered = "the chain of the trajectory is broken";
    RowInserted = "a line of the trajectory is not part of its chain";
    RowMoved = "a row of the trajectory is out of order";
    RowRepeated = "a row of the trajectory is there twice";
    RowRewritten = "a row of the trajectory was written by another program";
    ChainBeginsAgain = "the trajectory contains the chain of another trajectory";
    RowMissing = "the issue is closed by a step that has no row";
    RowDuplicate = "the step is completed twice";
    RowNotCompleted = "the issue is closed by a step that did not complete";
    RowOfAnotherIssue = "the issue is closed by the step of another issue";
    IssueChangedOutside = "the issue changed outside a transaction, and the change is not accepted";
    IssueMissing = "the row closes an issue that is not there";
    WitnessOfAnotherStep = "the row names the witness of another step";
    WitnessMissing = "a witness of the row is not there";
    WitnessUnreadable = "a witness of the row cannot be read";
    WitnessAltered = "a witness is not what the row names";
    WitnessLacking = "the row names no such witness";
    TurnDigest = "a digest of the turn is not that of its evidence";
    TurnVerdict = "the gate judges the turn otherwise";
    TurnContext = "a context row of the turn is not the digest of its content";
    MutationDigest = "the right to close is not what the row names";
    MutationDisagrees = "the right to close is not one of the turn";
    CloseNotHeld = "the issue was not closed when read back";
    CloseDisagrees = "row and witness of the close disagree";
    VerificationDisagrees = "the row's verification is not one that it names a witness of";
    VerificationFailed = "the verification did not pass";
    FlakyDisagrees = "the verifications that failed on the tree that passed are not those that the row lists as flaky";
    TreeUnverified = "the commit's tree is not one that was verified";
    SharedDisagrees = "row, witness and commit do not name the same verification of other work";
    SharedUnverified = "no commit that was verified with the work follows on the target";
    CommitMissing = "the landed commit is not in the repository";
    CommitUnreachable = "the landed commit is not in the target's first-parent history";
    TargetMissing = "the landing target is not there";
    TrailersMissing = "the landed commit has no trailers of the harness";
    TrailersForged = "the trailers are not as the harness writes them";
    TrailerDisagrees = "a trailer of the landed commit is not what the row says";
    ClaimWithoutRow = "the commit claims a step that has no row";
    ClaimOfAnother = "the commit claims a step that landed as another commit";
    AnchorUnknown = "the trajectory's chain does not hold the value that the commit names";
    AnchorOutOfOrder = "the commit names an earlier chain value than a commit before it";
    SignatureMissing = "the landing commit is not signed";
    SignatureBad = "the signature is not good";
    SignerRefused = "the signature is by a key that may not sign";
    StreamAltered = "the digest of a stream differs from its witness";
}

/// Two things that cannot both be true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The kind of contradiction.
    pub code: ContradictionCode,
    /// Where it was found: a file and line, an issue, a commit.
    pub place: String,
    /// The value that would be consistent.
    pub expected: String,
    /// The value that was found.
    pub found: String,
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}: expected {}, found {}",
            self.place,
            self.code.text(),
            self.expected,
            self.found
        )
    }
}
