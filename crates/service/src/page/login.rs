//! A browser logs in, and out.

use crate::extract::Json;
use crate::logins::{LOGIN_LIFETIME, Logins};
use crate::problem::Problem;
use crate::service::Shared;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LoginProof {
    /// The code of the link that the server printed. It works once.
    Code(String),
    /// What is in the token file.
    Token(String),
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LoggedIn {
    /// To be sent with every request, in the header `X-Palisade-Request`. Only pages of this origin can know it.
    request_key: String,
    expires_in_seconds: u64,
}

/// Log a browser in
///
/// For the page at `/`. The answer sets a cookie, which counts instead of the token together with the key.
#[utoipa::path(post, path = "/v1/login", tag = "page", request_body = LoginProof, responses((status = 200, body = LoggedIn), (status = 409, body = Problem, content_type = "application/problem+json", description = "At a UNIX socket nobody has to log in")))]
pub(crate) async fn log_in(
    State(service): State<Shared>,
    Json(proof): Json<LoginProof>,
) -> Result<Response, Problem> {
    let logins = logins(&service)?;
    let is_right = match &proof {
        LoginProof::Code(code) => logins.take_code(code),
        LoginProof::Token(token) => service.access.is_token(token.trim()).unwrap_or(false),
    };
    if !is_right {
        return Err(Problem::unauthorised(match proof {
            LoginProof::Code(_) => "the link has been used, or is too old",
            LoginProof::Token(_) => "the token is not that of this server",
        }));
    }
    let login = logins.log_in().map_err(|error| Problem::internal(error.to_string()))?;
    let cookie = logins.set_cookie(Some(&login.cookie));
    let answer = LoggedIn { request_key: login.key, expires_in_seconds: LOGIN_LIFETIME.as_secs() };
    Ok(([(header::SET_COOKIE, cookie)], Json(answer)).into_response())
}

/// Log a browser out
#[utoipa::path(post, path = "/v1/logout", tag = "page", responses((status = 204, description = "The cookie counts for nothing any more")))]
pub(crate) async fn log_out(
    State(service): State<Shared>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let logins = logins(&service)?;
    logins.log_out(&headers);
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, logins.set_cookie(None))]).into_response())
}

fn logins(service: &Shared) -> Result<&Logins, Problem> {
    service.access.logins().ok_or_else(|| Problem::conflict("here nobody has to log in"))
}
