use super::super::flags;
use super::*;
use clap::{Args, FromArgMatches};
use palisade_policy::{
    LayerKind, Merged, NetworkMode, Policy, PolicyDocument, PolicyLayer, Subject, merge,
};

fn parsed(line: &[&str]) -> PolicyArgs {
    let command = PolicyArgs::augment_args(clap::Command::new("test").no_binary_name(true));
    PolicyArgs::from_arg_matches(&command.try_get_matches_from(line).unwrap()).unwrap()
}

fn merged(subject: &Subject, line: &[&str]) -> Result<Merged, String> {
    let given = flags(&parsed(line), Written::CommandLine, &BTreeMap::new())
        .map_err(|error| error.to_string())?;
    PolicyDocument::from_flags(given)
        .and_then(|document| {
            merge(subject, vec![PolicyLayer { kind: LayerKind::CommandLine, document }])
        })
        .map_err(|problems| problems[0].to_string())
}

fn policy(line: &[&str]) -> Policy {
    merged(&Subject::Run, line).unwrap().policy
}

fn approved(policy: &Policy) -> Vec<(&str, &str)> {
    policy.approvals.iter().map(|it| (it.what.as_str(), it.reason.as_str())).collect()
}

/// Proves: NET-1 proxy, NET-8 approval
#[test]
fn an_allowed_host_opens_the_proxy_and_is_the_approval_for_it() {
    for (line, reason) in [
        (&["--allow-network"][..], "--allow-network"),
        (&["--network", "proxy"], "--network proxy"),
        (&["--allow-host", "a.example"], "--allow-host a.example"),
        (&["--allow-for", "npm,git"], "--allow-for npm,git"),
    ] {
        let policy = policy(line);
        assert_eq!(policy.network.mode, NetworkMode::Proxy, "{line:?}");
        assert_eq!(approved(&policy), [("network:proxy", reason)]);
    }
    assert_eq!(policy(&["--deny-host", "a.example"]).network.mode, NetworkMode::None);
    let nat = policy(&["--network", "nat"]);
    assert_eq!(approved(&nat), [("network:nat", "--network nat")]);
    let private = policy(&["--allow-host", "a.example", "--allow-private", "10.0.0.0/8"]);
    assert_eq!(approved(&private)[1], ("network:private", "--allow-private 10.0.0.0/8"));
}

/// Proves: NET-8 approval, POL-7 lowering-approval
#[test]
fn for_a_declared_tool_it_is_that_tools_approval() {
    let bash = Subject::Tool("bash".to_owned());
    let line = ["--tool", "bash", "--allow-host", "a.example"];
    let policy = merged(&bash, &line).unwrap().policy;
    assert_eq!(approved(&policy), [("bash:network", "--allow-host a.example")]);
    let environment = BTreeMap::from([("SANDBOX_TOOL".into(), "bash".into())]);
    let approvals = approvals(&parsed(&["--allow-network"]), &environment);
    assert_eq!(approvals[0].0, "bash:network");
}

/// Proves: NET-8 approval
#[test]
fn what_lies_in_the_environment_is_no_approval() {
    let inherited = flags(&parsed(&["--network", "nat"]), Written::Environment, &BTreeMap::new());
    assert!(inherited.unwrap().iter().all(|flag| flag.key != "approvals"));
    let environment = BTreeMap::from([("SANDBOX_NETWORK".into(), "none".into())]);
    let host = parsed(&["--allow-host", "a.example"]);
    let inherited = flags(&host, Written::Environment, &environment).unwrap();
    assert!(inherited.iter().all(|flag| flag.key != "network.mode"), "it was stated");
}

