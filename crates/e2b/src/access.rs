//! Who may ask. The REST API takes the server's token as its key. Each sandbox has a token of its own, made of the server's: who has
//! it can use that sandbox and nothing else. A signature made with it opens one file, as a link for others.

use crate::face::Face;
use crate::store::KeptSandbox;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, Method, Uri, header};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use jiff::Timestamp;
use palisade_service::{FaceHost, Problem};
use sha2::{Digest as _, Sha256};

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const ACCESS_TOKEN: HeaderName = HeaderName::from_static("x-access-token");
const SANDBOX_ID: HeaderName = HeaderName::from_static("e2b-sandbox-id");
/// E2B's own keys begin with it, and some programs look for it.
const KEY_PREFIX: &str = "e2b_";
const SIGNATURE_PREFIX: &str = "v1_";
/// The endpoint that a signature opens.
const FILES: &str = "/files";

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Whether a request to the REST API has the key.
pub(crate) fn check_key(host: &FaceHost, request: &Request) -> Result<(), Problem> {
    let bearer = || text(request.headers(), &header::AUTHORIZATION)?.strip_prefix("Bearer ");
    match text(request.headers(), &API_KEY).or_else(bearer) {
        None => Err(Problem::unauthorised(
            "set E2B_API_KEY to the server's token; `sandbox serve --e2b` says where it is",
        )),
        Some(key) if host.is_token(key.strip_prefix(KEY_PREFIX).unwrap_or(key)) => Ok(()),
        Some(_) => Err(Problem::unauthorised("the key is not the token of this server")),
    }
}

/// The token of one sandbox.
pub(crate) fn access_token(host: &FaceHost, id: &str) -> Result<String, Problem> {
    let token = host.secret_for(&format!("e2b sandbox {id}"));
    token.ok_or_else(|| Problem::internal("the server has no token"))
}

/// The sandbox that a request is about, if it proves that it may use it.
pub(crate) fn sandbox_of(face: &Face, request: &Request) -> Result<String, Problem> {
    let (uri, headers) = (request.uri(), request.headers());
    let named = text(headers, &SANDBOX_ID);
    if let Some(signature) = (uri.path() == FILES).then(|| Signature::of(uri)).flatten() {
        let operation = if request.method() == Method::GET { "read" } else { "write" };
        return signed_sandbox(face, &signature, named, operation);
    }
    let Some(id) = named else {
        return Err(Problem::malformed("the header E2b-Sandbox-Id is missing"));
    };
    let Some(given) = text(headers, &ACCESS_TOKEN) else {
        return Err(Problem::unauthorised("the header X-Access-Token is missing"));
    };
    if is_same(given, &access_token(&face.host, id)?) {
        Ok(id.to_owned())
    } else {
        Err(Problem::unauthorised("the access token is not that of this sandbox"))
    }
}

/// A link has no header that names its sandbox: only the signature does.
fn signed_sandbox(
    face: &Face,
    signature: &Signature,
    named: Option<&str>,
    operation: &str,
) -> Result<String, Problem> {
    let now = Timestamp::now().as_second();
    if signature.expiration.is_some_and(|expiration| expiration < now) {
        return Err(Problem::unauthorised("the signature has expired"));
    }
    let is_meant = |kept: &KeptSandbox| named.is_none_or(|named| named == kept.id);
    for kept in face.store.list().into_iter().filter(is_meant) {
        let token = access_token(&face.host, &kept.id)?;
        if is_same(&signature.given, &signature.expected(operation, &token)) {
            return Ok(kept.id);
        }
    }
    Err(Problem::unauthorised("the signature is not valid for this path"))
}

/// What a link says.
#[derive(Debug, Default)]
struct Signature {
    given: String,
    path: String,
    user: String,
    expiration: Option<i64>,
}

impl Signature {
    fn of(uri: &Uri) -> Option<Self> {
        let query: Vec<(String, String)> =
            axum::extract::Query::try_from_uri(uri).map(|query| query.0).ok()?;
        let mut signature = Self::default();
        let mut is_signed = false;
        for (name, value) in query {
            match name.as_str() {
                "signature" => {
                    signature.given = value;
                    is_signed = true;
                }
                "path" => signature.path = value,
                "username" => signature.user = value,
                "signature_expiration" => signature.expiration = Some(value.parse().ok()?),
                _ => {}
            }
        }
        is_signed.then_some(signature)
    }

    fn expected(&self, operation: &str, token: &str) -> String {
        let Self { path, user, .. } = self;
        let mut signed = format!("{path}:{operation}:{user}:{token}");
        if let Some(expiration) = self.expiration {
            signed.push_str(&format!(":{expiration}"));
        }
        let digest = STANDARD_NO_PAD.encode(Sha256::digest(signed));
        format!("{SIGNATURE_PREFIX}{digest}")
    }
}

/// Compares hashes, so that the time it takes says nothing about a guess.
fn is_same(given: &str, expected: &str) -> bool {
    let (given, expected) = (Sha256::digest(given), Sha256::digest(expected));
    let differs = given.iter().zip(&expected).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(differs) == 0
}

/// The user that a request names, which has to be one that there is. A sandbox has one, under both names.
pub(crate) fn check_user(name: &str) -> Result<(), Problem> {
    match name {
        "" | "user" | "root" => Ok(()),
        other => Err(Problem::unauthorised(format!(
            "there is no user `{other}`: a sandbox has one user, who is called `user` and `root` alike"
        ))),
    }
}

/// The same from the header that procedures have it in.
pub(crate) fn check_user_header(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(value) = text(headers, &header::AUTHORIZATION) else { return Ok(()) };
    let decoded = value
        .strip_prefix("Basic ")
        .and_then(|encoded| STANDARD.decode(encoded).ok())
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| Problem::malformed("the header Authorization names no user"))?;
    check_user(decoded.split(':').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::{Signature, check_user, is_same};

    /// By E2B's own client: `get_signature("a b.txt", "read", None, "secret", …)` with the time at 0.
    #[test]
    fn a_signature_is_the_one_that_the_clients_make() {
        let uri = "/files?path=a%20b.txt&signature=x&signature_expiration=10".parse().unwrap();
        let signature = Signature::of(&uri).unwrap();
        assert_eq!((signature.path.as_str(), signature.expiration), ("a b.txt", Some(10)));
        assert_eq!(
            signature.expected("read", "secret"),
            "v1_hFmYm45PEnDTvhcnXMuRILLvWfNEFDvzxL6zlr4ClbE"
        );
        assert!(Signature::of(&"/files?path=a".parse().unwrap()).is_none());
        assert!(is_same("a", "a") && !is_same("a", "b"));
    }

    #[test]
    fn a_sandbox_has_one_user_with_two_names() {
        assert!(check_user("").is_ok() && check_user("root").is_ok() && check_user("user").is_ok());
        assert!(check_user("nobody").is_err());
    }
}
