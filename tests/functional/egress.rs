//! The way out for programs that know of no proxy: allowed names by name and port, over both protocols,
//! and nothing else (NET-3 to NET-5).

use std::time::{Duration, Instant};

use palisade_testkit::patiently;

use crate::egress_support::Net;

/// No refusal may take longer, and every hang would.
const AT_ONCE: Duration = Duration::from_secs(8);

/// Proves: NET-1 proxy, NET-5 ignoring
#[test]
fn curl_without_a_proxy_reaches_an_allowed_name_by_both_protocols() {
    let net = Net::new();
    let output = net.script(
        &["--allow-host", "web.example"],
        "for version in -4 -6; do for scheme in http https; do \
           curl -sS --noproxy '*' --max-time 10 $version $scheme://web.example/; \
         done; done",
    );
    output.assert_code(0);
    assert_eq!(output.out(), "hello from web.example\n".repeat(4), "{}", output.err());
    for place in ["203.0.113.10:80", "203.0.113.10:443"] {
        assert!(net.lab.connected(place), "{place}: {:#?}", net.lab.journal());
    }
}

/// Proves: NET-5 ignoring
#[test]
fn a_name_that_stands_for_one_protocol_only_is_reached_by_the_other_too() {
    let net = Net::new();
    let output = net.script(
        &["--allow-host", "four.example,six.example"],
        "for name in four six; do curl -sS --noproxy '*' --max-time 10 https://$name.example/; done",
    );
    output.assert_code(0);
    assert_eq!(output.out(), "hello from four.example\nhello from six.example\n");
    assert!(net.lab.connected("[2001:db8::16]:443"), "{:#?}", net.lab.journal());
}

/// Proves: NET-3 globs, NET-6 allowed-names
#[test]
fn what_nobody_allowed_is_refused_at_once_and_never_looked_up() {
    let net = Net::new();
    let start = Instant::now();
    let output = net.script(
        &["--allow-host", "web.example", "--on-ask", "deny"],
        "curl -sS --noproxy '*' http://other.example/; echo name $?; \
         curl -sS --noproxy '*' https://203.0.113.11/; echo tls $?; \
         curl -sS --noproxy '*' https://[2001:db8::11]/; echo six $?; \
         curl -s -o /dev/null -w 'page %{http_code}\\n' --noproxy '*' http://203.0.113.11/",
    );
    assert!(start.elapsed() < patiently(AT_ONCE), "{:?}", start.elapsed());
    let out = output.out();
    assert!(out.starts_with("name 6\n"), "{out}{}", output.err());
    for refused in ["tls ", "six "] {
        let code = out.lines().find_map(|line| line.strip_prefix(refused)).unwrap();
        assert!(["7", "35"].contains(&code), "{out}");
    }
    assert!(out.ends_with("page 403\n"), "{out}");
    assert!(!net.lab.asked_for("other.example"), "{:#?}", net.lab.journal());
    assert!(!net.lab.connected("203.0.113.11:"), "{:#?}", net.lab.journal());
    assert!(!net.lab.connected("[2001:db8::11]:"), "{:#?}", net.lab.journal());
}

/// Proves: NET-3 globs
#[test]
fn a_star_is_every_name_below_and_two_are_the_name_itself_too() {
    let net = Net::new();
    let script = "for name in other.example deep.sub.other.example; do \
        curl -s --noproxy '*' --max-time 10 http://$name/ || echo no; done";
    let below = net.script(&["--on-ask", "deny", "--allow-host", "*.other.example"], script);
    assert_eq!(below.out(), "no\nhello from deep.sub.other.example\n");
    let with_itself = net.script(&["--allow-host", "**.other.example"], script);
    assert_eq!(with_itself.out(), "hello from other.example\nhello from deep.sub.other.example\n");
}

