//! Who may use the page of `sandbox serve`, and how it looks: logins, pages of other sites, tunnels, light and dark, a phone.

use palisade_testkit::{Browser, World};
use serde_json::{Value, json};

use crate::page_support::{Listening, PageServer};
use crate::service_support::{Server, answer};
use crate::sessions_support::Sessions;

/// Proves: TOOL-1 page-access
#[test]
fn a_browser_logs_in_once_with_the_link_or_with_the_token_and_out_again() {
    let world = World::new();
    let server = PageServer::start(&world);
    let mut browser = Browser::start(&world);
    browser.open(&server.address());
    browser.wait_for_text("Log in");
    assert!(!browser.text().contains("Questions"));
    browser.complaints();

    browser.wait_for("document.activeElement.name === 'token'");
    browser.insert("wrong");
    browser.press("Enter");
    browser.wait_for_text("the token is not that of this server");
    browser.evaluate("document.getElementById('token').select()");
    browser.insert(&server.token);
    browser.press("Enter");
    browser.wait_for_text("Nothing waits for you");
    // No script can read the cookie, and the token is kept nowhere.
    assert_eq!(browser.evaluate("document.cookie"), json!(""));
    let kept = browser.evaluate("JSON.stringify(localStorage)");
    assert!(!kept.as_str().unwrap().contains(&server.token), "{kept}");

    let key = browser.evaluate("localStorage.getItem('palisade-key')");
    browser.click_text("Log out");
    browser.wait_for_text("Open the link that");
    let status = "fetch('/v1/sandboxes', { headers: { 'X-Palisade-Request': KEY } }).then(answer => answer.status)";
    assert_eq!(browser.evaluate(&status.replace("KEY", &key.to_string())), json!(401));

    browser.open(&server.link);
    browser.wait_for_text("Nothing waits for you");
    assert_eq!(browser.evaluate("location.hash"), json!(""), "the code is not in the history");
    let code = server.link.rsplit_once("#code=").unwrap().1;
    let again = server.curl("/v1/login").args(["-H", "Content-Type: application/json", "-d"]);
    let again = answer(again.arg(json!({ "code": code }).to_string()));
    assert!(again.expect_problem(401, "security").contains("has been used"));
}

/// Proves: TOOL-1 page-access
#[test]
fn a_cookie_is_worth_nothing_without_the_key_of_the_page() {
    let world = World::new();
    let server = PageServer::start(&world);
    let json_type = ["-H", "Content-Type: application/json"];
    let log_in = server.curl("/v1/login").args(json_type).args(["-i", "-d"]);
    let logged_in = log_in.arg(json!({ "token": server.token }).to_string()).run();
    let said = logged_in.out().to_lowercase();
    let cookie = said.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let (cookie, properties) = cookie.split_once(';').unwrap();
    assert_eq!(properties.trim(), "path=/; max-age=43200; httponly; samesite=strict");
    assert!(cookie.starts_with(&format!("palisade-{}=", server.port)), "{cookie}");
    let body: Value = serde_json::from_str(logged_in.out().lines().last().unwrap()).unwrap();
    let key = format!("X-Palisade-Request: {}", body["requestKey"].as_str().unwrap());

    let ask = |headers: &[&str]| {
        let curl = server.curl("/v1/sandboxes").args(["-H", &format!("Cookie: {cookie}")]);
        answer(headers.iter().fold(curl, |curl, header| curl.args(["-H", header])))
    };
    ask(&[&key]).expect(200);
    ask(&[]).expect_problem(403, "security");
    ask(&["X-Palisade-Request: 1"]).expect_problem(401, "security");
    ask(&[&key, "Sec-Fetch-Site: same-site"]).expect_problem(403, "security");
    ask(&[&key, "Origin: http://127.0.0.1:1"]).expect_problem(403, "security");
    ask(&[&key, "Host: evil.example"]).expect_problem(403, "security");

    let page = server.curl("/").args(["-i"]).run();
    let head = page.out().to_lowercase();
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cross-origin-resource-policy: same-origin",
    ] {
        assert!(head.lines().any(|line| line == header), "{header}: {head}");
    }
}

/// A page that somebody else serves at another port of the same machine: browsers send it the cookie, and it is of the same site.
const EVIL: &str = r#"<!doctype html><title>evil</title><script>
window.attack = async (target) => {
  const body = JSON.stringify({ name: "planted" });
  const tries = [
    { method: "POST", mode: "no-cors", credentials: "include", body },
    { method: "POST", mode: "no-cors", credentials: "include", body, headers: { "Content-Type": "text/plain" } },
    { method: "POST", mode: "cors", credentials: "include", body, headers: { "Content-Type": "application/json" } },
    { method: "POST", mode: "cors", credentials: "include", body, headers: { "Content-Type": "application/json", "X-Palisade-Request": "1" } },
    { method: "GET", mode: "cors", credentials: "include" },
    { method: "GET", mode: "no-cors", credentials: "include" },
  ];
  const seen = [];
  for (const one of tries) {
    try {
      const answer = await fetch(target + "v1/sandboxes", one);
      seen.push(answer.type === "opaque" ? "opaque" : await answer.text());
    } catch { seen.push("refused"); }
  }
  const form = document.createElement("form");
  form.method = "POST"; form.action = target + "v1/sandboxes"; form.enctype = "text/plain"; form.target = "result";
  const field = document.createElement("input");
  field.name = '{"name":"planted","x":"'; field.value = '"}';
  form.append(field);
  const frame = document.createElement("iframe");
  frame.name = "result";
  document.body.append(frame, form);
  form.submit();
  await new Promise((done) => { frame.onload = done; setTimeout(done, 3000); });
  return seen;
};
window.framed = (target) => new Promise((done) => {
  const frame = document.createElement("iframe");
  frame.src = target;
  frame.onload = () => { try { done(frame.contentDocument ? "empty" : "blocked"); } catch { done("blocked"); } };
  document.body.append(frame);
});
</script><body>evil</body>"#;

