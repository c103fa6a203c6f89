use super::*;

fn place(text: &str) -> WebAddress {
    let base = WebAddress {
        scheme: Scheme::Http,
        authority: Authority::parse("x").unwrap(),
        path: "/".to_owned(),
    };
    base.join(text).unwrap()
}

fn text(place: &WebAddress) -> String {
    let scheme = if place.scheme == Scheme::Http { "http" } else { "https" };
    format!("{scheme}://{}{}", place.authority, place.path)
}

/// Proves: NET-4 redirects
#[test]
fn a_location_is_understood_as_a_browser_would() {
    let base = place("http://a.example:8080/b/c/d?q");
    for (location, expected) in [
        ("https://B.example", "https://b.example/"),
        ("HTTP://0x7f.1/x#y", "http://127.0.0.1/x"),
        ("//b.example:81/x?y", "http://b.example:81/x?y"),
        ("/x/../y/./z", "http://a.example:8080/y/z"),
        ("x?y", "http://a.example:8080/b/c/x?y"),
        ("../../../x", "http://a.example:8080/x"),
        ("..", "http://a.example:8080/b/"),
        ("?r", "http://a.example:8080/b/c/d?r"),
        ("", "http://a.example:8080/b/c/d?q"),
        ("#there", "http://a.example:8080/b/c/d?q"),
        ("http://[::ffff:127.0.0.1]/", "http://127.0.0.1/"),
        ("http://x.example?y", "http://x.example/?y"),
    ] {
        assert_eq!(text(&base.join(location).unwrap()), expected, "{location}");
    }
    for nowhere in [
        "ftp://x/",
        "file:///etc/passwd",
        "javascript:x",
        "http:x",
        "http://u@x/",
        "http://x y/",
        "//",
    ] {
        assert_eq!(base.join(nowhere), None, "{nowhere}");
    }
}
