//! The page of `sandbox serve` in a real browser: questions, changes, terminals and recordings.

use std::fs;

use palisade_testkit::World;
use serde_json::json;

use crate::page_support::PageServer;
use crate::sessions_support::Sessions;

/// A name that would be markup, runs backwards, and has an escape sequence in it.
const HOSTILE: &str = "<img src=x onerror=alert(1)>\u{202e}gpj\u{1b}[31m";
const HOSTILE_SHOWN: &str = "<img src=x onerror=alert(1)>U+202Egpj\\e[31m";

/// Proves: TOOL-2 web, TOOL-2 one-queue, TOOL-1 page-text
#[test]
fn questions_are_answered_by_click_and_by_key() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    for name in ["clicked", "pressed", HOSTILE] {
        world.write(format!("outside/{name}/file"), format!("in {}\n", name.len()));
    }
    let server = PageServer::start(&world);
    server.create(&json!({ "name": "work", "ask": "always" }));
    let mut browser = server.browser();
    browser.wait_for_text("Nothing waits for you");
    let ask = |name: &str| {
        let path = world.outside().join(name).join("file");
        server.begin("work", &["cat", path.to_str().unwrap()])
    };

    let command = ask("clicked");
    browser.wait_for_text("outside/clicked/file");
    browser.wait_for("document.title.startsWith('(1) ')");
    browser.click_text("Allow once");
    assert_eq!(server.output("work", command), "in 7\n");
    browser.wait_for("document.querySelectorAll('.question').length === 0");
    browser.wait_for("document.querySelector('.answered .good').innerText === 'allowed'");

    // A question is answered by a key when it has had the focus for a moment.
    let command = ask("pressed");
    browser.wait_for_text("outside/pressed/file");
    browser.press("j");
    browser.wait_for("document.activeElement.matches('.question[data-armed]')");
    browser.press("d");
    assert!(server.output("work", command).contains("Permission denied"));
    let command = ask("pressed");
    assert!(server.output("work", command).contains("Permission denied"), "for the session");

    let command = ask(HOSTILE);
    browser.wait_for(&format!(
        "document.querySelector('.question .subject').textContent.includes({})",
        json!(HOSTILE_SHOWN)
    ));
    assert_eq!(browser.evaluate("document.querySelectorAll('main img').length"), json!(0));
    browser.press("k");
    browser.wait_for("document.activeElement.matches('.question[data-armed]')");
    browser.press("s");
    assert_eq!(server.output("work", command), format!("in {}\n", HOSTILE.len()));
    assert_eq!(browser.complaints(), [""; 0]);
}

