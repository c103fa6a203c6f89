use super::{MAX_DESCRIBED, Now, QuestionId};
use crate::test_support::{call, process};

#[test]
fn what_comes_from_inside_is_cut_to_length() {
    let mut new = call(1, "/opt/sdk/a");
    new.process.as_mut().unwrap().arguments =
        vec!["é".repeat(100_000), "second".to_owned(), "third".to_owned()];
    new.process.as_mut().unwrap().executable = "x".repeat(100_000);
    new.reason = "r".repeat(100_000);
    let question = new.into_question(QuestionId(1), "s", Now::read());
    let process = &question.processes[0];
    assert_eq!(process.arguments.len(), 2, "the rest is told by a mark");
    assert!(process.arguments[0].len() < 5000 && process.arguments[0].ends_with("é…"));
    assert!(process.executable.len() < 5000 && question.reason.len() < 5000);
}

#[test]
fn empty_arguments_are_not_endless() {
    let mut new = call(1, "/opt/sdk/a");
    new.process.as_mut().unwrap().arguments = vec![String::new(); 1_000_000];
    let question = new.into_question(QuestionId(1), "s", Now::read());
    assert!(question.processes[0].arguments.len() < 5000);
}

/// Proves: GATE-5 asked-once
#[test]
fn all_ids_are_carried_and_some_processes_described() {
    let mut question = call(0, "/opt/sdk/a").into_question(QuestionId(1), "s", Now::read());
    for request in 1..100 {
        question.join(request, Some(process(100 + u32::try_from(request).unwrap())));
    }
    question.join(5, Some(process(105)));
    assert_eq!(question.requests, (0..100).collect::<Vec<u64>>());
    assert_eq!(question.processes.len(), MAX_DESCRIBED);
}
