//! Browsers that have logged in. A browser cannot send the token by itself, so it exchanges the token, or a code that works once,
//! for a cookie and a key.
//!
//! The cookie alone is not enough: browsers send it to every port of the same host, also to a server that somebody else runs there.
//! The key is known only to pages of this origin, and goes in a header that no form and no page of another origin can send.

use crate::problem::Problem;
use crate::secret::{SecretDigest, new_secret};
use axum::http::{HeaderMap, header};
use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The header with the key. A form cannot send it, and a page of another origin would have to ask first.
pub(crate) const KEY_HEADER: &str = "x-palisade-request";

/// For the link that is printed at the start.
const CODE_LIFETIME: Duration = Duration::from_secs(600);
pub(crate) const LOGIN_LIFETIME: Duration = Duration::from_secs(12 * 3600);
/// At once. The oldest one is logged out for another.
const MAX_LOGINS: usize = 32;

/// What a browser gets when it has logged in.
#[derive(Debug)]
pub(crate) struct NewLogin {
    pub(crate) cookie: String,
    pub(crate) key: String,
}

#[derive(Debug)]
pub(crate) struct Logins {
    cookie_name: String,
    /// Whether the cookie may go over TLS only.
    has_tls: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    code: Option<(SecretDigest, Instant)>,
    open: VecDeque<Login>,
}

#[derive(Debug)]
struct Login {
    cookie: SecretDigest,
    key: SecretDigest,
    until: Instant,
}

impl Logins {
    /// Cookies do not know ports: the name does, so that two servers of one machine do not log each other out.
    pub(crate) fn new(port: u16, has_tls: bool) -> Self {
        Self { cookie_name: format!("palisade-{port}"), has_tls, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A code that can be exchanged once.
    pub(crate) fn new_code(&self) -> io::Result<String> {
        let code = new_secret()?;
        self.state().code = Some((SecretDigest::of(&code), Instant::now() + CODE_LIFETIME));
        Ok(code)
    }

    /// Whether this is the code. It is used up then.
    pub(crate) fn take_code(&self, given: &str) -> bool {
        let taken = self.state().code.take_if(|(code, until)| code.is_of(given) || is_over(*until));
        taken.is_some_and(|(code, until)| code.is_of(given) && !is_over(until))
    }

    pub(crate) fn log_in(&self) -> io::Result<NewLogin> {
        let (cookie, key) = (new_secret()?, new_secret()?);
        let login = Login {
            cookie: SecretDigest::of(&cookie),
            key: SecretDigest::of(&key),
            until: Instant::now() + LOGIN_LIFETIME,
        };
        let mut state = self.state();
        state.open.retain(|login| !is_over(login.until));
        if state.open.len() == MAX_LOGINS {
            state.open.pop_front();
        }
        state.open.push_back(login);
        Ok(NewLogin { cookie, key })
    }

    /// Forgets the login that a request belongs to.
    pub(crate) fn log_out(&self, headers: &HeaderMap) {
        if let Some(cookie) = self.cookie(headers) {
            self.state().open.retain(|login| !login.cookie.is_of(cookie));
        }
    }

    /// What a browser is to keep; without a cookie, that it is to forget it.
    pub(crate) fn set_cookie(&self, cookie: Option<&str>) -> String {
        let (value, age) = match cookie {
            Some(value) => (value, LOGIN_LIFETIME.as_secs()),
            None => ("", 0),
        };
        let secure = if self.has_tls { "; Secure" } else { "" };
        let name = &self.cookie_name;
        format!("{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}")
    }

    fn cookie<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let pairs = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = pairs.flat_map(|value| value.split(';')).map(str::trim);
        pairs.find_map(|pair| pair.strip_prefix(self.cookie_name.as_str())?.strip_prefix('='))
    }

    /// Whether a request without a token comes from our page in a browser that has logged in.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(cookie) = self.cookie(headers) else {
            return Err(Problem::unauthorised("send the header `Authorization: Bearer TOKEN`"));
        };
        let state = self.state();
        let login =
            state.open.iter().find(|login| login.cookie.is_of(cookie) && !is_over(login.until));
        let Some(login) = login else {
            return Err(Problem::unauthorised("the login is over; log in again"));
        };
        match headers.get(KEY_HEADER).and_then(|key| key.to_str().ok()) {
            Some(key) if login.key.is_of(key) => Ok(()),
            Some(_) => Err(Problem::unauthorised("the login is that of another page")),
            None => Err(Problem::forbidden(format!(
                "with a cookie, a request needs the header {KEY_HEADER}: pages of other sites cannot send it"
            ))),
        }
    }
}

fn is_over(until: Instant) -> bool {
    Instant::now() >= until
}

#[cfg(test)]
#[path = "logins_tests.rs"]
mod tests;
