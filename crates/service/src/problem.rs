//! What a request is answered with that was not carried out: RFC 9457, with the classes of errors that reports have (ERR-1).

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use palisade_record::ErrorKind;
use palisade_session::{ErrorReason, SessionError};
use serde::{Deserialize, Serialize};
use std::error::Error as _;
use utoipa::ToSchema;

const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");
/// Seconds after which it is worth while to ask again.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");
/// Of the text from elsewhere.
const MAX_DETAIL: usize = 8 * 1024;

/// Why a request was not carried out (RFC 9457).
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Problem {
    /// A name for this kind of problem, which does not change.
    #[serde(rename = "type")]
    #[schema(example = "urn:palisade:problem:not-found")]
    type_: String,
    title: &'static str,
    status: u16,
    /// What happened, and what to do about it. It may hold names that a command chose.
    detail: String,
    /// The class of the error, as in reports: resource, security, validation, cancelled, timeout or initialisation.
    kind: ProblemKind,
    /// What led to it, nearest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<String>,
    /// What a shell would have said, where a command did not start.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "exitCode")]
    exit_code: Option<i32>,
    /// What stands in the way of an apply, path by path.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<crate::documents::Held>)]
    held: Option<Box<serde_json::Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProblemKind {
    Resource,
    Security,
    Validation,
    Cancelled,
    Timeout,
    Initialisation,
}

impl From<ErrorKind> for ProblemKind {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Resource => Self::Resource,
            ErrorKind::Security => Self::Security,
            ErrorKind::Validation => Self::Validation,
            ErrorKind::Cancelled => Self::Cancelled,
            ErrorKind::Timeout => Self::Timeout,
            ErrorKind::Initialisation => Self::Initialisation,
        }
    }
}

