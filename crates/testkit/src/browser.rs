//! A real browser without a window: Chromium, spoken to over the pipe of its DevTools protocol. It clicks and types as a person
//! does, with events that the browser itself makes, and remembers everything that the page complained about.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::{World, must, patiently};

const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(40);

/// Descriptors 3 and 4 are those of the protocol. The content comes from our own tests, and the tests may run where Chromium cannot
/// make a sandbox of its own.
const START: &str = "exec chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
    --disable-breakpad --disable-background-networking --disable-component-update --password-store=basic \
    --remote-debugging-pipe --user-data-dir=\"$1\" about:blank 3<&0 4>&1 0</dev/null 1>/dev/null";

/// Ended with the test.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    last_id: u64,
    page: Option<String>,
    complaints: Vec<String>,
}

impl Browser {
    /// With a profile of its own, which goes with the world.
    #[must_use]
    pub fn start(world: &World) -> Self {
        let profile = world.path().join("browser");
        let mut command = world.host_command("sh".as_ref());
        command.args(["-c", START, "sh"]).arg(&profile).process_group(0);
        let mut child = must(
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn(),
            "chromium",
        );
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            panic!("chromium has no pipes");
        };
        let from = BufReader::new(from);
        let mut browser = Self { child, to, from, last_id: 0, page: None, complaints: Vec::new() };
        browser.attach();
        browser
    }

    fn attach(&mut self) {
        let target = self.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = self.call("Target.attachToTarget", &attach);
        self.page = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            self.call(&format!("{domain}.enable"), &json!({}));
        }
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        let answer = self.answer(method, parameters);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The same, with what it says if it was not done.
    fn answer(&mut self, method: &str, parameters: &Value) -> Value {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": parameters });
        if let Some(page) = &self.page {
            message["sessionId"] = json!(page);
        }
        must(self.to.write_all(format!("{message}\0").as_bytes()), method);
        loop {
            let answer = self.receive();
            if answer["id"] == json!(self.last_id) {
                return answer;
            }
            self.remember(&answer);
        }
    }

    fn receive(&mut self) -> Value {
        let mut message = Vec::new();
        must(self.from.read_until(0, &mut message), "what chromium says");
        assert_eq!(message.pop(), Some(0), "chromium has ended");
        must(serde_json::from_slice(&message), "what chromium says")
    }

    fn remember(&mut self, event: &Value) {
        let told = match event["method"].as_str() {
            Some("Log.entryAdded") if event["params"]["entry"]["level"] == "error" => {
                let entry = &event["params"]["entry"];
                format!("{} {}", entry["text"], entry["url"])
            }
            Some("Runtime.exceptionThrown") => event["params"].to_string(),
            Some("Runtime.consoleAPICalled") if event["params"]["type"] == "error" => {
                event["params"].to_string()
            }
            // Nothing of ours asks with it; a script that was smuggled in would.
            Some("Page.javascriptDialogOpening") => format!("a dialogue: {event}"),
            _ => return,
        };
        self.complaints.push(told);
    }

    /// Everything so far that a page complained about: errors, refused requests, violations of its security policy.
    pub fn complaints(&mut self) -> Vec<String> {
        self.evaluate("0");
        std::mem::take(&mut self.complaints)
    }

    /// Goes to an address.
    pub fn open(&mut self, address: &str) {
        self.call("Page.navigate", &json!({ "url": address }));
    }

    /// Carries an expression out in the page, waits for it if it is a promise, and says what it is.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let value = self.try_evaluate(expression);
        value.unwrap_or_else(|| panic!("{expression}: the page went away meanwhile"))
    }

    /// None: the page went away before it was done.
    fn try_evaluate(&mut self, expression: &str) -> Option<Value> {
        let parameters = json!({
            "expression": expression,
            "awaitPromise": true,
            "returnByValue": true,
            "userGesture": true,
        });
        let answer = self.answer("Runtime.evaluate", &parameters);
        let error = &answer["error"];
        if error["message"].as_str().is_some_and(|message| message.contains("navigated or closed"))
        {
            return None;
        }
        assert!(error.is_null(), "{expression}: {error}");
        let answer = &answer["result"];
        let problem = &answer["exceptionDetails"];
        assert!(problem.is_null(), "{expression}: {problem}");
        Some(answer["result"]["value"].clone())
    }

    /// Waits until an expression is true or something else that counts as true, and says what it is.
    #[track_caller]
    pub fn wait_for(&mut self, expression: &str) -> Value {
        let end = Instant::now() + patiently(PATIENCE);
        let guarded =
            format!("(() => {{ try {{ return {expression}; }} catch {{ return null; }} }})()");
        loop {
            let value = self.try_evaluate(&guarded).unwrap_or_default();
            let is_there = !matches!(&value, Value::Null | Value::Bool(false))
                && value != json!("")
                && value != json!(0);
            if is_there {
                return value;
            }
            if Instant::now() > end {
                let text = self.text();
                panic!("never: {expression}; {:?}; the page says: {text}", self.complaints);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Everything that can be read on the page.
    pub fn text(&mut self) -> String {
        self.evaluate("document.body.innerText").as_str().unwrap_or_default().to_owned()
    }

    /// Waits until a text can be read.
    #[track_caller]
    pub fn wait_for_text(&mut self, text: &str) {
        self.wait_for(&format!("document.body.innerText.includes({})", json!(text)));
    }

    /// Clicks with the mouse at the middle of an element, which an expression finds, as soon as it can be hit there.
    #[track_caller]
    pub fn click(&mut self, element: &str) {
        let place = self.wait_for(&format!(
            "(() => {{ const it = {element}; it.scrollIntoView({{ block: 'center' }}); const box = it.getBoundingClientRect(); \
             const place = [box.x + box.width / 2, box.y + box.height / 2]; \
             return it.contains(document.elementFromPoint(...place)) && place; }})()"
        ));
        for (kind, count) in [("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 1)] {
            let event = json!({
                "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": count,
            });
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    /// Clicks at the first button or link with this text.
    #[track_caller]
    pub fn click_text(&mut self, text: &str) {
        self.click(&format!(
            "[...document.querySelectorAll('dialog[open] button, button, a')].find(it => it.offsetParent && !it.disabled && it.innerText.trim().startsWith({}))",
            json!(text)
        ));
    }

    /// Types a text where the focus is.
    pub fn insert(&mut self, text: &str) {
        self.call("Input.insertText", &json!({ "text": text }));
    }

    /// Presses one key: a character, or the name of a key such as `Enter`.
    pub fn press(&mut self, key: &str) {
        let text = match key {
            "Enter" => Some("\r"),
            key if key.chars().count() == 1 => Some(key),
            _ => None,
        };
        let down = json!({ "type": "keyDown", "key": key, "text": text });
        self.call("Input.dispatchKeyEvent", &down);
        self.call("Input.dispatchKeyEvent", &json!({ "type": "keyUp", "key": key }));
    }

    /// Gives the window a size.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    /// What the system prefers: `dark` or `light`.
    pub fn prefer(&mut self, scheme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call("Emulation.setEmulatedMedia", &json!({ "features": [feature] }));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends by itself when nobody can speak to it any more, with its helpers; who does not is killed.
        let _ = self.to.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let mut rest = Vec::new();
        let _ = self.from.read_to_end(&mut rest);
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}
