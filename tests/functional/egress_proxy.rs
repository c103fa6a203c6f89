//! The explicit proxy inside: for programs that read the usual variables or are told of it, and what a
//! refusal says to them (NET-5).

use std::time::{Duration, Instant};

use palisade_testkit::{Running, patiently};
use serde_json::Value;

use crate::egress_support::Net;

/// Proves: NET-5 variables
#[test]
fn programs_that_read_the_variables_use_the_proxy() {
    let net = Net::new();
    let output = net.script(
        &["--allow-host", "web.example"],
        "for name in HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy; do \
           eval \"echo \\$$name\"; done; echo $NO_PROXY; \
         curl -sSv --max-time 10 http://web.example/ 2>&1 | grep -c '^> GET http://web.example/'; \
         curl -sSv --max-time 10 https://web.example/ 2>&1 | grep -c '^> CONNECT web.example:443'; \
         /usr/bin/python3 -c 'import urllib.request as u; print(u.urlopen(\"https://web.example/\").read().decode())'",
    );
    let out = output.out();
    let mut lines = out.lines();
    for _ in 0..6 {
        assert_eq!(lines.next(), Some("http://198.18.0.1:3128"), "{out}{}", output.err());
    }
    let without = lines.next().unwrap_or_default();
    assert!(without.contains("localhost") && without.contains("127.0.0.1"), "{without}");
    let rest: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    assert_eq!(rest, ["1", "1", "hello from web.example"], "{out}{}", output.err());
}

/// Proves: NET-5 variables
#[test]
fn socks_works_and_names_are_resolved_outside() {
    let net = Net::new();
    let output = net.script(
        &["--allow-host", "web.example"],
        "for kind in socks5h socks5; do for scheme in http https; do \
           curl -sS --max-time 10 -x $kind://198.18.0.1:3128 $scheme://web.example/; done; done; \
         curl -sS --max-time 10 -x socks5h://198.18.0.1:3128 https://other.example/; echo $?",
    );
    let out = output.out();
    assert_eq!(out.matches("hello from web.example\n").count(), 4, "{out}{}", output.err());
    assert!(out.ends_with("97\n"), "curl's word for a refusal by SOCKS: {out}{}", output.err());
    assert!(!net.lab.asked_for("other.example"), "{:#?}", net.lab.journal());
}

/// Proves: NET-7 logged
#[test]
fn a_refused_page_says_who_refused_it_and_what_would_allow_it() {
    let net = Net::new();
    let output = net.script(
        &["--allow-host", "web.example"],
        "curl -s -i --max-time 10 http://other.example/secret; echo; \
         curl -s -i --max-time 10 -I http://other.example/; \
         curl -s -i --max-time 10 https://other.example/ ; echo $?; \
         curl -s -o page.json -w '%{http_code}' --noproxy '*' --max-time 10 http://web.example:8080/",
    );
    let out = output.out();
    let (head, rest) = out.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 403 "), "{out}");
    assert!(head.to_ascii_lowercase().contains("x-sandbox-denied: "), "{out}");
    assert!(head.to_ascii_lowercase().contains("application/json"), "{out}");
    let body: Value = serde_json::from_str(rest.lines().next().unwrap()).unwrap();
    assert_eq!((&body["host"], &body["port"]), (&"other.example".into(), &80.into()), "{body}");
    assert_eq!(body["allow"], "--allow-host other.example", "{body}");
    assert_eq!(out.matches("HTTP/1.1 403 ").count(), 3, "a CONNECT is refused so too: {out}");
    assert!(out.ends_with("56\n403"), "{out}");
    let page = std::fs::read_to_string(net.world.project().join("page.json")).unwrap();
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!(page["allow"], "--allow-host web.example:8080", "{page}");
}

/// Proves: NET-4 sni
#[test]
fn a_tunnel_leads_to_the_host_it_was_asked_for() {
    let net = Net::new();
    let output = net.script(
        &["--allow-host", "web.example"],
        "curl -sS --max-time 10 -x http://198.18.0.1:3128 --connect-to other.example:443:web.example:443 \
           https://other.example/; echo tls $?; \
         curl -s --max-time 10 --proxytunnel -x http://198.18.0.1:3128 -H 'Host: other.example' \
           http://web.example/; echo; \
         curl -s -o /dev/null -w '%{http_connect}\\n' --max-time 10 https://web.example:8443/",
    );
    let out = output.out();
    assert!(!out.contains("tls 0\n") && !out.contains("hello"), "{out}");
    assert!(out.ends_with("403\n"), "{out}");
    assert!(!net.lab.saw(|entry| entry["name"] == "other.example"), "{:#?}", net.lab.journal());
    assert!(!net.lab.requested("other.example", ""), "{:#?}", net.lab.journal());
    assert!(!net.lab.connected("203.0.113.10:8443"), "{:#?}", net.lab.journal());
}

