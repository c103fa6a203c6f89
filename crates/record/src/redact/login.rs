//! Logins on a command line: `user:password`, as curl and similar programs take it after a flag, joined to one, or
//! before the host of a proxy. A pair of numbers is a uid and a gid, and must never be taken for a login.

use super::{MASK, is_quote, is_secret_name, is_token, leading_name, separator};

/// How a login is written.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Form {
    /// `user:password`
    Pair,
    /// `user:password@host`; with a scheme, it is handled as a URL.
    Proxy,
}

impl Form {
    /// The form of the value after a flag or a setting of this name.
    pub(super) fn behind(name: &str) -> Option<Form> {
        const PAIRS: [&str; 4] = ["user", "proxy-user", "cert", "proxy-cert"];
        const PROXIES: [&str; 3] = ["socks4", "socks5", "proxy1"];
        let bare = name.trim_start_matches('-').to_ascii_lowercase();
        let dashes = name.len() - bare.len();
        if bare.ends_with("proxy") {
            return Some(Form::Proxy);
        }
        match (dashes, name.chars().next_back()?) {
            (0, _) => None,
            _ if PAIRS.contains(&bare.as_str()) => Some(Form::Pair),
            _ if PROXIES.iter().any(|known| bare.starts_with(known)) => Some(Form::Proxy),
            // Several combined flags: the last one takes the value.
            (1, last) if bare.bytes().all(|b| b.is_ascii_alphanumeric()) => Form::short(last),
            _ => None,
        }
    }

    fn short(flag: char) -> Option<Form> {
        match flag {
            'u' | 'U' => Some(Form::Pair),
            'x' => Some(Form::Proxy),
            _ => None,
        }
    }

    /// The form and offset of the value in the first word: `--user=VALUE`, `-uVALUE`, `-suVALUE`, `https_proxy=VALUE`.
    pub(super) fn attached(text: &str) -> Option<(Form, usize)> {
        let name = leading_name(text);
        let after = &text[name.len()..];
        if name.starts_with('-') && !after.starts_with('=') {
            let is_joined =
                |at: usize| !text[at..].is_empty() && !text[at..].starts_with(char::is_whitespace);
            return Form::joined(name).filter(|(_, at)| is_joined(*at));
        }
        Some((Form::behind(name)?, name.len() + separator(after)?.len()))
    }

    fn joined(word: &str) -> Option<(Form, usize)> {
        // Flags of curl that take no value (curl(1)): after any other flag, the rest is its value.
        const ALONE: &str = "012346aBfgGiIjJklLMnNOpqRsSvVZ";
        let flags = word.strip_prefix('-')?;
        let at = flags.find(|flag| !ALONE.contains(flag))?;
        Some((Form::short(flags[at..].chars().next()?)?, at + "-u".len()))
    }

    /// The value with its password masked, if it is a login.
    pub(super) fn mask(self, value: &str) -> Option<String> {
        match self {
            Form::Pair => mask_pair(value),
            Form::Proxy => mask_proxy(value),
        }
    }
}

fn mask_pair(value: &str) -> Option<String> {
    let (user, password) = value.split_once(':')?;
    let is_number = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let is_url = password.starts_with("//") && is_scheme(user);
    // Another option, or a variable with the name of a secret: masked as such.
    let is_setting =
        user.contains('=') && (user.starts_with('-') || is_secret_name(leading_name(user)));
    if password.is_empty() || is_number(user) && is_number(password) || is_url || is_setting {
        return None;
    }
    let is_name = !user.contains(|c: char| c.is_whitespace() || is_quote(c) || c == '=');
    Some(if is_name { mask_password(value) } else { MASK.to_owned() })
}

fn mask_proxy(value: &str) -> Option<String> {
    let (login, host) = value.rsplit_once('@')?;
    let is_host = !host.contains(|c: char| c.is_whitespace() || is_quote(c));
    (is_host && login.contains(':') && !value.contains("://"))
        .then(|| format!("{}@{host}", mask_password(login)))
}

/// As in `git push -u URL` and `pip install -U git+URL`.
fn is_scheme(text: &str) -> bool {
    const SCHEMES: [&str; 6] = ["http", "https", "ssh", "git", "ftp", "file"];
    let transport = text.rsplit_once('+').map_or(text, |(_, transport)| transport);
    SCHEMES.contains(&transport)
}

/// `user:password` with the password masked, and the user too if it is a token.
pub(super) fn mask_password(login: &str) -> String {
    let (user, password) = login.split_once(':').map_or((login, None), |(u, p)| (u, Some(p)));
    let user = if is_token(user) { MASK } else { user };
    match password {
        Some(_) => format!("{user}:{MASK}"),
        None => user.to_owned(),
    }
}

#[cfg(test)]
#[path = "login_tests.rs"]
mod tests;
