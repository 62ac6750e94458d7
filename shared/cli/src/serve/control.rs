//! What an operator asks of a batch from the page: the operations of `premath
//! batch`, `premath cancel` and `premath retry`, each after a question.

use super::issue::unknown;
use super::pages::Shared;
use super::site::Site;
use crate::answer::{Answer, Finished};
use crate::control::{Asked, CancelInput, RetryInput, Then, again, cancel, whole};
use crate::error::CliError;
use crate::operator::{self, Reason};
use axum::extract::{Form, Path, Query, State};
use axum::response::Response;
use axum::routing::get;
use axum::{Router, body::Body};
use http::header::REFERRER_POLICY;
use http::{HeaderValue, StatusCode};
use premath_kernel::record::control::ControlOperation;
use premath_view::web::{self, Asking, Done, Field, Place};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// Who asks where no reason is given.
const REASON: &str = "asked for on the page";

/// Something that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Pause,
    Resume,
    Drain,
    Stop,
    Cancel,
    Retry,
}

impl Wish {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "pause" => Self::Pause,
            "resume" => Self::Resume,
            "drain" => Self::Drain,
            "stop" => Self::Stop,
            "cancel" => Self::Cancel,
            "retry" => Self::Retry,
            _ => return None,
        })
    }

    /// Returns the title of the question, what happens, and what the button says.
    const fn words(self) -> [&'static str; 3] {
        match self {
            Self::Pause => [
                "Pause the batch?",
                "No new attempts start; running ones continue. Batch",
                "Pause",
            ],
            Self::Resume => ["Resume the batch?", "Attempts start again. Batch", "Resume"],
            Self::Drain => [
                "Drain the batch?",
                "The running attempts finish, then the batch ends. Batch",
                "Drain",
            ],
            Self::Stop => [
                "Stop the batch?",
                "The running attempts end now, then the batch; their work is saved. Batch",
                "Stop",
            ],
            Self::Cancel => [
                "Cancel the attempt?",
                "The running attempt ends now, and its work is saved. The answer comes when it has \
                 ended. Issue",
                "Cancel the attempt",
            ],
            Self::Retry => [
                "Retry the issue?",
                "The issue is opened for another attempt. Issue",
                "Retry",
            ],
        }
    }

    const fn fields(self) -> &'static [Field] {
        match self {
            Self::Cancel => &[Field::Then, Field::Reason],
            Self::Retry => &[Field::Note, Field::Reason],
            _ => &[Field::Reason],
        }
    }

    const fn is_about_issue(self) -> bool {
        matches!(self, Self::Cancel | Self::Retry)
    }
}

/// What is asked about, and what a form bears beside it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Given {
    batch: String,
    issue: String,
    form: String,
    reason: String,
    note: String,
    then: String,
}

/// Returns the pages by which a batch is controlled.
pub(super) fn routes() -> Router<Arc<Site>> {
    Router::new().route("/control/{wish}", get(ask).post(carry_out))
}

/// Returns the answer of a page with a form. A browser sends the origin of a form
/// only where the page lets it say where it comes from.
fn with_origin(mut page: Response<Body>) -> Response<Body> {
    let own = HeaderValue::from_static("same-origin");
    page.headers_mut().insert(REFERRER_POLICY, own);
    page
}

async fn ask(
    State(site): Shared,
    Path(wish): Path<String>,
    Query(given): Query<Given>,
) -> Response {
    let Some(wish) = Wish::named(&wish) else {
        return site.missing("There is no such page.");
    };
    with_origin(site.question(wish, &given))
}

