//! What each key does, on one screen of 24 lines.

const KEYS: [(&str, &str); 19] = [
    ("y", "allow once: for the calls that wait now"),
    ("s", "allow until the session ends"),
    ("a", "allow always: a rule in your policy; needs Enter"),
    ("d, D, e", "allow the directory: for the session, always (Enter); e: with programs"),
    ("c", "keep a private copy: changes are discarded when the run ends"),
    ("n", "deny until the session ends"),
    ("x", "deny always: a rule in your policy; needs Enter"),
    ("a secret", "type yes, session, no or never, then Enter"),
    ("=", "answer all like this: same directory, program or host"),
    ("", ""),
    ("j, k, arrows", "move"),
    ("g, G", "first, last question"),
    ("space, PgUp", "scroll the details"),
    ("/", "search: only what contains the text; Esc shows everything"),
    ("", ""),
    ("w, W", "save the answers as your rules, as the project's; needs Enter"),
    ("q, Ctrl-C", "quit; questions stay open"),
    ("", ""),
    ("", "A question that nobody answers is denied when its time is up."),
];

pub(crate) fn lines(height: usize) -> Vec<String> {
    let keys = KEYS.iter().map(|(key, text)| format!(" {key:<13} {text}").trim_end().to_owned());
    let mut lines: Vec<String> =
        [" sandbox approve: keys".to_owned(), String::new()].into_iter().chain(keys).collect();
    lines.truncate(height.saturating_sub(1));
    lines.push(" any key: back".to_owned());
    lines
}
