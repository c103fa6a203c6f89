//! Why a request was not carried out, as both sides of E2B's API say it: the REST API by a status and a message, Connect RPC by a
//! code and a message.

use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use palisade_service::Problem;
use serde::Serialize;
use serde_json::json;

/// An answer of the REST API, or of the endpoint for files.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    message: String,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn no_sandbox(id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("Sandbox {id} not found"))
    }

    /// E2B has it, and we have not.
    pub(crate) fn unsupported(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_IMPLEMENTED,
            format!("{what}: not supported here; docs/e2b.md has what is"),
        )
    }

    /// What E2B's own proxy says of a sandbox that is gone. The clients know it by these words.
    pub(crate) fn gone(id: &str) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, format!("The sandbox was not found: {id}"))
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        let status = match StatusCode::from_u16(problem.status()) {
            // The clients know no other one for what somebody asks for and cannot be.
            Ok(StatusCode::UNPROCESSABLE_ENTITY) => StatusCode::BAD_REQUEST,
            Ok(status) => status,
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, problem.detail())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = json!({ "code": self.status.as_u16(), "message": self.message }).to_string();
        (self.status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
    }
}

/// What a request is answered with that is not let in. Both sides understand it: a client takes the code of Connect from the status.
pub(crate) fn refuse(_: &Request, problem: &Problem) -> Response {
    ApiError::from(problem.clone()).into_response()
}

/// Of Connect RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Code {
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    Aborted,
    Unimplemented,
    Internal,
    Unavailable,
    DataLoss,
    Unauthenticated,
}

impl Code {
    /// As the protocol has it.
    fn status(self) -> StatusCode {
        match self {
            Self::InvalidArgument | Self::FailedPrecondition => StatusCode::BAD_REQUEST,
            Self::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::AlreadyExists | Self::Aborted => StatusCode::CONFLICT,
            Self::PermissionDenied => StatusCode::FORBIDDEN,
            Self::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            Self::Unimplemented => StatusCode::NOT_IMPLEMENTED,
            Self::Internal | Self::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
        }
    }
}

/// An error of a procedure.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RpcError {
    pub(crate) code: Code,
    pub(crate) message: String,
}

impl RpcError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }
}

impl From<Problem> for RpcError {
    fn from(problem: Problem) -> Self {
        let code = match problem.status() {
            400 | 415 | 416 | 422 => Code::InvalidArgument,
            401 => Code::Unauthenticated,
            403 => Code::PermissionDenied,
            404 => Code::NotFound,
            408 | 504 => Code::DeadlineExceeded,
            409 => Code::FailedPrecondition,
            412 => Code::Aborted,
            413 | 503 => Code::ResourceExhausted,
            _ => Code::Internal,
        };
        Self::new(code, problem.detail())
    }
}

/// Of a procedure that answers once.
impl IntoResponse for RpcError {
    fn into_response(self) -> Response {
        // A code and a text.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        (self.code.status(), [(header::CONTENT_TYPE, "application/json")], body).into_response()
    }
}
