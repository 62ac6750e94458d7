//! The pages, each from the model that a command prints too.

use super::door::plain;
use super::site::Site;
use crate::error::CliError;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use premath_view::metrics;
use premath_view::web::{self, Page, Place};
use std::sync::Arc;

pub(super) type Shared = State<Arc<Site>>;

const HTML: &str = "text/html; charset=utf-8";

/// Returns an answer of a type.
pub(super) fn typed(kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

impl Site {
    /// Returns a page.
    pub(super) fn page(&self, place: Place, title: &str, content: &str) -> Response {
        let page = Page {
            place,
            title,
            repository: &self.name(),
            content,
            is_live: place == Place::Overview,
        };
        typed(HTML, web::page(&page))
    }

    /// Returns the page of an error.
    pub(super) fn failed(&self, error: &CliError) -> Response {
        let (line, hint) = (error.chain(), error.hint());
        let lines: Vec<&str> = [Some(&line), hint.as_ref()]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        let mut page = self.page(
            Place::Elsewhere,
            "This cannot be shown",
            &web::message(&lines),
        );
        *page.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        page
    }
}

pub(super) async fn overview(State(site): Shared) -> Response {
    match site.current().await {
        Err(error) => site.failed(&error),
        Ok(frame) => {
            let viewer = site.viewer();
            let status = frame.status.as_ref();
            let content = status.map(|status| web::overview(status, &viewer, site.controls));
            site.page(Place::Overview, "Overview", &content.unwrap_or_default())
        }
    }
}

pub(super) async fn status(State(site): Shared) -> Response {
    match site.current().await {
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, &error.chain()),
        Ok(frame) => match serde_json::to_vec(&frame.status) {
            Ok(text) => typed("application/json", text),
            Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        },
    }
}

/// The figures of the status, as Prometheus scrapes them.
pub(super) async fn metrics(State(site): Shared) -> Response {
    match site.current().await {
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, &error.chain()),
        Ok(frame) => {
            let status = frame.status.as_ref();
            let text = status.map(|status| metrics::metrics(status, &site.name()));
            typed(metrics::CONTENT_TYPE, text.unwrap_or_default())
        }
    }
}

pub(super) async fn events(State(site): Shared) -> Response {
    let Some(stream) = site.follow() else {
        let mut full = plain(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open");
        let later = HeaderValue::from_static("10");
        full.headers_mut().insert(RETRY_AFTER, later);
        return full;
    };
    typed("text/event-stream", Body::from_stream(stream))
}

pub(super) async fn style() -> Response {
    typed("text/css; charset=utf-8", web::STYLE)
}

pub(super) async fn script() -> Response {
    typed("text/javascript; charset=utf-8", web::SCRIPT)
}

pub(super) async fn missing(State(site): Shared) -> Response {
    site.missing("There is no such page.")
}
