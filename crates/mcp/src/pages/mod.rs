//! Pages that ask a person what must not pass through the client (elicitation in url mode). A page is at an address that nobody can guess, and
//! belongs to one question. Its answer goes to the same queue as every other one, counts once, and the address leads nowhere when the question
//! is not open any more.
//!
//! The address is not a proof of who opens it: the server of the pages answers the user of this process only (`service/loopback.rs`), and there are no
//! pages for a sandbox with the host's network.

mod document;
mod requests;

use crate::questions::Question;
use palisade_service::{ApprovalAnswer, LoopbackServer, random};
use rmcp::model::ElicitRequestParams;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// Bytes of what makes an address unguessable.
const SECRET_BYTES: usize = 32;
/// Of what tells questions apart for a client. It is no secret.
const ELICITATION_ID_BYTES: usize = 16;
const MAX_PAGES: usize = 256;
const PATH: &str = "/question/";

/// What the pages need of the server that they belong to.
pub(crate) trait PageHost: Send + Sync + 'static {
    fn pages(&self) -> &QuestionPages;
    /// Whether an answer to this question of the sandbox still counts.
    fn is_open(&self, question: u64) -> bool;
    /// Whether commands of the sandbox have no way to the pages.
    fn has_own_network(&self) -> bool;
    /// Answers a question of the sandbox, or says why not.
    fn answer(
        &self,
        question: u64,
        answer: &ApprovalAnswer,
    ) -> impl Future<Output = Result<(), String>> + Send;
}

/// What a page asks.
#[derive(Debug)]
enum Subject {
    /// About something that a command waits for.
    Question(Question),
    /// Whether something may be done. Dropped, it is a no.
    Confirmation { message: String, answer: oneshot::Sender<bool> },
}

#[derive(Debug)]
struct Page {
    subject: Subject,
    /// Its path, to offer the same page again.
    secret: String,
    elicitation_id: String,
}

/// A page, as a client is asked to open it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OfferedPage {
    pub(crate) request: ElicitRequestParams,
    /// The `elicitationId`.
    pub(crate) elicitation_id: String,
}

/// The pages of one server. They are served from the first one on.
#[derive(Debug)]
pub(crate) struct QuestionPages {
    /// Whether clients are at this machine, where the addresses lead here.
    pub(crate) are_reachable: bool,
    /// By the hash of the secret: how long a look-up takes says nothing about a secret.
    pages: Mutex<HashMap<[u8; 32], Page>>,
    server: Mutex<Option<LoopbackServer>>,
}

fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

impl QuestionPages {
    pub(crate) fn new(are_reachable: bool) -> Self {
        Self { are_reachable, pages: Mutex::default(), server: Mutex::default() }
    }

    /// The page for a question of the sandbox: one, however often it is asked for. None: there can be no page.
    pub(crate) fn offer_question(
        &self,
        host: &Arc<impl PageHost>,
        question: &Question,
    ) -> Option<OfferedPage> {
        let origin = self.origin(host)?;
        self.offer(&origin, Subject::Question(question.clone()), &|id| host.is_open(id))
    }

    /// A page that asks whether something may be done.
    pub(crate) fn offer_confirmation(
        &self,
        host: &Arc<impl PageHost>,
        message: &str,
        answer: oneshot::Sender<bool>,
    ) -> Option<OfferedPage> {
        let origin = self.origin(host)?;
        let subject = Subject::Confirmation { message: message.to_owned(), answer };
        self.offer(&origin, subject, &|id| host.is_open(id))
    }

    /// Takes a page back, such as one that the person did not want to open.
    pub(crate) fn withdraw(&self, elicitation_id: &str) {
        self.with(|pages| pages.retain(|_, page| page.elicitation_id != elicitation_id));
    }

    /// Withdraws a page when it is dropped: nobody asks for it any more.
    pub(crate) fn withdraw_later<'a>(&'a self, elicitation_id: &'a str) -> impl Drop + 'a {
        Withdrawal { pages: self, elicitation_id }
    }

    /// Puts a page back whose answer was not taken, if it is still asked and has no other page meanwhile.
    fn restore(&self, page: Page, is_open: &dyn Fn(u64) -> bool) {
        self.with(|pages| {
            let is_asked_again = match &page.subject {
                Subject::Question(question) => {
                    pages.values().any(|other| other.subject.is_question(question.id))
                }
                Subject::Confirmation { .. } => false,
            };
            if page.subject.is_open(is_open) && !is_asked_again {
                pages.insert(digest(&page.secret), page);
            }
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<[u8; 32], Page>) -> T) -> T {
        work(&mut self.pages.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Where the pages are served, which begins here. None: not for a sandbox whose commands would reach them.
    fn origin(&self, host: &Arc<impl PageHost>) -> Option<String> {
        if !host.has_own_network() {
            return None;
        }
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if server.is_none() {
            *server = LoopbackServer::start(requests::router(Arc::downgrade(host))).ok();
        }
        server.as_ref().map(LoopbackServer::origin)
    }

    fn offer(
        &self,
        origin: &str,
        subject: Subject,
        is_open: &dyn Fn(u64) -> bool,
    ) -> Option<OfferedPage> {
        self.with(|pages| {
            pages.retain(|_, page| page.subject.is_open(is_open));
            if let Subject::Question(asked) = &subject
                && let Some(page) = pages.values().find(|page| page.subject.is_question(asked.id))
            {
                return Some(page.offered(origin));
            }
            if pages.len() >= MAX_PAGES {
                return None;
            }
            let secret = random::hex(SECRET_BYTES).ok()?;
            let page =
                Page { subject, elicitation_id: random::hex(ELICITATION_ID_BYTES).ok()?, secret };
            let offered = page.offered(origin);
            pages.insert(digest(&page.secret), page);
            Some(offered)
        })
    }
}

struct Withdrawal<'a> {
    pages: &'a QuestionPages,
    elicitation_id: &'a str,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        self.pages.withdraw(self.elicitation_id);
    }
}

impl Page {
    fn offered(&self, origin: &str) -> OfferedPage {
        let request = ElicitRequestParams::UrlElicitationParams {
            meta: None,
            message: self.subject.message().to_owned(),
            url: format!("{origin}{PATH}{}", self.secret),
            elicitation_id: self.elicitation_id.clone(),
        };
        OfferedPage { request, elicitation_id: self.elicitation_id.clone() }
    }
}

impl Subject {
    fn message(&self) -> &str {
        match self {
            Self::Question(question) => &question.message,
            Self::Confirmation { message, .. } => message,
        }
    }

    fn is_question(&self, id: u64) -> bool {
        matches!(self, Self::Question(question) if question.id == id)
    }

    /// Whether somebody waits for the answer.
    fn is_open(&self, is_open: &dyn Fn(u64) -> bool) -> bool {
        match self {
            Self::Question(question) => is_open(question.id),
            Self::Confirmation { answer, .. } => !answer.is_closed(),
        }
    }
}

#[cfg(test)]
#[path = "pages_tests.rs"]
mod tests;
