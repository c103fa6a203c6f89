//! The queue of open questions: any source adds a question, and the first answer decides.
//!
//! It only keeps state, and it is bounded. A question that does not fit has to wait or is denied by its source; one that
//! is not answered in time is denied.

use crate::answer::{Answer, AnswerError, Lifetime, Scope, Source};
use crate::question::{Access, FileSubject, NewQuestion, Now, Question, QuestionId, Subject};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Instant;

/// Waiting calls, for all questions together.
pub const MAX_WAITING: usize = 4096;

/// The result of adding a call's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    New(QuestionId),
    /// The call waits for the answer to an open question.
    Joined(QuestionId),
    /// The queue is full; the call must wait until there is room, or be denied.
    Full,
}

/// An accepted answer. The question is no longer open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    pub question: Question,
    pub answer: Answer,
    pub source: Source,
    pub at: Timestamp,
}

#[derive(Debug)]
struct Open {
    question: Question,
    deadline: Option<Instant>,
}

#[derive(Debug)]
pub struct Queue {
    session: String,
    next: u64,
    /// The maximum number of open questions.
    most_open: usize,
    open: BTreeMap<QuestionId, Open>,
    waiting: usize,
    /// How many questions were denied because they did not fit, and which limit the last of them exceeded.
    refused: (u64, usize),
}

impl Queue {
    pub fn new(session: &str, most_open: usize) -> Self {
        Self {
            session: session.to_owned(),
            next: 1,
            most_open,
            open: BTreeMap::new(),
            waiting: 0,
            refused: (0, 0),
        }
    }

    pub fn ask(&mut self, new: NewQuestion, now: Now) -> Asked {
        if self.waiting >= MAX_WAITING {
            return Asked::Full;
        }
        let same = self.open.values_mut().find(|open| open.question.is_same(&new));
        if let Some(open) = same {
            let before = open.question.requests.len();
            open.question.join(new.request, new.process);
            self.waiting += open.question.requests.len() - before;
            return Asked::Joined(open.question.id);
        }
        if self.open.len() >= self.most_open {
            return Asked::Full;
        }
        let id = QuestionId(self.next);
        self.next += 1;
        let deadline = new.patience.and_then(|patience| now.monotonic.checked_add(patience));
        let question = new.into_question(id, &self.session, now);
        self.open.insert(id, Open { question, deadline });
        self.waiting += 1;
        Asked::New(id)
    }

    /// A call about a file no longer waits. If it was the last one, its question is closed and returned.
    pub fn withdraw(&mut self, request: u64, now: Now) -> Option<Decided> {
        // Requests about other subjects have their own ids, which may be the same numbers.
        let waits = |question: &&Question| {
            question.subject.file().is_some() && question.requests.contains(&request)
        };
        let id = self.open().find(waits)?.id;
        self.withdraw_from(id, request, now)
    }

    /// The same for a call that is known to wait for this question.
    pub fn withdraw_from(&mut self, id: QuestionId, request: u64, now: Now) -> Option<Decided> {
        let question = &mut self.open.get_mut(&id)?.question;
        if !question.requests.contains(&request) {
            return None;
        }
        if question.requests.len() > 1 {
            question.requests.retain(|waiting| *waiting != request);
            self.waiting -= 1;
            return None;
        }
        self.close(id, Answer::Deny { lifetime: Lifetime::Once }, Source::Withdrawn, now)
    }

    /// Accepts an answer. The first result is the question itself; the others are questions that permission for
    /// the directory answers as well.
    pub fn answer(
        &mut self,
        id: QuestionId,
        answer: Answer,
        source: &Source,
        now: Now,
    ) -> Result<Vec<Decided>, AnswerError> {
        let covered = self.check(id, answer)?;
        let mut decided: Vec<Decided> =
            self.close(id, answer, source.clone(), now).into_iter().collect();
        let allowed = decided.first().and_then(|first| first.question.offered()).cloned();
        for id in covered {
            let Some(mut also) = self.close(id, answer, source.clone(), now) else { continue };
            // Record the directory that was allowed, not the one that this question offered.
            if let Subject::File(file) = &mut also.question.subject {
                file.directory.clone_from(&allowed);
            }
            decided.push(also);
        }
        Ok(decided)
    }

    /// Denies the questions that were not answered in time.
    pub fn expire(&mut self, now: Now) -> Vec<Decided> {
        let due: Vec<QuestionId> = self
            .open
            .iter()
            .filter(|(_, open)| open.deadline.is_some_and(|deadline| deadline <= now.monotonic))
            .map(|(id, _)| *id)
            .collect();
        let deny = Answer::Deny { lifetime: Lifetime::Once };
        due.into_iter().filter_map(|id| self.close(id, deny, Source::Timeout, now)).collect()
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        self.open.values().filter_map(|open| open.deadline).min()
    }

