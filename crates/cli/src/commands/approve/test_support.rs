//! Questions to look at.

use super::row::Row;
use jiff::Timestamp;
use palisade_ask::{Access, Act, Ancestor, FileSubject, Process, Question, QuestionId, Subject};
use std::path::{Path, PathBuf};

pub(super) const SESSION: &str = "01934f2a-7c11-7e02-8f6a-2b7d1c9e0a55";

pub(super) fn question(id: u64, path: &str) -> Question {
    let asked_at: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
    let ancestor = |pid, name: &str| Ancestor { pid, name: name.to_owned() };
    Question {
        id: QuestionId(id),
        session: SESSION.to_owned(),
        subject: Subject::File(FileSubject {
            path: PathBuf::from(path),
            access: Access::Read,
            operation: "openat".to_owned(),
            is_directory: false,
            act: Act::Read,
            entry: None,
            new_path: None,
            may_be_copied: false,
            is_name_only: false,
            also: Vec::new(),
            directory: Path::new(path).parent().map(PathBuf::from),
        }),
        reason: "nothing allows or denies it".to_owned(),
        processes: vec![Process {
            pid: 4242,
            executable: "/usr/bin/cc".to_owned(),
            arguments: ["cc", "-c", "my file.c", "-O2"].map(str::to_owned).to_vec(),
            cwd: "/home/eve/project".to_owned(),
            ancestors: vec![ancestor(4200, "make"), ancestor(4100, "bash")],
        }],
        requests: vec![77],
        is_secret: false,
        asked_at,
        expires_at: Some(asked_at + jiff::SignedDuration::from_secs(300)),
    }
}

pub(super) fn row(question: Question) -> Row {
    Row {
        address: format!("1c9e0a55:{}", question.id),
        command: "make -j8 all".to_owned(),
        project: "/home/eve/project".to_owned(),
        question,
    }
}
