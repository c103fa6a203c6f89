//! Masks secrets in a command line before it is recorded.
//!
//! A heuristic for people who read logs: it prefers to mask too much, and does not make a log public. Nothing may rely
//! on it to protect a secret.

mod login;

use crate::digest::Digest;
use login::{Form, mask_password};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

const MASK: &str = "[redacted]";
const PREVIEW_CHARS: usize = 100;

/// The arguments with their secrets masked.
pub fn argv<A: AsRef<OsStr>>(argv: &[A]) -> Vec<String> {
    let mut redactor = Redactor::default();
    argv.iter().map(|argument| redactor.argument(&argument.as_ref().to_string_lossy())).collect()
}

/// The first 100 characters of the masked command line. Masked before truncation: half a secret would no longer look
/// like one.
pub fn preview<A: AsRef<OsStr>>(arguments: &[A]) -> String {
    // A character has at most four bytes; an argument may be a long script.
    let mut redactor = Redactor { enough: PREVIEW_CHARS * 4, ..Redactor::default() };
    let mut shown = String::new();
    for (index, argument) in arguments.iter().enumerate() {
        if index > 0 {
            shown.push(' ');
        }
        shown += &redactor.argument(&argument.as_ref().to_string_lossy());
        if shown.chars().count() >= PREVIEW_CHARS {
            break;
        }
    }
    shown.chars().take(PREVIEW_CHARS).collect()
}

/// Identifies a command without revealing it.
pub fn hash<A: AsRef<OsStr>>(argv: &[A]) -> Digest {
    Digest::of_nul_joined(argv.iter().map(|argument| argument.as_ref().as_bytes()))
}

/// What the text so far implies for the next value.
#[derive(Clone, Copy, Default, PartialEq)]
enum Next {
    #[default]
    Plain,
    /// One word, or one quoted string.
    Secret,
    /// A login, if it looks like one; any other value is treated as plain text.
    Login(Form),
    /// The rest of an HTTP header.
    Header,
}

struct Redactor {
    /// How many bytes of one argument are needed at most.
    enough: usize,
    next: Next,
    /// Whether a program was named whose `-p` takes a password.
    short_p_is_password: bool,
}

impl Default for Redactor {
    fn default() -> Redactor {
        Redactor { enough: usize::MAX, next: Next::Plain, short_p_is_password: false }
    }
}

impl Redactor {
    fn argument(&mut self, argument: &str) -> String {
        let expected = std::mem::take(&mut self.next);
        if matches!(expected, Next::Secret | Next::Header) {
            // A flag in place of the value announces a value itself.
            if is_secret_flag(argument) {
                self.next = Next::Secret;
            }
            return MASK.to_owned();
        }
        let name = leading_name(argument);
        let after_name = &argument[name.len()..];
        // An argument is delimited, so its value may contain blanks and quotes.
        if let Some(value) = after_name.strip_prefix(['=', ':']).map(str::trim_start)
            && !value.is_empty()
            && is_secret_name(name)
        {
            return format!("{}{MASK}", &argument[..argument.len() - value.len()]);
        }
        if let Next::Login(form) = expected
            && let Some(masked) = form.mask(argument)
        {
            return masked;
        }
        if !self.is_joined_password(name)
            && let Some((form, at)) = Form::attached(argument)
            && let Some(masked) = form.mask(&argument[at..])
        {
            return format!("{}{masked}", &argument[..at]);
        }
        self.text(argument)
    }

    /// Text that consists of words: a shell script, a header, a URL.
    fn text(&mut self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next()
            && shown.len() < self.enough
        {
            if let Next::Login(form) = self.next
                && !rest.trim_start().is_empty()
            {
                self.next = Next::Plain;
                rest = push_login(&mut shown, form, rest).unwrap_or(rest);
            } else if self.next != Next::Plain {
                let value = Value::split(rest, self.next);
                shown.push_str(value.lead);
                if value.body.is_empty() && value.tail.is_empty() {
                    return shown;
                }
                self.next = Next::Plain;
                shown.push_str(if value.body.is_empty() { "" } else { MASK });
                rest = value.tail;
            } else if let Some(after) = rest.strip_prefix("://") {
                shown.push_str("://");
                rest = push_user_info(&mut shown, after);
            } else if let Some(after) = skip_private_key(rest) {
                shown.push_str(MASK);
                rest = after;
            } else {
                let name = leading_name(rest);
                if name.is_empty() {
                    shown.push(first);
                    rest = &rest[first.len_utf8()..];
                } else {
                    rest = self.name(&mut shown, name, rest);
                }
            }
        }
        shown
    }

    /// `-pVALUE`, or `-p` followed by a value.
    fn is_joined_password(&self, name: &str) -> bool {
        self.short_p_is_password && name.starts_with("-p")
    }

