//! Requests of a browser for a page: it is shown, and answered once.

use super::{PATH, Page, PageHost, Subject, digest, document};
use crate::questions::Choice;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use std::sync::Weak;
use std::time::Duration;
use tokio::time::timeout;

/// Of an answer: the names and values of a few fields.
const MAX_FORM: usize = 256;
const FORM_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn router<H: PageHost>(host: Weak<H>) -> Router {
    Router::new()
        .route("/style.css", get(style))
        .route(&format!("{PATH}{{secret}}"), get(show::<H>).post(take::<H>))
        .with_state(host)
}

async fn style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], document::STYLE).into_response()
}

fn html(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], text).into_response()
}

/// The same for an address that never was.
fn gone() -> Response {
    let text = "Nothing is asked here: the question was answered, or nobody waits for the answer any more. You can close this page.";
    html(StatusCode::GONE, document::notice("No question", text))
}

async fn show<H: PageHost>(State(host): State<Weak<H>>, Path(secret): Path<String>) -> Response {
    let page = host.upgrade().and_then(|host| {
        host.pages().with(|pages| {
            let page = pages.get(&digest(&secret)).filter(|page| page.is_open(&*host))?;
            Some(document::form(&page.subject, None))
        })
    });
    page.map_or_else(gone, |page| html(StatusCode::OK, page))
}

async fn take<H: PageHost>(
    State(host): State<Weak<H>>,
    Path(secret): Path<String>,
    body: Body,
) -> Response {
    let Some(host) = host.upgrade() else { return gone() };
    // One that does not come in time is an empty one.
    let form = timeout(FORM_TIMEOUT, to_bytes(body, MAX_FORM)).await;
    let form = form.ok().and_then(Result::ok).unwrap_or_default();
    let form = FilledForm::parse(&form);
    // Not taken: the same form with a note, or nothing if nothing is asked.
    let taken = host.pages().with(|pages| {
        let key = digest(&secret);
        let page = pages.get(&key).filter(|page| page.is_open(&*host)).ok_or(None)?;
        if let Some(note) = form.lacks(&page.subject) {
            return Err(Some(document::form(&page.subject, Some(note))));
        }
        // Whoever comes a second time finds nothing, unless this answer is not taken.
        pages.remove(&key).ok_or(None)
    });
    match taken {
        Ok(page) => carry_out(&*host, page, &form).await,
        Err(Some(again)) => html(StatusCode::BAD_REQUEST, again),
        Err(None) => gone(),
    }
}

async fn carry_out(host: &impl PageHost, page: Page, form: &FilledForm<'_>) -> Response {
    let done = match &page.subject {
        Subject::Confirmation { .. } => return confirm(page, form.answer == Some("yes")),
        Subject::Question(question) => {
            let may_use_secret = question.is_secret && form.may_use_secret;
            let answer = Choice::answer(form.answer.and_then(Choice::of), may_use_secret);
            host.answer(question.id, &answer).await
        }
    };
    match done {
        Ok(()) => taken(),
        Err(why) => {
            let again = document::form(&page.subject, Some(&format!("Not taken: {why}")));
            host.pages().restore(page, &|id| host.is_open(id));
            html(StatusCode::CONFLICT, again)
        }
    }
}

fn taken() -> Response {
    let text = "Your answer was taken. You can close this page.";
    html(StatusCode::OK, document::notice("Answered", text))
}

fn confirm(page: Page, is_agreed: bool) -> Response {
    let sent = match page.subject {
        Subject::Confirmation { answer, .. } => answer.send(is_agreed).is_ok(),
        Subject::Question(_) => false,
    };
    // Or nobody waits for it any more.
    if sent { taken() } else { gone() }
}

impl Page {
    fn is_open(&self, host: &impl PageHost) -> bool {
        self.subject.is_open(&|id| host.is_open(id))
    }
}

/// What a browser sends of a form. Every name and value of ours stands for itself in that encoding.
#[derive(Debug, Default, PartialEq, Eq)]
struct FilledForm<'a> {
    answer: Option<&'a str>,
    may_use_secret: bool,
}

impl<'a> FilledForm<'a> {
    fn parse(bytes: &'a [u8]) -> Self {
        let mut form = Self::default();
        for field in std::str::from_utf8(bytes).unwrap_or_default().split('&') {
            match field.split_once('=') {
                // A form of ours sends one: what else sends two has answered nothing.
                Some(("answer", _)) if form.answer.is_some() => return Self::default(),
                Some(("answer", answer)) => form.answer = Some(answer),
                Some(("secret", "yes")) => form.may_use_secret = true,
                _ => {}
            }
        }
        form
    }

    /// What is missing for an answer to this.
    fn lacks(&self, subject: &Subject) -> Option<&'static str> {
        match (subject, self.answer) {
            (Subject::Question(_), Some("deny"))
            | (Subject::Confirmation { .. }, Some("yes" | "no")) => None,
            (Subject::Question(question), Some("once" | "session")) => {
                let is_complete = !question.is_secret || self.may_use_secret;
                (!is_complete).then_some(
                    "Nothing was allowed yet: confirm that the sandbox may use the secret.",
                )
            }
            _ => Some("Choose one of the answers."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FilledForm;
    use crate::pages::Subject;
    use crate::questions::Question;

    #[test]
    fn a_secret_needs_a_yes_of_its_own() {
        let question =
            |is_secret| Subject::Question(Question { id: 1, message: String::new(), is_secret });
        let lacks = |form: &str, is_secret| {
            FilledForm::parse(form.as_bytes()).lacks(&question(is_secret)).is_some()
        };
        assert!(!lacks("answer=once", false));
        assert!(lacks("answer=once", true));
        assert!(lacks("answer=session&secret=no", true));
        assert!(!lacks("answer=session&secret=yes", true));
        assert!(!lacks("answer=deny", true));
        assert!(lacks("answer=deny&answer=once&secret=yes", true));
        for wrong in [
            "",
            "answer=",
            "answer=always",
            "answer=yes",
            "secret=yes",
            "answer=%6fnce",
            "answer=once&answer=once",
        ] {
            assert!(lacks(wrong, false), "{wrong}");
        }
    }
}