    /// The oldest first.
    pub fn open(&self) -> impl Iterator<Item = &Question> {
        self.open.values().map(|open| &open.question)
    }

    pub fn get(&self, id: QuestionId) -> Option<&Question> {
        self.open.get(&id).map(|open| &open.question)
    }

    /// How many questions can be opened now.
    pub fn room(&self) -> usize {
        let room = self.most_open.saturating_sub(self.open.len());
        room.min(MAX_WAITING.saturating_sub(self.waiting))
    }

    /// So many questions were denied because this limit was reached.
    pub fn count_refused(&mut self, count: u64, limit: usize) {
        self.refused = (self.refused.0 + count, limit);
    }

    /// How many questions were denied because they did not fit, and the limit that the last of them exceeded.
    pub fn refused(&self) -> (u64, usize) {
        self.refused
    }

    /// The maximum number of open questions.
    pub fn most_open(&self) -> usize {
        self.most_open
    }

    /// Whether the same is asked already.
    pub fn is_open(&self, new: &NewQuestion) -> bool {
        self.open().any(|question| question.is_same(new))
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Checks that the question offers this answer. Returns the other questions that it would answer as well.
    fn check(&self, id: QuestionId, answer: Answer) -> Result<Vec<QuestionId>, AnswerError> {
        let Some(open) = self.open.get(&id) else {
            let was_asked = (1..self.next).contains(&id.0);
            return Err(if was_asked {
                AnswerError::NotOpen(id)
            } else {
                AnswerError::Unknown(id)
            });
        };
        let file = open.question.subject.file();
        let (scope, lifetime) = match answer {
            Answer::Allow { scope: Scope::PrivateCopy, lifetime } => {
                return match file.is_some_and(|file| file.may_be_copied) {
                    true if lifetime == Lifetime::Session => Ok(Vec::new()),
                    true => Err(AnswerError::CopyLasts(id)),
                    false => Err(AnswerError::NothingToCopy(id)),
                };
            }
            Answer::Allow { scope, lifetime } if scope.is_directory() => (scope, lifetime),
            Answer::Allow { lifetime: Lifetime::Once, .. }
                if file.is_some_and(|file| !file.may_be_once()) =>
            {
                return Err(AnswerError::NotOnce(id));
            }
            Answer::Allow { lifetime: Lifetime::Session | Lifetime::Always(_), .. }
                if file.is_some_and(|file| !file.may_last()) =>
            {
                return Err(AnswerError::OnlyOnce(id));
            }
            _ => return Ok(Vec::new()),
        };
        let (Some(file), Some(directory)) = (file, open.question.offered()) else {
            return Err(AnswerError::NoDirectoryOffered(id));
        };
        if lifetime == Lifetime::Once {
            return Err(AnswerError::DirectoryOnce(id));
        }
        let access = match scope {
            Scope::DirectoryToRun => Access::Execute,
            _ => file.access,
        };
        let covered = self.open().filter(|other| {
            let is_covered = |other: &FileSubject| other.is_covered_by(directory, access);
            other.id != id && !other.is_secret && other.subject.file().is_some_and(is_covered)
        });
        Ok(covered.map(|other| other.id).collect())
    }

    fn close(
        &mut self,
        id: QuestionId,
        answer: Answer,
        source: Source,
        now: Now,
    ) -> Option<Decided> {
        let question = self.open.remove(&id)?.question;
        self.waiting -= question.requests.len();
        Some(Decided { question, answer, source, at: now.wall })
    }
}

impl Question {
    /// Whether one answer applies to both.
    fn is_same(&self, new: &NewQuestion) -> bool {
        match (&self.subject, &new.subject) {
            (Subject::File(mine), Subject::File(theirs)) => {
                mine.path == theirs.path
                    && mine.access == theirs.access
                    && mine.is_directory == theirs.is_directory
                    && mine.entry == theirs.entry
                    && mine.new_path == theirs.new_path
                    && (mine.access != Access::Write || mine.act == theirs.act)
                    && mine.also == theirs.also
            }
            (Subject::Host(mine), Subject::Host(theirs)) => {
                mine.host == theirs.host && mine.port == theirs.port
            }
            (Subject::File(_), Subject::Host(_)) | (Subject::Host(_), Subject::File(_)) => false,
        }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