/// Proves: NET-3 ports, NET-3 globs
#[test]
fn hosts_and_their_ports_are_told_apart_in_a_list() {
    let line =
        ["--allow-host", "a.example:80,443,b.example,*.c.example:22", "--allow-host", "d.example"];
    let hosts = policy(&line).network.allowed_hosts;
    let written: Vec<&str> = hosts.iter().map(|host| host.written.as_str()).collect();
    assert_eq!(written, ["a.example:80,443", "b.example", "*.c.example:22", "d.example"]);
    assert_eq!(hosts[0].ports, Some(vec![80, 443]));
    let wrong = merged(&Subject::Run, &["--allow-host", "a.example,443"]).unwrap_err();
    assert_eq!(wrong, "--allow-host a.example,443: write ports as a.example:443");
    let wrong = merged(&Subject::Run, &["--allow-host", "a*.example"]).unwrap_err();
    assert!(wrong.starts_with("--allow-host: `network.allowedHosts` must be"), "{wrong}");
}

/// Proves: NET-5 credentials
#[test]
fn a_credential_is_read_part_by_part() {
    let read = |text: &str| policy(&["--allow-network", "--credential", text]).network.credentials;
    let plain = &read("T=env:REAL,host=a.example")[0];
    assert_eq!((plain.name.as_str(), plain.format.as_str()), ("T", "Bearer {}"));
    let full = "K=file:/a,b/key,host=a.example,host=*.b.example,header=X-Key,format=a={}, b=c";
    let full = &read(full)[0];
    assert_eq!(full.from.to_string(), "file:/a,b/key");
    assert_eq!(full.hosts.len(), 2);
    assert_eq!((full.header.as_str(), full.format.as_str()), ("x-key", "a={}, b=c"));
    for wrong in ["T", "T=env:X", "T=X,host=a.example", "=env:X,host=a.example"] {
        let line = ["--allow-network", "--credential", wrong];
        let error = merged(&Subject::Run, &line).unwrap_err();
        assert!(error.starts_with("--credential"), "{wrong}: {error}");
    }
    let no_host = merged(&Subject::Run, &["--allow-network", "--credential", "T=env:X"]);
    let no_host = no_host.unwrap_err();
    assert!(no_host.contains("\"T\" has no host"), "{no_host}");
    assert!(no_host.contains("such as TOKEN=env:API_TOKEN,host=api.example"), "{no_host}");
    let secret = ["--allow-network", "--credential", "T=hunter2,host=a.example"];
    let secret = merged(&Subject::Run, &secret).unwrap_err();
    assert!(secret.contains("env:VARIABLE") && !secret.contains("hunter2"), "{secret}");
}

/// Proves: NET-5 upstream
#[test]
fn no_error_tells_the_login_of_a_proxy() {
    for url in
        ["http://me:hunter2@proxy.example", "me:hunter2@proxy.example:1", "http:/me:hunter2@x"]
    {
        let error =
            merged(&Subject::Run, &["--allow-network", "--upstream-proxy", url]).unwrap_err();
        assert!(error.contains("http://proxy.example:3128"), "{error}");
        assert!(!error.contains("hunter2") && !error.contains("me:"), "{error}");
    }
}

/// Proves: POL-2 contradiction
#[test]
fn options_that_leave_each_other_nothing_to_do_are_refused() {
    for (line, says) in [
        (
            &["--network", "none", "--allow-host", "a.example"][..],
            "--allow-host needs --network proxy",
        ),
        (&["--network", "nat", "--allow-network"], "but --network is nat"),
        (&["--credential", "T=env:X,host=a.example"], "the network mode is none; allow hosts"),
        (&["--max-bytes", "1m"], "the network mode is none"),
        (&["--network", "host", "--max-bytes", "1m"], "--max-bytes needs --network proxy"),
        (&["--level", "0", "--allow-host", "a.example"], "--level 0 isolates nothing"),
        (&["--level", "0", "--publish", "80:80"], "--level 0 isolates nothing"),
        (&["--allow-network", "--intercept"], "add one (`--credential`)"),
        (&["--level", "1", "--no-userns", "--allow-network"], "needs a network namespace"),
        (&["--publish", "80:80,127.0.0.1:80:81"], "published twice"),
        (&["--allow-network", "--max-connections", "0"], "would deny every connection"),
        (&["--network", "host", "--publish", "80:80"], "`network.publish`"),
    ] {
        let error = merged(&Subject::Run, line).unwrap_err();
        assert!(error.contains(says), "{line:?}: {error}");
    }
}
