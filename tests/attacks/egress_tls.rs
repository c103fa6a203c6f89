//! Names that hide from whoever looks at the beginning of a connection: greetings of TLS in pieces, encrypted greetings, HTTP/2
//! (N09, N10).

use std::rc::Rc;

use palisade_testkit::World;

use crate::egress::{PROXY, allow, curl, in_lab, lab};
use crate::host::{probe, strings};

/// A whole handshake for one host at the address of another. The greeting is cut into records of `size` bytes, each in a segment
/// of its own.
const IN_PIECES: &str = r#"
import socket, ssl, struct, sys
place, name, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
heard, said = ssl.MemoryBIO(), ssl.MemoryBIO()
client = ssl._create_unverified_context().wrap_bio(heard, said, server_hostname=name)
stream = socket.create_connection((place, 443), 5)
stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
greeting = True
while True:
    try:
        client.do_handshake()
        break
    except ssl.SSLWantReadError:
        flight = said.read()
        if greeting:
            body = flight[5:]
            for at in range(0, len(body), size):
                piece = body[at:at + size]
                stream.sendall(b'\x16\x03\x01' + struct.pack('>H', len(piece)) + piece)
            greeting = False
        else:
            stream.sendall(flight)
        more = stream.recv(65536)
        if not more: sys.exit('closed')
        heard.write(more)
client.write(b'GET / HTTP/1.1\r\nHost: ' + name.encode() + b'\r\nConnection: close\r\n\r\n')
stream.sendall(said.read())
answer = b''
while b'hello' not in answer:
    heard.write(stream.recv(65536))
    try: answer += client.read(65536)
    except ssl.SSLWantReadError: pass
print(answer.decode())
"#;

fn in_pieces(place: &str, name: &str, size: &str) -> Vec<String> {
    strings(&["/usr/bin/python3", "-c", IN_PIECES, place, name, size])
}

/// Proves: NET-4 sni
#[test]
fn n09_a_name_in_pieces_is_read_whole() {
    for size in ["1", "7", "100"] {
        let lab = lab();
        let seen = Rc::clone(&lab);
        in_lab(&lab, "N09", format!("a TLS greeting for another host, in records of {size} bytes"))
            .proves(&["NET-4 sni"])
            .held_by(&["names-agree"])
            .flags(allow(&["web.example"]))
            .command(move |_| in_pieces("web.example", "evil.example", size))
            .succeeded(move |_, _| {
                seen.saw(|entry| entry["name"] == "evil.example" && entry["kind"] == "tls")
            })
            .check();
        // The same is no reason to refuse the host that was asked for.
        let world = World::new();
        let command = in_pieces("web.example", "web.example", size);
        let honest = lab.sandbox_run(&world, ["--allow-host", "web.example"], command).run();
        assert!(honest.out().contains("hello from web.example"), "{size}: {}", honest.err());
    }
}

/// A greeting with one more extension, `encrypted_client_hello` (RFC 9849), to a server that sends it back.
const ENCRYPTED: &str = r#"
import os, socket, ssl, struct, sys
said = ssl.MemoryBIO()
client = ssl._create_unverified_context().wrap_bio(ssl.MemoryBIO(), said, server_hostname=sys.argv[1])
try: client.do_handshake()
except ssl.SSLWantReadError: pass
hello = said.read()[9:]
at = 2 + 32
at += 1 + hello[at]
at += 2 + struct.unpack('>H', hello[at:at + 2])[0]
at += 1 + hello[at]
# Outer, HKDF-SHA256 with AES-128-GCM, a key of X25519 and 200 bytes that nobody here can read.
inner = struct.pack('>BHHBH', 0, 1, 1, 7, 32) + os.urandom(32) + struct.pack('>H', 200) + os.urandom(200)
extensions = hello[at + 2:] + struct.pack('>HH', 0xfe0d, len(inner)) + inner
body = hello[:at] + struct.pack('>H', len(extensions)) + extensions
message = b'\x01' + struct.pack('>I', len(body))[1:] + body
greeting = b'\x16\x03\x01' + struct.pack('>H', len(message)) + message
stream = socket.create_connection(('web.example', 7), 5)
stream.sendall(greeting)
heard = b''
try:
    while len(heard) < len(greeting):
        more = stream.recv(4096)
        if not more: break
        heard += more