    /// Outputs the name at the beginning of the text and returns the rest.
    fn name<'t>(&mut self, shown: &mut String, name: &str, text: &'t str) -> &'t str {
        let after = &text[name.len()..];
        if self.is_joined_password(name) {
            shown.push_str("-p");
            if name.len() == 2 {
                self.next = Next::Secret;
                return after;
            }
            // `-pVALUE`: the value extends to the next delimiter, whatever characters it contains.
            shown.push_str(MASK);
            return &after[end_of_word(after)..];
        }
        if PASSWORD_BY_SHORT_P.contains(&name) {
            self.short_p_is_password = true;
        }
        if let Some(separator) = separator(after)
            && is_secret_name(name)
        {
            shown.push_str(name);
            shown.push_str(separator);
            self.next = if is_header_name(name) { Next::Header } else { Next::Secret };
            return &after[separator.len()..];
        }
        // Only at the beginning of a word, so that each is scanned once, however long a script is.
        if shown.chars().next_back().is_none_or(ends_word)
            && let Some((form, at)) = Form::attached(text)
        {
            let mut login = text[..at].to_owned();
            if let Some(tail) = push_login(&mut login, form, &text[at..]) {
                shown.push_str(&login);
                return tail;
            }
        }
        let ends_here = after.is_empty() || after.starts_with(char::is_whitespace);
        if ends_here && (is_secret_flag(name) || name.eq_ignore_ascii_case("bearer")) {
            self.next = Next::Secret;
        } else if ends_here && let Some(form) = Form::behind(name) {
            self.next = Next::Login(form);
        }
        shown.push_str(if is_token(name) { MASK } else { name });
        after
    }
}

/// Programs whose `-p` is followed by a password.
const PASSWORD_BY_SHORT_P: [&str; 5] = ["sshpass", "mysql", "mysqldump", "mysqladmin", "mariadb"];

/// A value within text: what precedes it, the value, and what follows.
struct Value<'t> {
    lead: &'t str,
    body: &'t str,
    tail: &'t str,
}

