use super::*;
use crate::http::head::{self, Parsed};

fn request(text: &str) -> RequestHead {
    match head::parse(text.as_bytes()) {
        Parsed::Head(head) => *head,
        other => panic!("{other:?}"),
    }
}

fn get() -> RequestHead {
    request("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
}

fn answer(text: &str, method: &str) -> ResponseHead {
    parse(text.as_bytes(), method).unwrap().unwrap()
}

fn written(answer: &ResponseHead, request: &RequestHead, keep_alive: bool) -> (String, Framing) {
    let (bytes, framing) = answer.write(request, keep_alive);
    (String::from_utf8(bytes).unwrap(), framing)
}

#[test]
fn a_body_is_as_long_as_the_answer_says() {
    let framing = |fields: &str, status: u16, method: &str| {
        answer(&format!("HTTP/1.1 {status} x\r\n{fields}\r\n"), method).body
    };
    assert_eq!(framing("Content-Length: 5\r\n", 200, "GET"), Framing::Length(5));
    assert_eq!(framing("Content-Length: 5\r\n", 200, "HEAD"), Framing::NONE);
    assert_eq!(framing("Content-Length: 5\r\n", 304, "GET"), Framing::NONE);
    assert_eq!(framing("", 204, "GET"), Framing::NONE);
    assert_eq!(framing("", 200, "GET"), Framing::UntilClose);
    assert_eq!(
        framing("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", 200, "GET"),
        Framing::Chunked
    );
    let two = "HTTP/1.1 200 x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n";
    assert_eq!(parse(two.as_bytes(), "GET"), Err(ResponseFault::Length));
    let coded = "HTTP/1.1 200 x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n";
    assert_eq!(parse(coded.as_bytes(), "GET"), Err(ResponseFault::Encoding));
}

#[test]
fn inside_there_is_one_way_to_read_it() {
    let text = "HTTP/1.1 200 fine\r\nX: a\r\n b\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\nKeep-Alive: 5\r\nConnection: X-Hop\r\nX-Hop: y\r\n\r\n";
    let (text, framing) = written(&answer(text, "GET"), &get(), true);
    assert_eq!(framing, Framing::Chunked);
    assert!(text.starts_with("HTTP/1.1 200 fine\r\n"));
    assert!(text.contains("x: a") && text.contains(" b\r\n") && !text.contains("\n b"), "{text:?}");
    assert!(
        !text.contains("content-length") && !text.contains("keep-alive") && !text.contains("x-hop")
    );
    assert_eq!(text.matches("transfer-encoding").count(), 1);
    assert!(!text.contains("connection"));
}

#[test]
fn the_length_of_what_is_not_sent_is_kept() {
    let head = request("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
    let (text, framing) =
        written(&answer("HTTP/1.1 200 x\r\nContent-Length: 5\r\n\r\n", "HEAD"), &head, true);
    assert!(text.contains("content-length: 5\r\n"));
    assert_eq!(framing, Framing::NONE);
}

#[test]
fn an_old_client_gets_no_chunks() {
    let old = request("GET / HTTP/1.0\r\n\r\n");
    let (text, framing) = written(
        &answer("HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n", "GET"),
        &old,
        false,
    );
    assert!(text.contains("connection: close\r\n") && !text.contains("chunked"));
    assert_eq!(framing, Framing::UntilClose);
}

#[test]
fn what_is_no_http_is_said_to_be_none() {
    assert_eq!(parse(b"SSH-2.0-x\r\n", "GET"), Err(ResponseFault::NotHttp));
    assert_eq!(parse(b"HTTP/1.1 200 x\r\nA: b\r\n", "GET"), Ok(None));
    let long = [b"HTTP/1.1 200 x\r\nA: ".to_vec(), vec![b'a'; MAX_HEAD_BYTES]].concat();
    assert_eq!(parse(&long, "GET"), Err(ResponseFault::TooLarge));
}