/// Proves: NET-3 block-list
#[test]
fn what_is_denied_stays_denied_whatever_allows_it() {
    let net = Net::new();
    let flags = ["--allow-host", "**.example", "--deny-host", "*.other.example"];
    let output = net.script(
        &flags,
        "for name in web.example other.example deep.sub.other.example; do \
           curl -s --noproxy '*' --max-time 10 http://$name/ || echo no; done",
    );
    assert_eq!(output.out(), "hello from web.example\nhello from other.example\nno\n");
}

/// Proves: NET-3 ports
#[test]
fn only_the_usual_ports_are_open_unless_others_are_named() {
    let net = Net::new();
    let script = "for port in 80 8080; do \
        curl -s -o /dev/null -w '%{http_code}\\n' --noproxy '*' --max-time 10 http://web.example:$port/; \
        done";
    let usual = net.script(&["--allow-host", "web.example"], script);
    assert_eq!(usual.out(), "200\n403\n");
    assert!(!net.lab.connected("203.0.113.10:8080"), "{:#?}", net.lab.journal());
    let named = net.script(&["--allow-host", "web.example:80,8080"], script);
    assert_eq!(named.out(), "200\n200\n");
}

/// Proves: NET-3 cidrs
#[test]
fn an_address_is_reached_only_if_it_was_allowed_as_an_address() {
    let net = Net::new();
    let script = "for host in 203.0.113.10 203.0.113.130 [2001:db8::10]; do \
        curl -s -o /dev/null -w '%{http_code}\\n' --noproxy '*' --max-time 10 http://$host/; done";
    let by_name = net.script(&["--allow-host", "web.example"], script);
    assert_eq!(by_name.out(), "403\n403\n403\n");
    let by_range =
        net.script(&["--allow-host", "203.0.113.0/25", "--allow-host", "2001:db8::10"], script);
    assert_eq!(by_range.out(), "200\n403\n200\n");
}

/// Proves: NET-3 special-addresses, NET-3 local-names
#[test]
fn no_range_opens_what_is_never_open() {
    let net = Net::new();
    let output = net.script(
        &["--allow-host", "0.0.0.0/0", "--allow-host", "::/0", "--allow-host", "*"],
        "for host in 10.0.0.5 169.254.169.254 100.64.0.5 [fd00::5] [64:ff9b::a00:5] private.example \
           metadata.example loopback.example local.example mixed.example printer.local; do \
           curl -s -o /dev/null -w \"%{http_code} $host\\n\" --noproxy '*' --max-time 10 http://$host/; \
         done",
    );
    assert!(!output.out().contains("200 "), "{}", output.out());
    for place in ["10.0.0.5:", "169.254.", "100.64.", "[fd00::5]", "[64:ff9b", "127.0.0.1:"] {
        assert!(!net.lab.connected(place), "{place}: {:#?}", net.lab.journal());
    }
    assert!(!net.lab.asked_for("printer.local"), "{:#?}", net.lab.journal());
}

/// Proves: NET-4 sni
#[test]
fn a_server_is_called_by_the_name_it_was_looked_up_by() {
    let net = Net::new();
    let output = net.script(
        &["--allow-host", "web.example"],
        "curl -sS --noproxy '*' --max-time 10 --connect-to other.example:443:web.example:443 \
           https://other.example/; echo tls $?; \
         curl -s --noproxy '*' --max-time 10 -H 'Host: other.example' http://web.example/; echo",
    );
    let out = output.out();
    assert!(!out.contains("tls 0\n"), "{out}");
    assert!(!out.contains("hello"), "{out}");
    assert!(out.contains("other.example"), "the refusal names what was called: {out}");
    assert!(!net.lab.saw(|entry| entry["name"] == "other.example"), "{:#?}", net.lab.journal());
    assert!(!net.lab.requested("other.example", ""), "{:#?}", net.lab.journal());
}

