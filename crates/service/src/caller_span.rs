//! The span of a client, from the headers of its request (W3C Trace Context): what it starts is a part of its trace (TEL-1).
//!
//! A header that cannot be read counts as none, as the specification says.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use palisade_record::SpanContext;
use palisade_session::supervise::interface::ClaimSandbox;
use std::collections::BTreeMap;
use std::convert::Infallible;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallerSpan {
    context: Option<SpanContext>,
    /// What vendors added to it.
    state: Option<String>,
}

impl CallerSpan {
    /// For a face that reads headers itself.
    pub fn of(headers: &HeaderMap) -> Self {
        // More than one is one too many.
        let only = |name: &str| {
            let mut values = headers.get_all(name).iter();
            values.next().filter(|_| values.next().is_none())?.to_str().ok()
        };
        let Some(context) = only("traceparent").and_then(SpanContext::parse) else {
            return Self::default();
        };
        let state = only("tracestate").filter(|state| SpanContext::is_state(state));
        Self { context: Some(context), state: state.map(str::to_owned) }
    }

    /// Variables that the request sets itself stay.
    pub(crate) fn put(self, environment: &mut BTreeMap<String, String>) {
        for (name, value) in self.variables() {
            environment.entry(name.to_owned()).or_insert(value);
        }
    }

    /// Names and values of variables.
    pub fn variables(self) -> Vec<(&'static str, String)> {
        self.context.map(|context| context.variables(self.state)).unwrap_or_default()
    }

    /// Into the claim of a sandbox, which was prepared before anybody asked for it.
    pub(crate) fn put_in_claim(self, claim: &mut ClaimSandbox) {
        (claim.traceparent, claim.tracestate) = (self.context, self.state);
    }
}

impl<S: Sync> FromRequestParts<S> for CallerSpan {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers))
    }
}

#[cfg(test)]
mod tests {
    use super::CallerSpan;
    use axum::http::{HeaderMap, HeaderValue};

    const SPAN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn of(headers: &[(&'static str, &str)]) -> CallerSpan {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        CallerSpan::of(&map)
    }

    #[test]
    fn the_headers_of_a_request_become_variables() {
        let both = of(&[("traceparent", SPAN), ("tracestate", "a=b")]);
        let expected = [("TRACEPARENT", SPAN.to_owned()), ("TRACESTATE", "a=b".to_owned())];
        assert_eq!(both.variables(), expected);
        for nothing in [
            &[][..],
            &[("tracestate", "a=b")],
            &[("traceparent", "x")],
            &[("traceparent", SPAN), ("traceparent", SPAN)],
        ] {
            assert_eq!(of(nothing), CallerSpan::default(), "{nothing:?}");
        }
    }
}
