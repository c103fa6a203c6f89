use super::*;
use palisade_record::SpanContext;

fn exporter() -> Exporter {
    let variable = |name: &str| {
        (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| "http://127.0.0.1:1".to_owned())
    };
    let mut exporter = Exporter::new(Settings::of(&variable).unwrap().unwrap(), []);
    // No sender is started.
    exporter.next_try = Some(Instant::now() + Duration::from_secs(3600));
    exporter
}

fn span(name: &str) -> Span {
    Span::new(name, &SpanContext::root(name), None, (1, 2))
}

#[test]
fn without_a_sender_the_queue_has_a_bound_and_what_is_beyond_it_is_counted() {
    let mut exporter = exporter();
    for number in 0..MAX_QUEUE + 10 {
        exporter.span(span(&number.to_string()));
    }
    assert_eq!(exporter.queue.len(), MAX_QUEUE);
    assert_eq!(exporter.loss.queue_full, 10);
    let loss = exporter.finish(&Metrics::default(), (1, 2));
    assert_eq!((loss.queue_full, loss.not_sent), (MAX_QUEUE as u64 + 10, 0));
    assert!(loss.why.is_some());
}

#[test]
fn large_spans_fill_the_queue_by_their_size() {
    let mut exporter = exporter();
    for _ in 0..MAX_QUEUE {
        let mut span = span("large");
        (0..64).for_each(|_| span.add("text", "x".repeat(5000)));
        exporter.span(span);
    }
    assert!(exporter.queue_bytes <= MAX_QUEUE_BYTES);
    assert!(exporter.loss.queue_full > 0);
}

#[test]
fn a_sender_that_does_not_read_is_not_waited_for() {
    let mut exporter = exporter();
    let (socket, _theirs) = socketpair().unwrap();
    let child = Command::new("true").spawn().unwrap();
    exporter.sender = Some(RunningSender { child, socket, since: Instant::now() });
    let began = Instant::now();
    for number in 0..MAX_QUEUE * 4 {
        exporter.span(span(&number.to_string()));
    }
    assert!(exporter.loss.queue_full > 0, "the socket and the queue have a bound");
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn what_the_sender_says_is_counted() {
    let mut exporter = exporter();
    let (socket, theirs) = socketpair().unwrap();
    let child = Command::new("true").spawn().unwrap();
    exporter.sender = Some(RunningSender { child, socket, since: Instant::now() });
    for why in ["first", "second"] {
        let packet = encode(&NotSent { count: 3, why: why.to_owned() }).unwrap();
        try_send(&theirs, &packet).unwrap();
    }
    let loss = exporter.finish(&Metrics::default(), (1, 2));
    assert_eq!((loss.not_sent, loss.why.as_deref()), (6, Some("first")));
}

#[test]
fn the_sender_has_no_other_variables_than_its_own() {
    let given = [
        ("OTEL_SERVICE_NAME", "a"),
        ("AWS_SECRET_ACCESS_KEY", "b"),
        ("SSL_CERT_FILE", "/old"),
        (CERTIFICATE, "/new"),
    ];
    let settings = exporter().settings;
    let exporter = Exporter::new(settings, given.map(|(name, value)| (name.into(), value.into())));
    let has = |name: &str, value: &str| {
        exporter.environment.contains(&(OsString::from(name), OsString::from(value)))
    };
    assert!(has("OTEL_SERVICE_NAME", "a") && has("SSL_CERT_FILE", "/new"));
    assert!(!has("AWS_SECRET_ACCESS_KEY", "b") && !has("SSL_CERT_FILE", "/old"));
}

#[test]
fn a_sender_that_ends_at_once_is_not_started_again_and_again() {
    let mut exporter = exporter();
    exporter.next_try = None;
    let (socket, theirs) = socketpair().unwrap();
    drop(theirs);
    let child = Command::new("true").spawn().unwrap();
    exporter.sender = Some(RunningSender { child, socket, since: Instant::now() });
    exporter.span(span("first"));
    exporter.flush();
    assert_eq!((exporter.queue.len(), exporter.sender.is_none()), (1, true));
    assert!(exporter.next_try.is_some());
}

#[test]
fn senders_that_were_replaced_are_waited_for_when_they_have_ended() {
    let mut exporter = exporter();
    let (socket, theirs) = socketpair().unwrap();
    drop(theirs);
    let child = Command::new("sleep").arg("0.3").spawn().unwrap();
    exporter.sender = Some(RunningSender { child, socket, since: Instant::now() });
    exporter.span(span("first"));
    exporter.flush();
    assert_eq!(exporter.replaced.len(), 1, "it still sends what it has");
    let began = Instant::now();
    while !exporter.replaced.is_empty() {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(20));
        exporter.flush();
    }
}

#[test]
fn files_are_named_by_absolute_paths() {
    let settings = exporter().settings;
    let given = [(CERTIFICATE, "certs/ca.pem"), ("OTEL_SERVICE_NAME", "certs/ca.pem")];
    let exporter = Exporter::new(settings, given.map(|(name, value)| (name.into(), value.into())));
    let absolute = std::env::current_dir().unwrap().join("certs/ca.pem");
    for (name, value) in [
        (CERTIFICATE, absolute.as_os_str()),
        (TRUSTED, absolute.as_os_str()),
        ("OTEL_SERVICE_NAME", "certs/ca.pem".as_ref()),
    ] {
        assert!(exporter.environment.contains(&(name.into(), value.to_owned())), "{name}");
    }
    assert_eq!(absolute_file(CERTIFICATE.as_ref(), OsString::new()), "");
}
