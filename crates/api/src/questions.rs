//! Questions of one sandbox, and answers to them, by the queue that `sandbox approve` answers, too (TOOL-2). What a question says may
//! have been written by the program that asks; an answer is only for the question that was looked at.

use crate::connection::Connection;
use crate::core::Core;
use crate::error::{Error, ErrorKind, Result};
use palisade_ask::answering::Taken;
use palisade_ask::client::ClientError;
use palisade_ask::sessions::Sessions;
use palisade_ask::{self as ask, QuestionId};
use palisade_session::supervise::client::WireError;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fmt;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What answers are recorded with.
const NAME: &str = "Rust API";
/// A sandbox has no socket for answers before its first question, and its event may come before the socket is there.
const LOOK: Duration = Duration::from_millis(100);
/// How long a sandbox may take to accept an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a program in the sandbox asks for. Names in it were chosen by that program: escape them where you show them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Question {
    /// Counted from 1 in each sandbox.
    pub number: u64,
    /// What it is about.
    pub subject: Subject,
    /// Why it has to be asked.
    pub reason: String,
    /// Whether it is about a key, a password store or the like. A yes has to say so ([`Answer::secret`]): never give it by rote.
    pub is_secret: bool,
    /// The first program that waits, as it calls itself.
    pub executable: Option<String>,
}

/// What a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// A file or a directory.
    #[non_exhaustive]
    Path {
        /// What it is about, on the host.
        path: PathBuf,
        /// Where a rename leads.
        new_path: Option<PathBuf>,
        /// Further paths that are granted with a yes.
        also: Vec<PathBuf>,
        /// For what.
        access: Access,
        /// Whether it is a directory: a yes for longer than once includes everything in it.
        is_directory: bool,
        /// The directory that can be allowed instead ([`Scope::Directory`]).
        offered: Option<PathBuf>,
    },
    /// A connection.
    #[non_exhaustive]
    Host {
        /// A name, or an address as text.
        host: String,
        /// The port.
        port: u16,
    },
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { path, access, .. } => write!(f, "{access} {}", path.display()),
            Self::Host { host, port } => write!(f, "connect to {host} port {port}"),
        }
    }
}

/// What is done with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// It is read, or looked at.
    Read,
    /// It is run, which includes reading.
    Execute,
    /// It is written, created, renamed or removed.
    Write,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Execute => "execute",
            Self::Write => "write",
        })
    }
}

/// How long an answer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lifetime {
    /// For the calls that wait now.
    Once,
    /// Until the sandbox ends.
    Session,
    /// Permanently, in a policy file.
    Always(Store),
}

/// Where a permanent answer is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Store {
    /// For this user.
    #[default]
    User,
    /// For the project.
    Project,
    /// For the organisation.
    Organisation,
}

/// What a yes is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// What was asked for.
    #[default]
    AsAsked,
    /// The directory that the question offers, with everything below it.
    Directory,
    /// The same, and its programs may run.
    DirectoryToRun,
    /// A private copy, which is discarded at the end.
    PrivateCopy,
}

/// An answer to a question.
///
/// ```
/// use palisade::{Answer, Lifetime, Scope};
///
/// let whole = Answer::yes().scope(Scope::Directory);
/// let never = Answer::no().lifetime(Lifetime::Once);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it is given by `Questions::answer`"]
pub struct Answer {
    is_yes: bool,
    scope: Scope,
    lifetime: Option<Lifetime>,
    is_for_secret: bool,
}

impl Answer {
    /// Allowed: once, or a directory until the sandbox ends.
    pub fn yes() -> Self {
        let (scope, lifetime) = (Scope::AsAsked, None);
        Self { is_yes: true, scope, lifetime, is_for_secret: false }
    }

    /// Denied, until the sandbox ends.
    pub fn no() -> Self {
        Self { is_yes: false, ..Self::yes() }
    }

