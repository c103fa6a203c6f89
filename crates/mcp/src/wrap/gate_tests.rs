use super::Gatekeeper;
use crate::wrap::options::WrapOptions;
use crate::wrap::pins::PinFile;
use serde_json::{Value, json};

fn options(directory: &std::path::Path) -> WrapOptions {
    let pins = PinFile::of(directory, "x").unwrap();
    WrapOptions { name: "x".into(), pins, accept_changes: false, words: vec![] }
}

fn ask(keeper: &Gatekeeper<'_>, id: u32, cursor: Option<&str>) {
    let params = cursor.map_or(json!({}), |cursor| json!({ "cursor": cursor }));
    let request = json!({ "id": id, "method": "tools/list", "params": params });
    assert_eq!(keeper.refusal(request.to_string().as_bytes()), None);
}

fn list(id: u32, name: &str, text: &str, next: Option<&str>) -> Value {
    let mut result = json!({ "tools": [{ "name": name, "description": text }] });
    if let Some(next) = next {
        result["nextCursor"] = next.into();
    }
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// What the client gets.
fn shown(keeper: &Gatekeeper<'_>, message: &Value) -> Option<Value> {
    let line = keeper.judge(message.to_string().as_bytes()).line?;
    Some(serde_json::from_slice(&line).unwrap())
}

fn is_refused(keeper: &Gatekeeper<'_>, name: &str) -> bool {
    let call = json!({ "id": 99, "method": "tools/call", "params": { "name": name } });
    keeper.refusal(call.to_string().as_bytes()).is_some()
}

#[test]
fn tools_that_changed_are_neither_shown_nor_called() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    let run = |options: &WrapOptions, text: &str| {
        let keeper = Gatekeeper::new(options).unwrap();
        ask(&keeper, 1, None);
        let shown = shown(&keeper, &list(1, "a", text, None)).unwrap();
        (shown, is_refused(&keeper, "a"))
    };
    assert!(run(&options, "good").0["result"].is_object(), "the first time");
    assert!(run(&options, "good").0["result"].is_object());
    let (shown, refused) = run(&options, "evil");
    let told = shown["error"]["message"].as_str().unwrap();
    assert!(told.contains("changed: a") && told.contains("sandbox mcp trust x"), "{told}");
    assert!(refused && shown.get("result").is_none());
    options.accept_changes = true;
    assert!(run(&options, "evil").0["result"].is_object());
    options.accept_changes = false;
    assert!(run(&options, "evil").0["result"].is_object(), "trusted now");
    assert!(options.pins.read().unwrap().unwrap().waiting.is_empty());
}

#[test]
fn a_tool_that_waits_is_not_called_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    for text in ["good", "evil"] {
        let keeper = Gatekeeper::new(&options).unwrap();
        ask(&keeper, 1, None);
        shown(&keeper, &list(1, "a", text, None)).unwrap();
    }
    let keeper = Gatekeeper::new(&options).unwrap();
    assert!(is_refused(&keeper, "a") && !is_refused(&keeper, "b"));
}

#[test]
fn only_the_first_list_that_was_asked_for_is_trusted() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let keeper = Gatekeeper::new(&options).unwrap();
    let unasked = keeper.judge(list(1, "unasked", "", None).to_string().as_bytes());
    assert!(unasked.line.is_none() && unasked.note.unwrap().contains("nobody asked for"));
    assert_eq!(options.pins.read().unwrap(), None);
    ask(&keeper, 1, None);
    assert!(shown(&keeper, &list(1, "a", "", Some("more"))).unwrap()["result"].is_object());
    assert_eq!(shown(&keeper, &list(1, "b", "", None)), None, "answered already");
    ask(&keeper, 2, Some("other"));
    assert!(shown(&keeper, &list(2, "c", "", None)).unwrap()["error"].is_object());
    ask(&keeper, 3, Some("more"));
    assert!(shown(&keeper, &list(3, "d", "", None)).unwrap()["result"].is_object());
    ask(&keeper, 4, None);
    assert!(shown(&keeper, &list(4, "e", "", None)).unwrap()["error"].is_object(), "over");
    let kept = options.pins.read().unwrap().unwrap();
    assert_eq!(kept.tools.keys().collect::<Vec<_>>(), ["a", "d"]);
    assert_eq!(kept.waiting.keys().collect::<Vec<_>>(), ["c", "e"]);
}

#[test]
fn an_empty_first_list_is_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let keeper = Gatekeeper::new(&options).unwrap();
    ask(&keeper, 1, None);
    assert!(shown(&keeper, &json!({ "id": 1, "result": { "tools": [] } })).is_some());
    let again = Gatekeeper::new(&options).unwrap();
    ask(&again, 1, None);
    assert!(shown(&again, &list(1, "a", "", None)).unwrap()["error"].is_object());
}

#[test]
fn a_message_that_can_be_read_in_two_ways_is_not_passed_on() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let keeper = Gatekeeper::new(&options).unwrap();
    let tools = r#"{"tools":[{"name":"hidden"}]}"#;
    for result in [
        format!(r#""result":{{}},"result":{tools}"#),
        format!(r#""result":{tools},"result":{{}}"#),
        format!(r#""Result":{tools}"#),
        r#""result":{"tools":[],"Tools":[{"name":"hidden"}]}"#.to_owned(),
        r#""result":{"tools":[],"tools":[{"name":"hidden"}]}"#.to_owned(),
        format!(r#""method":"notifications/x","result":{tools}"#),
    ] {
        ask(&keeper, 1, None);
        let line = format!(r#"{{"id":1,{result}}}"#);
        let judged = keeper.judge(line.as_bytes());
        assert!(judged.note.is_some(), "{line}");
        let passed = String::from_utf8(judged.line.unwrap_or_default()).unwrap();
        assert!(!passed.contains("hidden"), "{line}: {passed}");
    }
    assert_eq!(options.pins.read().unwrap(), None);
    let ping = json!({ "id": 7, "method": "ping" }).to_string();
    assert_eq!(keeper.refusal(ping.as_bytes()), None);
    let other = shown(&keeper, &list(7, "hidden", "", None)).unwrap();
    assert!(other["error"].is_object(), "{other}");
}

#[test]
fn a_server_that_names_tools_without_end_is_ended() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let keeper = Gatekeeper::new(&options).unwrap();
    let tools: Vec<Value> = (0..2000).map(|it| json!({ "name": it.to_string() })).collect();
    ask(&keeper, 1, None);
    let message = json!({ "id": 1, "result": { "tools": tools } });
    let judged = keeper.judge(message.to_string().as_bytes());
    assert!(judged.end.unwrap().contains("more than 1024 tools"));
    assert!(String::from_utf8(judged.line.unwrap()).unwrap().contains("error"));
    let noisy = |_| keeper.judge(b"{}").note.is_some();
    assert!((0..1000).filter(|it| noisy(*it)).count() <= super::MAX_NOTES, "nor what is said");
}
