use super::{ClientRequest, Introduction, MAX_CONNECTIONS, Peer, Server};
use crate::message::{MAX_COMMAND_BYTES, MAX_EVENT_BYTES, ServerEvent};
use crate::test_support::{MAX_OPEN, call};
use crate::{Answer, Asked, Lifetime, MAX_WAITING, Now, QuestionId, Queue, Scope, Source, Store};

const PEER: Peer = Peer { uid: 1000, pid: 42 };

fn server() -> Server {
    Server::new(Introduction {
        session: "s".to_owned(),
        command: "make".to_owned(),
        project: "/p".to_owned(),
    })
}

/// Everything there is to write, as a client reads it.
fn read(server: &mut Server, id: super::ConnectionId, queue: &Queue) -> Vec<ServerEvent> {
    let mut text = Vec::new();
    while server.has_output(id) {
        let output = server.output(id, queue).to_vec();
        // Like a socket that takes a little at a time.
        let count = output.len().min(1000);
        text.extend_from_slice(&output[..count]);
        server.wrote(id, count);
    }
    let text = String::from_utf8(text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn code(events: &[ServerEvent]) -> &str {
    match events {
        [ServerEvent::Error(refused)] => &refused.code,
        other => panic!("{other:?}"),
    }
}

/// Proves: GATE-6 messages
#[test]
fn a_client_hears_what_is_open_and_what_becomes_of_it() {
    let now = Now::read();
    let mut queue = Queue::new("s", MAX_OPEN);
    let mut server = server();
    queue.ask(call(1, "/opt/sdk/a"), now);
    let id = server.connect(PEER, &queue).unwrap();
    let events = read(&mut server, id, &queue);
    assert!(
        matches!(&events[0], ServerEvent::Hello(hello) if hello.protocol == 1 && hello.open == 1)
    );
    assert!(
        matches!(&events[1], ServerEvent::FsRequest(question) if question.path == "/opt/sdk/a")
    );
    assert_eq!(events.len(), 2);

    let Asked::New(second) = queue.ask(call(2, "/opt/sdk/b"), now) else { panic!() };
    server.asked(second);
    assert!(matches!(&read(&mut server, id, &queue)[..],
        [ServerEvent::FsRequest(question)] if question.id == second));

    let wishes = server.received(id, b"{\"type\":\"cmd.approve\",\"id\":1,\"request\":9}\n");
    let ClientRequest::Answer { id: asked, answer } = wishes[0].request else { panic!() };
    let decided = queue.answer(asked, answer, &wishes[0].source, now).unwrap();
    server.decided(&decided[0]);
    server.reply(&wishes[0], Ok(()));
    let events = read(&mut server, id, &queue);
    assert!(
        matches!(&events[0], ServerEvent::Audit(audit) if audit.id.0 == 1 && audit.source == "socket")
    );
    assert!(matches!(&events[1], ServerEvent::Reply(reply)
        if reply.request == Some(9) && reply.id == Some(QuestionId(1))));

    server.decided(&queue.withdraw(2, now).unwrap());
    assert_eq!(read(&mut server, id, &queue), [ServerEvent::Withdrawn { id: second }]);
}

#[test]
fn commands_may_come_in_any_pieces() {
    let queue = Queue::new("s", MAX_OPEN);
    let mut server = server();
    let id = server.connect(PEER, &queue).unwrap();
    let text = concat!(
        "{\"type\":\"cmd.hello\",\"protocol\":1,\"name\":\"web\"}\n\r\n\n",
        "{\"type\":\"cmd.deny\",\"id\":4}\n",
        "{\"type\":\"cmd.policy.save\",\"scope\":\"project\"}\n",
    );
    let mut wishes = Vec::new();
    for byte in text.as_bytes() {
        wishes.extend(server.received(id, &[*byte]));
    }
    let deny = Answer::Deny { lifetime: Lifetime::Session };
    assert_eq!(wishes[0].request, ClientRequest::Answer { id: QuestionId(4), answer: deny });
    assert_eq!(wishes[0].source, Source::Socket { uid: 1000, pid: 42, name: "web".to_owned() });
    assert_eq!(wishes[1].request, ClientRequest::Save(Store::Project));
    assert_eq!(wishes.len(), 2);
}

/// Proves: GATE-6 messages
#[test]
fn nonsense_is_refused_and_the_connection_goes_on() {
    let queue = Queue::new("s", MAX_OPEN);
    let mut server = server();
    let id = server.connect(PEER, &queue).unwrap();
    read(&mut server, id, &queue);
    let table: &[(&[u8], &str)] = &[
        (b"hello\n", "bad_message"),
        (b"{}\n", "unknown_command"),
        (b"{\"type\":\"event.audit\"}\n", "unknown_command"),
        (b"{\"type\":\"cmd.approve\"}\n", "bad_message"),
        (b"{\"type\":\"cmd.approve\",\"id\":1,\"store\":\"user\"}\n", "bad_message"),
        (b"\xff\xfe\n", "bad_message"),
    ];
    for (line, expected) in table {
        assert_eq!(server.received(id, line), []);
        assert_eq!(code(&read(&mut server, id, &queue)), *expected, "{line:?}");
        assert!(!server.is_finished(id));
    }
    assert_eq!(server.received(id, b"{\"type\":\"cmd.deny\",\"id\":1}\n").len(), 1);
}

#[test]
fn another_version_is_turned_away() {
    let queue = Queue::new("s", MAX_OPEN);
    let mut server = server();
    let id = server.connect(PEER, &queue).unwrap();
    read(&mut server, id, &queue);
    let text = b"{\"type\":\"cmd.hello\",\"protocol\":2}\n{\"type\":\"cmd.approve\",\"id\":1}\n";
    assert_eq!(server.received(id, text), [], "nothing after it counts");
    assert!(!server.is_finished(id), "it has yet to hear why");
    assert_eq!(code(&read(&mut server, id, &queue)), "protocol");
    assert!(server.is_finished(id) && !server.has_clients());
}

#[test]
fn a_line_without_end_ends_the_connection() {
    let queue = Queue::new("s", MAX_OPEN);
    let mut server = server();
    let id = server.connect(PEER, &queue).unwrap();
    read(&mut server, id, &queue);
    assert_eq!(server.received(id, &vec![b' '; MAX_COMMAND_BYTES + 1]), []);
    assert_eq!(code(&read(&mut server, id, &queue)), "too_long");
    assert!(server.is_finished(id));
    assert_eq!(server.received(id, b"{\"type\":\"cmd.approve\",\"id\":1}\n"), []);
}

/// A client that reads nothing costs a bounded amount, and the others nothing.
#[test]
fn who_does_not_read_is_let_go() {
    let now = Now::read();
    let mut queue = Queue::new("s", MAX_OPEN);
    let mut server = server();
    let deaf = server.connect(PEER, &queue).unwrap();
    let awake = server.connect(PEER, &queue).unwrap();
    let mut most = 0;
    for request in 0..10_000 {
        let Asked::New(id) = queue.ask(call(request, "/opt/sdk/a"), now) else { panic!() };
        server.asked(id);
        most = most.max(server.output(deaf, &queue).len());
        read(&mut server, awake, &queue);
        let no = Answer::Deny { lifetime: Lifetime::Once };
        for decided in queue.answer(id, no, &Source::Terminal, now).unwrap() {
            server.decided(&decided);
        }
    }
    assert!(server.is_finished(deaf));
    assert!(most <= super::MAX_OUTPUT, "{most}");
    assert!(!server.is_finished(awake));
    assert_eq!(read(&mut server, awake, &queue).len(), 1);
}

/// Proves: GATE-5 asked-once
#[test]
fn a_crowded_question_is_told_as_it_is_when_there_is_room() {
    let now = Now::read();
    let mut queue = Queue::new("s", MAX_OPEN);
    let mut server = server();
    let id = server.connect(PEER, &queue).unwrap();
    for request in 0..MAX_WAITING as u64 {
        let call = call(u64::MAX - request, &format!("/{}", "\u{1}".repeat(4000)));
        match queue.ask(call, now) {
            Asked::New(question) | Asked::Joined(question) => server.asked(question),
            Asked::Full => panic!(),
        }
    }
    let longest = server.output(id, &queue).split(|byte| *byte == b'\n').map(<[u8]>::len).max();
    assert!(longest.unwrap() < MAX_EVENT_BYTES);
    let events = read(&mut server, id, &queue);
    assert!(matches!(&events[..], [ServerEvent::Hello(_), ServerEvent::FsRequest(question)]
        if question.requests.len() == MAX_WAITING));
}

#[test]
fn there_are_not_too_many_clients() {
    let queue = Queue::new("s", MAX_OPEN);
    let mut server = server();
    let first = server.connect(PEER, &queue).unwrap();
    for _ in 1..MAX_CONNECTIONS {
        server.connect(PEER, &queue).unwrap();
    }
    assert_eq!(server.connect(PEER, &queue), None);
    server.disconnect(first);
    assert!(server.connect(PEER, &queue).is_some());
}

/// What a refused answer sounds like.
#[test]
fn an_answer_that_is_not_offered_is_refused() {
    let now = Now::read();
    let mut queue = Queue::new("s", MAX_OPEN);
    let mut server = server();
    let mut secret = call(1, "/home/eve/.ssh/id");
    secret.is_secret = true;
    queue.ask(secret, now);
    let id = server.connect(PEER, &queue).unwrap();
    read(&mut server, id, &queue);
    let wishes = server.received(id, b"{\"type\":\"cmd.approve\",\"id\":1,\"scope\":\"dir\"}\n");
    let ClientRequest::Answer { id: asked, answer } = wishes[0].request else { panic!() };
    assert!(matches!(answer, Answer::Allow { scope: Scope::Directory, .. }));
    let refused = queue.answer(asked, answer, &wishes[0].source, now).unwrap_err();
    server.reply(&wishes[0], Err(refused));
    assert_eq!(code(&read(&mut server, id, &queue)), "not_offered");
    assert_eq!(queue.open().count(), 1);
}