    /// What a yes is about.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// How long it counts.
    pub fn lifetime(mut self, lifetime: Lifetime) -> Self {
        self.lifetime = Some(lifetime);
        self
    }

    /// Also if it is about a secret.
    pub fn secret(mut self) -> Self {
        self.is_for_secret = true;
        self
    }

    fn meant(self) -> ask::Answer {
        let lifetime = self.lifetime.map(|lifetime| match lifetime {
            Lifetime::Once => ask::Lifetime::Once,
            Lifetime::Session => ask::Lifetime::Session,
            Lifetime::Always(Store::User) => ask::Lifetime::Always(ask::Store::User),
            Lifetime::Always(Store::Project) => ask::Lifetime::Always(ask::Store::Project),
            Lifetime::Always(Store::Organisation) => {
                ask::Lifetime::Always(ask::Store::Organisation)
            }
        });
        if !self.is_yes {
            return ask::Answer::Deny { lifetime: lifetime.unwrap_or(ask::Lifetime::Session) };
        }
        let (scope, usual) = match self.scope {
            Scope::AsAsked => (ask::Scope::File, ask::Lifetime::Once),
            Scope::Directory => (ask::Scope::Directory, ask::Lifetime::Session),
            Scope::DirectoryToRun => (ask::Scope::DirectoryToRun, ask::Lifetime::Session),
            Scope::PrivateCopy => (ask::Scope::PrivateCopy, ask::Lifetime::Session),
        };
        ask::Answer::Allow { scope, lifetime: lifetime.unwrap_or(usual) }
    }
}

/// The questions of one sandbox, from [`crate::Sandbox::questions`]: an iterator that waits for each, and ends with the sandbox. Read
/// it in a thread beside that of the commands, which wait for the answers.
///
/// ```no_run
/// use palisade::{Answer, Ask, Sandbox};
///
/// let sandbox = Sandbox::create().ask(Ask::Always).start()?;
/// let mut questions = sandbox.questions()?;
/// std::thread::spawn(move || {
///     while let Some(Ok(question)) = questions.next() {
///         let answer = if question.is_secret { Answer::no() } else { Answer::yes() };
///         // Somebody else may have been first.
///         let _ = questions.answer(&question, answer);
///     }
/// });
/// sandbox.command("cat /somewhere/else").run()?;
/// # Ok::<(), palisade::Error>(())
/// ```
#[derive(Debug)]
pub struct Questions {
    core: Arc<Core>,
    sessions: Sessions,
    /// Its events say when to look. None: the sandbox has ended.
    events: Option<Connection>,
    seen: BTreeSet<QuestionId>,
}

impl Questions {
    pub(crate) fn open(core: Arc<Core>) -> Result<Self> {
        let events = Some(Connection::open(&core.directory)?);
        let sessions = Sessions::of_one(&core.places.runtime, NAME, core.directory.id());
        Ok(Self { core, sessions, events, seen: BTreeSet::new() })
    }

    /// Those that wait for an answer now, oldest first.
    pub fn open_now(&mut self) -> Result<Vec<Question>> {
        self.sessions.refresh_fully(PATIENCE).map_err(|error| failed(&error))?;
        Ok(self.known().map(Question::from).collect())
    }

    /// Waits for the next one that this has not given yet. None at the end of the sandbox.
    pub fn next_question(&mut self) -> Result<Option<Question>> {
        loop {
            if let Some(question) = self.look()? {
                return Ok(Some(question));
            }
            if self.events.is_none() {
                return Ok(None);
            }
            self.wait(LOOK)?;
        }
    }

    /// The same for at most this time. None if there was none.
    pub fn next_within(&mut self, time: Duration) -> Result<Option<Question>> {
        let deadline = Instant::now() + time;
        loop {
            let question = self.look()?;
            let left = deadline.saturating_duration_since(Instant::now());
            if question.is_some() || self.events.is_none() || left.is_zero() {
                return Ok(question);
            }
            self.wait(left.min(LOOK))?;
        }
    }

