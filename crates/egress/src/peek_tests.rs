use super::*;
use crate::sni::tests::greeting_of;
use crate::test_support::{host, pair, run};
use proptest::prelude::*;
use tokio::io::AsyncWriteExt as _;

#[test]
fn requests_are_told_from_everything_else() {
    for request in [
        "GET / HTTP/1.1\r\n",
        "get /",
        "\r\n\r\nGET /",
        " GET /",
        "GET\t/",
        "GET   /",
        "WEIRD-METHOD /",
        "OPTIONS *",
        "GET http://a.example/ HTTP/1.1\r\n",
        "GET HTTPS://a.example/ HTTP/1.1\n",
        "GET x://a.example/ HTTP/1.1\r\n",
        "GET ws://a.example/ http/1.1\r\n",
        "GET ?a HTTP/1.1\r\n",
        "GET %2f HTTP/1.0\r\n",
        "G\u{e9}T / HTTP/1.1\r\n",
        "GET\u{1c}/ HTTP/1.1\r\n",
        "CONNECT a.example:443",
        "PRI * HTTP/2.0",
        "A-WORD-THAT-IS-MUCH-LONGER-THAN-METHODS-ARE-BUT-SOME-SERVERS-WOULD-TAKE-IT /",
        "GET\x0b/",
        "0033git-upload-pack / HTTP/1.1\r\n",
    ] {
        assert_eq!(classify(request.as_bytes()), Some(Kind::Http), "{request:?}");
    }
    for other in [
        "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
        "EHLO a.example\r\n",
        "NICK me\r\n",
        "*1\r\n$4\r\nPING\r\n",
        "QUIT\r\n",
        "\0\0\0\u{8}",
        "0033git-upload-pack /project.git\0host=a.example\0",
        "{\"jsonrpc\": \"2.0\"}\n",
        "GET\r\n/ HTTP/1.1",
    ] {
        assert_eq!(classify(other.as_bytes()), Some(Kind::Other), "{other:?}");
    }
    for undecided in
        ["", "\r\n", "GET", "GET ", "GET x://a", "SSH-2.0", "{\"json", "0033git-upload-pack /x"]
    {
        assert_eq!(classify(undecided.as_bytes()), None, "{undecided:?}");
    }
}

#[test]
fn what_never_gets_clear_is_bad() {
    assert!(matches!(classify(&vec![b' '; MOST_BYTES + 1]), Some(Kind::Bad(_))));
}

#[test]
fn bytes_that_come_one_by_one_are_put_together() {
    run(async {
        let (client, mut far) = pair().await;
        let greeting = greeting_of("a.example");
        let sending = async {
            for byte in &greeting {
                far.write_all(&[*byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        let mut first = First::default();
        let (kind, ()) = tokio::join!(first.decide(&client, None), sending);
        assert_eq!(kind.unwrap(), Kind::Tls(Some(host("a.example"))));
        assert_eq!(first.bytes, greeting);
    });
}

#[test]
fn a_greeting_that_does_not_go_on_is_bad_after_a_while() {
    run(async {
        let (client, mut far) = pair().await;
        far.write_all(&greeting_of("a.example")[..50]).await.unwrap();
        let kind = First::default().decide(&client, Some(Duration::from_millis(50))).await;
        assert!(matches!(kind, Ok(Kind::Bad(_))), "{kind:?}");
    });
}

#[test]
fn a_word_that_does_not_go_on_is_unclear() {
    run(async {
        let (client, mut far) = pair().await;
        far.write_all(b"GE").await.unwrap();
        let mut first = First::default();
        assert_eq!(first.decide(&client, None).await.unwrap(), Kind::Unclear);
        far.write_all(b"T /").await.unwrap();
        first.read(&client).await.unwrap();
        assert_eq!(first.decide(&client, None).await.unwrap(), Kind::Http);
    });
}

#[test]
fn a_client_that_ends_is_something_else() {
    run(async {
        let (client, far) = pair().await;
        drop(far);
        assert_eq!(First::default().decide(&client, None).await.unwrap(), Kind::Other);
    });
}

#[test]
fn the_end_of_a_client_is_noticed_behind_what_it_said() {
    run(async {
        let (client, mut far) = pair().await;
        far.write_all(b"hello").await.unwrap();
        let mut first = First::default();
        assert!(timeout(Duration::from_millis(50), first.end(&client)).await.is_err());
        drop(far);
        first.end(&client).await;
        assert_eq!(first.bytes, b"hello");
    });
}

proptest! {
    /// A request can not be hidden by how it is cut: once it is told what the bytes are, more change nothing.
    #[test]
    fn more_bytes_never_change_what_it_is(bytes: Vec<u8>, more: Vec<u8>) {
        if let Some(kind) = classify(&bytes) {
            prop_assert_eq!(classify(&[bytes, more].concat()), Some(kind));
        }
    }
}
