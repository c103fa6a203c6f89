use super::*;
use crate::network::tests::with_network_of;
use palisade_egress::config::{Checks, Limits, Lookup, OnUnknown};
use palisade_hosts::{HostEntry, Rules};
use palisade_sys::clone::{Forked, fork};
use palisade_sys::proc::sig;
use palisade_sys::proc::{PollFd, PollFlags};
use std::io::Read as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(20);

fn config() -> Config {
    let allowed = vec!["203.0.113.7:80".parse::<HostEntry>().unwrap()];
    Config {
        checks: Checks::default(),
        rules: Rules::new(allowed, Vec::new(), Vec::new(), Vec::new()),
        on_unknown: OnUnknown::Deny,
        limits: Limits::default(),
        follow_redirects: false,
        upstream: None,
        credentials: Vec::new(),
        authority: None,
        lookup: Lookup::default(),
    }
}

/// What it says, until `wanted` finds what it looks for.
fn hear<T>(process: &EgressProcess, mut wanted: impl FnMut(EgressMessage) -> Option<T>) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut watched = [PollFd::from_borrowed_fd(process.socket(), PollFlags::IN)];
        assert_eq!(proc::poll(&mut watched, Some(left)).unwrap(), 1, "nothing is heard");
        if let Some(found) = wanted(process.receive()) {
            return found;
        }
    }
}

/// Connects from inside, in a process of its own, and waits for the end of the connection.
fn knock() {
    if let Forked::Child = fork().unwrap() {
        creds::set_pdeathsig(sig::SIGKILL).unwrap();
        let mut stream = TcpStream::connect("203.0.113.9:22").unwrap();
        let _refused = stream.read(&mut [0]);
        proc::exit_now(0);
    }
}

/// Confined to its filter, the process still does what it is for; and its end is noticed.
///
/// Proves: NET-5 every-port, SYS-1 egress
#[test]
fn the_process_judges_what_comes_from_inside_and_its_end_is_heard() {
    with_network_of(
        |_| knock(),
        |made| {
            let process =
                EgressProcess::start_as(&Helpers::default(), None, config(), made).unwrap();
            hear(&process, |heard| match heard {
                EgressMessage::EgressEvent(EgressEvent::Ready) => Some(()),
                EgressMessage::EgressEvent(other) => panic!("before it is ready: {other:?}"),
                EgressMessage::Nothing => None,
                EgressMessage::Gone | EgressMessage::Garbled => panic!("it died"),
            });
            let attempt = hear(&process, |heard| match heard {
                EgressMessage::EgressEvent(EgressEvent::Attempt(attempt)) => Some(attempt),
                EgressMessage::EgressEvent(EgressEvent::Unable { why }) => panic!("{why}"),
                EgressMessage::Gone | EgressMessage::Garbled => panic!("it died"),
                _ => None,
            });
            assert_eq!((attempt.host.as_str(), attempt.port), ("203.0.113.9", 22));
            assert!(attempt.reason.is_some(), "{attempt:?}");
            let filter =
                std::fs::read_to_string(format!("/proc/{}/status", process.helper.pid())).unwrap();
            assert!(
                filter.contains("Seccomp:\t2") && filter.contains("NoNewPrivs:\t1"),
                "{filter}"
            );
            proc::pidfd_send_signal(process.helper.pidfd(), sig::SIGKILL).unwrap();
            hear(&process, |heard| matches!(heard, EgressMessage::Gone).then_some(()));
            process.send(&EgressRequest::End).unwrap();
        },
    );
}

/// Proves: NET-9 published
#[test]
fn a_port_in_use_is_named_with_what_to_do() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let wanted = Publish { address: "127.0.0.1".parse().unwrap(), port, inner: 80 };
    let error = listen_for(&[wanted]).unwrap_err();
    assert!(error.detail.contains(&format!("127.0.0.1:{port}")), "{error}");
    assert!(error.fix.unwrap().contains("--publish"));
}
