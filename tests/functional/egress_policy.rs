//! The same way out, whoever opened it: a policy of ours or of another program's, at every level, in every
//! mode and view; and what a policy cannot open.

use serde_json::Value;

use crate::egress_support::Net;

const BOTH: &str = "for name in web other; do curl -s -o /dev/null -w \"$name %{http_code}\\n\" \
    --noproxy '*' --max-time 10 http://$name.example/; done";

/// Proves: NET-1 proxy, NET-3 globs, POL-2 yaml
#[test]
fn a_policys_list_is_what_the_network_is_opened_to() {
    let net = Net::new();
    let policy = net.world.write(
        "policy.yaml",
        "network:\n  mode: proxy\n  allowedHosts: ['*.example']\n  deniedHosts: [other.example]\n",
    );
    let output = net.script(&["--policy", policy.to_str().unwrap()], BOTH);
    assert_eq!(output.out(), "web 200\nother 000\n", "{}", output.err());
    let mine = net
        .world
        .write("home/.config/palisade/policy.yaml", "network: {allowedHosts: [web.example]}\n");
    assert_eq!(
        net.script(&["--on-ask", "deny"], BOTH).out(),
        "web 000\nother 000\n",
        "a list opens nothing"
    );
    let opened = net.script(&["--on-ask", "deny", "--allow-network"], BOTH);
    assert_eq!(opened.out(), "web 200\nother 000\n", "{}{}", mine.display(), opened.err());
}

/// Proves: NET-1 proxy, POL-1 level-1
#[test]
fn the_way_out_is_the_same_at_every_level_and_in_every_view() {
    for flags in [
        &["--static"][..],
        &["--level", "1"],
        &["--view", "minimal"],
        &["--level", "1", "--static"],
    ] {
        let net = Net::new();
        let flags = [flags, &["--allow-host", "web.example", "--on-ask", "deny"]].concat();
        // What nothing asks about is denied in static mode without a word.
        let flags: Vec<&str> = if flags.contains(&"--static") {
            flags.iter().copied().filter(|flag| *flag != "--on-ask" && *flag != "deny").collect()
        } else {
            flags
        };
        let output = net.script(&flags, BOTH);
        assert_eq!(output.out(), "web 200\nother 000\n", "{flags:?}: {}", output.err());
    }
}

/// Proves: NET-3 special-addresses
#[test]
fn private_addresses_are_opened_one_range_at_a_time_and_on_record() {
    let net = Net::new();
    let script = "for name in private shared metadata loopback; do curl -s -o /dev/null \
        -w \"$name %{http_code}\\n\" --max-time 10 http://$name.example/; done";
    let flags = ["--allow-host", "*.example", "--allow-private", "10.0.0.0/24"];
    let output = net.script(&flags, script);
    let refused = "shared 403\nmetadata 403\nloopback 403\n";
    assert_eq!(output.out(), format!("private 200\n{refused}"), "{}", output.err());
    let report = output.report.as_ref().unwrap();
    assert!(report["approvals"].to_string().contains("network:private"), "{report:#}");
    for never in ["169.254.0.0/16", "127.0.0.0/8"] {
        let output =
            net.script(&["--allow-host", "*.example", "--allow-private", never], "echo ran");
        assert_eq!(output.out(), "", "{never} is no private range");
        assert!(output.err().contains(never), "{}", output.err());
    }
}

/// Proves: NET-1 proxy, POL-2 contradiction
#[test]
fn what_makes_no_sense_together_is_said_before_anything_runs() {
    let net = Net::new();
    for (flags, why) in [
        (&["--network", "nat", "--allow-host", "web.example"][..], "proxy"),
        (&["--network", "host", "--allow-host", "web.example"], "host"),
        (&["--allow-host", "a*b.example"], "a*b.example"),
        (&["--allow-host", "web.example:http"], "web.example:http"),
        (&["--allow-host", "http://web.example/"], "web.example"),
        (&["--publish", "80"], "80"),
        (&["--allow-host", "web.example", "--intercept"], "credential"),
        (&["--level", "1", "--no-userns", "--allow-host", "web.example"], "namespace"),
    ] {
        let output = net.script(flags, "echo ran");
        assert_eq!(output.out(), "", "{flags:?}");
        assert_ne!(output.code(), 0, "{flags:?}");
        assert!(output.err().contains(why), "{flags:?}: {}", output.err());
    }
}

/// Proves: NET-7 logged
#[test]
fn a_plan_shows_the_way_out_before_anything_is_opened() {
    let net = Net::new();
    let flags = [
        "plan",
        "--json",
        "--allow-host",
        "web.example:443",
        "--deny-host",
        "evil.example",
        "--",
        "true",
    ];
    let output = net.sandbox(&flags);
    output.assert_code(0);
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    let egress = plan["egress"].to_string();
    assert!(egress.contains("web.example:443") && egress.contains("evil.example"), "{egress}");
    assert!(net.lab.journal().is_empty(), "{:#?}", net.lab.journal());
}

/// Proves: NET-5 variables
#[test]
fn the_callers_own_proxy_is_neither_used_nor_shown_inside() {
    let net = Net::new();
    let output = net
        .lab
        .sandbox_run(
            &net.world,
            ["--allow-host", "web.example"],
            ["sh", "-c", "env | grep -ci 'user:pass'; curl -sS --max-time 10 http://web.example/"],
        )
        .env("HTTPS_PROXY", "http://user:pass@203.0.113.30:1")
        .env("http_proxy", "http://user:pass@203.0.113.30:1")
        .run();
    assert_eq!(output.out(), "0\nhello from web.example\n", "{}", output.err());
    assert!(output.err().contains("--upstream-proxy"), "and that is said: {}", output.err());
}
