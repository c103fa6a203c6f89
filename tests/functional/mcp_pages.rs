//! Questions that a client of `sandbox mcp` must not carry: those about secrets, and all of them where the client has no forms. The person
//! answers on a page of ours, at a URL that the client opens (elicitation in url mode).

use std::fs;
use std::net::TcpStream;

use palisade_testkit::{Browser, Invocation, World};
use serde_json::{Value, json};

use crate::gate::hidden;
use crate::mcp_support::{McpClient, nothing_is_left};
use crate::service_support::{Answer, answer};
use crate::sessions_support::{Sessions, wait_until};

const KEY: &str = "the key\n";

fn secret(world: &World) -> String {
    world.write("home/.ssh/id_ed25519", KEY).to_string_lossy().into_owned()
}

fn both_modes() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} } })
}

/// The request for input with this number, counted from 0: its id and parameters.
#[track_caller]
fn asked(client: &McpClient, number: usize) -> (Value, Value) {
    let requests = || {
        let printed = client.running.printed();
        let messages = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let asked = messages.filter(|it| it["method"] == "elicitation/create");
        asked.collect::<Vec<_>>()
    };
    wait_until("the client is asked", || requests().len() > number);
    let request = requests().swap_remove(number);
    (request["id"].clone(), request["params"].clone())
}

fn agree(client: &mut McpClient, request: &Value, action: &str) {
    client.send(&json!({ "jsonrpc": "2.0", "id": request, "result": { "action": action } }));
}

fn url_of(parameters: &Value) -> &str {
    assert_eq!(parameters["mode"], "url", "{parameters}");
    assert_eq!(parameters.get("requestedSchema"), None, "{parameters}");
    parameters["url"].as_str().unwrap()
}

fn origin(url: &str) -> &str {
    url.split_once("/question/").unwrap().0
}

fn curl(world: &World, url: &str) -> Invocation {
    world.bare("curl").args(["-sS", "-m", "60", url])
}

fn post(world: &World, url: &str, form: &str, headers: &[&str]) -> Answer {
    let headers = headers.iter().flat_map(|header| ["-H", header]);
    answer(curl(world, url).args(["-d", form]).args(headers))
}

/// As the page itself would.
fn submit(world: &World, url: &str, form: &str) -> Answer {
    post(world, url, form, &[&format!("Origin: {}", origin(url))])
}

fn completed(client: &McpClient, parameters: &Value) {
    let id = &parameters["elicitationId"];
    client.running.wait_for_stdout(&format!(
        "\"method\":\"notifications/elicitation/complete\",\"params\":{{\"elicitationId\":{id}}}"
    ));
}

