//! Desktop notifications, through `notify-send` where there is one.
//!
//! The text is somebody else's: it is escaped, cut, can be no option and no markup, and a flood of
//! questions makes no flood of notifications.

use palisade_ask::{Question, Subject};
use palisade_record::escape;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = "notify-send";
const APART: Duration = Duration::from_secs(3);
const MAX_TEXT_LEN: usize = 200;

#[derive(Debug)]
pub(crate) struct Notices {
    program: PathBuf,
    /// There is no such program.
    is_useless: bool,
    last: Option<Instant>,
    running: Option<Child>,
    /// Questions that nobody was told of yet.
    untold: usize,
}

impl Notices {
    pub(crate) fn new() -> Self {
        Self::through(PathBuf::from(PROGRAM))
    }

    fn through(program: PathBuf) -> Self {
        Self { program, is_useless: false, last: None, running: None, untold: 0 }
    }

    pub(crate) fn arrived(&mut self) {
        self.untold += 1;
    }

    /// Tells of what arrived, but not too often. `newest` is the one to name.
    pub(crate) fn tell(&mut self, newest: Option<&Question>, now: Instant) {
        self.reap();
        let is_too_soon = self.last.is_some_and(|last| now.duration_since(last) < APART);
        if self.untold == 0 || self.is_useless || self.running.is_some() || is_too_soon {
            return;
        }
        let untold = std::mem::take(&mut self.untold);
        // It was answered before it could be told.
        let Some(question) = newest else { return };
        self.last = Some(now);
        let spawned = Command::new(&self.program)
            .args(arguments(question, untold))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match spawned {
            Ok(child) => self.running = Some(child),
            Err(_) => self.is_useless = true,
        }
    }

    fn reap(&mut self) {
        if let Some(child) = &mut self.running
            && !matches!(child.try_wait(), Ok(None))
        {
            self.running = None;
        }
    }
}

fn arguments(question: &Question, untold: usize) -> Vec<OsString> {
    let (verb, what) = match &question.subject {
        Subject::File(file) => {
            (file.access.to_string(), escape::bytes(file.path.as_os_str().as_bytes()))
        }
        Subject::Host(host) => {
            ("connect to".to_owned(), escape::text(&host.to_string()).into_owned())
        }
    };
    let what = cut(&what);
    let who = question.processes.first().map_or("a program", |process| &process.executable);
    let who = cut(&escape::text(who));
    let secret = if question.is_secret { "SECRET: " } else { "" };
    let more = if untold > 1 { format!(" (and {} more)", untold - 1) } else { String::new() };
    let body = format!("{secret}{} wants to {verb} {}{more}", markup(&who), markup(&what));
    let urgency = if question.is_secret { "critical" } else { "normal" };
    ["--app-name=sandbox", "--urgency", urgency, "--", "The sandbox asks", &body]
        .into_iter()
        .map(OsString::from)
        .collect()
}

fn cut(text: &str) -> String {
    super::text::end(text, MAX_TEXT_LEN)
}

/// Servers read the body as markup (Desktop Notifications Specification, "Markup").
fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::{APART, Notices, arguments};
    use crate::commands::approve::test_support::question;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::time::{Duration, Instant};

    #[test]
    fn the_text_is_no_option_no_markup_and_no_control() {
        let mut asked = question(1, "/opt/<a href='http://evil'>&\u{1b}]52;c;x\u{7}\u{202e}");
        asked.processes[0].executable = "--action=x".to_owned();
        let arguments = arguments(&asked, 3);
        let end_of_options = arguments.iter().position(|word| word == "--").unwrap();
        assert_eq!(arguments.len(), end_of_options + 3, "a title and a body, and nothing else");
        let body = arguments.last().unwrap().to_str().unwrap();
        assert_eq!(
            body,
            "--action=x wants to read /opt/&lt;a href='http://evil'&gt;&amp;\\x1b]52;c;x\\x07\\u{202e} \
             (and 2 more)"
        );
        asked.subject.file_mut().unwrap().path = PathBuf::from("x".repeat(100_000));
        let longest = super::arguments(&asked, 1).last().unwrap().len();
        assert!(longest < 500, "{longest}");
    }

    #[test]
    fn a_secret_is_urgent() {
        let mut asked = question(1, "/home/eve/.ssh/id");
        asked.is_secret = true;
        let arguments = arguments(&asked, 1);
        assert!(arguments.iter().any(|word| word == "critical"));
        assert!(arguments.last().unwrap().to_str().unwrap().starts_with("SECRET: "));
    }

    /// It may have ended, and have been noticed to.
    fn finish(notices: &mut Notices) {
        if let Some(child) = &mut notices.running {
            child.wait().unwrap();
        }
    }

    #[test]
    fn a_flood_of_questions_is_one_notification() {
        let directory = tempfile::tempdir().unwrap();
        let (program, told) = (directory.path().join("notify"), directory.path().join("told"));
        let script =
            format!("#!/bin/sh\nfor last; do :; done\necho \"$last\" >> {}\n", told.display());
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        let mut notices = Notices::through(program);
        let asked = question(1, "/opt/sdk/a");
        let start = Instant::now();
        notices.tell(Some(&asked), start);
        assert!(notices.running.is_none(), "nothing arrived");
        for _ in 0..100 {
            notices.arrived();
            notices.tell(Some(&asked), start);
        }
        finish(&mut notices);
        notices.tell(Some(&asked), start + APART - Duration::from_millis(1));
        assert!(notices.running.is_none());
        notices.tell(Some(&asked), start + APART);
        finish(&mut notices);
        let told = fs::read_to_string(told).unwrap();
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines.len(), 2, "{told}");
        assert!(lines[1].ends_with("(and 98 more)"), "{told}");
    }

    #[test]
    fn without_the_program_nothing_is_told() {
        let mut notices = Notices::through(PathBuf::from("/nonexistent/notify-send"));
        notices.arrived();
        notices.tell(Some(&question(1, "/opt/sdk/a")), Instant::now());
        assert!(notices.is_useless);
    }
}