    /// Answers a question. The first answer counts, wherever it is given; [`Error::Conflict`] if it was not this one.
    pub fn answer(&mut self, question: &Question, answer: Answer) -> Result<()> {
        if answer.is_yes && question.is_secret && !answer.is_for_secret {
            let message = "the question is about a secret; a yes has to say so (`Answer::secret`)";
            return Err(Error::failed(ErrorKind::Security, message));
        }
        let id = QuestionId(question.number);
        let asked = self.known().find(|known| known.id == id).map(Question::from);
        // The same number with another subject would be another question.
        if asked.is_none_or(|asked| asked.subject != question.subject) {
            let message = format!("question {id} is no longer open");
            return Err(Error::Conflict { message });
        }
        let meant = (self.core.directory.id(), id);
        let taken = self.sessions.answer_and_wait(meant, answer.meant(), PATIENCE, &mut |_| {});
        match taken.map_err(|error| failed(&error))? {
            Taken::Yes => Ok(()),
            Taken::No(message) => Err(Error::Conflict { message }),
            Taken::Unknown => Err(Error::timed_out(
                "the sandbox does not answer; the answer may not have arrived",
            )),
        }
    }

    fn known(&self) -> impl Iterator<Item = &ask::Question> {
        self.sessions.iter().flat_map(|(_, session)| session.open())
    }

    /// The first one that was not given yet.
    fn look(&mut self) -> Result<Option<Question>> {
        self.sessions.refresh().map_err(|error| failed(&error))?;
        let new = self.known().find(|known| !self.seen.contains(&known.id));
        let found = new.map(|new| (new.id, Question::from(new)));
        Ok(found.map(|(id, question)| {
            self.seen.insert(id);
            question
        }))
    }

    /// Until something happens in the sandbox, at most this long.
    fn wait(&mut self, longest: Duration) -> Result<()> {
        let Some(connection) = &mut self.events else { return Ok(()) };
        let own = connection.client.as_fd();
        let mut watched: Vec<PollFd<'_>> = std::iter::once(own)
            .chain(self.sessions.descriptors())
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
            .collect();
        let longest = Timespec::try_from(longest).ok();
        match rustix::event::poll(&mut watched, longest.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::internal(format!("poll: {errno}"))),
        }
        // Which event it was does not matter: each is a reason to look.
        loop {
            match connection.client.try_next() {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(WireError::Closed) => {
                    self.events = None;
                    return Ok(());
                }
                Err(error) => return Err(connection.failed(&error)),
            }
        }
    }
}

impl Iterator for Questions {
    type Item = Result<Question>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_question().transpose()
    }
}

impl From<&ask::Question> for Question {
    fn from(question: &ask::Question) -> Self {
        let subject = match &question.subject {
            ask::Subject::File(file) => Subject::Path {
                path: file.named().to_owned(),
                new_path: file.new_path.clone(),
                also: file.also.clone(),
                access: match file.access {
                    ask::Access::Read => Access::Read,
                    ask::Access::Execute => Access::Execute,
                    ask::Access::Write => Access::Write,
                },
                is_directory: file.is_directory,
                offered: question.offered().cloned(),
            },
            ask::Subject::Host(host) => Subject::Host { host: host.host.clone(), port: host.port },
        };
        Self {
            number: question.id.0,
            subject,
            reason: question.reason.clone(),
            is_secret: question.is_secret,
            executable: question.processes.first().map(|process| process.executable.clone()),
        }
    }
}

fn failed(error: &ClientError) -> Error {
    match error {
        ClientError::Gone => Error::failed(ErrorKind::Cancelled, error.to_string()),
        ClientError::Silent => Error::timed_out(error.to_string()),
        ClientError::Stranger { .. } | ClientError::Directory { .. } => {
            Error::failed(ErrorKind::Security, error.to_string())
        }
        other => Error::internal(other.to_string()),
    }
}
