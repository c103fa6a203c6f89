use super::*;
use crate::json;
use crate::model::{SpanEvent, SpanKind};

/// What the Python package `opentelemetry-proto` 1.x writes for [`spans`].
const TRACES: &str = "0a86020a1c0a1a0a0c736572766963652e6e616d65120a0a0870616c697361646512e5010a110a0870616c69736164651205302e312e3012cf010a1000010203 \
     0405060708090a0b0c0d0e0f120800010203040506071a03613d62220808090a0b0c0d0e0f2a046d616b6530033901000000000000004102000000000000004a \
     210a1770726f636573732e65786563757461626c652e6e616d6512060a046d616b654a200a1170726f636573732e657869742e636f6465120b18ffffffffffff \
     ffffff014a070a0178120210014a070a016512020a005a1a09030000000000000012056c696d69741a080a016b12030a01767a0f120b6578697420636f646520 \
     311802850101000000";
/// The same for [`some_metrics`].
const METRICS: &str = "0aba020a1c0a1a0a0c736572766963652e6e616d65120a0a0870616c69736164651299020a110a0870616c69736164651205302e312e3012540a0d70616c6973 \
     6164652e72756e73120552756e732e1a01313a390a331101000000000000001902000000000000003103000000000000003a160a076f7574636f6d65120b0a09 \
     636f6d706c6574656410011801123b0a0c70616c69736164652e637075120554696d652e1a01733a210a1b110100000000000000190200000000000000210000 \
     00000000f83f1001180112710a0e70616c69736164652e7365747570120653657475702e1a01734a540a50110100000000000000190200000000000000210300 \
     00000000000029000000000000e03f32180100000000000000020000000000000000000000000000003a109a9999999999b93f000000000000f03f1001";

fn resource() -> Resource {
    Resource(vec![Attribute::new("service.name", "palisade")])
}

fn spans() -> Vec<Span> {
    vec![Span {
        trace: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        id: [0, 1, 2, 3, 4, 5, 6, 7],
        parent: Some([8, 9, 10, 11, 12, 13, 14, 15]),
        state: "a=b".to_owned(),
        name: "make".to_owned(),
        kind: SpanKind::Client,
        start: 1,
        end: 2,
        attributes: vec![
            Attribute::new("process.executable.name", "make"),
            Attribute::new("process.exit.code", -1_i64),
            Attribute::new("x", true),
            Attribute::new("e", ""),
        ],
        events: vec![SpanEvent {
            name: "limit".to_owned(),
            at: 3,
            attributes: vec![Attribute::new("k", "v")],
        }],
        status: SpanStatus::Error("exit code 1".to_owned()),
    }]
}

fn some_metrics() -> Vec<Metric> {
    let metric = |name: &str, help: &str, unit: &str, attributes, data| Metric {
        name: name.to_owned(),
        help: help.to_owned(),
        unit: unit.to_owned(),
        points: vec![MetricPoint { attributes, data }],
    };
    let outcome = vec![Attribute::new("outcome", "completed")];
    let setup = MetricData::Histogram { bounds: vec![0.1, 1.0], buckets: vec![1, 2, 0], sum: 0.5 };
    vec![
        metric("palisade.runs", "Runs.", "1", outcome, MetricData::Whole(3)),
        metric("palisade.cpu", "Time.", "s", Vec::new(), MetricData::Fraction(1.5)),
        metric("palisade.setup", "Setup.", "s", Vec::new(), setup),
    ]
}

#[track_caller]
fn same(written: &[u8], expected: &str) {
    let written: String = written.iter().map(|byte| format!("{byte:02x}")).collect();
    let version =
        |version: &str| -> String { version.bytes().map(|byte| format!("{byte:02x}")).collect() };
    // The reference was written with this version.
    let expected: String = expected.split_whitespace().collect();
    assert_eq!(written.replace(&version(VERSION), &version("0.1.0")), expected);
}

/// Proves: TEL-1 otlp
#[test]
fn requests_are_byte_for_byte_those_of_the_reference_implementation() {
    same(&traces(&resource(), &spans()), TRACES);
    same(&metrics(&resource(), &some_metrics(), (1, 2)), METRICS);
}

#[test]
fn requests_in_json_have_hexadecimal_ids_and_numbers_as_text() {
    let read = |bytes: Vec<u8>| serde_json::from_slice::<serde_json::Value>(&bytes).unwrap();
    let traces = read(json::traces(&resource(), &spans()));
    let span = &traces["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(span["traceId"], "000102030405060708090a0b0c0d0e0f");
    assert_eq!(span["parentSpanId"], "08090a0b0c0d0e0f");
    assert_eq!((&span["startTimeUnixNano"], &span["kind"]), (&"1".into(), &3.into()));
    assert_eq!(span["attributes"][1]["value"]["intValue"], "-1");
    assert_eq!(span["status"]["code"], 2);
    let metrics = read(json::metrics(&resource(), &some_metrics(), (1, 2)));
    let metrics = &metrics["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    assert_eq!(metrics[0]["sum"]["dataPoints"][0]["asInt"], "3");
    assert_eq!(metrics[1]["sum"]["dataPoints"][0]["asDouble"], 1.5);
    let point = &metrics[2]["histogram"]["dataPoints"][0];
    assert_eq!((&point["count"], &point["bucketCounts"][1]), (&"3".into(), &"2".into()));
    assert_eq!(metrics[2]["histogram"]["aggregationTemporality"], 1);
}
