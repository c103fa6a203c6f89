//! HTTP/2, spoken by curl to nghttpd: in TLS it passes as it is, opened TLS is HTTP/1.1, and without TLS it is refused at once.

use palisade_testkit::Part;

use crate::egress_support::Net;

const WROTE: &str = "-w '%{http_version} %{http_code}\\n'";

/// Proves: NET-5 variables, NET-5 ignoring
#[test]
fn http2_in_tls_passes_as_it_is() {
    let net = Net::with(&[Part::Http2]);
    let script = format!(
        "for way in '' '*'; do \
           curl -sS --http2 --noproxy \"$way\" --max-time 10 {WROTE} https://h2.example:9443/; done"
    );
    let output = net.script(&["--allow-host", "h2.example:9443"], &script);
    assert_eq!(output.out(), "hello over HTTP/2\n2 200\n".repeat(2), "{}", output.err());
    assert!(net.lab.asked_over_http2("h2.example:9443"));
}

/// One server and one certificate for both names: clients may use one connection for both, and ask for its name first.
///
/// Proves: NET-3 globs, NET-4 sni
#[test]
fn a_host_on_the_same_certificate_is_another_host() {
    let net = Net::with(&[Part::Http2]);
    let script = format!(
        "curl -sS --http2 --noproxy '*' --max-time 10 {WROTE} https://h2.example:9443/ https://h2-other.example:9443/; \
         curl -sS --http2 --noproxy '*' --max-time 10 --connect-to ::h2.example: https://h2-other.example:9443/; echo $?"
    );
    let output = net.script(&["--allow-host", "h2.example:9443", "--on-ask", "deny"], &script);
    let lines: Vec<String> = output.out().lines().map(str::to_owned).collect();
    assert_eq!(lines[..2], ["hello over HTTP/2", "2 200"], "{}", output.err());
    assert_ne!(lines.last().map(String::as_str), Some("0"), "{}", output.out());
    assert!(!net.lab.asked_over_http2("h2-other.example:9443"), "{}", output.err());
    assert!(!net.lab.asked_for("h2-other.example"), "nothing of it leaves the machine");
}

/// Proves: NET-5 credentials
#[test]
fn a_client_of_http2_speaks_http_1_1_where_tls_is_opened() {
    let net = Net::new();
    let token = net.world.write("outside/token", "s3cr3t-f0r-web");
    let credential = format!("KEY=file:{},host=web.example", token.display());
    let flags = ["--allow-host", "web.example", "--credential", &credential, "--intercept"];
    let script = format!(
        "for how in --http2 --http2-prior-knowledge; do \
           curl -sS $how --noproxy '*' --max-time 10 {WROTE} https://web.example/; done"
    );
    let output = net.script(&flags, &script);
    assert_eq!(output.out(), "hello from web.example\n1.1 200\n".repeat(2), "{}", output.err());
    let got = |entry: &serde_json::Value| entry["headers"].to_string().contains("s3cr3t-f0r-web");
    assert_eq!(net.lab.journal().iter().filter(|entry| got(entry)).count(), 2);
}

/// Such a server speaks first, and so does its client: whichever is heard first, no request passes.
///
/// Proves: NET-4 one-reading, NET-7 refusals
#[test]
fn http2_without_tls_is_refused_at_once() {
    let net = Net::with(&[Part::Http2]);
    let asked = "http://h2.example:8000/";
    let bare =
        net.lab.bare(&net.world, "curl").args(["-sS", "--http2-prior-knowledge", asked]).run();
    assert_eq!(bare.out(), "hello over HTTP/2\n", "{}", bare.err());
    net.lab.forget();
    for way in ["--noproxy *", "--proxytunnel -x 198.18.0.1:3128", "-x 198.18.0.1:3128"] {
        let mut command = vec!["curl", "-sS", "--max-time", "10", "--http2-prior-knowledge", asked];
        command.extend(way.split(' '));
        let output = net.run(&["--allow-host", "h2.example:8000"], &command);
        assert!(!output.out().contains("over HTTP/2"), "{way}: {}", output.out());
        // The time is not what ended it.
        assert_ne!(output.code(), 28, "{way}: {}", output.err());
        assert!(!net.lab.asked_over_http2("h2.example:8000"), "{way}");
    }
}

/// A server that took the offer would speak what nobody here reads.
///
/// Proves: NET-4 one-reading
#[test]
fn an_offer_to_speak_http2_is_not_passed_on() {
    let net = Net::new();
    for way in ["", "*"] {
        let script = format!(
            "curl -sS --http2 --noproxy '{way}' --max-time 10 {WROTE} http://web.example/request"
        );
        let output = net.script(&["--allow-host", "web.example"], &script);
        assert!(output.out().ends_with("1.1 200\n"), "{}{}", output.out(), output.err());
        let said = output.out().to_ascii_lowercase();
        assert!(!said.contains("h2c") && !said.contains("http2-settings"), "{said}");
    }
}
