//! Questions, answers, the queue that connects them, and the protocol.
//!
//! This crate decides and grants nothing: the caller that asks carries out the answer. Only `client`,
//! `sessions`, `answering` and `leftover` use sockets; everything else is free of I/O.
#![forbid(unsafe_code)]

mod answer;
pub mod answering;
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
