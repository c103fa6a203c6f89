use super::{Asked, MAX_WAITING, Queue};
use crate::test_support::{MAX_OPEN, call, connection, file};
use crate::{
    Access, Answer, AnswerError, Lifetime, Now, QuestionId, Scope, Source, Store, Subject,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

const ONCE: Answer = Answer::Allow { scope: Scope::File, lifetime: Lifetime::Once };
const NO: Answer = Answer::Deny { lifetime: Lifetime::Session };
const DIRECTORY: Answer = Answer::Allow { scope: Scope::Directory, lifetime: Lifetime::Session };

fn later(now: Now, seconds: u64) -> Now {
    Now { monotonic: now.monotonic + Duration::from_secs(seconds), ..now }
}

/// Proves: GATE-5 asked-once
#[test]
fn many_calls_for_one_path_are_one_question() {
    let now = Now::read();
    let mut queue = Queue::new("s", MAX_OPEN);
    assert_eq!(queue.ask(call(11, "/opt/sdk/a"), now), Asked::New(QuestionId(1)));
    assert_eq!(queue.ask(call(12, "/opt/sdk/a"), now), Asked::Joined(QuestionId(1)));
    assert_eq!(queue.ask(call(13, "/opt/sdk/b"), now), Asked::New(QuestionId(2)));
    let decided = queue.answer(QuestionId(1), ONCE, &Source::Terminal, now).unwrap();
    assert_eq!(decided.len(), 1);
    assert_eq!(decided[0].question.requests, [11, 12]);
    assert_eq!(queue.open().map(|question| question.id.0).collect::<Vec<_>>(), [2]);
}

#[test]
fn to_execute_is_another_question_than_to_read() {
    let now = Now::read();
    let mut queue = Queue::new("s", MAX_OPEN);
    queue.ask(call(1, "/opt/sdk/a"), now);
    let mut execute = call(2, "/opt/sdk/a");
    let mut subject = file("/opt/sdk/a", None);
    subject.access = Access::Execute;
    subject.also = vec![PathBuf::from("/opt/ld.so")];
    execute.subject = Subject::File(subject);
    assert_eq!(queue.ask(execute, now), Asked::New(QuestionId(2)));
}

/// Proves: TOOL-2 one-queue
#[test]
fn the_first_answer_wins() {
    let now = Now::read();
    let mut queue = Queue::new("s", MAX_OPEN);
    queue.ask(call(1, "/opt/sdk/a"), now);
    let socket = Source::Socket { uid: 1000, pid: 5, name: "web".to_owned() };
    let decided = queue.answer(QuestionId(1), NO, &socket, now).unwrap();
    assert_eq!((decided[0].answer, &decided[0].source), (NO, &socket));
    assert_eq!(
        queue.answer(QuestionId(1), ONCE, &Source::Terminal, now),
        Err(AnswerError::NotOpen(QuestionId(1)))
    );
    for id in [QuestionId(0), QuestionId(2)] {
        assert_eq!(queue.answer(id, ONCE, &Source::Terminal, now), Err(AnswerError::Unknown(id)));
    }
}

/// Proves: GATE-5 timeout
#[test]
fn silence_is_a_no() {
    let now = Now::read();
    let mut queue = Queue::new("s", MAX_OPEN);
    queue.ask(call(1, "/opt/sdk/a"), now);
    let mut patient = call(2, "/opt/sdk/b");
    patient.patience = None;
    queue.ask(patient, now);
    assert_eq!(queue.next_deadline(), Some(now.monotonic + Duration::from_secs(60)));
    assert_eq!(queue.expire(later(now, 59)), []);
    let decided = queue.expire(later(now, 60));
    assert_eq!(decided.len(), 1);
    assert_eq!(decided[0].question.requests, [1]);
    assert_eq!(decided[0].answer, Answer::Deny { lifetime: Lifetime::Once });
    assert_eq!(decided[0].source, Source::Timeout);
    assert_eq!(queue.next_deadline(), None);
    assert_eq!(queue.expire(later(now, 1 << 30)), [], "this one waits for ever");
}

#[test]
fn a_question_nobody_waits_for_is_closed() {
    let now = Now::read();
    let mut queue = Queue::new("s", MAX_OPEN);
    queue.ask(call(1, "/opt/sdk/a"), now);
    queue.ask(call(2, "/opt/sdk/a"), now);
    assert_eq!(queue.withdraw(1, now), None);
    assert_eq!(queue.withdraw(1, now), None, "it is not there twice");
    let decided = queue.withdraw(2, now).unwrap();
    assert_eq!(decided.source, Source::Withdrawn);
    assert!(!decided.answer.is_allowed());
    assert!(queue.is_empty());
}

/// Proves: GATE-4 tree
#[test]
fn an_allowed_directory_answers_for_what_is_below_it() {
    let now = Now::read();
    let mut queue = Queue::new("s", MAX_OPEN);
    queue.ask(call(1, "/opt/sdk/a"), now);
    let mut below = call(2, "/opt/sdk/lib/b");
    below.subject = Subject::File(file("/opt/sdk/lib/b", Some("/opt/sdk/lib")));
    queue.ask(below, now);
    let mut secret = call(3, "/opt/sdk/key.pem");
    secret.is_secret = true;
    queue.ask(secret, now);
    queue.ask(call(4, "/opt/sdk-2/c"), now);
    let mut execute = call(5, "/opt/sdk/tool");
    let mut subject = file("/opt/sdk/tool", Some("/opt/sdk"));
    subject.access = Access::Execute;
    execute.subject = Subject::File(subject);
    queue.ask(execute, now);

    let decided = queue.answer(QuestionId(1), DIRECTORY, &Source::Terminal, now).unwrap();
    let ids: Vec<u64> = decided.iter().map(|decided| decided.question.id.0).collect();
    assert_eq!(ids, [1, 2], "no secret, nothing beside it, and no more than was allowed");
    for decided in &decided {
        assert_eq!(decided.question.offered().map(PathBuf::as_path), Some(Path::new("/opt/sdk")));
    }
    assert_eq!(queue.open().count(), 3);
}

#[test]
fn a_directory_does_not_answer_for_what_is_needed_elsewhere() {
    let now = Now::read();
    let mut queue = Queue::new("s", MAX_OPEN);
    let execute = |request, path, also: &[&str]| {
        let mut new = call(request, path);
        let mut subject = file(path, Some("/opt/sdk"));
        subject.access = Access::Execute;
        subject.also = also.iter().map(PathBuf::from).collect();
        new.subject = Subject::File(subject);
        new
    };
    queue.ask(execute(1, "/opt/sdk/a", &[]), now);
    queue.ask(execute(2, "/opt/sdk/b", &["/opt/other/ld.so"]), now);
    queue.ask(execute(3, "/opt/sdk/c", &["/opt/sdk/ld.so"]), now);
    let decided = queue.answer(QuestionId(1), DIRECTORY, &Source::Terminal, now).unwrap();
    let ids: Vec<u64> = decided.iter().map(|decided| decided.question.id.0).collect();
    assert_eq!(ids, [1, 3]);
}

/// Proves: GATE-4 tree, GATE-4 once, GATE-4 always
#[test]
fn only_what_is_offered_can_be_answered() {
    let now = Now::read();
    let mut queue = Queue::new("s", MAX_OPEN);
    let mut secret = call(1, "/home/eve/.ssh/id_ed25519");
    secret.is_secret = true;
    queue.ask(secret, now);
    let mut alone = call(2, "/opt/file");
    alone.subject = Subject::File(file("/opt/file", None));
    queue.ask(alone, now);
    queue.ask(call(3, "/opt/sdk/a"), now);
    let first = QuestionId(1);
    for id in [first, QuestionId(2)] {
        assert_eq!(
            queue.answer(id, DIRECTORY, &Source::Terminal, now),
            Err(AnswerError::NoDirectoryOffered(id))
        );
    }
    let once = Answer::Allow { scope: Scope::Directory, lifetime: Lifetime::Once };
    assert_eq!(
        queue.answer(QuestionId(3), once, &Source::Terminal, now),
        Err(AnswerError::DirectoryOnce(QuestionId(3)))
    );
    assert_eq!(queue.open().count(), 3, "a refused answer changes nothing");
    let always = Answer::Allow { scope: Scope::File, lifetime: Lifetime::Always(Store::User) };
    assert_eq!(queue.answer(first, always, &Source::Terminal, now).unwrap()[0].answer, always);
}

#[test]
fn a_flood_finds_an_end() {
    let now = Now::read();
    let mut queue = Queue::new("s", MAX_OPEN);
    for request in 0..MAX_OPEN as u64 {
        assert!(matches!(
            queue.ask(call(request, &format!("/opt/sdk/{request}")), now),
            Asked::New(_)
        ));
    }
    assert_eq!(queue.room(), 0);
    assert_eq!(queue.ask(call(999, "/opt/sdk/one-more"), now), Asked::Full);
    assert_eq!(queue.refused().0, 0, "it may wait");
    assert!(
        queue.is_open(&call(999, "/opt/sdk/0")) && !queue.is_open(&call(0, "/opt/sdk/one-more"))
    );
    queue.count_refused(2, MAX_OPEN);
    queue.count_refused(1, 7);
    assert_eq!(queue.refused(), (3, 7));
    // Who joins an open question still may, up to a number.
    for request in MAX_OPEN as u64..MAX_WAITING as u64 {
        assert_eq!(queue.ask(call(request, "/opt/sdk/0"), now), Asked::Joined(QuestionId(1)));
    }
    assert_eq!(queue.ask(call(1 << 40, "/opt/sdk/0"), now), Asked::Full);
    queue.withdraw(0, now);
    assert_eq!(queue.ask(call(1 << 40, "/opt/sdk/0"), now), Asked::Joined(QuestionId(1)));
    queue.answer(QuestionId(1), ONCE, &Source::Terminal, now).unwrap();
    assert_eq!(queue.room(), 1);
    assert_eq!(queue.ask(call(999, "/opt/sdk/one-more"), now), Asked::New(QuestionId(257)));
}

/// Proves: NET-8 asked
#[test]
fn a_host_and_its_port_are_one_question_and_offer_no_directory() {
    let now = Now::read();
    let mut queue = Queue::new("s", MAX_OPEN);
    assert_eq!(queue.ask(connection(1, "a.example"), now), Asked::New(QuestionId(1)));
    assert_eq!(queue.ask(connection(2, "a.example"), now), Asked::Joined(QuestionId(1)));
    assert_eq!(queue.ask(connection(3, "b.example"), now), Asked::New(QuestionId(2)));
    let mut other_port = connection(4, "a.example");
    let Subject::Host(host) = &mut other_port.subject else { panic!() };
    host.port = 8443;
    assert_eq!(queue.ask(other_port, now), Asked::New(QuestionId(3)));
    assert_eq!(queue.ask(call(5, "/opt/sdk/a"), now), Asked::New(QuestionId(4)));
    let directory = Answer::Allow { scope: Scope::Directory, lifetime: Lifetime::Session };
    assert_eq!(
        queue.answer(QuestionId(1), directory, &Source::Terminal, now),
        Err(AnswerError::NoDirectoryOffered(QuestionId(1)))
    );
    // What is answered with a directory is about files only.
    let decided = queue.answer(QuestionId(4), directory, &Source::Terminal, now).unwrap();
    assert_eq!(decided.len(), 1);
    assert_eq!(queue.withdraw(1, now), None, "no call of that number waits for a file");
    assert_eq!(queue.withdraw_from(QuestionId(1), 1, now), None);
    assert_eq!(queue.withdraw_from(QuestionId(1), 1, now), None, "it is gone already");
    let closed = queue.withdraw_from(QuestionId(1), 2, now).unwrap();
    assert_eq!((closed.question.id, closed.source), (QuestionId(1), Source::Withdrawn));
}
