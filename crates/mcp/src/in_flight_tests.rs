use super::{RequestsInFlight, repeated};
use axum::http::StatusCode;
use serde_json::json;

#[test]
fn an_id_is_free_again_when_nobody_works_on_its_request_and_its_answer_was_sent() {
    let requests = RequestsInFlight::new(1000);
    let worked_on = requests.begin("a", &json!(1)).unwrap();
    let being_sent = worked_on.clone();
    assert!(requests.begin("a", &json!(1)).is_none());
    drop(being_sent);
    assert!(requests.begin("a", &json!(1)).is_none(), "its client is gone, and the work goes on");
    drop(worked_on);
    assert!(requests.begin("a", &json!(1)).is_some());
}

#[test]
fn ids_differ_by_session_and_by_type() {
    let requests = RequestsInFlight::new(1000);
    let _first = requests.begin("a", &json!(1)).unwrap();
    let _text = requests.begin("a", &json!("1")).unwrap();
    let _other = requests.begin("b", &json!(1)).unwrap();
    assert!(requests.begin("a", &json!("1")).is_none());
}

#[test]
fn a_refusal_is_no_success() {
    assert_eq!(repeated(&json!(7)).status(), StatusCode::BAD_REQUEST);
}
