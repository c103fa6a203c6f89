//! The messages about commands, in protobuf's JSON.

use crate::running::{Config, Selector};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palisade_session::supervise::interface::{ExitCause, TerminalSize};
use rustix::process::Signal;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
pub(super) struct StartMessage {
    #[serde(default)]
    pub(super) process: Config,
    pub(super) pty: Option<Pty>,
    pub(super) tag: Option<String>,
    pub(super) stdin: Option<bool>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Pty {
    pub(super) size: Option<Size>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Size {
    #[serde(default)]
    cols: u16,
    #[serde(default)]
    rows: u16,
}

impl Pty {
    pub(super) fn size(self) -> TerminalSize {
        let Size { cols: columns, rows } = self.size.unwrap_or(Size { cols: 80, rows: 24 });
        TerminalSize { rows, columns, pixel_width: 0, pixel_height: 0 }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct SelectMessage {
    pub(super) process: Selector,
}

#[derive(Debug, Deserialize)]
pub(super) struct SignalMessage {
    pub(super) process: Selector,
    /// Its name, or its number in the enumeration, which is that of the signal.
    #[serde(default)]
    signal: Value,
}

impl SignalMessage {
    pub(super) fn signal(&self) -> Option<i32> {
        let known = [("SIGNAL_SIGTERM", Signal::TERM), ("SIGNAL_SIGKILL", Signal::KILL)];
        let is_it = |(name, signal): &(&str, Signal)| {
            self.signal == **name || self.signal == json!(signal.as_raw())
        };
        known.iter().find(|it| is_it(it)).map(|(_, signal)| signal.as_raw())
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct UpdateMessage {
    pub(super) process: Selector,
    pub(super) pty: Option<Pty>,
}

#[derive(Debug, Deserialize)]
pub(super) struct InputMessage {
    pub(super) process: Selector,
    pub(super) input: Input,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Input {
    #[serde(deserialize_with = "bytes")]
    Stdin(Vec<u8>),
    #[serde(deserialize_with = "bytes")]
    Pty(Vec<u8>),
}

/// Part by part.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum InputPart {
    Start(SelectMessage),
    Data { input: Input },
    Keepalive {},
}

fn bytes<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(from)?;
    STANDARD.decode(text).map_err(serde::de::Error::custom)
}

/// What a command wrote to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WrittenTo {
    Stdout,
    Stderr,
    Terminal,
}

/// Events of an answer about a command.
pub(super) fn started(number: u64) -> Value {
    json!({ "event": { "start": { "pid": number } } })
}

pub(super) fn wrote(to: WrittenTo, bytes: &[u8]) -> Value {
    let name = match to {
        WrittenTo::Stdout => "stdout",
        WrittenTo::Stderr => "stderr",
        WrittenTo::Terminal => "pty",
    };
    let mut data = serde_json::Map::new();
    data.insert(name.to_owned(), STANDARD.encode(bytes).into());
    json!({ "event": { "data": data } })
}

pub(super) fn keepalive() -> Value {
    json!({ "event": { "keepalive": {} } })
}

/// As Go says it, which E2B's server is written in.
pub(super) fn ended(cause: ExitCause) -> Value {
    let (exit_code, exited, status) = match cause {
        ExitCause::Code(code) => (code, true, format!("exit status {code}")),
        ExitCause::Signal(signal) => (-1, false, format!("signal: {}", signal_name(signal))),
    };
    let mut end = json!({ "exitCode": exit_code, "exited": exited, "status": status });
    if exit_code != 0 {
        end["error"] = status.into();
    }
    json!({ "event": { "end": end } })
}

fn signal_name(signal: i32) -> String {
    let known = [
        (Signal::HUP, "hangup"),
        (Signal::INT, "interrupt"),
        (Signal::QUIT, "quit"),
        (Signal::ABORT, "aborted"),
        (Signal::KILL, "killed"),
        (Signal::SEGV, "segmentation fault"),
        (Signal::PIPE, "broken pipe"),
        (Signal::ALARM, "alarm clock"),
        (Signal::TERM, "terminated"),
    ];
    let name = known.iter().find(|(known, _)| known.as_raw() == signal).map(|(_, name)| *name);
    name.map_or_else(|| format!("signal {signal}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{Input, InputMessage, InputPart, Selector, SignalMessage, StartMessage, ended};
    use palisade_session::supervise::interface::ExitCause;

    #[test]
    fn messages_are_read_as_the_clients_write_them() {
        let start: StartMessage = serde_json::from_str(
            r#"{"process":{"cmd":"/bin/bash","args":["-l"],"envs":{"A":"b"}},"stdin":false}"#,
        )
        .unwrap();
        assert_eq!((start.process.cmd.as_str(), start.stdin), ("/bin/bash", Some(false)));
        let input: InputMessage =
            serde_json::from_str(r#"{"process":{"pid":3},"input":{"stdin":"eA=="}}"#).unwrap();
        assert!(
            matches!((input.process, input.input), (Selector::Pid(3), Input::Stdin(x)) if x == b"x")
        );
        for (text, expected) in [("\"SIGNAL_SIGKILL\"", Some(9)), ("15", Some(15)), ("\"X\"", None)]
        {
            let text = format!(r#"{{"process":{{"tag":"t"}},"signal":{text}}}"#);
            let message: SignalMessage = serde_json::from_str(&text).unwrap();
            assert_eq!(message.signal(), expected, "{text}");
        }
        for part in [
            r#"{"start":{"process":{"pid":1}}}"#,
            r#"{"data":{"input":{"pty":"eA=="}}}"#,
            r#"{"keepalive":{}}"#,
        ] {
            serde_json::from_str::<InputPart>(part).unwrap();
        }
    }

    #[test]
    fn an_end_is_told_as_go_tells_it() {
        let end = |cause| ended(cause)["event"]["end"].to_string();
        assert_eq!(
            end(ExitCause::Code(0)),
            r#"{"exitCode":0,"exited":true,"status":"exit status 0"}"#
        );
        assert_eq!(
            end(ExitCause::Signal(9)),
            r#"{"error":"signal: killed","exitCode":-1,"exited":false,"status":"signal: killed"}"#
        );
    }
}
