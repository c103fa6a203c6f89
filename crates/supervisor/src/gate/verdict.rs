//! What was decided about a touch, by whom: in the words of the log and the report, and as a rule.

use super::inquiry::{Found, Inquiry};
use crate::asking::who;
use palisade_ask::{Act, Decided, Lifetime, Scope, Source, Subject};
use palisade_gate::{Access, Effect, Origin, Pattern, Rule, Store};
use palisade_keeper::FileKind;
use palisade_record::{AccessDecided, Decision, TouchedPath};
use std::borrow::Cow;
use std::path::Path;
use std::time::Instant;

/// Where the rule of an answer can be read that is not saved.
pub(super) const ANSWERED_HERE: &str = "answered in this session";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Where it can be read.
    Rule(String),
    /// The caller was allowed once to create it.
    MadeByCaller,
    OnAsk,
    NobodyToAsk,
    /// Static mode asks nobody.
    StaticMode,
    TooManyQuestions,
    /// Devices, sockets and pipes cannot be granted.
    NotAFile,
    /// It was granted, but not for writing.
    ReadingOnly,
    /// A secret is never written.
    SecretUnwritten,
    /// The host would run it later, by this name (FS-9).
    Protected(String),
    /// The host itself would not let it be written.
    HostRefuses,
    /// It would change a directory that is never granted as a whole.
    NotWhole,
    Answer {
        source: Source,
        question: u64,
    },
}

impl Reason {
    fn word(&self) -> &'static str {
        match self {
            Self::Rule(_) => "rule",
            Self::MadeByCaller => "made-once",
            Self::OnAsk => "on-ask",
            Self::NobodyToAsk => "nobody-to-ask",
            Self::StaticMode => "static-mode",
            Self::TooManyQuestions => "too-many-questions",
            Self::NotAFile => "not-a-file",
            Self::ReadingOnly => "granted-for-reading",
            Self::SecretUnwritten => "secret",
            Self::Protected(_) => "protected-name",
            Self::HostRefuses => "host",
            Self::NotWhole => "directory",
            Self::Answer { source, .. } => source.word(),
        }
    }

    fn details(&self) -> Option<String> {
        match self {
            Self::Rule(place) => Some(place.clone()),
            Self::Protected(name) => Some(name.clone()),
            Self::Answer { source: Source::Socket { uid, pid, name }, .. } => {
                Some(format!("{name} (uid {uid}, pid {pid})"))
            }
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) is_allowed: bool,
    scope: Scope,
    lifetime: Lifetime,
    reason: Reason,
}

impl Verdict {
    pub(super) fn allowed(reason: Reason) -> Self {
        Self { is_allowed: true, scope: Scope::File, lifetime: Lifetime::Session, reason }
    }

    pub(super) fn denied(reason: Reason) -> Self {
        Self { is_allowed: false, scope: Scope::File, lifetime: Lifetime::Once, reason }
    }

    pub(super) fn answered(decided: &Decided) -> Self {
        let source = decided.source.clone();
        let reason = Reason::Answer { source, question: decided.question.id.0 };
        Self {
            is_allowed: decided.answer.is_allowed(),
            scope: decided.answer.scope().unwrap_or(Scope::File),
            lifetime: decided.answer.lifetime(),
            reason,
        }
    }

    /// Whether somebody chose it, here and now.
    pub(super) fn by_person(&self) -> bool {
        matches!(
            &self.reason,
            Reason::Answer { source: Source::Terminal | Source::Socket { .. }, .. }
        )
    }

    /// Whether a person or a rule decided about this very access, and not just that it cannot be decided now.
    pub(super) fn is_meant(&self) -> bool {
        self.by_person() || matches!(self.reason, Reason::Rule(_))
    }