/// Proves: TOOL-2 the-one-meant, TOOL-2 one-queue, TOOL-1 mcp
#[test]
fn a_secret_is_asked_on_a_page_that_only_its_own_form_answers_and_only_once() {
    let world = World::new();
    let secret = secret(&world);
    let _sessions = Sessions::new(&world);
    let mut client = McpClient::start(&world, &[], &both_modes());
    let read = client.begin("bash", &json!({ "command": format!("cat {secret}") }));
    let (request, parameters) = asked(&client, 0);
    let url = url_of(&parameters);
    assert!(parameters["message"].as_str().unwrap().contains(&secret), "{parameters}");
    assert!(!url.contains("ssh"), "nothing about the person is in the address: {url}");
    agree(&mut client, &request, "accept");

    // Connections that say nothing keep nobody out for long.
    let address = origin(url).strip_prefix("http://").unwrap();
    let connect = |_| TcpStream::connect(address).unwrap();
    let idle: Vec<TcpStream> = (0..24).map(connect).collect();
    assert_eq!(answer(curl(&world, url).args(["-m", "20"])).status, 200);
    drop(idle);

    // Looking answers nothing, and says what browsers may do with it.
    let shown = curl(&world, url).arg("-i").run();
    let shown = shown.out();
    for part in ["script-src", "unsafe"] {
        assert!(!shown.contains(part), "{shown}");
    }
    for part in ["default-src 'none'", "frame-ancestors 'none'", "no-store", &secret, "<form"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let own = format!("Origin: {}", origin(url));
    let yes = "answer=once&secret=yes";
    for (what, headers) in [
        ("no page", vec![]),
        ("a page without a name", vec!["Origin: null"]),
        ("the page of another site", vec!["Origin: http://evil.example"]),
        ("another site, by what the browser says", vec![&own, "Sec-Fetch-Site: cross-site"]),
        ("a name that leads here", vec![&own, "Host: evil.example"]),
    ] {
        assert_eq!(post(&world, url, yes, &headers).status, 403, "{what}");
    }
    let guessed = format!("{}/question/{}", origin(url), "0".repeat(64));
    assert_eq!(submit(&world, &guessed, yes).status, 410, "another address");
    // A secret is never allowed in passing.
    assert_eq!(submit(&world, url, "answer=once").status, 400);
    assert!(!client.running.printed().contains(&format!("\"id\":{read},")), "not answered yet");

    assert_eq!(submit(&world, url, yes).status, 200);
    client.running.wait_for_stdout(&format!("\"id\":{read},"));
    completed(&client, &parameters);
    assert_eq!(submit(&world, url, yes).status, 410, "it counts once");
    assert_eq!(answer(curl(&world, url)).status, 410);

    // The next question has an address of its own, and who declines has answered.
    let other = world.write("home/.ssh/other", KEY);
    let denied = client.begin("bash", &json!({ "command": format!("cat {}", other.display()) }));
    let (request, parameters) = asked(&client, 1);
    assert_ne!(url_of(&parameters), url);
    agree(&mut client, &request, "decline");
    client.running.wait_for_stdout(&format!("\"id\":{denied},"));
    assert_eq!(answer(curl(&world, url_of(&parameters))).status, 410);
    let told = client.end();
    assert_eq!(told.data(read)["output"], KEY);
    assert_ne!(told.data(denied)["exitCode"], 0);
    assert!(nothing_is_left(&world));
}

/// Proves: TOOL-2 web
#[test]
fn a_browser_shows_the_page_and_sends_its_form() {
    let world = World::new();
    let secret = world.write("home/.ssh/my   key", KEY);
    let command = json!({ "command": format!("cat '{}'", secret.display()) });
    let _sessions = Sessions::new(&world);
    let mut client = McpClient::start(&world, &[], &both_modes());
    let read = client.begin("bash", &command);
    let (request, parameters) = asked(&client, 0);
    agree(&mut client, &request, "accept");
    let mut browser = Browser::start(&world);
    browser.open(url_of(&parameters));
    // Another file has this name with fewer spaces.
    browser.wait_for_text("/.ssh/my   key");
    browser.wait_for_text("it is on the list of secrets");
    browser.click_text("Allow for the session");
    browser.wait_for_text("Nothing was allowed yet");
    browser.click("document.querySelector('input[type=checkbox]')");
    browser.click_text("Allow for the session");
    browser.wait_for_text("Your answer was taken");
    client.running.wait_for_stdout(&format!("\"id\":{read},"));
    // The answer was for the session.
    let again = client.call("bash", &command);
    let told = client.end();
    assert_eq!(told.data(read)["output"], KEY);
    assert_eq!(told.data(again)["output"], KEY);
}

/// Proves: TOOL-1 http-access
#[test]
fn another_user_of_the_machine_cannot_answer_though_it_knows_the_address() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can be another user");
        return;
    }
    let world = World::new();
    let secret = secret(&world);
    let _sessions = Sessions::new(&world);
    let mut client = McpClient::start(&world, &[], &both_modes());
    let read = client.begin("bash", &json!({ "command": format!("cat {secret}") }));
    let (request, parameters) = asked(&client, 0);
    agree(&mut client, &request, "accept");
    let url = url_of(&parameters);
    let own = format!("Origin: {}", origin(url));
    let theirs = || {
        let other =
            world.bare("setpriv").args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        other.cwd("/").args(["curl", "-sS", "-m", "60", url, "-H", &own])
    };
    for refused in [theirs(), theirs().args(["-d", "answer=once&secret=yes"])] {
        let refused = refused.run();
        assert_ne!(refused.code(), 0, "{}", refused.out());
        assert_eq!(refused.out(), "", "it gets no answer");
    }
    assert!(!client.running.printed().contains(&format!("\"id\":{read},")), "not answered");
    assert_eq!(submit(&world, url, "answer=once&secret=yes").status, 200);
    client.running.wait_for_stdout(&format!("\"id\":{read},"));
    assert_eq!(client.end().data(read)["output"], KEY);
}