/// What needs more than a click: a secret, and what holds for later runs.
/// Proves: TOOL-2 web, TOOL-2 the-one-meant
#[test]
fn a_secret_and_a_permanent_answer_are_confirmed() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    world.write("home/.ssh/id_ed25519", "the key\n");
    world.write("outside/header.h", "the header\n");
    let server = PageServer::start(&world);
    server.create(&json!({ "name": "work", "ask": "always" }));
    let mut browser = server.browser();
    let ask = |path: std::path::PathBuf| server.begin("work", &["cat", path.to_str().unwrap()]);

    let command = ask(world.home().join(".ssh/id_ed25519"));
    browser.wait_for_text("This is a secret");
    browser.wait_for("[...document.querySelectorAll('.question button')].find(it => it.innerText === 'Always').disabled");
    browser.click_text("Allow once");
    browser.wait_for_text("Allow a secret?");
    // Enter is not a yes.
    browser.wait_for("document.activeElement.innerText === 'Cancel'");
    browser.press("Enter");
    browser.wait_for("!document.querySelector('dialog')");
    browser.click_text("Allow once");
    browser.click_text("Allow the secret");
    assert_eq!(server.output("work", command), "the key\n");

    let command = ask(world.outside().join("header.h"));
    browser.wait_for_text("outside/header.h");
    browser.click_text("Always");
    browser.click_text("Allow always");
    assert_eq!(server.output("work", command), "the header\n");
    let policies = world.bare("grep").args(["-r", "header.h", ".config"]).cwd(world.home()).run();
    policies.assert_code(0);
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Proves: TOOL-1 page, TOOL-1 page-text
#[test]
fn what_changed_is_shown_applied_and_discarded() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    world.git_init();
    world.write_in_project("src/total.py", "def total():\n    return 1\n");
    world.write_in_project("kept", "as it was\n");
    let server = PageServer::start(&world);
    let id = server.create(&json!({ "name": "work", "transaction": "overlay" }));
    server.run("work", "sed -i s/1/2/ src/total.py; echo new > added; echo gone > kept; echo x > .git/hooks/pre-commit");
    server.run("work", &format!("echo hostile > {}", quoted(HOSTILE)));

    let mut browser = server.browser();
    browser.open(&format!("{}#/sandbox/{id}/changes", server.address()));
    browser.wait_for_text("5 changes · 1 refused");
    let file = |name: &str| {
        format!(
            "[...document.querySelectorAll('.file')].find(it => it.querySelector('.file-name').textContent.includes({}))",
            json!(name)
        )
    };
    browser.wait_for(&file(HOSTILE_SHOWN));
    browser.wait_for_text("git runs its hooks on the host");
    browser.wait_for(&format!("{}.querySelector('button').disabled", file("pre-commit")));
    browser.click(&format!("{}.querySelector('summary')", file("total.py")));
    browser.wait_for("[...document.querySelectorAll('.patch-add .content')].some(it => it.textContent === '    return 2')");
    browser.wait_for("[...document.querySelectorAll('.patch-remove .content')].some(it => it.textContent === '    return 1')");

    // One file, and only that.
    browser.click(&format!("{}.querySelector('button')", file("total.py")));
    browser.wait_for_text("Apply this change?");
    browser.click("document.querySelector('dialog .primary')");
    browser.wait_for_text("4 changes");
    let project = |name: &str| fs::read_to_string(world.project().join(name)).unwrap_or_default();
    assert_eq!(project("src/total.py"), "def total():\n    return 2\n");
    assert_eq!((project("added"), project("kept")), (String::new(), "as it was\n".to_owned()));

    // The rest, without what is refused.
    browser.click_text("Apply all");
    browser.wait_for_text("Not applied, because they are refused");
    browser.click("document.querySelector('dialog .primary')");
    browser.wait_for_text("Applied 3 changes");
    assert_eq!((project("added"), project("kept")), ("new\n".to_owned(), "gone\n".to_owned()));
    assert!(!world.project().join(".git/hooks/pre-commit").exists());

    // While it runs, the present state is kept as a checkpoint; when it has ended, nothing is.
    server.run("work", "echo again > later");
    browser.click_text("Look again");
    browser.wait_for(&file("later"));
    browser.click_text("Discard all");
    browser.wait_for_text("is kept first, as a checkpoint");
    browser.click("document.querySelector('dialog .danger')");
    browser.wait_for_text("Nothing has changed");
    assert_eq!(server.run("work", "ls later; echo last > last")["stdout"]["data"], "");
    world.sandbox(["stop", "work"]).run().assert_code(0);
    browser.wait_for_text("completed");
    browser.wait_for(&file("last"));
    browser.click_text("Discard all");
    browser.wait_for_text("cannot be brought back");
    browser.click("document.querySelector('dialog .danger')");
    browser.wait_for_text("Nothing has changed");
    assert!(!world.project().join("later").exists() && !world.project().join("last").exists());
    server.get("/v1/sandboxes/work/diff").expect_problem(409, "validation");
    // What stands in the way of an apply is asked for first, and told with 409.
    let complaints = browser.complaints();
    let is_expected = |it: &String| it.contains("409") && it.contains("/apply");
    assert!(complaints.iter().all(is_expected), "{complaints:?}");
}

