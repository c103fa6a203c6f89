use super::{HostList, SaveError, SavedHosts, add_hosts, add_rules, with_proxy};
use crate::loaders::load;
use crate::merge::{LayerKind, PolicyLayer, Subject, merge};
use palisade_gate::{Access, Effect, Origin, Pattern, Rule, Store};
use proptest::prelude::*;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

fn allow(pattern: &str) -> Rule {
    Rule {
        effect: Effect::Allow,
        pattern: Pattern::parse(pattern, None).unwrap(),
        access: Access::Read,
        store: Store::Session,
        until: None,
        origin: Origin::default(),
    }
}

fn saved(text: &str, file: &str) -> String {
    add_rules(text, file, &[allow("/new")]).unwrap_or_else(|error| panic!("{text}: {error}")).text
}

/// Proves: POL-5 save
#[test]
fn a_rule_goes_where_it_belongs_and_nothing_else_moves() {
    let cases = [
        ("", "filesystem:\n  rules:\n    - allow: /new\n"),
        ("# mine\n", "# mine\nfilesystem:\n  rules:\n    - allow: /new\n"),
        ("view: host # why", "view: host # why\nfilesystem:\n  rules:\n    - allow: /new\n"),
        (
            "---\nview: host\n...\n",
            "---\nview: host\nfilesystem:\n  rules:\n    - allow: /new\n...\n",
        ),
        (
            "filesystem: # here\n\n# end\n",
            "filesystem: # here\n  rules:\n    - allow: /new\n\n# end\n",
        ),
        (
            "filesystem:\n    caches: false   # no\n    # more\nview: host\n",
            "filesystem:\n    caches: false   # no\n    rules:\n      - allow: /new\n    # more\nview: \
             host\n",
        ),
        (
            "filesystem:\n  rules:\n  - deny: '/a'   # never\n    note: x # y\n\n  caches: true\n",
            "filesystem:\n  rules:\n  - deny: '/a'   # never\n    note: x # y\n  - allow: /new\n\n  \
             caches: true\n",
        ),
        (
            "filesystem:\n  rules: [] # none\nview: host\n",
            "filesystem:\n  rules: [{ \"allow\": \"/new\" }] # none\nview: host\n",
        ),
        (
            "filesystem: { rules: [{ deny: /a }], caches: true }",
            "filesystem: { rules: [{ deny: /a }, { \"allow\": \"/new\" }], caches: true }",
        ),
        (
            "filesystem: { caches: true }\n",
            "filesystem: { caches: true, \"rules\": [{ \"allow\": \"/new\" }] }\n",
        ),
        (
            "view: host\r\nfilesystem:\r\n  caches: true\r\n",
            "view: host\r\nfilesystem:\r\n  caches: true\r\n  rules:\r\n    - allow: /new\r\n",
        ),
        (
            "filesystem:\n  rules:\n    - deny: /a\n      note: |\n        two\n        lines\nview: host\n",
            "filesystem:\n  rules:\n    - deny: /a\n      note: |\n        two\n        lines\n    - allow: \
             /new\nview: host\n",
        ),
    ];
    for (before, after) in cases {
        assert_eq!(saved(before, "p.yaml"), after, "{before}");
    }
}

/// Proves: POL-5 save
#[test]
fn json_stays_json_in_its_own_layout() {
    let cases = [
        (
            "{}\n",
            "{\n  \"filesystem\": {\n    \"rules\": [\n      { \"allow\": \"/new\" }\n    ]\n  }\n}\n",
        ),
        (
            "{\"view\": \"host\"}",
            "{\"view\": \"host\", \"filesystem\": {\"rules\": [{ \"allow\": \"/new\" }]}}",
        ),
        (
            "{\n  \"view\": \"host\"\n}\n",
            "{\n  \"view\": \"host\",\n  \"filesystem\": {\n    \"rules\": [\n      { \"allow\": \"/new\" \
             }\n    ]\n  }\n}\n",
        ),
        (
            "{\n  \"filesystem\": {\n    \"rules\": [],\n    \"caches\": true\n  }\n}\n",
            "{\n  \"filesystem\": {\n    \"rules\": [\n      { \"allow\": \"/new\" }\n    ],\n    \
             \"caches\": true\n  }\n}\n",
        ),
        (
            "{\n  \"filesystem\": {\n    \"rules\": [\n      {\n        \"deny\": \"/a\"\n      }\n    ]\n  \
             }\n}\n",
            "{\n  \"filesystem\": {\n    \"rules\": [\n      {\n        \"deny\": \"/a\"\n      },\n      { \
             \"allow\": \"/new\" }\n    ]\n  }\n}\n",
        ),
    ];
    for (before, after) in cases {
        assert_eq!(saved(before, "p.json"), after, "{before}");
    }
}

/// Proves: POL-5 save, GATE-4 always
#[test]
fn everything_a_rule_says_is_written_and_only_what_is_new() {
    let rule = Rule {
        access: Access::Execute,
        until: Some("2027-01-01T00:00:00Z".parse().unwrap()),
        origin: Origin {
            by: Some("ann: the admin".to_owned()),
            at: Some("2026-01-02T03:04:05Z".parse().unwrap()),
            place: String::new(),
        },
        ..allow("/opt/sdk/**")
    };
    let once = add_rules("", "p.yaml", &[rule.clone(), rule.clone()]).unwrap();
    let expected = "filesystem:\n  rules:\n    - allow: /opt/sdk/**\n      access: execute\n      until: \
                    2027-01-01T00:00:00Z\n      by: \"ann: the admin\"\n      at: \
                    2026-01-02T03:04:05Z\n";
    assert_eq!(once.text, expected);
    assert_eq!(once.added.len(), 1);
    let again = add_rules(&once.text, "p.yaml", &[rule]).unwrap();
    assert_eq!((again.text.as_str(), again.added.len()), (expected, 0));
}

