use crate::fake::{FakeTree, op_at, plan, policy, user};
use crate::model::{MountOp, Plan};
use palisade_policy::model::{Level, NetworkMode, Policy};

/// What a Debian machine has, and a name of its own network.
const HOSTS: &str = "127.0.0.1\tlocalhost\n127.0.1.1\tmachine.example machine\n10.0.0.1 db\n";

fn tree(hosts: &str) -> FakeTree {
    let mut tree = FakeTree::new();
    tree.file("/etc/resolv.conf", "nameserver 192.0.2.53\nsearch example\n");
    tree.file("/etc/hosts", hosts);
    tree
}

fn content<'a>(plan: &'a Plan, path: &str) -> Option<&'a str> {
    match op_at(plan, path)? {
        MountOp::File { content, .. } => Some(content),
        _ => None,
    }
}

fn hosts(policy: &Policy, on_host: &str) -> Option<String> {
    let mut facts = user();
    facts.nat.pasta = Some("/usr/bin/pasta".into());
    let plan = plan(policy, &facts, &tree(on_host)).unwrap();
    content(&plan, "/etc/hosts").map(str::to_owned)
}

fn with(network: NetworkMode, level: Level) -> Policy {
    let mut policy = Policy { isolation_level: level, ..policy() };
    policy.network.mode = network;
    policy
}

/// Proves: NET-2 own-name
#[test]
fn the_own_host_name_comes_first_and_keeps_the_hosts_lines() {
    let expected = format!("127.0.1.1 sandbox\n{HOSTS}");
    for network in [NetworkMode::None, NetworkMode::Nat, NetworkMode::Host] {
        let hosts = hosts(&with(network, Level::Full), HOSTS);
        assert_eq!(hosts.as_deref(), Some(expected.as_str()), "{network:?}");
    }
    let proxied = hosts(&with(NetworkMode::Proxy, Level::Full), HOSTS).unwrap();
    assert!(proxied.contains("\n127.0.1.1 sandbox\n") && !proxied.contains("10.0.0.1"));
}

/// Proves: NET-2 own-name
#[test]
fn with_the_hosts_own_name_its_file_is_left_alone_where_it_has_that_name() {
    for network in [NetworkMode::None, NetworkMode::Nat, NetworkMode::Host] {
        assert_eq!(hosts(&with(network, Level::Process), HOSTS), None, "{network:?}");
    }
    let nameless = "127.0.0.1 localhost\n";
    let none = hosts(&with(NetworkMode::None, Level::Process), nameless);
    assert_eq!(none.as_deref(), Some("127.0.1.1 machine\n127.0.0.1 localhost\n"));
    let host = hosts(&with(NetworkMode::Host, Level::Process), nameless);
    assert_eq!(host, None, "the host's own resolver knows its name");
    let proxied = hosts(&with(NetworkMode::Proxy, Level::Process), nameless).unwrap();
    assert!(proxied.contains("127.0.1.1 machine\n"), "{proxied}");
}

/// Another address for the same name would be tried as well.
///
/// Proves: NET-2 own-name
#[test]
fn no_line_of_the_host_has_another_address_for_the_name() {
    let found = hosts(&policy(), "# sandbox\n10.0.0.9 other sandbox # x\n10.0.0.1 db").unwrap();
    let expected = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n\
                    127.0.1.1 sandbox\n# sandbox\n10.0.0.1 db\n";
    assert_eq!(found, expected);
}

/// Proves: NET-2 own-name
#[test]
fn a_long_list_of_names_is_not_copied_into_the_plan() {
    let long = "0.0.0.0 blocked.example\n".repeat(10_000);
    let found = hosts(&policy(), &long).unwrap();
    assert!(
        found.ends_with("127.0.1.1 sandbox\n") && !found.contains("blocked"),
        "{}",
        found.len()
    );
}

#[test]
fn a_file_that_the_policy_denies_or_lets_change_is_not_replaced() {
    let mut denied = policy();
    denied.filesystem.denied_paths = vec!["/etc/hosts".to_owned(), "/etc/resolv.conf".to_owned()];
    let without = plan(&denied, &user(), &tree(HOSTS)).unwrap();
    assert_eq!(op_at(&without, "/etc/hosts"), None);
    assert_eq!(op_at(&without, "/etc/resolv.conf"), None);
    let mut writable = policy();
    writable.filesystem.overlay_paths = vec!["/etc".to_owned()];
    let overlaid = plan(&writable, &user(), &tree(HOSTS)).unwrap();
    assert_eq!(content(&overlaid, "/etc/hosts"), None);
}

/// Proves: NET-1 none-default, NET-2 own-name
#[test]
fn without_a_network_no_server_is_named_and_nobody_waits_for_one() {
    let none = plan(&policy(), &user(), &tree(HOSTS)).unwrap();
    let resolver = content(&none, "/etc/resolv.conf").unwrap();
    assert!(resolver.contains("\noptions timeout:0 ") && !resolver.contains("192.0.2.53"));
    let host = plan(&with(NetworkMode::Host, Level::Full), &user(), &tree(HOSTS)).unwrap();
    assert_eq!(content(&host, "/etc/resolv.conf"), None);
}

/// Settings of the namespace, not of a file: what programs expect of a network that is their own.
///
/// Proves: NET-2 loopback
#[test]
fn pings_and_low_ports_are_open_where_nobody_else_sees_them() {
    let settings = |network: NetworkMode, level: Level| {
        let mut facts = user();
        facts.nat.pasta = Some("/usr/bin/pasta".into());
        let plan = plan(&with(network, level), &facts, &tree(HOSTS)).unwrap();
        let settings = &crate::fake::inside(&plan).network_settings;
        settings.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
    };
    let ping = "ipv4/ping_group_range=1000 1000";
    let ports = "ipv4/ip_unprivileged_port_start=3";
    for level in [Level::Full, Level::Process] {
        assert_eq!(settings(NetworkMode::None, level), [ping, ports]);
        assert_eq!(settings(NetworkMode::Proxy, level), [ports]);
        assert_eq!(settings(NetworkMode::Nat, level), [ping]);
        assert_eq!(settings(NetworkMode::Host, level), [""; 0]);
    }
}

/// Proves: NET-2 own-name
#[test]
fn without_a_network_the_list_of_hosts_has_the_last_word() {
    let mut tree = tree(HOSTS);
    tree.file("/etc/nsswitch.conf", "passwd: files\nhosts: files dns\n");
    let of = |network| {
        let plan = plan(&with(network, Level::Full), &user(), &tree).unwrap();
        content(&plan, "/etc/nsswitch.conf").map(str::to_owned)
    };
    assert_eq!(of(NetworkMode::None).as_deref(), Some("passwd: files\nhosts: files dns files\n"));
    assert_eq!(of(NetworkMode::Proxy), None);
    assert_eq!(of(NetworkMode::Host), None);
}