/// Commands go on while a person reads. Of a copy no state can be applied, and the page says what that means.
///
/// Proves: TOOL-1 page, TOOL-2 as-shown
#[test]
fn what_is_applied_is_what_the_page_showed() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = PageServer::start(&world);
    let mut browser = server.browser();
    let project = |name: &str| fs::read_to_string(world.project().join(name)).unwrap_or_default();
    let mut apply_after = |transaction: &str, asked: &str, told: &str| {
        let id = server.create(&json!({ "name": transaction, "transaction": transaction }));
        server.run(transaction, "echo shown > file");
        browser.open(&format!("{}#/sandbox/{id}/changes", server.address()));
        browser.wait_for_text("1 change");
        server.run(transaction, "echo later > file; echo more > other");
        browser.click_text("Apply all");
        browser.wait_for_text(asked);
        browser.click("document.querySelector('dialog .primary')");
        browser.wait_for_text(told);
    };
    apply_after("overlay", "Apply 1 change?", "Applied 1 change");
    assert_eq!((project("file"), project("other")), ("shown\n".to_owned(), String::new()));
    world.sandbox(["rm", "--force", "overlay"]).run().assert_code(0);
    fs::remove_file(world.project().join("file")).unwrap();
    apply_after("copy", "may have changed more since this was shown", "Applied 2 changes");
    assert_eq!((project("file"), project("other")), ("later\n".to_owned(), "more\n".to_owned()));
}

/// For a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Proves: TOOL-1 page, LIFE-5 rollback
#[test]
fn a_checkpoint_is_made_and_brought_back() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = PageServer::start(&world);
    let id = server.create(&json!({ "name": "work", "transaction": "overlay" }));
    server.run("work", "echo one > state");
    let mut browser = server.browser();
    browser.open(&format!("{}#/sandbox/{id}/checkpoints", server.address()));
    browser.wait_for_text("No checkpoint");
    browser.click_text("New checkpoint");
    browser.wait_for("document.activeElement.name === 'message'");
    browser.insert("the <b>first</b> state");
    browser.press("Enter");
    browser.wait_for_text("the <b>first</b> state");
    server.run("work", "echo two > state; echo more > added");
    browser.click_text("Changes since");
    browser.wait_for("document.querySelector('dialog').innerText.includes('added')");
    browser.click_text("Close");
    browser.click_text("Roll back");
    browser.wait_for_text("The present state is kept first");
    browser.click("document.querySelector('dialog .danger')");
    browser.wait_for_text("Rolled back to checkpoint 1");
    assert_eq!(server.run("work", "cat state; ls")["stdout"]["data"], "one\nstate\n");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Proves: TOOL-1 page, TOOL-1 page-text
#[test]
fn a_terminal_shows_output_as_text_and_takes_what_is_typed() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = PageServer::start(&world);
    let id = server.create(&json!({ "name": "work" }));
    let hostile = "printf '\\033]0;pwned\\007\\033]52;c;cHduZWQ=\\007\\033]8;;http://evil.example\\007link\\033]8;;\\007 \\033[6n\\033[c'; \
        printf '<script>alert(1)</script>\\n\\033[31mred\\033[0m \\342\\200\\256backwards\\n'; printf 'old\\rnew\\n'; echo end";
    let terminal = json!({ "rows": 24, "columns": 80 });
    let body = json!({ "argv": ["sh", "-c", hostile], "terminal": terminal });
    server.post("/v1/sandboxes/work/commands", &body).expect(201);

    let mut browser = server.browser();
    browser.open(&format!("{}#/sandbox/{id}/terminal", server.address()));
    browser.wait_for("document.querySelector('.term')?.textContent.includes('end')");
    let text = browser.evaluate("document.querySelector('.term').innerText");
    let text = text.as_str().unwrap();
    assert!(text.contains("<script>alert(1)</script>"), "{text}");
    assert!(text.contains("link") && !text.contains("evil.example"), "{text}");
    assert!(
        text.contains("red backwards\n") && text.contains("new") && !text.contains("old"),
        "{text}"
    );
    assert_eq!(browser.evaluate("document.querySelector('.term .fg-1').textContent"), json!("red"));
    assert_eq!(
        browser.evaluate("document.querySelectorAll('.term script, .term a').length"),
        json!(0)
    );
    assert!(!browser.evaluate("document.title").as_str().unwrap().contains("pwned"));

    // A shell, typed into.
    browser.click_text("Shell");
    browser.wait_for("document.activeElement.matches('.term') && document.querySelector('.term').innerText.includes('$') || document.querySelector('.term').innerText.includes('#')");
    for key in ["e", "c", "h", "o", " ", "$", "(", "(", "6", "*", "7", ")", ")", "Enter"] {
        browser.press(key);
    }
    browser.wait_for("/^42$/m.test(document.querySelector('.term').innerText)");
    for key in ["e", "x", "i", "t", "Enter"] {
        browser.press(key);
    }
    browser.wait_for_text("ended with 0");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Proves: TOOL-1 page