except OSError: pass
print('came back' if heard == greeting else 'lost')
"#;

/// The name that counts is the one that everybody can read. That of a host which is allowed says nothing about the other one:
/// SECURITY.md has it among what is not a boundary.
///
/// Proves: NET-4 sni
#[test]
fn n09_an_encrypted_name_does_not_hide_the_open_one() {
    let lab = lab();
    in_lab(&lab, "N09", "an encrypted TLS greeting inside one for another host")
        .proves(&["NET-4 sni"])
        .held_by(&["names-agree"])
        .flags(allow(&["web.example:7"]))
        .command(|_| strings(&["/usr/bin/python3", "-c", ENCRYPTED, "evil.example"]))
        .succeeded(|_, output| output.out().contains("came back"))
        .check();
    // Browsers send bytes in that place to every host.
    let world = World::new();
    let command = strings(&["/usr/bin/python3", "-c", ENCRYPTED, "web.example"]);
    let honest = lab.sandbox_run(&world, ["--allow-host", "web.example:7"], command).run();
    assert_eq!(honest.out(), "came back\n", "{}", honest.err());
}

/// In HTTP/2 every request of a connection may name another host, and nobody here reads it.
///
/// Proves: NET-4 one-reading
#[test]
fn n10_http2_without_tls_is_not_passed_on() {
    const PREFACE: &str = "PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n";
    let tunnel =
        format!("CONNECT web.example:80 HTTP/1.1\\r\\nHost: web.example:80\\r\\n\\r\\n{PREFACE}");
    for (how, place, sent) in
        [("directly", "web.example:80", PREFACE.to_owned()), ("in a tunnel", PROXY, tunnel)]
    {
        let lab = lab();
        let seen = Rc::clone(&lab);
        in_lab(&lab, "N10", format!("HTTP/2 without TLS, {how}"))
            .proves(&["NET-4 sni"])
            .held_by(&["strict-http"])
            .flags(allow(&["web.example"]))
            .command(move |world| probe(world, &["raw", place, &sent]))
            .bare_command(move |world| probe(world, &["raw", "web.example:80", PREFACE]))
            .succeeded(move |_, _| seen.requested("", "PRI * HTTP/2.0"))
            .contained(|_, output| output.out().contains("HTTP/1.1 505"))
            .check();
    }
}

/// A client that would speak HTTP/2 is offered HTTP/1.1, in which every request is read.
///
/// Proves: NET-4 sni, NET-5 credentials
#[test]
fn n09_a_request_in_opened_tls_is_for_the_host_of_the_connection() {
    const ASKED: &[&str] =
        &["--noproxy", "*", "--http2", "-H", "Host: evil.example", "https://web.example/hidden"];
    let lab = lab();
    let (seen, quiet) = (Rc::clone(&lab), Rc::clone(&lab));
    in_lab(&lab, "N09", "a request for another host by a client of HTTP/2, in TLS that is opened")
        .proves(&["NET-4 sni", "NET-5 credentials"])
        .held_by(&["names-agree"])
        .prepare(move |world| {
            quiet.forget();
            world.write("outside/token", "s3cr3t-of-the-host");
        })
        .flags(|world| {
            let token = world.outside().join("token");
            let credential = format!("KEY=file:{},host=web.example", token.display());
            let allowed = ["--allow-host", "web.example", "--intercept", "--credential"];
            [&strings(&allowed)[..], &[credential]].concat()
        })
        .command(curl(ASKED))
        .succeeded(move |_, _| seen.requested("evil.example", "GET /hidden"))
        .contained(|_, output| output.out().contains("the request is for evil.example"))
        .check();
}
