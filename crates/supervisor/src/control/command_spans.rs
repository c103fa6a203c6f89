//! Which span a further command is, told to it as `TRACEPARENT` (TEL-1). Nothing is sent here; who reads the audit log derives the same
//! span.

use super::interface::{Environment, StartCommand};
use palisade_launch::CommandId;
use palisade_record::SpanContext;

#[derive(Clone, Debug)]
pub(crate) struct CommandSpans {
    session: String,
    /// The session's, where spans are sent. None: what a client names goes through to its command.
    own: Option<SpanContext>,
}

impl CommandSpans {
    pub(crate) fn new(session: String, own: Option<SpanContext>) -> Self {
        Self { session, own }
    }

    /// Gives a command its span, below the one that its client named. Returns the client's.
    pub(crate) fn put(&self, id: CommandId, start: &mut StartCommand) -> Option<SpanContext> {
        let name = SpanContext::VARIABLE.as_bytes();
        let (variables, is_extended) = match &mut start.environment {
            Environment::Extended(variables) => (variables, true),
            Environment::Exactly(variables) => (variables, false),
        };
        let given = variables.iter_mut().find(|(known, _)| known == name);
        let caller = given
            .as_ref()
            .and_then(|(_, value)| std::str::from_utf8(value).ok().and_then(SpanContext::parse));
        let Some(own) = self.own else { return caller };
        let parent = caller.unwrap_or(own);
        if parent.is_sampled() {
            let span = parent.of_command(&self.session, id.0).to_string().into_bytes();
            match given {
                Some((_, value)) => *value = span,
                None if is_extended => variables.push((name.to_vec(), span)),
                // Nothing but what was named.
                None => {}
            }
        }
        caller
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::interface::{CommandKind, CommandStreams};

    const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn put(
        own: Option<SpanContext>,
        environment: Environment,
    ) -> (Option<SpanContext>, Option<String>) {
        let mut start = StartCommand {
            kind: CommandKind::Program,
            argv: vec![b"true".to_vec()],
            environment,
            cwd: None,
            umask: None,
            rlimits: Vec::new(),
            streams: CommandStreams::Descriptors,
        };
        let caller = CommandSpans::new("s-1".to_owned(), own).put(CommandId(3), &mut start);
        let (Environment::Extended(variables) | Environment::Exactly(variables)) =
            start.environment;
        let value = variables.into_iter().find(|(name, _)| name == b"TRACEPARENT");
        (caller, value.map(|(_, value)| String::from_utf8(value).unwrap()))
    }

    fn given(value: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
        vec![(b"TRACEPARENT".to_vec(), value.as_bytes().to_vec())]
    }

    #[test]
    fn a_command_gets_its_own_span_below_the_one_that_asked() {
        let (own, caller) = (SpanContext::root("s-1"), SpanContext::parse(CALLER).unwrap());
        let of = |parent: SpanContext| Some(parent.of_command("s-1", 3).to_string());
        assert_eq!(put(Some(own), Environment::Extended(Vec::new())), (None, of(own)));
        let asked = put(Some(own), Environment::Extended(given(CALLER)));
        assert_eq!(asked, (Some(caller), of(caller)));
        assert_eq!(put(Some(own), Environment::Exactly(Vec::new())), (None, None));
        assert_eq!(put(Some(own), Environment::Extended(given("nonsense"))), (None, of(own)));
    }

    #[test]
    fn where_nothing_is_sent_the_clients_span_goes_through() {
        let caller = SpanContext::parse(CALLER);
        let through = (caller, Some(CALLER.to_owned()));
        assert_eq!(put(None, Environment::Extended(given(CALLER))), through);
        assert_eq!(put(None, Environment::Extended(Vec::new())), (None, None));
        let unsampled = CALLER.replace("-01", "-00");
        let own = Some(SpanContext::root("s-1"));
        let kept = put(own, Environment::Extended(given(&unsampled)));
        assert_eq!(kept.1, Some(unsampled));
    }
}
