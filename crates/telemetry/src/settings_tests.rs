use super::*;
use crate::model::Value;

fn read(variables: &[(&str, &str)]) -> Result<Option<Settings>, SettingsError> {
    Settings::of(&|name| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    })
}

fn settings(variables: &[(&str, &str)]) -> Settings {
    read(variables).unwrap().unwrap()
}

const HERE: (&str, &str) = (ENDPOINT, "http://127.0.0.1:4318");

/// Proves: TEL-1 otlp
#[test]
fn nothing_is_sent_unless_an_endpoint_is_set() {
    assert_eq!(read(&[]), Ok(None));
    assert_eq!(read(&[("OTEL_SERVICE_NAME", "x"), (ENDPOINT, "")]), Ok(None));
    assert_eq!(read(&[HERE, ("OTEL_SDK_DISABLED", "true")]), Ok(None));
    let none = [("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRICS_EXPORTER", "none")];
    assert_eq!(read(&[HERE, none[0], none[1]]), Ok(None));
    let metrics = settings(&[HERE, none[0]]);
    assert!(!metrics.has_traces() && metrics.has_metrics());
}

#[test]
fn the_common_endpoint_is_a_base_and_that_of_a_signal_is_not() {
    let both = settings(&[
        (ENDPOINT, "https://collector.example/otlp/"),
        (TRACES_ENDPOINT, "http://[::1]:9/in?x=1"),
    ]);
    let (traces, metrics) = (both.traces.unwrap(), both.metrics.unwrap());
    assert_eq!((traces.host.as_str(), traces.port, traces.path.as_str()), ("::1", 9, "/in?x=1"));
    assert_eq!((metrics.is_tls, metrics.port), (true, 443));
    assert_eq!(metrics.path, "/otlp/v1/metrics");
    let only_traces = settings(&[(TRACES_ENDPOINT, "http://a")]);
    assert_eq!((only_traces.traces.unwrap().path, only_traces.metrics), ("/".to_owned(), None));
}

#[test]
fn grpc_is_answered_with_what_to_set() {
    let error = read(&[HERE, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).unwrap_err().to_string();
    for part in ["OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported", "http/protobuf", "4318"] {
        assert!(error.contains(part), "{error}");
    }
    let json = settings(&[HERE, ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/json")]);
    assert_eq!(json.traces.unwrap().protocol, Protocol::HttpProtobuf);
    assert_eq!(json.metrics.unwrap().protocol, Protocol::HttpJson);
}

#[test]
fn headers_are_decoded_and_cannot_make_another_request() {
    let given = ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b%3D, x=y=z");
    let headers = settings(&[HERE, given]).traces.unwrap().headers;
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(headers, [pair("api-key", "a b="), pair("x", "y=z")]);
    for wrong in ["x", "a b=c", "a=%0d%0aHost: x", "a=%ff", "Host=x", "content-length=1"] {
        let error = read(&[HERE, ("OTEL_EXPORTER_OTLP_HEADERS", wrong)]).unwrap_err();
        assert!(matches!(error, SettingsError::Headers { .. }), "{wrong}: {error}");
        assert!(!error.to_string().contains(wrong) || wrong.len() < 4, "a secret: {error}");
    }
}

#[test]
fn what_is_no_address_is_named_without_its_password() {
    for wrong in ["localhost:4318", "ftp://a", "http://", "http://a b", "http://a:x", "http://a:0"]
    {
        let error = read(&[(ENDPOINT, wrong)]).unwrap_err();
        assert!(matches!(error, SettingsError::Endpoint { .. }), "{wrong}");
    }
    let error = read(&[(ENDPOINT, "http://me:secret@host")]).unwrap_err().to_string();
    assert!(!error.contains("secret"), "{error}");
}

#[test]
fn a_service_has_the_name_that_is_set() {
    let name_of = |settings: &Settings| {
        let named: Vec<_> =
            settings.resource.iter().filter(|it| it.name == "service.name").collect();
        assert_eq!(named.len(), 1);
        named[0].value.clone()
    };
    let text = |text: &str| Value::from(text);
    assert_eq!(name_of(&settings(&[HERE])), text("palisade"));
    let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a,host.name=h%2Cx,broken");
    let from_attributes = settings(&[HERE, attributes]);
    assert_eq!(name_of(&from_attributes), text("a"));
    assert!(from_attributes.resource.contains(&Attribute::new("host.name", "h,x")));
    assert_eq!(name_of(&settings(&[HERE, attributes, ("OTEL_SERVICE_NAME", "b")])), text("b"));
}

#[test]
fn a_timeout_is_bounded() {
    let timeout = |value: &str| read(&[HERE, ("OTEL_EXPORTER_OTLP_TIMEOUT", value)]);
    assert_eq!(timeout("1500").unwrap().unwrap().patience(), Duration::from_millis(1500));
    assert_eq!(timeout("86400000").unwrap().unwrap().patience(), MAX_TIMEOUT);
    assert!(matches!(timeout("10s"), Err(SettingsError::Timeout { .. })));
}
