//! The same two requests in JSON, for `http/json`: the names of the protocol in camel case, ids in hexadecimal, whole numbers of 64 bits as
//! text (OTLP/HTTP, "JSON Protobuf Encoding").

use crate::encode::{DELTA, ERROR, Resource, SAMPLED, SCOPE, VERSION};
use crate::model::{Attribute, Metric, MetricData, Nanoseconds, Span, SpanStatus, Value};
use serde_json::{Map, Value as Json, json};

pub(crate) fn traces(resource: &Resource, spans: &[Span]) -> Vec<u8> {
    let spans: Vec<Json> = spans.iter().map(span).collect();
    let scoped = json!([{ "scope": { "name": SCOPE, "version": VERSION }, "spans": spans }]);
    let resource = json!({ "attributes": attributes(&resource.0) });
    json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": scoped }] })
        .to_string()
        .into_bytes()
}

pub(crate) fn metrics(
    resource: &Resource,
    metrics: &[Metric],
    times: (Nanoseconds, Nanoseconds),
) -> Vec<u8> {
    let metrics: Vec<Json> = metrics.iter().map(|one| metric(one, times)).collect();
    let scoped = json!([{ "scope": { "name": SCOPE, "version": VERSION }, "metrics": metrics }]);
    let resource = json!({ "attributes": attributes(&resource.0) });
    json!({ "resourceMetrics": [{ "resource": resource, "scopeMetrics": scoped }] })
        .to_string()
        .into_bytes()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attributes(all: &[Attribute]) -> Vec<Json> {
    let pair = |attribute: &Attribute| {
        let value = match &attribute.value {
            Value::Text(text) => json!({ "stringValue": text }),
            Value::Flag(flag) => json!({ "boolValue": flag }),
            Value::Number(number) => json!({ "intValue": number.to_string() }),
        };
        json!({ "key": attribute.name, "value": value })
    };
    all.iter().map(pair).collect()
}

fn span(span: &Span) -> Json {
    let events = span.events.iter().map(|event| {
        json!({
            "timeUnixNano": event.at.to_string(),
            "name": event.name,
            "attributes": attributes(&event.attributes),
        })
    });
    let mut object = Map::new();
    let mut set = |name: &str, value: Json| object.insert(name.to_owned(), value);
    set("traceId", hex(&span.trace).into());
    set("spanId", hex(&span.id).into());
    if !span.state.is_empty() {
        set("traceState", span.state.clone().into());
    }
    if let Some(parent) = &span.parent {
        set("parentSpanId", hex(parent).into());
    }
    set("name", span.name.clone().into());
    set("kind", (span.kind as u8).into());
    set("startTimeUnixNano", span.start.to_string().into());
    set("endTimeUnixNano", span.end.to_string().into());
    set("attributes", attributes(&span.attributes).into());
    set("events", events.collect::<Vec<_>>().into());
    if let SpanStatus::Error(why) = &span.status {
        set("status", json!({ "message": why, "code": ERROR }));
    }
    set("flags", SAMPLED.into());
    object.into()
}

fn metric(metric: &Metric, (start, end): (Nanoseconds, Nanoseconds)) -> Json {
    let mut is_histogram = false;
    let points = metric.points.iter().map(|point| {
        let mut json = json!({
            "startTimeUnixNano": start.to_string(),
            "timeUnixNano": end.to_string(),
            "attributes": attributes(&point.attributes),
        });
        match &point.data {
            MetricData::Whole(count) => json["asInt"] = count.to_string().into(),
            MetricData::Fraction(value) => json["asDouble"] = (*value).into(),
            MetricData::Histogram { bounds, buckets, sum } => {
                is_histogram = true;
                json["count"] = buckets.iter().sum::<u64>().to_string().into();
                json["sum"] = (*sum).into();
                json["bucketCounts"] =
                    buckets.iter().map(|count| Json::from(count.to_string())).collect();
                json["explicitBounds"] = bounds.iter().map(|bound| Json::from(*bound)).collect();
            }
        }
        json
    });
    let points: Vec<Json> = points.collect();
    let (kind, data) = match is_histogram {
        true => ("histogram", json!({ "dataPoints": points, "aggregationTemporality": DELTA })),
        false => (
            "sum",
            json!({ "dataPoints": points, "aggregationTemporality": DELTA, "isMonotonic": true }),
        ),
    };
    let mut json = json!({ "name": metric.name, "description": metric.help, "unit": metric.unit });
    json[kind] = data;
    json
}