/// Proves: NET-5 variables
#[test]
fn one_connection_carries_many_requests_and_bodies_of_every_kind() {
    let net = Net::new();
    let script = "import http.client, json\n\
        for whole, host in ((True, '198.18.0.1:3128'), (False, 'web.example:80')):\n\
        \x20 c = http.client.HTTPConnection(host, timeout=10)\n\
        \x20 def get(method, path, **more):\n\
        \x20  c.request(method, ('http://web.example' if whole else '') + path, headers={'Host': 'web.example', **more.pop('headers', {})}, **more)\n\
        \x20  r = c.getresponse(); return r.status, r.read()\n\
        \x20 print(get('GET', '/')[1].decode().strip())\n\
        \x20 print(get('GET', '/chunked')[1].decode().strip())\n\
        \x20 print(get('HEAD', '/'))\n\
        \x20 print(json.loads(get('POST', '/request', body=b'x' * 100000)[1])['length'])\n\
        \x20 print(json.loads(get('POST', '/request', body=iter([b'ab', b'cde']), encode_chunked=True, headers={'Transfer-Encoding': 'chunked'})[1])['length'])\n\
        \x20 print(get('GET', '/status/204')); print(get('GET', '/status/304'))\n\
        \x20 print(len(get('GET', '/big/3')[1]))\n";
    let output = net.python(&["--allow-host", "web.example"], script);
    output.assert_code(0);
    let once = "hello from web.example\nhello there\n(200, b'')\n100000\n5\n(204, b'')\n(304, b'')\n3145728\n";
    assert_eq!(output.out(), once.repeat(2), "{}", output.err());
}

/// Proves: NET-4 redirects
#[test]
fn a_redirect_is_the_clients_to_follow_and_is_judged_again() {
    let net = Net::new();
    let output = net.script(
        &["--allow-host", "web.example,four.example"],
        "for place in http://four.example/ http://other.example/ http://169.254.169.254/ http://10.0.0.5/; do \
           curl -sL -o /dev/null -w '%{http_code}\\n' --max-time 10 \"http://web.example/redirect?$place\"; \
         done",
    );
    assert_eq!(output.out(), "200\n403\n403\n403\n", "{}", output.err());
    for place in ["203.0.113.11:", "169.254.", "10.0.0.5"] {
        assert!(!net.lab.connected(place), "{:#?}", net.lab.journal());
    }
}

/// Proves: NET-4 redirects
#[test]
fn redirects_can_be_followed_outside_and_each_step_is_judged() {
    let net = Net::new();
    let output = net.script(
        &["--allow-host", "web.example,four.example", "--follow-redirects"],
        "for place in http://four.example/ https://four.example/ http://other.example/ http://169.254.169.254/ \
             'http://web.example/redirect?http://10.0.0.5/'; do \
           curl -s -o page -w '%{http_code} ' --max-time 10 \"http://web.example/redirect?$place\"; head -n1 page; echo; \
         done",
    );
    let out = output.out();
    let codes: Vec<&str> =
        out.lines().filter(|line| !line.is_empty()).filter_map(|line| line.get(..3)).collect();
    assert_eq!(codes, ["200", "200", "403", "403", "403"], "{out}{}", output.err());
    assert_eq!(out.matches("hello from four.example").count(), 2, "{out}");
    for place in ["203.0.113.11:", "169.254.", "10.0.0.5"] {
        assert!(!net.lab.connected(place), "{:#?}", net.lab.journal());
    }
}

/// A corporate proxy in the lab, which is the only one that looks names up.
fn upstream(net: &Net) -> Running {
    let settings = "Port 8888\nListen 203.0.113.30\nTimeout 60\nMaxClients 50\nConnectPort 443\nLogLevel Connect\n";
    let settings = net.world.write("tinyproxy.conf", settings);
    let proxy = net.lab.bare(&net.world, "tinyproxy").arg("-d").arg("-c").arg(settings).spawn();
    let end = Instant::now() + patiently(Duration::from_secs(20));
    while !net
        .lab
        .bare(&net.world, "curl")
        .args(["-s", "http://203.0.113.30:8888/"])
        .run()
        .status
        .success()
    {
        assert!(Instant::now() < end, "tinyproxy does not answer");
    }
    proxy
}

/// Proves: NET-5 variables
#[test]
fn everything_goes_through_the_companys_proxy_if_there_is_one() {
    let net = Net::new();
    let proxy = upstream(&net);
    let output = net.script(
        &["--allow-host", "web.example", "--upstream-proxy", "http://203.0.113.30:8888"],
        "for scheme in http https; do for direct in '' '*'; do \
           curl -sS --max-time 10 --noproxy \"$direct\" $scheme://web.example/; done; done; \
         curl -s -o /dev/null -w '%{http_code}' --max-time 10 http://other.example/",
    );
    assert_eq!(output.out(), "hello from web.example\n".repeat(4) + "403", "{}", output.err());
    proxy.signal(rustix::process::Signal::TERM);
    let said = proxy.wait();
    let log = format!("{}{}", said.out(), said.err());
    assert!(log.contains("web.example"), "{log}");
    assert!(!log.contains("other.example"), "{log}");
}
