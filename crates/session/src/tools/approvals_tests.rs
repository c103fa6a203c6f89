use super::{ToolApprovals, with_approvals};
use crate::config::tests::Corner;
use crate::config::{self, PolicyRequest};
use crate::tools::declared::{declare, find, load, request_of};
use palisade_policy::NetworkMode;

const FETCH: &str = "name: fetch\ndescription: d\ncommand: [curl, --, 'https://a.example']\npolicy:\n  network: { mode: proxy, allowedHosts: [a.example] }\n";

/// Proves: POL-7 lowering-approval
#[test]
fn an_approval_holds_for_one_content_of_one_declaration() {
    let corner = Corner::new();
    let caller = &corner.caller;
    declare(caller, FETCH, false, false).unwrap();
    let set = load(caller, &[], &PolicyRequest::default()).unwrap();
    let tool = find(&set, "fetch").unwrap();
    let request = request_of(tool, PolicyRequest::default());
    let (_, missing) = with_approvals(caller, tool, request.clone()).unwrap();
    let whats: Vec<_> = missing.iter().map(|it| it.what.as_str()).collect();
    assert_eq!(whats, ["fetch:network"]);

    let mut store = ToolApprovals::load(&caller.places).unwrap();
    store.give(tool, "fetch:network", 1000);
    store.save(&caller.places).unwrap();
    let (approved, missing) = with_approvals(caller, tool, request).unwrap();
    assert_eq!(missing, []);
    let policy = config::load(caller, &approved).unwrap().merged.policy;
    assert_eq!(policy.network.mode, NetworkMode::Proxy);
    assert!(policy.approvals[0].reason.starts_with("sandbox tool approve, by user 1000 at "));

    let other = FETCH.replace("allowedHosts: [a.example]", "allowedHosts: [b.example]");
    declare(caller, &other, false, true).unwrap();
    let set = load(caller, &[], &PolicyRequest::default()).unwrap();
    let tool = find(&set, "fetch").unwrap();
    let request = request_of(tool, PolicyRequest::default());
    assert_eq!(with_approvals(caller, tool, request).unwrap().1.len(), 1, "another content");
}

#[test]
fn a_lower_level_needs_an_approval_and_no_tool_gets_the_hosts_network_so() {
    let corner = Corner::new();
    let caller = &corner.caller;
    let level = "name: low\ndescription: d\nlevel: LEVEL_1\ncommand: [id]\n";
    let host = "name: wide\ndescription: d\ncommand: [id]\npolicy: { network: { mode: host } }\n";
    for text in [level, host] {
        declare(caller, text, false, false).unwrap();
    }
    let set = load(caller, &[], &PolicyRequest::default()).unwrap();
    let asked = |name: &str| {
        let tool = find(&set, name).unwrap();
        with_approvals(caller, tool, request_of(tool, PolicyRequest::default()))
    };
    assert_eq!(asked("low").unwrap().1[0].what, "low:no-sandbox");
    assert!(asked("wide").is_err());
}
