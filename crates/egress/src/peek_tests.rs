use super::*;
use crate::sni::tests::greeting_of;
use crate::test_support::{host, pair, run};
use proptest::prelude::*;
use tokio::io::AsyncWriteExt as _;

#[test]
fn what_never_gets_clear_is_bad() {
    assert!(matches!(classify(&vec![b' '; MAX_BYTES + 1]), Some(ProtocolKind::Bad(_))));
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
        assert_eq!(kind.unwrap(), ProtocolKind::Tls(Some(host("a.example"))));
        assert_eq!(first.bytes, greeting);
    });
}

#[test]
fn a_greeting_that_does_not_go_on_is_bad_after_a_while() {
    run(async {
        let (client, mut far) = pair().await;
        far.write_all(&greeting_of("a.example")[..50]).await.unwrap();
        let kind = First::default().decide(&client, Some(Duration::from_millis(50))).await;
        assert!(matches!(kind, Ok(ProtocolKind::Bad(_))), "{kind:?}");
    });
}

#[test]
fn a_word_that_does_not_go_on_is_unclear() {
    run(async {
        let (client, mut far) = pair().await;
        far.write_all(b"GE").await.unwrap();
        let mut first = First::default();
        assert_eq!(first.decide(&client, None).await.unwrap(), ProtocolKind::Unclear);
        far.write_all(b"T /").await.unwrap();
        first.read(&client).await.unwrap();
        assert_eq!(first.decide(&client, None).await.unwrap(), ProtocolKind::Http);
    });
}

/// Proves: NET-4 one-reading
#[test]
fn what_a_client_ends_with_is_no_request_or_nothing_that_passes() {
    run(async {
        let greeting = greeting_of("a.example");
        for (said, kind) in [
            (&b""[..], ProtocolKind::Other),
            (b"hello", ProtocolKind::Other),
            (b"\0\0\0\x08\x04\xd2\x16/", ProtocolKind::Other),
            (b"example.com and more\r\n", ProtocolKind::Other),
            (b"GET x", ProtocolKind::Http),
            (b"GET http://evil.example/secret HTTP/1.0", ProtocolKind::Http),
            (b"FETCH evil.example", ProtocolKind::Bad("a line without an end")),
            (&greeting[..50], ProtocolKind::Bad("TLS that ends within its greeting")),
        ] {
            let (client, mut far) = pair().await;
            far.write_all(said).await.unwrap();
            drop(far);
            let mut first = First::default();
            let mut decided = first.decide(&client, None).await.unwrap();
            while decided == ProtocolKind::Unclear {
                first.read(&client).await.unwrap();
                decided = first.decide(&client, None).await.unwrap();
            }
            assert!(decided == kind, "{}: {decided:?}", said.escape_ascii());
        }
    });
}

/// A program that waits for its answer must not wait for us.
#[test]
fn what_is_no_text_goes_on_at_once() {
    run(async {
        let (client, mut far) = pair().await;
        far.write_all(b"\0\0\0\x08\x04\xd2\x16/").await.unwrap();
        client.readable().await.unwrap();
        let mut first = First::default();
        let decided = timeout(PAUSE / 2, first.decide(&client, None)).await;
        assert_eq!(decided.unwrap().unwrap(), ProtocolKind::Unclear);
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
    /// A request cannot be hidden by how it is cut: once it is told what the bytes are, more change nothing.
    #[test]
    fn more_bytes_never_change_what_it_is(bytes: Vec<u8>, more: Vec<u8>) {
        if let Some(kind) = classify(&bytes) {
            prop_assert_eq!(classify(&[bytes, more].concat()), Some(kind));
        }
    }
}

/// Proves: NET-7 slow-senders
#[test]
fn looks_at_many_bytes_are_seldom() {
    const MEBIBYTE: f64 = 1024.0 * 1024.0;
    for size in [CHEAP + 1, 16 * 1024, 40_000, 64 * 1024] {
        let a_second = size as f64 / pause_after(size).as_secs_f64();
        assert!(a_second < 33.0 * MEBIBYTE, "{size}: {a_second}");
    }
    // A client is not kept waiting that says something now and then.
    assert!(pause_after(64 * 1024) < Duration::from_millis(5));
}

/// Proves: NET-7 slow-senders
#[test]
fn many_bytes_that_come_one_by_one_are_gathered_before_they_are_looked_at() {
    run(async {
        let (client, mut far) = pair().await;
        let mut first = First::new(vec![1; 32 * 1024]);
        assert_eq!(first.decide(&client, None).await.unwrap(), ProtocolKind::Unclear);
        let (_, before) = first.looked.unwrap();
        let sending = async {
            for _ in 0..64 {
                far.write_all(&[1]).await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        let (kind, ()) = tokio::join!(first.decide(&client, None), sending);
        assert_eq!(kind.unwrap(), ProtocolKind::Unclear);
        let (_, after) = first.looked.unwrap();
        assert!(after > before + 1, "{before} and then {after}");
    });
}