/// Another sandbox with the host's network reaches the port, as the same user to the kernel. Its user namespace tells it apart.
///
/// Proves: TOOL-1 http-access
#[test]
fn a_command_in_a_sandbox_with_the_hosts_network_cannot_answer_though_it_knows_the_address() {
    if rustix::process::geteuid().is_root() {
        eprintln!("skipped: in a sandbox of root commands have another user id");
        return;
    }
    let world = World::new();
    let secret = secret(&world);
    let _sessions = Sessions::new(&world);
    let mut client = McpClient::start(&world, &[], &both_modes());
    let read = client.begin("bash", &json!({ "command": format!("cat {secret}") }));
    let (request, parameters) = asked(&client, 0);
    agree(&mut client, &request, "accept");
    let url = url_of(&parameters);
    let own = format!("Origin: {}", origin(url));
    let inside = |more: &[&str], form: &[&str]| {
        let network = ["run", "--quiet", "--network=host", "--approve-network-host=a test"];
        let curl = ["--", "curl", "-sS", "-m", "60", "-H", &own, url];
        world.sandbox(network).args(more).args(curl).args(form).run()
    };
    // It works outside, and inside without a user namespace.
    assert_eq!(answer(curl(&world, url)).status, 200);
    let shown = inside(&["--no-userns", "--level=1"], &[]);
    assert!(shown.out().contains("<form"), "{}", shown.err());
    for form in [&[] as &[&str], &["-d", "answer=once&secret=yes"]] {
        let refused = inside(&[], form);
        assert_ne!(refused.code(), 0, "{}", refused.out());
        assert_eq!(refused.out(), "", "it gets no answer");
        // It was connected, and so not kept away by something else.
        assert!(!refused.err().contains("connect"), "{}", refused.err());
    }
    assert!(!client.running.printed().contains(&format!("\"id\":{read},")), "not answered");
    assert_eq!(submit(&world, url, "answer=once&secret=yes").status, 200);
    client.running.wait_for_stdout(&format!("\"id\":{read},"));
    assert_eq!(client.end().data(read)["output"], KEY);
}

/// Proves: TOOL-1 http-access
#[test]
fn a_sandbox_with_the_hosts_network_has_no_pages() {
    let world = World::new();
    let secret = secret(&world);
    let _sessions = Sessions::new(&world);
    let network = ["--network=host", "--approve-network-host=a test"];
    let mut client = McpClient::start(&world, &network, &both_modes());
    client.begin("bash", &json!({ "command": format!("cat {secret}") }));
    client.running.wait_for_stdout("waiting for a person");
    assert!(!client.running.printed().contains("elicitation/create"), "it is not asked there");
    drop(client.end());
    assert!(nothing_is_left(&world));
}

#[test]
fn a_client_that_cannot_open_pages_is_not_asked_on_one() {
    let world = World::new();
    let secret = secret(&world);
    let _sessions = Sessions::new(&world);
    for (options, over_ssh) in [(&["--no-pages"] as &[&str], false), (&[], true)] {
        let mut client = McpClient::start_with(&world, options, &both_modes(), |program| {
            if over_ssh {
                program.env("SSH_CONNECTION", "192.0.2.1 1 192.0.2.2 22")
            } else {
                program
            }
        });
        client.begin("bash", &json!({ "command": format!("cat {secret}") }));
        client.running.wait_for_stdout("waiting for a person");
        assert!(!client.running.printed().contains("elicitation/create"), "{options:?}");
        drop(client.end());
    }
    assert!(nothing_is_left(&world));
}

