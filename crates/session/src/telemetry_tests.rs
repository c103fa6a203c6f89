use super::{Telemetry, Traced};
use crate::caller::Caller;
use palisade_record::{Event, EventKind, SessionClaimed, SpanContext, State};

const SESSION: &str = "s-1";
const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn telemetry(traced: Traced) -> Telemetry {
    let mut caller = Caller::here().unwrap();
    // Nothing is sent: that begins with more spans than there are here.
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT".into(), "http://127.0.0.1:1".into());
    caller.facts.env = [endpoint].into();
    Telemetry::of(&caller, (SESSION, traced), &mut |note| panic!("{note}")).unwrap()
}

fn claim(telemetry: &mut Telemetry, span: Option<&str>) {
    let claimed = SessionClaimed {
        name: None,
        waited_ms: 1,
        traceparent: span.and_then(SpanContext::parse),
        tracestate: Some("a=b".to_owned()),
    };
    let kind = EventKind::SessionClaimed(claimed);
    telemetry.hear(&[Event::new(SESSION, State::Monitoring, kind)]);
}

/// Proves: TEL-1 otlp
#[test]
fn a_prepared_sandbox_is_a_session_of_the_trace_in_which_it_is_claimed() {
    let mut prepared = telemetry(Traced::Prepared);
    let own = SpanContext::of_run(SESSION, None);
    assert_eq!(prepared.session_span(), Some(own));
    assert!(prepared.tracer.is_none() && prepared.inside().is_none(), "nobody has it");
    let began = prepared.began;
    let caller = SpanContext::parse(CALLER).unwrap();
    claim(&mut prepared, Some(CALLER));
    let below = SpanContext::of_run(SESSION, Some(&caller));
    assert_eq!(prepared.session_span(), Some(below));
    assert_eq!(prepared.state.as_deref(), Some("a=b"));
    assert!(prepared.began >= began && prepared.unclaimed.is_none());

    let mut without_caller = telemetry(Traced::Prepared);
    claim(&mut without_caller, None);
    assert_eq!(without_caller.session_span(), Some(own));
    assert_eq!(without_caller.state, None);

    let mut unsampled = telemetry(Traced::Prepared);
    claim(&mut unsampled, Some(&CALLER.replace("-01", "-00")));
    assert!(unsampled.tracer.is_none() && unsampled.session_span().is_none());

    assert_eq!(telemetry(Traced::Session).session_span(), Some(own));
    assert_eq!(telemetry(Traced::Run).session_span(), None);
}
