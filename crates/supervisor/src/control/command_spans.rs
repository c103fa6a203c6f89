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
    /// That of who claimed the sandbox, where none is sent below it: for commands whose client names none.
    through: Option<SpanContext>,
    /// What vendors added to that of who claimed it.
    state: Option<String>,
}

impl CommandSpans {
    pub(crate) fn new(session: String, own: Option<SpanContext>) -> Self {
        Self { session, own, through: None, state: None }
    }

    /// The sandbox was prepared, and this is the span of who has it now.
    pub(crate) fn claimed(&mut self, caller: SpanContext, state: Option<String>) {
        self.state = state;
        match self.own {
            Some(_) if caller.is_sampled() => {
                self.own = Some(SpanContext::of_run(&self.session, Some(&caller)));
            }
            _ => (self.own, self.through) = (None, Some(caller)),
        }
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
        let span = match self.own {
            Some(own) => {
                let parent = caller.unwrap_or(own);
                parent.is_sampled().then(|| parent.of_command(&self.session, id.0))
            }
            None => self.through.filter(|_| given.is_none()),
        };
        let span = span.map(|span| span.to_string().into_bytes());
        match (given, span) {
            (Some((_, value)), Some(span)) => *value = span,
            // Otherwise nothing but what was named.
            (None, Some(span)) if is_extended => {
                variables.push((name.to_vec(), span));
                self.put_state(variables);
            }
            _ => {}
        }
        caller
    }

    fn put_state(&self, variables: &mut Vec<(Vec<u8>, Vec<u8>)>) {
        let name = SpanContext::STATE_VARIABLE.as_bytes();
        if let Some(state) = &self.state
            && !variables.iter().any(|(known, _)| known == name)
        {
            variables.push((name.to_vec(), state.clone().into_bytes()));
        }
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
        let spans = CommandSpans::new("s-1".to_owned(), own);
        let (caller, [parent, _]) = put_by(&spans, environment);
        (caller, parent)
    }

    fn put_by(
        spans: &CommandSpans,
        environment: Environment,
    ) -> (Option<SpanContext>, [Option<String>; 2]) {
        let mut start = StartCommand {
            kind: CommandKind::Program,
            argv: vec![b"true".to_vec()],
            environment,
            cwd: None,
            umask: None,
            rlimits: Vec::new(),
            streams: CommandStreams::Descriptors,
        };
        let caller = spans.put(CommandId(3), &mut start);
        let (Environment::Extended(variables) | Environment::Exactly(variables)) =
            start.environment;
        let value = |name: &str| {
            let found = variables.iter().find(|(known, _)| known == name.as_bytes());
            found.map(|(_, value)| String::from_utf8(value.clone()).unwrap())
        };
        (caller, ["TRACEPARENT", "TRACESTATE"].map(value))
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
    fn commands_of_a_prepared_sandbox_are_below_who_claimed_it() {
        let nothing = || Environment::Extended(Vec::new());
        let caller = SpanContext::parse(CALLER).unwrap();
        let state = || Some("a=b".to_owned());
        let mut sent = CommandSpans::new("s-1".to_owned(), Some(SpanContext::root("s-1")));
        sent.claimed(caller, state());
        let session = SpanContext::of_run("s-1", Some(&caller));
        let command = session.of_command("s-1", 3).to_string();
        assert_eq!(put_by(&sent, nothing()), (None, [Some(command), state()]));
        let exactly = put_by(&sent, Environment::Exactly(Vec::new()));
        assert_eq!(exactly, (None, [None, None]), "nothing but what was named");

        let mut not_sent = CommandSpans::new("s-1".to_owned(), None);
        not_sent.claimed(caller, state());
        let through = [Some(CALLER.to_owned()), state()];
        assert_eq!(put_by(&not_sent, nothing()), (None, through));
        let other = CALLER.replace("b7-01", "b8-01");
        let named = put_by(&not_sent, Environment::Extended(given(&other))).1;
        assert_eq!(named, [Some(other), None]);

        let unsampled = CALLER.replace("-01", "-00");
        sent.claimed(SpanContext::parse(&unsampled).unwrap(), None);
        assert_eq!(put_by(&sent, nothing()).1[0], Some(unsampled));
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
