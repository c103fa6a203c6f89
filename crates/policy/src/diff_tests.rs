use super::*;
use crate::decode::parse::parse;
use crate::syntax::tree::Format;
use crate::{LayerKind, PolicyLayer, Subject, merge};

fn merged(text: &str) -> Merged {
    let document = parse(text, "p.yaml", Format::Yaml).unwrap();
    merge(&Subject::Run, vec![PolicyLayer { kind: LayerKind::User, document }]).unwrap()
}

/// Proves: POL-5 dry-run
#[test]
fn a_change_names_key_both_values_and_which_way_it_goes() {
    let from = merged("resources: { timeout: 2m }\nfilesystem: { readOnlyPaths: [/a] }");
    let to = merged(
        "resources: { timeout: 1m }\nfilesystem: { readOnlyPaths: [/a, /b] }\nprocess: { hostname: x }",
    );
    let change = |key: &str, from: &str, to: &str, direction| PolicyChange {
        key: key.into(),
        from: from.into(),
        to: to.into(),
        direction,
    };
    assert_eq!(
        diff(&from, &to),
        [
            change("filesystem.readOnlyPaths", "[\"/a\"]", "[\"/a\",\"/b\"]", Direction::Loosens),
            change("process.hostname", "\"sandbox\"", "\"x\"", Direction::Neutral),
            change("resources.timeout", "2m", "1m", Direction::Tightens),
        ]
    );
    assert!(diff(&from, &from).is_empty());
}

/// Proves: POL-5 dry-run
#[test]
fn system_calls_are_judged_with_their_mode() {
    let from = merged("syscalls: { mode: BLACKLIST, syscalls: [bpf] }");
    let to = merged("syscalls: { mode: BLACKLIST, syscalls: [bpf, mount] }");
    assert_eq!(diff(&from, &to)[0].direction, Direction::Tightens);
    assert_eq!(diff(&to, &from)[0].direction, Direction::Loosens);
    assert_eq!(diff(&merged(""), &from)[0].direction, Direction::Neutral);
}