/// Proves: NET-5 ignoring
#[test]
fn a_server_that_speaks_first_is_heard() {
    let net = Net::new();
    let output = net.python(
        &["--allow-host", "web.example:25,7"],
        "import socket\n\
         mail = socket.create_connection(('web.example', 25), 10)\n\
         print(mail.recv(100).decode().strip())\n\
         mail.sendall(b'HELO'); print(mail.recv(100).decode())\n\
         echo = socket.create_connection(('web.example', 7), 10)\n\
         echo.sendall(b'\\0' + b'x' * 299999); echo.shutdown(socket.SHUT_WR)\n\
         print(sum(len(part) for part in iter(lambda: echo.recv(65536), b'')))\n",
    );
    output.assert_code(0);
    assert_eq!(output.out(), "220 mail.example\nHELO\n300000\n");
}

/// Proves: NET-5 ignoring, NET-5 variables
#[test]
fn a_client_that_has_said_all_is_still_answered() {
    let net = Net::new();
    let output = net.python(
        &["--allow-host", "web.example:80,7"],
        "import socket\n\
         def ask(place, data):\n\
         \x20 s = socket.create_connection(place, 10); s.sendall(data); s.shutdown(socket.SHUT_WR)\n\
         \x20 return b''.join(iter(lambda: s.recv(1000), b'')).splitlines()[-1].decode()\n\
         rest = b' HTTP/1.1\\r\\nHost: web.example\\r\\n\\r\\n'\n\
         print(ask(('web.example', 80), b'GET /' + rest))\n\
         print(ask(('198.18.0.1', 3128), b'GET http://web.example/' + rest))\n\
         print(ask(('web.example', 7), b'a line\\n'))\n",
    );
    output.assert_code(0);
    let page = "hello from web.example\n";
    assert_eq!(output.out(), format!("{page}{page}a line\n"));
}

/// Proves: NET-7 logged, NET-5 ignoring
#[test]
fn no_datagram_leaves_and_nobody_waits_for_an_answer() {
    let net = Net::new();
    let start = Instant::now();
    let output = net.python(
        &["--allow-host", "web.example,203.0.113.0/24"],
        "import socket, errno\n\
         for host in ('203.0.113.10', socket.gethostbyname('web.example'), '2001:db8::10'):\n\
         \x20 s = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET, socket.SOCK_DGRAM)\n\
         \x20 s.settimeout(10)\n\
         \x20 try:\n\
         \x20  s.connect((host, 443)); s.send(b'carried out'); s.recv(10); print('answered')\n\
         \x20 except OSError as e: print(errno.errorcode.get(e.errno, e))\n",
    );
    output.assert_code(0);
    assert!(start.elapsed() < patiently(AT_ONCE), "{}", output.out());
    for line in output.out().lines() {
        assert!(["ECONNREFUSED", "EACCES", "EPERM", "EHOSTUNREACH"].contains(&line), "{line}");
    }
    assert!(!net.lab.saw(|entry| entry["kind"] == "udp"), "{:#?}", net.lab.journal());
}

/// Proves: NET-2 loopback, NET-2 same-port
#[test]
fn the_loopback_inside_stays_the_programs_own() {
    let net = Net::new();
    let output = net.python(
        &["--allow-host", "web.example"],
        "import socket, threading\n\
         for port in (3128, 8080, 5353):\n\
         \x20 server = socket.socket(); server.bind(('0.0.0.0', port)); server.listen()\n\
         \x20 threading.Thread(target=lambda: server.accept()[0].sendall(b'mine')).start()\n\
         \x20 print(socket.create_connection(('127.0.0.1', port), 10).recv(4).decode())\n\
         try: socket.create_connection(('127.0.0.1', 80), 10); print('connected')\n\
         except ConnectionRefusedError: print('refused')\n",
    );
    output.assert_code(0);
    assert_eq!(output.out(), "mine\nmine\nmine\nrefused\n");
    assert!(!net.lab.connected("127.0.0.1:"), "{:#?}", net.lab.journal());
}

/// Proves: NET-1 none-default
#[test]
fn without_a_word_about_it_there_is_no_way_out() {
    let net = Net::new();
    let output =
        net.script(&[], "curl -sS --max-time 10 http://web.example/; echo $?; env | grep -i proxy");
    assert_eq!(output.out(), "6\n");
    assert!(net.lab.journal().is_empty(), "{:#?}", net.lab.journal());
}