/// Proves: TOOL-1 page-access
#[test]
fn a_page_of_another_site_can_neither_read_nor_change_anything() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = PageServer::start(&world);
    let mut browser = server.browser();
    let evil = Listening::site(EVIL);
    let unix = Server::start(&world, &[]);
    let tunnel = Listening::tunnel(unix.socket());
    let targets = [server.address(), format!("http://127.0.0.1:{}/", tunnel.port)];
    for site in ["127.0.0.1", "localhost"] {
        for target in &targets {
            browser.open(&format!("http://{site}:{}/", evil.port));
            browser.wait_for("document.title === 'evil' && window.attack");
            let seen = browser.evaluate(&format!("attack({})", json!(target)));
            for answer in seen.as_array().unwrap() {
                assert!(answer == "refused" || answer == "opaque", "{site} {target}: {seen}");
            }
            browser.evaluate(&format!("framed({})", json!(target)));
            assert_eq!(unix.get("/v1/sandboxes").expect(200)["sandboxes"], json!([]));
        }
    }
    // The page itself still works, and so does the one through the tunnel, where nobody has to log in.
    browser.open(&server.address());
    browser.wait_for_text("Nothing waits for you");
    browser.complaints();
    browser.open(&format!("http://localhost:{}/", tunnel.port));
    browser.wait_for_text("Nothing waits for you");
    browser.press("2");
    browser.wait_for_text("No sandbox is running");
    assert!(!browser.text().contains("Log out"));
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Proves: TOOL-1 page-looks
#[test]
fn every_view_fits_a_phone_in_light_and_dark_and_has_names_for_everything() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let long = "a-rather-long-name-of-a-directory/".repeat(6);
    world.write(format!("outside/{long}file"), "x");
    let server = PageServer::start(&world);
    let settings = json!({ "recording.terminal": "output" });
    let id = server.create(
        &json!({ "name": "work", "transaction": "overlay", "ask": "always", "settings": settings }),
    );
    server.run(
        "work",
        &format!("mkdir -p {long}; seq 1 400 > {long}numbers; printf '%0300d' 0 > zeros"),
    );
    server
        .post("/v1/sandboxes/work/checkpoints", &json!({ "message": "x".repeat(150) }))
        .expect(201);
    let ended = server.begin("work", &["sh", "-c", "seq 1 200; printf '%0300d' 0"]);
    server.output("work", ended);
    server.begin("work", &["cat", world.outside().join(&long).join("file").to_str().unwrap()]);

    let mut browser = server.browser();
    browser.wait_for_text("1 call");
    browser.resize(375, 812);
    let views = [
        ("questions", ".question"),
        ("sandboxes", ".sandbox-row"),
        ("recordings", ".recording"),
        ("audit", ".record"),
        (&format!("sandbox/{id}"), ".chart"),
        (&format!("sandbox/{id}/terminal"), ".term"),
        (&format!("sandbox/{id}/changes"), ".file"),
        (&format!("sandbox/{id}/checkpoints"), ".checkpoint"),
        (&format!("sandbox/{id}/recordings"), ".recording"),
        (&format!("sandbox/{id}/events"), ".record"),
    ];
    for (view, element) in views {
        for scheme in ["light", "dark"] {
            browser.prefer(scheme);
            browser.open(&format!("{}#/{view}", server.address()));
            browser.wait_for(&format!("document.querySelector('main {element}')"));
            if view.ends_with("changes") {
                browser.evaluate(
                    "document.querySelectorAll('.file').forEach(it => { it.open = true; })",
                );
                browser.wait_for("document.querySelectorAll('.patch').length >= 2");
            }
            let width = browser.evaluate("document.documentElement.scrollWidth");
            assert_eq!(width, json!(375), "{view} {scheme}");
            let nameless = browser.evaluate(
                "[...document.querySelectorAll('button, a, input, select, [role=textbox], [role=img]')].filter(it => it.offsetParent && \
                 !(it.innerText?.trim() || it.ariaLabel || it.title || it.labels?.length)).map(it => it.outerHTML)",
            );
            assert_eq!(nameless, json!([]), "{view}");
        }
    }
    let background = "getComputedStyle(document.body).backgroundColor";
    browser.prefer("light");
    let light = browser.wait_for(background);
    browser.prefer("dark");
    let dark = browser.wait_for(background);
    assert_ne!(light, dark);
    // The switch counts before the system, and is remembered.
    browser.press("t");
    assert_eq!(browser.evaluate(background), light);
    browser.evaluate("window.isOld = true; location.reload()");
    browser.wait_for("!window.isOld && document.querySelector('main')");
    assert_eq!(browser.evaluate(background), light);
    browser.press("?");
    browser.wait_for_text("next and previous item");
    let complaints = browser.complaints();
    assert!(
        complaints.iter().all(|it| it.contains("409") && it.contains("/apply")),
        "{complaints:?}"
    );
}
