use super::{
    IgnoredBecause, ToolOrigin, ToolSet, declare, find, load, refuse_changed, remove, request_of,
};
use crate::config::tests::Corner;
use crate::config::{self, PolicyRequest};
use crate::error::SessionError;
use crate::trust::TrustStore;
use palisade_policy::Flag;
use palisade_record::ErrorKind;
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

fn text(name: &str) -> String {
    format!("name: {name}\ndescription: d\ncommand: [{name}]\nlimits: {{ timeout: 7s }}\n")
}

fn loaded(corner: &Corner) -> ToolSet {
    load(&corner.caller, &[], &PolicyRequest::default()).unwrap()
}

fn trust(corner: &Corner, path: &Path, text: &str) {
    let mut store = TrustStore::load(&corner.caller.places).unwrap();
    store.trust(path, text);
    store.save(&corner.caller.places).unwrap();
}

/// A file at a path from the home directory, with the directories above it.
fn write(corner: &Corner, path: &str, text: &str) -> PathBuf {
    let path = corner.caller.facts.home.as_ref().unwrap().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

/// Proves: TOOL-1 declared
#[test]
fn a_tool_of_the_user_is_found_and_its_policy_is_a_layer() {
    let corner = Corner::new();
    let path = declare(&corner.caller, &text("count"), false, false).unwrap();
    assert!(path.ends_with("tools/count.yaml"), "{path:?}");
    let set = loaded(&corner);
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
    assert_eq!(loaded(&corner).tools.len(), 1);
    assert_eq!(remove(&corner.caller, "count").unwrap().len(), 1);
    assert!(loaded(&corner).tools.is_empty());
    assert!(remove(&corner.caller, "count").is_err());
}

#[test]
fn a_tool_of_the_project_counts_only_once_its_content_is_trusted() {
    let corner = Corner::new();
    let directory = corner.caller.facts.cwd.join(".palisade/tools");
    fs::create_dir_all(&directory).unwrap();
    let path = directory.join("lint.yaml");
    fs::write(&path, text("lint")).unwrap();
    let set = loaded(&corner);
    assert!(set.tools.is_empty());
    let refused = find(&set, "lint").unwrap_err();
    assert_eq!((refused.kind(), refused.exit_code()), (ErrorKind::Security, 126));
    trust(&corner, &path, &text("lint"));
    assert_eq!(loaded(&corner).tools["lint"].origin, ToolOrigin::Project);
    // One byte more, and it is another one.
    fs::write(&path, text("lint") + "#\n").unwrap();
    assert!(loaded(&corner).tools.is_empty());
    // What is not trusted must not break what is.
    fs::write(&path, "nonsense: [").unwrap();
    assert_eq!(loaded(&corner).ignored.len(), 1);
}

#[test]
fn the_user_counts_before_the_project_and_twice_in_one_place_is_an_error() {
    let corner = Corner::new();
    declare(&corner.caller, &text("lint"), false, false).unwrap();
    let path = corner.caller.places.user.join("tools/other.yaml");
    fs::write(&path, text("lint")).unwrap();
    let twice = load(&corner.caller, &[], &PolicyRequest::default()).unwrap_err();
    assert!(matches!(twice, SessionError::ToolTwice { .. }), "{twice}");
}

/// Proves: TOOL-1 declared, POL-4 trust
#[test]
fn what_a_policy_makes_writable_declares_nothing_until_it_is_trusted() {
    let corner = Corner::new();
    let file = write(&corner, "data/tools/count.yaml", &text("count"));
    let named = [file.parent().unwrap().to_owned()];
    let data = corner.caller.facts.home.as_ref().unwrap().join("data");
    let tools = |request: &PolicyRequest| load(&corner.caller, &named, request).unwrap();
    assert_eq!(tools(&PolicyRequest::default()).tools["count"].origin, ToolOrigin::Named);

    let flag = || vec![Flag::new("--rw", "filesystem.readWritePaths", json!([data]))];
    let requests = [
        PolicyRequest { command_line: flag(), ..PolicyRequest::default() },
        PolicyRequest { environment: flag(), ..PolicyRequest::default() },
    ];
    for request in &requests {
        let set = tools(request);
        assert!(set.tools.is_empty());
        assert_eq!(find(&set, "count").unwrap_err().exit_code(), 126);
    }
    let policy = format!("filesystem: {{ readWritePaths: ['{}'] }}\n", data.display());
    fs::write(corner.caller.places.user.join("policy.yaml"), policy).unwrap();
    assert!(tools(&PolicyRequest::default()).tools.is_empty());
    trust(&corner, &file, &text("count"));
    assert!(tools(&PolicyRequest::default()).tools.contains_key("count"));
}

/// Proves: TOOL-1 declared, POL-4 trust
#[test]
fn what_one_tool_may_write_is_no_declaration_of_another_until_it_is_trusted() {
    let corner = Corner::new();
    let file = write(&corner, "data/tools/count.yaml", &text("count"));
    let named = [file.clone()];
    let data = file.parent().unwrap().display().to_string();
    let writer =
        format!("{}policy: {{ filesystem: {{ readWritePaths: ['{data}'] }} }}\n", text("writer"));
    declare(&corner.caller, &writer, false, false).unwrap();
    let tools = || load(&corner.caller, &named, &PolicyRequest::default()).unwrap();
    assert_eq!(tools().tools.keys().collect::<Vec<_>>(), ["writer"]);
    assert_eq!(tools().ignored[0].because, IgnoredBecause::Untrusted);
    trust(&corner, &file, &text("count"));
    assert_eq!(tools().tools.len(), 2);
}

/// Proves: TOOL-1 declared, POL-4 trust
#[test]
fn a_project_does_not_use_the_trust_of_another_through_a_link() {
    let other = "b/.palisade/tools/lint.yaml";
    // Links at each part of the way, and what each leads to.
    for (link, target) in [
        (".palisade", "b/.palisade"),
        (".palisade/tools", "b/.palisade/tools"),
        (".palisade/tools/lint.yaml", other),
    ] {
        let corner = Corner::new();
        let path = write(&corner, other, &text("lint"));
        trust(&corner, &path, &text("lint"));
        let project = &corner.caller.facts.cwd;
        fs::remove_dir(project.join(".palisade")).unwrap();
        let link = project.join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(corner.caller.facts.home.as_ref().unwrap().join(target), &link).unwrap();
        let set = loaded(&corner);
        assert!(set.tools.is_empty(), "{link:?}");
        let refused = find(&set, "lint").unwrap_err();
        assert!(matches!(refused, SessionError::ToolUnusable { .. }), "{refused}");
        assert!(refused.to_string().contains("no link on the way"), "{refused}");
        // A person who names the file in the project does not see the link either.
        let named = [project.join(".palisade/tools/lint.yaml")];
        let refused = load(&corner.caller, &named, &PolicyRequest::default()).unwrap_err();
        assert!(matches!(refused, SessionError::LinkedTool { .. }), "{refused}");
    }
}

#[test]
fn what_is_wrong_in_a_project_keeps_no_other_tool_from_running() {
    let corner = Corner::new();
    declare(&corner.caller, &text("count"), false, false).unwrap();
    let directory = corner.caller.facts.cwd.join(".palisade/tools");
    fs::create_dir(&directory).unwrap();
    symlink("nowhere", directory.join("broken.yaml")).unwrap();
    fs::create_dir(directory.join("directory.yaml")).unwrap();
    let set = loaded(&corner);
    assert!(find(&set, "count").is_ok());
    assert_eq!(set.ignored.len(), 2);
    let broken = find(&set, "broken").unwrap_err();
    assert!(broken.to_string().contains("broken link"), "{broken}");

    for number in 0..=500 {
        fs::write(directory.join(format!("t{number}.yaml")), text("t")).unwrap();
    }
    let set = loaded(&corner);
    assert!(find(&set, "count").is_ok());
    assert_eq!(set.ignored.len(), 1);
    assert!(set.ignored[0].why.contains("more than 500"), "{}", set.ignored[0].why);
}

/// Proves: TOOL-1 declared
#[test]
fn a_tool_that_changed_since_it_was_offered_is_refused() {
    let corner = Corner::new();
    declare(&corner.caller, &text("count"), false, false).unwrap();
    let offered = loaded(&corner).tools["count"].digest.to_string();
    refuse_changed(&loaded(&corner).tools["count"], &offered).unwrap();
    declare(&corner.caller, &(text("count") + "#\n"), false, true).unwrap();
    let refused = refuse_changed(&loaded(&corner).tools["count"], &offered).unwrap_err();
    assert_eq!((refused.kind(), refused.exit_code()), (ErrorKind::Security, 126));
}

#[test]
fn a_link_within_the_project_is_found_behind_any_name() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let project = root.join("project");
    for made in ["project/tools", "other/deep"] {
        fs::create_dir_all(root.join(made)).unwrap();
    }
    for made in ["project/tools/t.json", "project/t.json", "other/t.json", "t.json"] {
        fs::write(root.join(made), made).unwrap();
    }
    symlink(root.join("other/deep"), project.join("link")).unwrap();
    symlink(root.join("other/t.json"), project.join("tools/linked.json")).unwrap();
    symlink(&project, root.join("way")).unwrap();
    fs::write(root.join("other/deep/t.json"), "deep").unwrap();
    symlink(project.join("link/t.json"), root.join("way2")).unwrap();
    symlink("project/link", root.join("way3")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    let is_linked = |named: &str| {
        let named = root.join(named);
        let file = named.canonicalize().unwrap();
        super::is_behind_link(&project, &named, &file)
    };
    for plain in [
        "project/tools/t.json",
        "project/tools/../t.json",
        "project/tools/../../other/t.json",
        "project/../t.json",
        "way/tools/t.json",
        "other/t.json",
    ] {
        assert!(!is_linked(plain), "{plain}");
    }
    for linked in [
        "project/tools/linked.json",
        "project/tools/../tools/linked.json",
        "way/tools/linked.json",
        // Not the project's own file, and not one below it.
        "project/link/../t.json",
        "project/link/../../t.json",
        "other/../project/link/../t.json",
        // Behind a link outside of the project.
        "way2",
        "way3/t.json",
    ] {
        assert!(is_linked(linked), "{linked}");
    }
    // What no name leads to ends, too.
    assert!(super::is_behind_link(&project, &root.join("loop/t.json"), &root.join("t.json")));
    // What was read is not what the name leads to now.
    assert!(super::is_behind_link(&project, &project.join("t.json"), &root.join("other/t.json")));
}