async fn carry_out(
    State(site): Shared,
    Path(wish): Path<String>,
    Form(given): Form<Given>,
) -> Response {
    let Some(wish) = Wish::named(&wish) else {
        return site.missing("There is no such page.");
    };
    if !site.door.is_form_value(&given.form) {
        let content = web::message(&[
            "The form is not one of this server, or the server was started again. Nothing was \
             changed.",
        ]);
        let mut page = site.page(Place::Elsewhere, "Refused", &content);
        *page.status_mut() = StatusCode::FORBIDDEN;
        return page;
    }
    let done = site
        .write(move |site| Ok(site.carry_out(wish, &given)))
        .await;
    match done {
        Err(error) => site.failed(&error),
        Ok(done) => {
            let title = match done.is_done {
                true => "Done",
                false => "Refused",
            };
            let mut page = site.page(Place::Elsewhere, title, &web::done(&done));
            if !done.is_done {
                *page.status_mut() = StatusCode::CONFLICT;
            }
            page
        }
    }
}

impl Site {
    fn question(&self, wish: Wish, given: &Given) -> Response {
        let [title, sentence, button] = wish.words();
        let subject = match wish.is_about_issue() {
            true => ("issue", given.issue.as_str()),
            false => ("batch", given.batch.as_str()),
        };
        if subject.1.is_empty() {
            return self.missing("The address names no batch and no issue.");
        }
        let word = button.split_whitespace().next().unwrap_or_default();
        let address = format!("/control/{}", word.to_lowercase());
        let content = web::asking(&Asking {
            address: &address,
            sentence,
            button,
            form_value: self.door.form_value(),
            subject,
            fields: wish.fields(),
        });
        self.page(Place::Elsewhere, title, &content)
    }

    /// Carries a request out as the command does, and returns what came of it.
    fn carry_out(&self, wish: Wish, given: &Given) -> Done {
        let result = self.answer(wish, given);
        let action = wish.words()[2];
        let is_refused = result.as_ref().is_ok_and(Answer::is_refused);
        match Finished::new(action, result).into_outcome() {
            Ok(answer) => Done {
                is_done: !is_refused,
                ..done(&answer, "detail")
            },
            Err(refusal) => done(&refusal, "error"),
        }
    }

    fn answer(&self, wish: Wish, given: &Given) -> Result<Answer, CliError> {
        let reason = match given.reason.trim() {
            "" => REASON,
            reason => reason,
        };
        let asked = Asked {
            batch: match wish.is_about_issue() {
                true => None,
                false => Some(given.batch.as_str().into()),
            },
            operator: operator::name(),
            reason: Some(reason),
        };
        let operation = match wish {
            Wish::Pause => ControlOperation::Pause,
            Wish::Resume => ControlOperation::Resume,
            Wish::Drain => ControlOperation::Drain,
            Wish::Stop => ControlOperation::Stop,
            Wish::Cancel | Wish::Retry => return self.about_issue(wish, given, asked),
        };
        whole(asked.ask(&self.roots, operation)?)
    }

    fn about_issue(&self, wish: Wish, given: &Given, asked: Asked<'_>) -> Result<Answer, CliError> {
        let memory = self.memory()?;
        let is_known = memory.view(|view| view.row(&given.issue).is_some())?;
        if !is_known {
            return Err(unknown(&given.issue));
        }
        let reason = Reason::default().or(asked.reason.unwrap_or(REASON));
        let change = |change| Ok(memory.operate(reason.clone().authority()?, change)?);
        let issues = vec![given.issue.as_str().into()];
        if wish == Wish::Cancel {
            let then = match given.then.as_str() {
                "open" => Then::Open,
                _ => Then::Deferred,
            };
            let input = CancelInput {
                issues,
                then: then.into(),
            };
            return cancel(&self.roots, asked, input, change);
        }
        let note = Some(given.note.trim()).filter(|note| !note.is_empty());
        let input = RetryInput {
            issues,
            note: note.map(str::to_owned),
        };
        again(&self.roots, asked, &input, change)
    }
}

/// Reads what a command answered.
fn done(answer: &Value, detail: &str) -> Done {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let issues = answer["issues"].as_array().into_iter().flatten();
    Done {
        is_done: false,
        detail: text(&answer[detail]),
        hint: answer["hint"].as_str().map(str::to_owned),
        issues: issues
            .map(|issue| (text(&issue["issueId"]), text(&issue["detail"])))
            .collect(),
    }
}