    /// What was decided about: a name in the directory that was found, unless the directory was allowed.
    fn decided_path<'f>(&self, found: &'f Found, inquiry: &Inquiry) -> Cow<'f, Path> {
        let is_for_directory = self.is_allowed && self.lifetime != Lifetime::Once;
        // Where nobody decides about single names, the directory says it for all of them.
        let is_about_name = matches!(self.reason, Reason::Answer { .. } | Reason::Rule(_));
        match inquiry.entry().filter(|_| is_about_name && !is_for_directory) {
            Some(entry) => Cow::Owned(entry),
            None => Cow::Borrowed(&found.path),
        }
    }

    pub(super) fn event(&self, found: &Found, inquiry: &Inquiry, now: Instant) -> AccessDecided {
        let first = inquiry.requests.first();
        let latency = now.saturating_duration_since(inquiry.since);
        AccessDecided {
            path: text(self.decided_path(found, inquiry).as_os_str().as_encoded_bytes()),
            access: inquiry.access().to_string(),
            decision: if self.is_allowed { Decision::Allowed } else { Decision::Denied },
            scope: match self.scope {
                Scope::File => "file".to_owned(),
                Scope::Directory => "directory".to_owned(),
                Scope::DirectoryToRun => "directory, to run".to_owned(),
                Scope::PrivateCopy => "private copy".to_owned(),
            },
            lifetime: match self.lifetime {
                Lifetime::Once => "once".to_owned(),
                Lifetime::Session => "session".to_owned(),
                Lifetime::Always(store) => format!("always, {store}"),
            },
            source: self.reason.word().to_owned(),
            rule: self.reason.details(),
            op: first.map(|request| request.call.clone()).unwrap_or_default(),
            pids: inquiry.requests.iter().map(|request| request.pid).collect(),
            executable: first.map(|request| text(&request.executable)).unwrap_or_default(),
            question: match &self.reason {
                Reason::Answer { question, .. } => Some(*question),
                _ => None,
            },
            latency_us: u64::try_from(latency.as_micros()).unwrap_or(u64::MAX),
        }
    }

    pub(super) fn touched(&self, found: &Found, inquiry: &Inquiry, is_secret: bool) -> TouchedPath {
        let last = inquiry.requests.last();
        let is_written = inquiry.requests.iter().any(|request| request.wants.is_change());
        let is_refused_write = is_written && !self.is_allowed;
        let path = self.decided_path(found, inquiry);
        // A name is created, renamed and removed in its directory.
        let is_of_directory = *path != *found.path || inquiry.needs_parent();
        let directory = path.parent().filter(|_| is_refused_write && is_of_directory);
        TouchedPath {
            path: text(path.as_os_str().as_encoded_bytes()),
            directory: directory.map(|path| text(path.as_os_str().as_encoded_bytes())),
            access: if is_refused_write {
                "write".to_owned()
            } else {
                inquiry.access().to_string()
            },
            is_directory: found.kind == FileKind::Directory && *path == *found.path,
            is_secret,
            by: match self.reason.details() {
                Some(details) => format!("{}: {details}", self.reason.word()),
                None => self.reason.word().to_owned(),
            },
            executable: last.map(|request| text(&request.executable)).unwrap_or_default(),
            count: inquiry.requests.len() as u64,
        }
    }
}

/// An answer that outlasts its call, as rules: for what was asked about and for what it needs. Of a wide
/// directory nothing is said but that it is there.
pub(super) fn rule_of(decided: &Decided, directory: Option<&Path>, is_wide: bool) -> Vec<Rule> {
    let Subject::File(file) = &decided.question.subject else { return Vec::new() };
    let effect = if decided.answer.is_allowed() { Effect::Allow } else { Effect::Deny };
    let asked = asked_access(file.access);
    let rule = |pattern, access| Rule {
        effect,
        pattern,
        access,
        store: Store::Session,
        until: None,
        origin: Origin {
            by: Some(who(&decided.source)),
            at: Some(decided.at),
            place: ANSWERED_HERE.to_owned(),
        },
    };
    let mut rules = Vec::new();
    match directory {
        // A no is about what would be created or renamed, not about everything else in that directory.
        _ if effect == Effect::Deny && file.entry.is_some() => {
            rules.push(rule(Pattern::Exact(file.named().to_owned()), asked));
        }
        Some(directory) => {
            rules.push(rule(Pattern::Tree(directory.to_owned()), granted_access(decided)));
        }
        // Of a directory only its own mode, owner or times were asked about.
        None if file.is_directory && !is_wide && file.act != Act::Change => {
            rules.push(rule(Pattern::Tree(file.path.clone()), asked));
        }
        None => rules.push(rule(Pattern::Exact(file.path.clone()), asked)),
    }
    if decided.answer.is_allowed() {
        let needs =
            file.also.iter().map(|path| rule(Pattern::Exact(path.clone()), Access::Execute));
        rules.extend(needs);
    }
    rules
}

/// What a yes grants: of a directory no more than was asked for, unless it says so.
pub(super) fn granted_access(decided: &Decided) -> Access {
    match &decided.question.subject {
        _ if decided.answer.scope() == Some(Scope::DirectoryToRun) => Access::Execute,
        Subject::File(file) => asked_access(file.access),
        Subject::Host(_) => Access::Read,
    }
}

pub(super) fn asked_access(access: palisade_ask::Access) -> Access {
    match access {
        palisade_ask::Access::Read => Access::Read,
        palisade_ask::Access::Execute => Access::Execute,
        palisade_ask::Access::Write => Access::Write,
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