#[test]
fn a_recording_is_played() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = PageServer::start(&world);
    let id =
        server.create(&json!({ "name": "work", "settings": { "recording.terminal": "output" } }));
    let command = server
        .begin("work", &["sh", "-c", "echo begun; sleep 1; printf '\\033[32mdone\\033[0m<i>'"]);
    server.output("work", command);
    let listed = server.get("/v1/recordings").expect(200);
    assert_eq!(listed["recordings"][0]["command"], json!(command));
    let recording = server.get(&format!("/v1/recordings/{id}?command={command}"));
    assert_eq!(
        (recording.status, recording.content_type.as_str()),
        (200, "application/x-asciicast")
    );
    assert!(recording.body.lines().next().unwrap().contains("\"version\":2"), "{}", recording.body);
    for wrong in ["../../token", "x", &id] {
        let path = format!("/v1/recordings/{}", wrong.replace('/', "%2f"));
        server.get(&path).expect_problem(404, "validation");
    }

    let mut browser = server.browser();
    browser.press("3");
    browser.click("document.querySelector('.recording')");
    browser.wait_for("document.querySelector('.player .term').innerText.includes('done<i>')");
    assert_eq!(
        browser.evaluate("document.querySelector('.player .fg-2').textContent"),
        json!("done")
    );
    // Back to the beginning, where the end is not there yet.
    browser.evaluate("(() => { const bar = document.querySelector('.seek'); bar.value = 0; bar.dispatchEvent(new Event('input')); })()");
    browser.wait_for("!document.querySelector('.player .term').innerText.includes('done')");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Also without a control group: a session's commands are not children of its first process.
/// Proves: RES-3 live, TOOL-1 page
#[test]
fn sandboxes_are_listed_with_what_their_commands_use() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = PageServer::start(&world);
    server.create(&json!({ "name": "busy" }));
    let command = "x=$(head -c 40000000 /dev/zero | tr '\\0' x); while :; do :; done";
    server.begin("busy", &["bash", "-c", command]);
    let mut browser = server.browser();
    browser.press("2");
    browser.wait_for_text("1 command running");
    browser
        .wait_for("parseFloat(document.querySelector('.sandbox-row .chart-value').innerText) > 20");
    let usage = server.get("/v1/usage").expect(200);
    let busy = &usage["sandboxes"][0];
    assert_eq!(busy["isSession"], json!(true));
    assert!(busy["cpuMs"].as_u64() > Some(100), "{usage}");
    assert!(busy["memoryBytes"].as_u64() > Some(40_000_000), "{usage}");
    assert!(busy["processes"].as_u64() >= Some(2), "{usage}");
    assert_eq!(busy["status"]["runningCommands"], json!(1));
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Proves: TOOL-1 page
#[test]
fn the_audit_log_is_searched_and_followed() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = PageServer::start(&world);
    server.create(&json!({ "name": "work" }));
    server.run("work", "echo needle-one");
    let mut browser = server.browser();
    browser.press("/");
    browser.wait_for("document.activeElement.type === 'search'");
    browser.wait_for_text("needle-one");
    browser.insert("needle-two");
    browser.wait_for_text("No such events");
    server.run("work", "echo needle-two '<b>'");
    browser.wait_for("document.querySelectorAll('.record').length === 1 && document.querySelector('.record-text').textContent.includes('<b>')");
    browser.click("document.querySelector('.record summary')");
    browser.wait_for("document.querySelector('.record-json').textContent.includes('commandHash')");
    assert_eq!(browser.complaints(), [""; 0]);
}