/// Proves: TOOL-2 as-shown, TOOL-1 mcp
#[test]
fn a_client_without_forms_is_led_to_a_page_for_every_question() {
    let world = World::new();
    let wanted = hidden(&world, "wanted");
    let _sessions = Sessions::new(&world);
    let only_pages = json!({ "elicitation": { "url": {} } });
    let mut client = McpClient::start(&world, &["--transaction"], &only_pages);
    let read = client.begin("bash", &json!({ "command": format!("cat {wanted}") }));
    let (request, parameters) = asked(&client, 0);
    agree(&mut client, &request, "accept");
    assert_eq!(submit(&world, url_of(&parameters), "answer=once").status, 200);
    client.running.wait_for_stdout(&format!("\"id\":{read},"));

    client.call("write", &json!({ "path": "new", "content": "x" }));
    let refused = client.begin("sandbox_apply", &json!({}));
    let (request, parameters) = asked(&client, 1);
    agree(&mut client, &request, "cancel");
    client.running.wait_for_stdout(&format!("\"id\":{refused},"));
    assert_eq!(submit(&world, url_of(&parameters), "answer=yes").status, 410, "withdrawn");
    assert!(!world.project().join("new").exists());
    let apply = client.begin("sandbox_apply", &json!({}));
    let (request, parameters) = asked(&client, 2);
    agree(&mut client, &request, "accept");
    assert_eq!(submit(&world, url_of(&parameters), "answer=once").status, 400, "no such answer");
    assert_eq!(submit(&world, url_of(&parameters), "answer=yes").status, 200);
    client.running.wait_for_stdout(&format!("\"id\":{apply},"));
    completed(&client, &parameters);
    // A client may say only afterwards that it opened the page, or never.
    client.call("write", &json!({ "path": "newer", "content": "y" }));
    let silent = client.begin("sandbox_apply", &json!({}));
    let (_, parameters) = asked(&client, 3);
    assert_eq!(submit(&world, url_of(&parameters), "answer=yes").status, 200);
    client.running.wait_for_stdout(&format!("\"id\":{silent},"));
    completed(&client, &parameters);
    let told = client.end();
    assert_eq!(told.data(read)["output"], "content of wanted\n");
    assert_eq!(told.message(refused)["result"]["isError"], true);
    assert_eq!(told.data(apply)["applied"], true);
    assert_eq!(told.data(silent)["applied"], true);
    assert_eq!(fs::read_to_string(world.project().join("new")).unwrap(), "x");
    assert_eq!(fs::read_to_string(world.project().join("newer")).unwrap(), "y");
    assert!(nothing_is_left(&world));
}

/// Revision 2026-07-28: the page is in an `InputRequiredResult`, and the call that is repeated waits for the answer on it.
///
/// Proves: TOOL-1 mcp
#[test]
fn a_stateless_client_is_led_to_a_page_and_repeats_its_call() {
    let world = World::new();
    let secret = secret(&world);
    let _sessions = Sessions::new(&world);
    let running = world.sandbox(["mcp"]).keep_stdin_open().spawn();
    let mut client = McpClient::of(running);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": both_modes(),
    });
    let call = json!({ "name": "bash", "arguments": { "command": format!("cat {secret}") }, "_meta": meta });
    let first = client.ask("tools/call", &call);
    let result = |client: &McpClient, id: u64| {
        client.running.wait_for_stdout(&format!("\"id\":{id},"));
        let printed = client.running.printed();
        let messages = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        messages.into_iter().find(|it| it["id"] == id).unwrap()["result"].clone()
    };
    let asked = result(&client, first);
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let parameters = &asked["inputRequests"]["approval"]["params"];
    let url = url_of(parameters);
    let mut again = call.clone();
    again["requestState"] = asked["requestState"].clone();
    again["inputResponses"] = json!({ "approval": { "action": "accept" } });
    let second = client.ask("tools/call", &again);
    assert_eq!(submit(&world, url, "answer=once&secret=yes").status, 200);
    assert_eq!(result(&client, second)["structuredContent"]["output"], KEY);
    let printed = client.running.printed();
    assert!(
        !printed.contains("elicitation/complete"),
        "this revision has no such message: {printed}"
    );
    drop(client.end());
    assert!(nothing_is_left(&world));
}
