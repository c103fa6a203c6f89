use crate::decode::parse::parse;
use crate::syntax::tree::Format;
use crate::{
    Diagnostic, LayerKind, Level, Merged, NetworkMode, PolicyLayer, Problem, Subject, merge,
};

fn merged(subject: &Subject, layers: &[(LayerKind, &str)]) -> Result<Merged, Vec<Diagnostic>> {
    let layers = layers.iter().map(|(kind, text)| PolicyLayer {
        kind: *kind,
        document: parse(text, &format!("{}.yaml", kind.name()), Format::Yaml).unwrap(),
    });
    merge(subject, layers.collect())
}

fn refusal(subject: &Subject, layers: &[(LayerKind, &str)]) -> String {
    let problems = merged(subject, layers).unwrap_err();
    assert_eq!(problems[0].problem, Problem::NeedsApproval, "{problems:?}");
    problems[0].to_string()
}

const RUN: Subject = Subject::Run;
const USER: LayerKind = LayerKind::User;
const ORGANISATION: LayerKind = LayerKind::Organisation;

fn bash() -> Subject {
    Subject::Tool("bash".into())
}

const APPROVED: &str = "isolationLevel: LEVEL_0
approvals: [{ what: no-isolation, reason: a debugger for the kernel }]";

/// Proves: POL-1 level-0-approval
#[test]
fn no_isolation_needs_an_approval_where_there_is_no_organisation() {
    assert!(refusal(&RUN, &[(USER, "isolationLevel: LEVEL_0")]).contains("no-isolation"));
    let policy = merged(&RUN, &[(USER, APPROVED)]).unwrap().policy;
    assert_eq!(policy.isolation_level, Level::None);
    assert_eq!(policy.approvals[0].reason, "a debugger for the kernel");
}

/// Proves: POL-1 level-0-approval
#[test]
fn an_organisation_that_does_not_allow_it_forbids_it_whatever_is_approved() {
    assert!(
        refusal(&RUN, &[(ORGANISATION, "view: host"), (USER, APPROVED)]).contains("organisation")
    );
    let other_tool = "tools: { deploy: { isolationLevel: LEVEL_0 } }";
    let mine = "tools: { bash: { isolationLevel: LEVEL_0 } }\napprovals: [{ what: 'bash:no-sandbox', reason: r }]";
    refusal(&bash(), &[(ORGANISATION, other_tool), (USER, mine)]);
}

/// Proves: POL-1 level-0-approval, POL-1 level-0-recorded
#[test]
fn what_the_organisation_allows_for_a_tool_is_recorded_as_its_approval() {
    let organisation = "tools: { deploy: { isolationLevel: LEVEL_0 } }";
    let deploy = Subject::Tool("deploy".into());
    let policy = merged(&deploy, &[(ORGANISATION, organisation)]).unwrap().policy;
    assert_eq!(policy.isolation_level, Level::None);
    assert_eq!(policy.approvals[0].what, "deploy:no-sandbox");
    assert!(policy.approvals[0].reason.contains("organisation.yaml:1"));
    let policy = merged(&bash(), &[(ORGANISATION, organisation)]).unwrap().policy;
    assert_eq!(policy.isolation_level, Level::Full, "that tool only");
}

/// Proves: POL-7 lowering-approval
#[test]
fn a_tools_level_is_lowered_only_with_its_approval() {
    let lower = "tools: { bash: { isolationLevel: LEVEL_1 } }";
    assert!(refusal(&bash(), &[(USER, lower)]).contains("`bash:no-sandbox`"));
    let wrong = format!("{lower}\napprovals: [{{ what: 'read:no-sandbox', reason: r }}]");
    refusal(&bash(), &[(USER, &wrong)]);
    let right = format!("{lower}\napprovals: [{{ what: 'bash:no-sandbox', reason: r }}]");
    let policy = merged(&bash(), &[(USER, &right)]).unwrap().policy;
    assert_eq!(policy.isolation_level, Level::Process);
    assert_eq!(policy.approvals[0].what, "bash:no-sandbox");
    assert!(
        merged(&RUN, &[(USER, "isolationLevel: LEVEL_1")]).is_ok(),
        "a plain run is the user's own"
    );
}

/// Proves: POL-7 lowering-approval
#[test]
fn a_tools_network_is_opened_only_with_its_approval() {
    let open = "network: { mode: proxy }";
    assert!(refusal(&bash(), &[(USER, open)]).contains("`bash:network`"));
    let approved = format!("{open}\napprovals: [{{ what: 'bash:network', reason: r }}]");
    let policy = merged(&bash(), &[(USER, &approved)]).unwrap().policy;
    assert_eq!(policy.network.mode, NetworkMode::Proxy);
    let fetch = Subject::Tool("web_fetch".into());
    assert!(merged(&fetch, &[(USER, open)]).is_ok(), "its default already");
}

/// Proves: NET-1 host-approved, POL-1 level-1-host-network
#[test]
fn the_hosts_network_needs_an_approval_at_every_level() {
    for level in ["LEVEL_1", "LEVEL_2"] {
        let open = format!("isolationLevel: {level}\nnetwork: {{ mode: host }}");
        assert!(refusal(&RUN, &[(USER, &open)]).contains("`network:host`"));
        let approved = format!("{open}\napprovals: [{{ what: 'network:host', reason: r }}]");
        let policy = merged(&RUN, &[(USER, &approved)]).unwrap().policy;
        assert_eq!(policy.network.mode, NetworkMode::Host);
    }
}