impl<'t> Value<'t> {
    fn split(text: &'t str, kind: Next) -> Value<'t> {
        let blank = text.len() - text.trim_start().len();
        let escaped = text[blank..].len() - text[blank..].trim_start_matches('\\').len();
        let quote = text[blank + escaped..].chars().next().filter(|c| is_quote(*c));
        let start = match quote {
            Some(_) => blank + escaped + 1,
            None => blank,
        };
        let (lead, from_value) = text.split_at(start);
        let end = match (kind, quote) {
            (Next::Header, _) => from_value.find(|c| is_quote(c) || c == '\n'),
            (_, Some(quote)) if escaped > 0 => from_value.find(['\\', quote]),
            (_, Some(quote)) => closing_quote(from_value, quote),
            (Next::Login(_), None) => Some(end_of_login(from_value)),
            (_, None) => Some(end_of_word(from_value)),
        };
        let (body, tail) = from_value.split_at(end.unwrap_or(from_value.len()));
        Value { lead, body, tail }
    }
}

/// The end of an unquoted shell word.
fn end_of_word(text: &str) -> usize {
    text.find(ends_word).unwrap_or(text.len())
}

fn ends_word(c: char) -> bool {
    c.is_whitespace() || is_quote(c) || matches!(c, ';' | '|' | '&' | '<' | '>' | ')')
}

/// The same, including a password in its own quotes: `me:'two words'`.
fn end_of_login(text: &str) -> usize {
    let end = end_of_word(text);
    let closing = |quote: char| {
        let password = end + quote.len_utf8();
        closing_quote(&text[password..], quote).map(|at| password + at + quote.len_utf8())
    };
    let quote = text[end..].chars().next().filter(|c| is_quote(*c) && text[..end].ends_with(':'));
    match quote.and_then(closing) {
        Some(after) => after + end_of_word(&text[after..]),
        None => end,
    }
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`')
}

fn closing_quote(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let closes = c == quote && !escaped;
        escaped = c == '\\' && !escaped && quote == '"';
        closes.then_some(at)
    })
}

/// `=` or `:` after a name, with the closing quote of the name and blanks before it.
fn separator(after: &str) -> Option<&str> {
    let unquoted = after.trim_start_matches(|c| is_quote(c) || c == '\\');
    let sign = unquoted.trim_start_matches([' ', '\t']);
    sign.starts_with(['=', ':']).then(|| &after[..after.len() - sign.len() + 1])
}

/// Outputs the login at the beginning of the text, if there is one, and returns the rest.
fn push_login<'t>(shown: &mut String, form: Form, text: &'t str) -> Option<&'t str> {
    let Value { lead, body, tail } = Value::split(text, Next::Login(form));
    let masked = form.mask(body)?;
    shown.push_str(lead);
    shown.push_str(&masked);
    Some(tail)
}

/// Outputs the masked `user:password@` of a URL and returns the rest.
fn push_user_info<'t>(shown: &mut String, after_scheme: &'t str) -> &'t str {
    let authority_end = after_scheme
        .find(|c: char| c.is_whitespace() || is_quote(c) || matches!(c, '/' | '?' | '#'))
        .unwrap_or(after_scheme.len());
    let Some(at) = after_scheme[..authority_end].rfind('@') else { return after_scheme };
    let user_info = &after_scheme[..at];
    shown.push_str(&if is_token(user_info) { MASK.to_owned() } else { mask_password(user_info) });
    &after_scheme[at..]
}

fn skip_private_key(text: &str) -> Option<&str> {
    let header = text.strip_prefix("-----BEGIN ")?;
    header.split_once('\n').map_or(header, |(line, _)| line).contains("PRIVATE KEY").then(|| {
        match header.find("-----END ") {
            Some(at) => header[at..].split_once("KEY-----").map_or("", |(_, after)| after),
            None => "",
        }
    })
}

fn leading_name(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '.'));
    &text[..end.unwrap_or(text.len())]
}

fn is_secret_flag(name: &str) -> bool {
    name.starts_with('-')
        && !name.starts_with("--no-")
        && !name.ends_with("-stdin")
        && is_secret_name(name)
}

fn is_header_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("authorization") || name.ends_with("cookie")
}

/// Whether a variable, flag, header or field of this name usually contains a secret.
fn is_secret_name(name: &str) -> bool {
    const ENDINGS: [&str; 15] = [
        "password",
        "passwords",
        "passwd",
        "passphrase",
        "passcode",
        "secret",
        "secrets",
        "token",
        "apikey",
        "accesskey",
        "secretkey",
        "privatekey",
        "credential",
        "credentials",
        "authorization",
    ];
    const WORDS: [&str; 7] = ["pass", "pwd", "pw", "auth", "bearer", "cookie", "pat"];
    let words = words(name);
    words.iter().any(|word| {
        ENDINGS.iter().any(|ending| word.ends_with(ending)) || WORDS.contains(&word.as_str())
    }) || (words.len() > 1 && words.last().is_some_and(|word| word == "key"))
}

/// `--apiKey`, `API_KEY` and `X-Api-Key` consist of the words `api` and `key`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut previous = '_';
    for c in name.chars() {
        let new_word =
            !c.is_ascii_alphanumeric() || (c.is_ascii_uppercase() && previous.is_ascii_lowercase());
        if new_word && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if c.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(c.to_ascii_lowercase());
        }
        previous = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether the word itself is a secret, whatever precedes it.
fn is_token(word: &str) -> bool {
    const MIN_TOKEN_LEN: usize = 16;
    word.len() >= MIN_TOKEN_LEN && (has_issuer_prefix(word) || is_random(word))
}

fn has_issuer_prefix(word: &str) -> bool {
    /// Prefix and minimum length of the whole token.
    const ISSUERS: [(&str, usize); 24] = [
        ("ghp_", 20),
        ("gho_", 20),
        ("ghu_", 20),
        ("ghs_", 20),
        ("ghr_", 20),
        ("github_pat_", 24),
        ("glpat-", 20),
        ("gldt-", 20),
        ("xoxb-", 16),
        ("xoxp-", 16),
        ("xoxa-", 16),
        ("xoxs-", 16),
        ("xapp-", 16),
        ("sk-", 20),
        ("sk_live_", 16),
        ("sk_test_", 16),
        ("rk_live_", 16),
        ("AIza", 35),
        ("ya29.", 20),
        ("npm_", 30),
        ("pypi-", 30),
        ("hf_", 30),
        ("dop_v1_", 30),
        ("SG.", 40),
    ];
    let aws = |id: &str| {
        id.len() == 16 && id.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
    };
    ISSUERS.iter().any(|(prefix, least)| word.starts_with(prefix) && word.len() >= *least)
        || ["AKIA", "ASIA"].iter().any(|prefix| word.strip_prefix(prefix).is_some_and(aws))
        || (word.starts_with("eyJ") && word.split('.').count() == 3)
}

/// Long, with capitals, small letters and digits, and frequent changes between them: random text in base 62 or 64
/// changes at about every second character, composed words and numbers do not. Plain hex is not masked: it is mostly
/// commit ids and checksums.
fn is_random(word: &str) -> bool {
    const MIN_RANDOM_LEN: usize = 24;
    let class = |b: u8| match b {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        _ => 3,
    };
    let mut seen = [0_usize; 4];
    for byte in word.bytes() {
        seen[class(byte)] += 1;
    }
    let changes =
        word.as_bytes().windows(2).filter(|pair| class(pair[0]) != class(pair[1])).count();
    word.len() >= MIN_RANDOM_LEN
        && seen[..3].iter().all(|count| *count >= 2)
        && changes * 5 >= word.len() * 2
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
