//! WebSockets, by a library of other people's on both ends: frames pass every way there is, and count.

use palisade_testkit::Part;

use crate::egress_support::Net;

/// Sends three messages of so many bytes and prints how long each answer is. With `tunnel`, through the proxy.
const TALK: &str = r#"
import asyncio, socket, sys, websockets
url, size, way = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def tunnel(place):
    stream = socket.create_connection(('198.18.0.1', 3128), 10)
    stream.sendall(f'CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n'.encode())
    assert b' 200 ' in stream.recv(1000)
    stream.setblocking(False)
    return stream
async def talk():
    place = url.split('/')[2]
    more = {}
    if way == 'tunnel':
        more['sock'] = tunnel(place)
        if url.startswith('wss:'): more['server_hostname'] = place.split(':')[0]
    async with websockets.connect(url, compression=None, max_size=None, **more) as session:
        for _ in range(3):
            await session.send(bytes(size))
            print(len(await session.recv()), flush=True)
        await (await session.ping())
        print('pong')
asyncio.run(talk())
"#;

const WHOLE: &str = "70000\n70000\n70000\npong\n";

fn talk<'a>(url: &'a str, size: &'a str, way: &'a str) -> [&'a str; 6] {
    ["/usr/bin/python3", "-c", TALK, url, size, way]
}

/// Proves: NET-5 ignoring, NET-5 variables
#[test]
fn frames_pass_in_both_directions() {
    let net = Net::with(&[Part::WebSocket]);
    for url in ["ws://ws.example:8000/", "wss://ws.example:9443/"] {
        for way in ["direct", "tunnel"] {
            let flags = ["--allow-host", "ws.example:8000,9443"];
            let output = net.run(&flags, &talk(url, "70000", way));
            assert_eq!(output.out(), WHOLE, "{url} {way}: {}", output.err());
        }
    }
}

/// Proves: NET-5 credentials
#[test]
fn frames_pass_where_tls_is_opened() {
    let net = Net::with(&[Part::WebSocket]);
    let token = net.world.write("outside/token", "s3cr3t");
    let credential = format!("KEY=file:{},host=ws.example:9443", token.display());
    let flags = ["--allow-host", "ws.example:9443", "--credential", &credential, "--intercept"];
    for way in ["direct", "tunnel"] {
        let output = net.run(&flags, &talk("wss://ws.example:9443/", "70000", way));
        assert_eq!(output.out(), WHOLE, "{way}: {}", output.err());
    }
}

/// Proves: NET-7 bytes
#[test]
fn frames_count_against_the_limit_of_bytes() {
    let net = Net::with(&[Part::WebSocket]);
    for url in ["ws://ws.example:8000/", "wss://ws.example:9443/"] {
        let flags = ["--allow-host", "ws.example:8000,9443", "--max-bytes", "200K"];
        let output = net.run(&flags, &talk(url, "70000", "direct"));
        assert_eq!(output.out(), "70000\n", "{url}: the second answer is one too many");
        assert!(output.err().contains("the limit of bytes is reached"), "{url}: {}", output.err());
    }
}
