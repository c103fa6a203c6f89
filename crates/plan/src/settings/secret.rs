//! Recognizes credentials in settings by the name of a key, or by the form of a value.

use std::borrow::Cow;

/// Parts of keys, compared without `-`, `_` and `.`.
const KEYS: [&str; 10] = [
    "token",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "credential",
    "privatekey",
    "extraheader",
    "signingkey",
];
/// Prefixes of tokens that services issue.
const TOKENS: [&str; 15] = [
    "npm_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "pypi-",
    "xoxb-",
    "xoxp-",
    "sk-",
    "AKIA",
    "eyJ",
    "AIza",
];
/// The minimum length of a token.
const MIN_TOKEN_LEN: usize = 16;
/// Texts that precede a credential.
const SCHEMES: [&str; 3] = ["Bearer ", "Basic ", "-----BEGIN"];
/// Names of query parameters in an address.
const QUERIES: [&str; 7] =
    ["token=", "key=", "password=", "secret=", "auth=", "sig=", "signature="];
/// A word of this length that is neither text nor a path is probably a key.
const MIN_RANDOM_LEN: usize = 32;

pub(crate) fn is_secret_key(key: &str) -> bool {
    let plain: String =
        key.chars().filter(|c| c.is_ascii_alphanumeric()).collect::<String>().to_ascii_lowercase();
    // npm: a setting for a single registry always concerns the login.
    key.trim_start_matches(['"', '\'']).starts_with("//")
        || KEYS.iter().any(|part| plain.contains(part))
        || (plain.contains("auth") && !plain.contains("author"))
        || plain == "key"
}

/// A value that cannot be a secret, whatever the key.
pub(crate) fn is_switch(value: &str) -> bool {
    let value = value.trim().trim_matches(['"', '\'']).to_ascii_lowercase();
    matches!(value.as_str(), "" | "true" | "false" | "yes" | "no" | "on" | "off" | "null")
}

pub(crate) fn is_secret_value(value: &str) -> bool {
    let is_token = |word: &str| {
        word.len() >= MIN_TOKEN_LEN && TOKENS.iter().any(|start| word.starts_with(start))
    };
    let words =
        value.split([' ', '\t', '"', '\'', '=', ',', ':', '/', '<', '>', '[', ']', '{', '}']);
    words.clone().any(is_token)
        || SCHEMES.iter().any(|scheme| value.contains(scheme))
        || has_secret_query(value)
        || is_login_without_scheme(value)
        || words.flat_map(|word| word.split(['.', '\\', '@', ';', '(', ')'])).any(is_random)
}

/// `https://host/path?token=…`
fn has_secret_query(value: &str) -> bool {
    let parts = value.split(['?', '&']).skip(1);
    parts.map(str::to_ascii_lowercase).any(|part| {
        let name = part.split('=').next().unwrap_or_default();
        part.contains('=')
            && QUERIES.iter().any(|query| name.ends_with(query.trim_end_matches('=')))
    })
}

/// `user:password@proxy:3128`
pub(crate) fn is_login_without_scheme(value: &str) -> bool {
    let value = value.trim().trim_matches(['"', '\'']);
    !value.contains("://")
        && value.split_once('@').is_some_and(|(login, host)| {
            login.contains(':') && !login.contains(char::is_whitespace) && !host.is_empty()
        })
}

fn is_random(word: &str) -> bool {
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || "+_-".contains(c);
    let has = |is: fn(&char) -> bool| word.chars().filter(is).count() >= 3;
    word.len() >= MIN_RANDOM_LEN
        && word.chars().all(is_of_key)
        && has(char::is_ascii_digit)
        && has(char::is_ascii_alphabetic)
}

/// The text without the logins in its addresses; `None` if it is not clear where a login ends.
pub(crate) fn without_logins(text: &str) -> Option<Cow<'_, str>> {
    const SCHEME: &str = "://";
    let mut clean = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(SCHEME) {
        let (before, after) = rest.split_at(at + SCHEME.len());
        let scheme = before.trim_end_matches(SCHEME);
        clean.push_str(before);
        // Not at `,` or `'`, which a login may contain (RFC 3986, sub-delims).
        let address = after.split([' ', '\t', '"', '<', '>', '\n', '\r']).next()?;
        let authority = address.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        let skipped = match authority.rsplit_once('@') {
            // `git@` in an ssh address is the same for every user.
            Some((login, _)) if is_ssh(scheme) && !login.contains(':') => 0,
            Some((login, _)) => login.len() + 1,
            // A password that contains a slash: what looks like the host is the user name, and `:` does not
            // precede a port.
            None if address.contains('@') && has_no_port(authority) => return None,
            None => 0,
        };
        rest = &after[skipped..];
    }
    if clean.is_empty() {
        return Some(Cow::Borrowed(text));
    }
    clean.push_str(rest);
    Some(Cow::Owned(clean))
}

fn is_ssh(scheme: &str) -> bool {
    scheme.ends_with("ssh") || scheme.ends_with("git")
}

fn has_no_port(authority: &str) -> bool {
    let port = authority.rsplit_once(':').filter(|_| !authority.ends_with(']'));
    port.is_some_and(|(_, port)| !port.bytes().all(|byte| byte.is_ascii_digit()))
}
