use super::{OfferedPage, QuestionPages, Subject, digest};
use crate::questions::Question;
use rmcp::model::ElicitRequestParams;
use tokio::sync::oneshot;

fn question(id: u64) -> Subject {
    Subject::Question(Question { id, message: format!("question {id}"), is_secret: true })
}

fn secret_of(page: &OfferedPage) -> &str {
    match &page.request {
        ElicitRequestParams::UrlElicitationParams { url, .. } => {
            url.strip_prefix("http://x/question/").unwrap()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_question_has_one_page_and_no_two_pages_an_address() {
    let pages = QuestionPages::new(true);
    let offer = |subject| pages.offer("http://x", subject, &|_| true).unwrap();
    let (first, second) = (offer(question(1)), offer(question(2)));
    assert_eq!(offer(question(1)), first);
    assert_ne!(secret_of(&first), secret_of(&second));
    assert_eq!(secret_of(&first).len(), 64);
    assert!(
        !secret_of(&first).contains(&first.elicitation_id),
        "the name is in other messages, too"
    );
}

#[test]
fn a_page_ends_with_its_question() {
    let pages = QuestionPages::new(true);
    let first = pages.offer("http://x", question(1), &|_| true).unwrap();
    let (answer, answered) = oneshot::channel();
    let confirmation = Subject::Confirmation { message: "Apply?".to_owned(), answer };
    let confirmation = pages.offer("http://x", confirmation, &|_| true).unwrap();
    let is_there = |page| pages.with(|pages| pages.contains_key(&digest(secret_of(page))));
    assert!(is_there(&first) && is_there(&confirmation));
    drop(answered);
    pages.offer("http://x", question(2), &|id| id != 1).unwrap();
    assert!(!is_there(&first) && !is_there(&confirmation));
}

#[test]
fn a_page_whose_answer_was_not_taken_is_there_again_while_its_question_is_open() {
    let pages = QuestionPages::new(true);
    let offered = pages.offer("http://x", question(1), &|_| true).unwrap();
    let take = |page| pages.with(|pages| pages.remove(&digest(secret_of(page))));
    pages.restore(take(&offered).unwrap(), &|_| true);
    assert_eq!(pages.offer("http://x", question(1), &|_| true).unwrap(), offered);
    // It has another page by now, or is not asked any more.
    let page = take(&offered).unwrap();
    let other = pages.offer("http://x", question(1), &|_| true).unwrap();
    assert_ne!(other, offered);
    pages.restore(page, &|_| true);
    assert!(take(&offered).is_none());
    pages.restore(take(&other).unwrap(), &|_| false);
    assert!(take(&other).is_none());
}

#[test]
fn a_page_ends_with_who_asks() {
    let pages = QuestionPages::new(true);
    let offered = pages.offer("http://x", question(1), &|_| true).unwrap();
    let asking = pages.withdraw_later(&offered.elicitation_id);
    assert!(!pages.with(|pages| pages.is_empty()));
    drop(asking);
    assert!(pages.with(|pages| pages.is_empty()));
}

#[test]
fn a_page_that_nobody_wants_to_open_is_withdrawn_and_its_answer_is_no() {
    let pages = QuestionPages::new(true);
    let (answer, answered) = oneshot::channel();
    let subject = Subject::Confirmation { message: "Apply?".to_owned(), answer };
    let offered = pages.offer("http://x", subject, &|_| true).unwrap();
    pages.withdraw(&offered.elicitation_id);
    assert!(pages.with(|pages| pages.is_empty()));
    assert!(answered.blocking_recv().is_err());
}
