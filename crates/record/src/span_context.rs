//! Which span of which trace something belongs to, as `traceparent` has it (W3C Trace Context).
//!
//! Only an identity: what is sent about a span is made in `palisade-telemetry`. A span's number is derived from what it stands for, so
//! that processes which know the same session agree on it without a message.

use crate::digest::Digest;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// A span. The flags other than `sampled` are not kept: version 00 gives no other a meaning that we could promise.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanContext {
    trace: [u8; 16],
    span: [u8; 8],
    is_sampled: bool,
}

impl SpanContext {
    /// The variable of the environment that passes it to a program.
    pub const VARIABLE: &'static str = "TRACEPARENT";
    /// The variable with what vendors add to it. It means nothing without the other one.
    pub const STATE_VARIABLE: &'static str = "TRACESTATE";
    const SAMPLED: u8 = 1;
    /// W3C Trace Context asks for at least this much to be passed on.
    const MAX_STATE: usize = 512;

    /// The first span of a trace of its own.
    pub fn root(seed: &str) -> Self {
        let trace = Digest::of(format!("trace {seed}").as_bytes());
        let first = Self { trace: first_bytes(&trace), span: [0; 8], is_sampled: true };
        first.child(seed)
    }

    /// Another span of the same trace. The same seed gives the same span.
    #[must_use]
    pub fn child(&self, seed: &str) -> Self {
        let digest = Digest::of(format!("span {seed}").as_bytes());
        Self { span: first_bytes(&digest), ..*self }
    }

    /// The span of a run or a session: below its caller's, or the first of a new trace.
    pub fn of_run(session: &str, caller: Option<&Self>) -> Self {
        let seed = format!("{session} run");
        caller.map_or_else(|| Self::root(&seed), |caller| caller.child(&seed))
    }

    /// The span of a command, with this as its parent. Commands of a session count from 1; the one that a run is for has 0.
    #[must_use]
    pub fn of_command(&self, session: &str, number: u64) -> Self {
        self.child(&format!("{session} command {number}"))
    }

    /// The text of a `traceparent`. None: it is not one, and W3C says to go on as if nothing had been given.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim_matches(|letter| matches!(letter, ' ' | '\t')).split('-');
        let version: [u8; 1] = hex(parts.next()?)?;
        let trace = hex(parts.next()?)?;
        let span = hex(parts.next()?)?;
        let [flags]: [u8; 1] = hex(parts.next()?)?;
        // Later versions may have more parts. Version ff never exists.
        let is_complete = version != [0] || parts.next().is_none();
        let is_valid = version != [0xff] && trace != [0; 16] && span != [0; 8];
        let is_sampled = flags & Self::SAMPLED != 0;
        (is_complete && is_valid).then_some(Self { trace, span, is_sampled })
    }

    /// Whether the text can be passed on as a `tracestate`.
    pub fn is_state(text: &str) -> bool {
        let is_printable = |byte: u8| matches!(byte, b' '..=b'~' | b'\t');
        (1..=Self::MAX_STATE).contains(&text.len()) && text.bytes().all(is_printable)
    }

    /// Names and values of the variables that make a program a part of this trace.
    pub fn variables(&self, state: Option<String>) -> Vec<(&'static str, String)> {
        let state = state.map(|state| (Self::STATE_VARIABLE, state));
        [(Self::VARIABLE, self.to_string())].into_iter().chain(state).collect()
    }

    pub fn trace_id(&self) -> &[u8; 16] {
        &self.trace
    }

    pub fn span_id(&self) -> &[u8; 8] {
        &self.span
    }

    /// Whether its caller wants it to be sent.
    pub fn is_sampled(&self) -> bool {
        self.is_sampled
    }
}

fn first_bytes<const N: usize>(digest: &Digest) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.iter_mut().zip(digest.bytes()).for_each(|(byte, of_digest)| *byte = *of_digest);
    bytes
}

/// Exactly as many bytes, in lower case as the format demands.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let text = text.as_bytes();
    let nibble = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(bytes)
}

impl fmt::Display for SpanContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("00-")?;
        self.trace.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("-")?;
        self.span.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "-{:02x}", u8::from(self.is_sampled))
    }
}

impl fmt::Debug for SpanContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SpanContext({self})")
    }
}

impl Serialize for SpanContext {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SpanContext {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("this is no traceparent"))
    }
}

#[cfg(test)]
mod tests {
    use super::SpanContext;

    /// The example of the specification.
    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_is_read_and_written() {
        let context = SpanContext::parse(EXAMPLE).unwrap();
        assert_eq!(context.to_string(), EXAMPLE);
        assert!(context.is_sampled());
        assert!(!SpanContext::parse(&EXAMPLE.replace("-01", "-00")).unwrap().is_sampled());
        let later = format!("{}-more", EXAMPLE.replacen("00", "cc", 1));
        assert_eq!(SpanContext::parse(&later), Some(context));
        let json = serde_json::to_string(&context).unwrap();
        assert_eq!(serde_json::from_str::<SpanContext>(&json).unwrap(), context);
    }

    #[test]
    fn what_is_no_traceparent_is_not_taken_for_one() {
        for wrong in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-é",
        ] {
            assert_eq!(SpanContext::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_child_stays_in_its_trace_and_is_found_again() {
        let parent = SpanContext::parse(EXAMPLE).unwrap();
        let child = parent.child("s-1 command 1");
        assert_eq!(child.trace_id(), parent.trace_id());
        assert_ne!(child.span_id(), parent.span_id());
        assert_eq!(child, parent.child("s-1 command 1"));
        assert_ne!(child, parent.child("s-1 command 2"));
        assert_ne!(SpanContext::root("a").trace_id(), SpanContext::root("b").trace_id());
        assert!(SpanContext::parse(&SpanContext::root("a").to_string()).is_some());
    }

    #[test]
    fn a_tracestate_has_a_bound_and_no_control_characters() {
        assert!(SpanContext::is_state("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"));
        for wrong in ["", "a=\n", &"x".repeat(513)] {
            assert!(!SpanContext::is_state(wrong), "{wrong:?}");
        }
    }
}
