//! Credentials stay outside: inside there is a placeholder, and the header is set on the way out.

use crate::egress_support::Net;

const SECRET: &str = "s3cr3t-f0r-web";

/// Everything a program inside can look at that might hold it.
const SEARCH: &str = "(env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null; grep -rhs 's3cr3t-f0r-w[e]b' /etc /run /tmp \"$HOME\" \"$PWD\") \
    | tr '\\0' '\\n' | grep -c 's3cr3t-f0r-w[e]b' | sed 's/^/found /'";

fn header_at(net: &Net, line: &str, header: &str) -> Option<String> {
    let journal = net.lab.journal();
    let entry = journal.iter().find(|entry| entry["line"] == line)?;
    let headers = entry["headers"].as_array()?;
    let found = headers.iter().find(|pair| pair[0] == header)?;
    found[1].as_str().map(str::to_owned)
}

/// Proves: NET-5 credentials
#[test]
fn a_secret_is_added_outside_to_requests_for_its_host_alone() {
    let net = Net::new();
    let output = net
        .lab
        .sandbox_run(
            &net.world,
            [
                "--allow-host", "web.example,four.example",
                "--credential", "TOKEN=env:REAL_TOKEN,host=web.example",
            ],
            [
                "sh", "-c",
                &format!(
                    "for way in '' '*'; do for host in web four; do \
                       curl -sS -o /dev/null --noproxy \"$way\" --max-time 10 -H \"Authorization: Bearer $TOKEN\" http://$host.example/$host; \
                     done; done; test -n \"$TOKEN\" && echo placeholder; {SEARCH}"
                ),
            ],
        )
        .env("REAL_TOKEN", SECRET)
        .run();
    output.assert_code(0);
    assert_eq!(output.out(), "placeholder\nfound 0\n", "{}", output.err());
    let sent = header_at(&net, "GET /web HTTP/1.1", "authorization");
    assert_eq!(sent.as_deref(), Some("Bearer s3cr3t-f0r-web"), "{:#?}", net.lab.journal());
    let elsewhere = header_at(&net, "GET /four HTTP/1.1", "authorization").unwrap();
    assert!(!elsewhere.contains(SECRET), "{elsewhere}");
    let log = net.world.sandbox(["audit", "show", "--json"]).run();
    assert!(!log.out().contains(SECRET), "the log must not hold it");
    assert!(!output.report.unwrap().to_string().contains(SECRET));
}

/// Proves: NET-5 credentials
#[test]
fn for_tls_it_takes_an_authority_of_the_runs_own() {
    let net = Net::new();
    let token = net.world.write("outside/token", format!("{SECRET}\n"));
    let credential =
        format!("KEY=file:{},host=web.example,header=x-api-key,format={{}}", token.display());
    let flags =
        ["--allow-host", "web.example,four.example", "--credential", &credential, "--intercept"];
    let output = net.script(
        &flags,
        &format!(
            "for way in '' '*'; do curl -sS --noproxy \"$way\" --max-time 10 -H \"x-api-key: $KEY\" https://web.example/; done; \
             /usr/bin/python3 -c 'import urllib.request as u; print(u.urlopen(\"https://web.example/py\").status)' 2>&1 | tail -n1; \
             curl -sSv --max-time 10 https://four.example/ 2>&1 | grep -i issuer; {SEARCH}"
        ),
    );
    let out = output.out();
    assert_eq!(out.matches("hello from web.example").count(), 2, "{out}{}", output.err());
    assert!(out.contains("Authority of a test"), "TLS to other hosts is not opened: {out}");
    assert!(out.ends_with("found 0\n"), "{out}");
    let sent = header_at(&net, "GET / HTTP/1.1", "x-api-key");
    assert_eq!(sent.as_deref(), Some(SECRET), "{:#?}", net.lab.journal());
    let refused = net.script(&flags[..4], "true");
    assert!(refused.code() != 0 || refused.err().contains("--intercept"), "{}", refused.err());
}

/// Proves: NET-5 credentials
#[test]
fn a_credential_may_be_for_one_port_alone() {
    let net = Net::new();
    let output = net
        .lab
        .sandbox_run(
            &net.world,
            [
                "--allow-host", "web.example:80,8080",
                "--credential", "TOKEN=env:REAL_TOKEN,host=web.example:8080",
            ],
            [
                "sh", "-c",
                "for place in web.example/usual web.example:8080/named; do \
                   curl -sS -o /dev/null --noproxy '*' --max-time 10 -H \"Authorization: Bearer $TOKEN\" http://$place; \
                 done",
            ],
        )
        .env("REAL_TOKEN", SECRET)
        .run();
    output.assert_code(0);
    let named = header_at(&net, "GET /named HTTP/1.1", "authorization");
    assert_eq!(named.as_deref(), Some("Bearer s3cr3t-f0r-web"), "{:#?}", net.lab.journal());
    let usual = header_at(&net, "GET /usual HTTP/1.1", "authorization").unwrap();
    assert!(!usual.contains(SECRET), "{usual}");
}

/// Proves: NET-5 credentials
#[test]
fn the_server_outside_is_still_verified() {
    let net = Net::new();
    let token = net.world.write("outside/token", SECRET);
    let credential = format!("KEY=file:{},host=203.0.113.14", token.display());
    let flags = ["--allow-host", "203.0.113.14", "--credential", &credential, "--intercept"];
    // The lab has a certificate for another address only.
    let output = net.script(&flags, "curl -sS --max-time 10 https://203.0.113.14/; echo $?");
    assert!(!output.out().contains("hello"), "{}", output.out());
    assert!(
        header_at(&net, "GET / HTTP/1.1", "authorization").is_none(),
        "{:#?}",
        net.lab.journal()
    );
}

/// Proves: NET-5 credentials
#[test]
fn a_secret_that_is_not_there_stops_the_run() {
    let net = Net::new();
    let output = net.script(
        &[
            "--allow-host",
            "web.example",
            "--credential",
            "TOKEN=env:NOT_SET_ANYWHERE,host=web.example",
        ],
        "echo ran",
    );
    assert_eq!(output.out(), "");
    assert_ne!(output.code(), 0);
    assert!(output.err().contains("NOT_SET_ANYWHERE"), "{}", output.err());
}