impl ProblemKind {
    /// For an error of which nothing else is known.
    fn status(self) -> StatusCode {
        match self {
            Self::Resource => StatusCode::SERVICE_UNAVAILABLE,
            Self::Security => StatusCode::FORBIDDEN,
            Self::Validation => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Cancelled => StatusCode::CONFLICT,
            Self::Timeout => StatusCode::GATEWAY_TIMEOUT,
            Self::Initialisation => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl Problem {
    fn new(name: &str, title: &'static str, status: StatusCode, kind: ProblemKind) -> Self {
        Self {
            type_: format!("urn:palisade:problem:{name}"),
            title,
            status: status.as_u16(),
            detail: title.to_owned(),
            kind,
            causes: Vec::new(),
            exit_code: None,
            held: None,
        }
    }

    /// Says what happened.
    #[must_use]
    pub(crate) fn because(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        if let Some((end, _)) = self.detail.char_indices().nth(MAX_DETAIL) {
            self.detail.truncate(end);
            self.detail.push('…');
        }
        self
    }

    #[must_use]
    pub(crate) fn with_held(mut self, held: serde_json::Value) -> Self {
        self.held = Some(Box::new(held));
        self
    }

    /// What happened, and what to do about it.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The class of the error.
    pub fn kind(&self) -> ProblemKind {
        self.kind
    }

    /// What led to it, nearest first.
    pub fn causes(&self) -> &[String] {
        &self.causes
    }

    /// The status of an answer over HTTP.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// What a shell would have said, where a command did not start.
    pub fn exit_code(&self) -> Option<i32> {
        self.exit_code
    }

    /// Somebody has ended it.
    pub fn cancelled(detail: impl Into<String>) -> Self {
        Self::of_kind(ProblemKind::Cancelled, detail)
    }

    /// What stands in the way of an apply, path by path.
    pub fn held(&self) -> Option<&serde_json::Value> {
        self.held.as_deref()
    }

    pub fn is_not_found(&self) -> bool {
        self.status == StatusCode::NOT_FOUND.as_u16()
    }

    #[must_use]
    pub(crate) fn with_exit_code(mut self, code: i32) -> Self {
        self.exit_code = Some(code);
        self
    }

    /// The same about the present state, which somebody can change.
    #[must_use]
    pub(crate) fn into_conflict(self) -> Self {
        let is_about_the_request = self.status == StatusCode::UNPROCESSABLE_ENTITY.as_u16();
        if is_about_the_request { Self::conflict(self.detail) } else { self }
    }

    /// The body is no JSON, or not the JSON that belongs there.
    pub fn malformed(detail: impl Into<String>) -> Self {
        let (status, kind) = (StatusCode::BAD_REQUEST, ProblemKind::Validation);
        Self::new("malformed", "The request cannot be read", status, kind).because(detail)
    }

    /// It asks for something that cannot be.
    pub fn invalid(detail: impl Into<String>) -> Self {
        let (status, kind) = (StatusCode::UNPROCESSABLE_ENTITY, ProblemKind::Validation);
        Self::new("invalid", "The request asks for something that cannot be", status, kind)
            .because(detail)
    }

    pub fn not_found(detail: impl Into<String>) -> Self {
        let (status, kind) = (StatusCode::NOT_FOUND, ProblemKind::Validation);
        Self::new("not-found", "There is nothing of this name", status, kind).because(detail)
    }

    pub(crate) fn no_such_method() -> Self {
        let (status, kind) = (StatusCode::METHOD_NOT_ALLOWED, ProblemKind::Validation);
        Self::new("method", "Nothing can be done here with this method", status, kind)
    }

    pub fn conflict(detail: impl Into<String>) -> Self {
        let (status, kind) = (StatusCode::CONFLICT, ProblemKind::Validation);
        Self::new("conflict", "The present state does not allow it", status, kind).because(detail)
    }

    /// Another sandbox has the name.
    pub(crate) fn name_taken(detail: impl Into<String>) -> Self {
        let (status, kind) = (StatusCode::CONFLICT, ProblemKind::Validation);
        Self::new("name-taken", "Another sandbox has this name", status, kind).because(detail)
    }

    /// The same request is being carried out.
    pub(crate) fn in_progress(detail: impl Into<String>) -> Self {
        let (status, kind) = (StatusCode::CONFLICT, ProblemKind::Validation);
        Self::new("in-progress", "The same request is being carried out", status, kind)
            .because(detail)
    }

    /// A server was ended while it carried the same request out.
    pub(crate) fn interrupted(detail: impl Into<String>) -> Self {
        let (status, kind) = (StatusCode::CONFLICT, ProblemKind::Cancelled);
        let title = "The request was begun, and nobody knows how it ended";
        Self::new("interrupted", title, status, kind).because(detail)
    }

    /// A file is not the version that was to be replaced.
    pub(crate) fn changed_meanwhile(detail: impl Into<String>) -> Self {
        let (status, kind) = (StatusCode::PRECONDITION_FAILED, ProblemKind::Validation);
        Self::new("changed", "It was changed meanwhile", status, kind).because(detail)
    }

    pub(crate) fn no_such_range(detail: impl Into<String>) -> Self {
        let (status, kind) = (StatusCode::RANGE_NOT_SATISFIABLE, ProblemKind::Validation);
        Self::new("range", "There is nothing in this range", status, kind).because(detail)
    }

    /// The sandbox does not do it.
    pub fn refused(detail: impl Into<String>) -> Self {
        Self::of_kind(ProblemKind::Security, detail)
    }

    pub fn unauthorised(detail: impl Into<String>) -> Self {
        let (status, kind) = (StatusCode::UNAUTHORIZED, ProblemKind::Security);
        Self::new("unauthorised", "The request has no valid token", status, kind).because(detail)
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        let (status, kind) = (StatusCode::FORBIDDEN, ProblemKind::Security);
        Self::new("forbidden", "The request is not accepted from there", status, kind)
            .because(detail)
    }

    pub fn too_large(detail: impl Into<String>) -> Self {
        let (status, kind) = (StatusCode::PAYLOAD_TOO_LARGE, ProblemKind::Resource);
        Self::new("too-large", "The request is too large", status, kind).because(detail)
    }

    pub(crate) fn wrong_type(detail: impl Into<String>) -> Self {
        let (status, kind) = (StatusCode::UNSUPPORTED_MEDIA_TYPE, ProblemKind::Validation);
        Self::new("media-type", "The body has another type", status, kind).because(detail)
    }

    /// The client was too slow.
    pub(crate) fn slow(detail: impl Into<String>) -> Self {
        let (status, kind) = (StatusCode::REQUEST_TIMEOUT, ProblemKind::Timeout);
        Self::new("slow", "The request took too long to arrive", status, kind).because(detail)
    }

    /// Something of ours did not answer in time.
    pub(crate) fn timed_out(detail: impl Into<String>) -> Self {
        let (status, kind) = (StatusCode::GATEWAY_TIMEOUT, ProblemKind::Timeout);
        Self::new("timeout", "It took too long", status, kind).because(detail)
    }

    pub fn busy(detail: impl Into<String>) -> Self {
        let (status, kind) = (StatusCode::SERVICE_UNAVAILABLE, ProblemKind::Resource);
        Self::new("busy", "Too much is going on", status, kind).because(detail)
    }

    pub fn internal(detail: impl Into<String>) -> Self {
        let (status, kind) = (StatusCode::INTERNAL_SERVER_ERROR, ProblemKind::Initialisation);
        Self::new("failed", "It could not be done", status, kind).because(detail)
    }

    /// An error of a session.
    pub(crate) fn for_reason(
        kind: ProblemKind,
        reason: ErrorReason,
        detail: impl Into<String>,
    ) -> Self {
        match reason {
            ErrorReason::NotFound => Self::not_found(detail),
            ErrorReason::NameTaken => Self::name_taken(detail),
            ErrorReason::Conflict => Self::conflict(detail),
            ErrorReason::Other => Self::of_kind(kind, detail),
        }
    }

    /// An error with a class, and nothing else.
    pub(crate) fn of_kind(kind: ProblemKind, detail: impl Into<String>) -> Self {
        let (name, title) = match kind {
            ProblemKind::Resource => ("busy", "Something that is needed is used up"),
            ProblemKind::Security => ("refused", "The policy does not allow it"),
            ProblemKind::Validation => ("invalid", "The request asks for something that cannot be"),
            ProblemKind::Cancelled => ("cancelled", "It was cancelled"),
            ProblemKind::Timeout => ("timeout", "It took too long"),
            ProblemKind::Initialisation => ("failed", "It could not be done"),
        };
        Self::new(name, title, kind.status(), kind).because(detail)
    }
}

impl From<SessionError> for Problem {
    fn from(error: SessionError) -> Self {
        let detail = match &error {
            SessionError::NoSuchSession { named, .. } => format!("there is no sandbox `{named}`"),
            other => other.to_string(),
        };
        let mut problem = Self::for_reason(error.kind().into(), error.reason(), detail);
        let mut source = error.source();
        while let Some(cause) = source {
            problem.causes.push(cause.to_string());
            source = cause.source();
        }
        problem
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // A problem has only texts and numbers.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, CONTENT_TYPE);
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, RETRY_AFTER);
            }
            _ => {}
        }
        response
    }
}