/// Proves: POL-5 save
#[test]
fn what_cannot_be_done_is_an_error_and_never_a_guess() {
    let refused = |text: &str, file: &str| add_rules(text, file, &[allow("/new")]).unwrap_err();
    assert!(matches!(refused("viev: host", "p.yaml"), SaveError::Mistaken { .. }));
    assert!(matches!(refused("{", "p.json"), SaveError::Mistaken { .. }));
    let apart = "filesystem:\n  rules:\n    -\n      deny: /a\n";
    assert!(matches!(refused(apart, "p.yaml"), SaveError::CanNotEdit { .. }));
    assert!(matches!(refused("filesystem: ~\n", "p.yaml"), SaveError::CanNotEdit { .. }));
    let foreign = "{\"sandbox\": {\"bash\": {}}}";
    assert!(matches!(refused(foreign, "p.json"), SaveError::Foreign { .. }));
    let path = OsStr::from_bytes(b"/x/\xff");
    let rule = Rule { pattern: Pattern::Exact(path.into()), ..allow("/x") };
    assert!(matches!(add_rules("", "p.yaml", &[rule]), Err(SaveError::NotText { .. })));
}

proptest! {
    /// Proves: POL-5 save
    #[test]
    fn any_path_saved_is_the_path_allowed(
        path in "/[ -~é\n\t]{1,20}",
        by in "[ -~é\n\t]{0,20}",
        before in prop::sample::select(vec![
            "", "view: host", "filesystem:\n  caches: true\n", "filesystem: {rules: [ ]}\n",
            "filesystem:\n  rules:\n    - deny: /a\n  # c\n",
        ]),
    ) {
        let path = std::path::PathBuf::from(path).components().collect::<std::path::PathBuf>();
        prop_assume!(path.parent().is_some() && path.components().all(|part| !matches!(
            part, std::path::Component::ParentDir | std::path::Component::CurDir
        )));
        let rule = Rule {
            pattern: Pattern::Exact(path.clone()),
            origin: Origin { by: Some(by), ..Origin::default() },
            ..allow("/x")
        };
        let saved = add_rules(before, "p.yaml", &[rule]).unwrap();
        let document = load(&saved.text, "p.yaml").unwrap().document;
        let merged = merge(&Subject::Run, vec![PolicyLayer { kind: LayerKind::User, document }]).unwrap();
        let last = merged.policy.filesystem.rules.last().unwrap().rule(None).unwrap();
        prop_assert_eq!(last.pattern, Pattern::Exact(path));
    }
}

fn with_host(text: &str, file: &str, list: HostList, host: &str) -> Result<SavedHosts, SaveError> {
    add_hosts(text, file, list, &[host.to_owned()])
}

/// Proves: POL-5 save
#[test]
fn a_host_is_added_to_its_list_and_everything_else_stays() {
    let cases = [
        ("", "network:\n  allowedHosts:\n    - a.example:443\n"),
        (
            "# mine\nview: host # so\n",
            "# mine\nview: host # so\nnetwork:\n  allowedHosts:\n    - a.example:443\n",
        ),
        (
            "network:\n  mode: proxy # yes\n",
            "network:\n  mode: proxy # yes\n  allowedHosts:\n    - a.example:443\n",
        ),
        (
            "network:\n  mode: proxy\n  allowedHosts:\n  - b.example # b\n",
            "network:\n  mode: proxy\n  allowedHosts:\n  - b.example # b\n  - a.example:443\n",
        ),
        (
            "network: { mode: proxy, allowedHosts: [b.example] }\n",
            "network: { mode: proxy, allowedHosts: [b.example, \"a.example:443\"] }\n",
        ),
    ];
    for (before, after) in cases {
        let saved = with_host(before, "policy.yaml", HostList::Allowed, "a.example:443").unwrap();
        assert_eq!(saved.text, after);
        let again =
            with_host(&saved.text, "policy.yaml", HostList::Allowed, "A.example:443").unwrap();
        assert_eq!((again.text.as_str(), again.added.len()), (after, 0));
    }
    let saved = with_host("{}", "policy.json", HostList::Denied, "a.example:22").unwrap();
    let json: serde_json::Value = serde_json::from_str(&saved.text).unwrap();
    assert_eq!(json, serde_json::json!({ "network": { "deniedHosts": ["a.example:22"] } }));
}

#[test]
fn a_host_is_not_added_to_what_is_not_understood() {
    let odd = "network: &n\n  mode: proxy\n  allowedHosts: &l [b.example]\nx: 1\n";
    assert!(with_host(odd, "policy.yaml", HostList::Allowed, "a.example").is_err());
}

/// Proves: POL-4 learned-outside
#[test]
fn a_file_with_hosts_gets_the_mode_they_need_and_keeps_one_it_has() {
    let text = "# mine\nnetwork:\n  allowedHosts:\n    - a.example\n";
    let with = with_proxy(text, "p.yaml").unwrap();
    assert_eq!(with, text.replace("network:\n", "network:\n  mode: proxy\n"));
    assert_eq!(with_proxy(&with, "p.yaml").unwrap(), with);
    let json = r#"{"network": {"allowedHosts": ["a.example"]}}"#;
    let with = with_proxy(json, "p.json").unwrap();
    assert_eq!(with, r#"{"network": {"mode": "proxy", "allowedHosts": ["a.example"]}}"#);
}
