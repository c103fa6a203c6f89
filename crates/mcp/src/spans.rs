//! Spans of calls, as OpenTelemetry's conventions for the Model Context Protocol describe them (TEL-1). A client names its span in `_meta`
//! (SEP-414); commands of the call are below ours.
//!
//! No argument and no result of a call gets into a span.

use palisade_record::SpanContext;
use palisade_record::metrics::Metrics;
use palisade_service::random;
use palisade_telemetry::{Exporter, Settings, Span, SpanKind, names, now};
use rmcp::model::{CallToolResponse, CallToolResult};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

const METHOD: &str = "tools/call";

/// Sends the spans of a server, if its environment says where to.
#[derive(Debug)]
pub(crate) struct CallSpans {
    exporter: Mutex<Option<Exporter>>,
    /// The span that the server itself was started in.
    caller: Option<SpanContext>,
    is_on: bool,
    transport: &'static str,
    began: u64,
}

/// A call that goes on.
#[derive(Debug)]
pub(crate) struct CallSpan {
    /// None: nothing is sent of it.
    span: Option<Span>,
    pub(crate) trace: CallTrace,
}

/// What commands of a call get to know of its trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallTrace {
    context: Option<SpanContext>,
    state: Option<String>,
}

impl CallTrace {
    /// Variables that a call sets itself stay.
    pub(crate) fn put(&self, environment: &mut BTreeMap<String, String>) {
        for (name, value) in self.variables() {
            environment.entry(name.to_owned()).or_insert(value);
        }
    }

    /// Names and values.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let context = self.context.as_ref();
        context.map(|context| context.variables(self.state.clone())).unwrap_or_default()
    }
}

impl CallSpans {
    /// `note` gets what is wrong with the settings.
    pub(crate) fn of_environment(transport: &'static str, note: &mut dyn FnMut(&str)) -> Self {
        let variable = |name: &str| std::env::var(name).ok();
        let settings = Settings::of(&variable).unwrap_or_else(|error| {
            note(&error.to_string());
            None
        });
        let settings = settings.filter(Settings::has_traces);
        let exporter = settings.map(|settings| Exporter::new(settings, std::env::vars_os()));
        let caller = variable(SpanContext::VARIABLE).and_then(|text| SpanContext::parse(&text));
        let is_on = exporter.is_some();
        Self { exporter: Mutex::new(exporter), caller, is_on, transport, began: now() }
    }

    /// A call of a tool begins.
    pub(crate) fn begin(
        &self,
        tool: Option<&str>,
        context: &RequestContext<RoleServer>,
    ) -> CallSpan {
        let given = context.meta.get_traceparent().and_then(SpanContext::parse);
        let state = context.meta.get_tracestate().map(str::to_owned);
        let state = state.filter(|state| given.is_some() && SpanContext::is_state(state));
        let parent = given.or(self.caller);
        let is_sampled = parent.is_none_or(|parent| parent.is_sampled());
        let through = CallTrace { context: given, state: state.clone() };
        let seed = match random::hex(16) {
            Ok(seed) if self.is_on && is_sampled => seed,
            // What the client named goes through.
            _ => return CallSpan { span: None, trace: through },
        };
        let own = parent.map_or_else(|| SpanContext::root(&seed), |parent| parent.child(&seed));
        // A name that is no tool's is a client's text, of which there are any number.
        let name = tool.map_or_else(|| METHOD.to_owned(), |tool| format!("{METHOD} {tool}"));
        let start = now();
        let mut span = Span::new(&name, &own, parent.as_ref(), (start, start))
            .of_kind(SpanKind::Server)
            .with(names::MCP_METHOD, METHOD)
            .with(names::OPERATION, "execute_tool")
            .with(names::TRANSPORT, self.transport)
            .with(names::MCP_REQUEST, context.id.to_string());
        if let Some(tool) = tool {
            span.add(names::TOOL_NAME, tool);
        }
        if let Some(version) = context.protocol_version() {
            span.add(names::MCP_PROTOCOL, version.as_str());
        }
        span.state = state.clone().unwrap_or_default();
        CallSpan { span: Some(span), trace: CallTrace { context: Some(own), state } }
    }

    /// It is answered.
    pub(crate) fn end(&self, call: CallSpan, answer: &Result<CallToolResponse, ErrorData>) {
        let Some(mut span) = call.span else { return };
        span.end = now().max(span.start);
        match answer {
            Err(error) => {
                span.add(names::ERROR_TYPE, error.code.0.to_string());
                span.fail("refused by the server");
            }
            // As the conventions have it: the protocol's answer is a success.
            Ok(CallToolResponse::Complete(result)) if is_error(result) => {
                span.add(names::ERROR_TYPE, "tool_error");
                span.fail("the tool failed");
            }
            Ok(_) => {}
        }
        let mut exporter = self.exporter.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(exporter) = &mut *exporter {
            exporter.span(span);
            exporter.flush();
        }
    }

    /// The server ends. Says what was lost, if that was asked for.
    pub(crate) fn finish(&self) -> Option<String> {
        let exporter = self.exporter.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let is_told = exporter.settings().is_told();
        let loss = exporter.finish(&Metrics::default(), (self.began, now()));
        let count = loss.queue_full + loss.not_sent;
        loss.why.filter(|_| is_told).map(|why| format!("OTLP: {count} spans were not sent: {why}"))
    }
}

fn is_error(result: &CallToolResult) -> bool {
    result.is_error == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_a_call_get_its_span_unless_the_call_sets_one() {
        let trace =
            CallTrace { context: Some(SpanContext::root("call")), state: Some("a=b".to_owned()) };
        let mut environment = BTreeMap::new();
        trace.put(&mut environment);
        assert_eq!(environment["TRACEPARENT"], SpanContext::root("call").to_string());
        assert_eq!(environment["TRACESTATE"], "a=b");
        environment.insert("TRACEPARENT".to_owned(), "mine".to_owned());
        trace.put(&mut environment);
        assert_eq!(environment["TRACEPARENT"], "mine");
        let mut empty = BTreeMap::new();
        CallTrace::default().put(&mut empty);
        assert!(empty.is_empty());
    }
}
