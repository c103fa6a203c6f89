use super::{ToolOrigin, declare, find, load, remove, request_of};
use crate::config::tests::Corner;
use crate::config::{self, PolicyRequest};
use crate::error::SessionError;
use crate::trust::TrustStore;
use palisade_record::ErrorKind;
use std::fs;

fn text(name: &str) -> String {
    format!("name: {name}\ndescription: d\ncommand: [{name}]\nlimits: {{ timeout: 7s }}\n")
}

/// Proves: TOOL-1 declared
#[test]
fn a_tool_of_the_user_is_found_and_its_policy_is_a_layer() {
    let corner = Corner::new();
    let path = declare(&corner.caller, &text("count"), false, false).unwrap();
    assert!(path.ends_with("tools/count.yaml"), "{path:?}");
    let set = load(&corner.caller, &[]).unwrap();
    let tool = find(&set, "count").unwrap();
    assert_eq!(tool.origin, ToolOrigin::User);
    let request = request_of(tool, PolicyRequest::default());
    let loaded = config::load(&corner.caller, &request).unwrap();
    assert_eq!(loaded.merged.policy.resources.timeout, Some(7000));
    assert!(loaded.notes.is_empty(), "it is declared: {:?}", loaded.notes);
    assert!(loaded.read_from.contains(&tool.file.named));
    match find(&set, "coumt") {
        Err(SessionError::NoSuchTool { nearest, .. }) => {
            assert_eq!(nearest.as_deref(), Some("count"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_older_declaration_is_replaced_only_on_request() {
    let corner = Corner::new();
    declare(&corner.caller, &text("count"), false, false).unwrap();
    let json = r#"{"name":"count","description":"d","command":["wc"]}"#;
    let there = declare(&corner.caller, json, true, false).unwrap_err();
    assert!(matches!(there, SessionError::ToolThere { .. }), "{there}");
    declare(&corner.caller, json, true, true).unwrap();
    assert_eq!(load(&corner.caller, &[]).unwrap().tools.len(), 1);
    assert_eq!(remove(&corner.caller, "count").unwrap().len(), 1);
    assert!(load(&corner.caller, &[]).unwrap().tools.is_empty());
    assert!(remove(&corner.caller, "count").is_err());
}

#[test]
fn a_tool_of_the_project_counts_only_once_its_content_is_trusted() {
    let corner = Corner::new();
    let directory = corner.caller.facts.cwd.join(".palisade/tools");
    fs::create_dir_all(&directory).unwrap();
    let path = directory.join("lint.yaml");
    fs::write(&path, text("lint")).unwrap();
    let set = load(&corner.caller, &[]).unwrap();
    assert!(set.tools.is_empty());
    let refused = find(&set, "lint").unwrap_err();
    assert_eq!((refused.kind(), refused.exit_code()), (ErrorKind::Security, 126));
    let mut store = TrustStore::load(&corner.caller.places).unwrap();
    store.trust(&path, &text("lint"));
    store.save(&corner.caller.places).unwrap();
    assert_eq!(load(&corner.caller, &[]).unwrap().tools["lint"].origin, ToolOrigin::Project);
    // One byte more, and it is another one.
    fs::write(&path, text("lint") + "#\n").unwrap();
    assert!(load(&corner.caller, &[]).unwrap().tools.is_empty());
    // What is not trusted must not break what is.
    fs::write(&path, "nonsense: [").unwrap();
    assert_eq!(load(&corner.caller, &[]).unwrap().ignored.len(), 1);
}

#[test]
fn the_user_counts_before_the_project_and_twice_in_one_place_is_an_error() {
    let corner = Corner::new();
    declare(&corner.caller, &text("lint"), false, false).unwrap();
    let path = corner.caller.places.user.join("tools/other.yaml");
    fs::write(&path, text("lint")).unwrap();
    let twice = load(&corner.caller, &[]).unwrap_err();
    assert!(matches!(twice, SessionError::ToolTwice { .. }), "{twice}");
}
