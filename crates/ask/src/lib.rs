//! Questions, answers, the one queue they meet in, and the protocol that carries them.
//!
//! It decides nothing and grants nothing: the code that asks carries out the answer. Only `client`,
//! `sessions` and `leftover` touch a socket; everything else is values in, values out.
#![forbid(unsafe_code)]

mod answer;
pub mod client;
mod json;
pub mod leftover;
mod lines;
pub mod message;
mod question;
mod queue;
pub mod server;
pub mod sessions;
#[cfg(test)]
mod test_support;

pub use answer::{Answer, AnswerError, Lifetime, Scope, Source, Store};
pub use json::to_line;
pub use question::{
    Access, Act, Ancestor, FileSubject, HostSubject, NewQuestion, Now, Process, Question,
    QuestionId, Subject,
};
pub use queue::{Asked, Decided, MAX_WAITING, Queue};
