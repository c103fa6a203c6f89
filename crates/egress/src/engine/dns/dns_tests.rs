use super::test_support::{Inside, Zone, code, config, question, rules, run};
use super::*;
use crate::config::{Checks, Limits, OnUnknown};
use hickory_proto::op::Message;
use hickory_proto::rr::{DNSClass, RecordType};
use tokio::net::TcpListener;
use tokio::task::spawn_local;

/// Proves: NET-6 rate, NET-6 logged
#[test]
fn queries_beyond_the_rate_are_refused_and_counted() {
    run(async {
        let zone = Zone::start().await;
        let names: Vec<String> =
            (0..50).map(|number| format!("{number}.allowed.example")).collect();
        names.iter().for_each(|name| zone.set(name, &["203.0.113.10"]));
        let mut config = config(rules(&["*.allowed.example"], &[]), zone.config());
        config.limits = Limits { queries_a_second: 5, ..Limits::default() };
        let mut inside = Inside::start(config.clone()).await;
        let mut refused = 0;
        for name in &names {
            let heard = inside.ask(name, RecordType::A).await;
            refused += u64::from(heard == code(ResponseCode::Refused));
        }
        // Five more for every second that the test takes.
        assert!((30..=40).contains(&refused), "{refused}");
        let event = inside.event();
        let counted = |answer: &str| -> u64 {
            event.iter().filter(|event| event.answer == answer).map(|event| event.count).sum()
        };
        assert_eq!((counted("REFUSED"), counted("NOERROR")), (refused, 50 - refused));

        config.checks = Checks { bounded: false, ..Checks::default() };
        let inside = Inside::start(config).await;
        for name in &names {
            inside.address(name, RecordType::A).await;
        }
    });
}

/// A program that looks the same name up for every connection says nothing new by it.
///
/// Proves: NET-6 rate
#[test]
fn a_name_that_is_known_already_is_asked_for_as_often_as_one_likes() {
    run(async {
        let zone = Zone::start().await;
        zone.set("allowed.example", &["203.0.113.10"]);
        let mut config = config(rules(&["allowed.example"], &[]), zone.config());
        config.limits = Limits { queries_a_second: 2, ..Limits::default() };
        let inside = Inside::start(config.clone()).await;
        let first = inside.address("allowed.example", RecordType::A).await;
        for _ in 0..50 {
            assert_eq!(inside.address("allowed.example", RecordType::A).await, first);
            inside.address("allowed.example", RecordType::AAAA).await;
        }
        // What nobody was told an address for is counted, however often it is asked.
        let mut last = None;
        for _ in 0..20 {
            last = Some(inside.ask("denied.example", RecordType::A).await);
        }
        assert_eq!(last, Some(code(ResponseCode::Refused)));

        config.on_unknown = OnUnknown::Ask;
        let inside = Inside::start(config).await;
        for _ in 0..50 {
            inside.address("unknown.example", RecordType::A).await;
        }
    });
}

/// Proves: NET-6 logged, NET-6 tunnelling
#[test]
fn data_in_names_is_told_as_such() {
    run(async {
        let zone = Zone::start().await;
        let mut inside = Inside::start(config(rules(&[], &[]), zone.config())).await;
        let name = "mzxw6ytboi4dsnzrgq2tmnzy.evil.example";
        assert_eq!(inside.ask(name, RecordType::TXT).await, code(ResponseCode::NXDomain));
        let event = inside.event();
        assert_eq!((event[0].name.as_str(), event[0].record.as_str()), (name, "TXT"));
        assert!(event[0].suspicion.as_ref().unwrap().contains("encoded data"));
    });
}

#[test]
fn what_is_no_query_is_refused_and_told() {
    run(async {
        let mut inside = Inside::start(config(rules(&[], &[]), Default::default())).await;
        let reply = inside.send_raw(&[9, 9, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0]).await;
        assert_eq!(reply.metadata.response_code, ResponseCode::FormErr);
        assert_eq!(inside.event()[0].answer, "FORMERR");
    });
}

/// One that waits for a slow server holds up nobody.
#[test]
fn a_slow_look_up_does_not_hold_up_others() {
    run(async {
        let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let lookup = crate::config::Lookup {
            servers: vec![silent.local_addr().unwrap()],
            known: vec![("known.example".to_owned(), "203.0.113.10".parse().unwrap())],
        };
        let inside = Inside::start(config(rules(&["*"], &[]), lookup)).await;
        let slow = question("slow.example", RecordType::A, DNSClass::IN).to_vec().unwrap();
        inside.client.send(&slow).await.unwrap();
        let before = Instant::now();
        inside.address("known.example", RecordType::A).await;
        assert_eq!(inside.ask("localhost", RecordType::TXT).await, code(ResponseCode::NoError));
        assert!(before.elapsed() < Duration::from_secs(1));
    });
}

async fn connected(inside: &Inside) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    spawn_local(serve_tcp(Rc::clone(&inside.engine), stream));
    client
}

#[test]
fn a_connection_carries_several_queries() {
    run(async {
        let zone = Zone::start().await;
        zone.set("allowed.example", &["203.0.113.10"]);
        let inside = Inside::start(config(rules(&["allowed.example"], &[]), zone.config())).await;
        let mut client = connected(&inside).await;
        let mut packets = Vec::new();
        for name in ["allowed.example", "denied.example", "allowed.example"] {
            let query = question(name, RecordType::A, DNSClass::IN).to_vec().unwrap();
            packets.extend(u16::try_from(query.len()).unwrap().to_be_bytes());
            packets.extend(query);
        }
        // In two parts, cut inside a length.
        client.write_all(&packets[..1]).await.unwrap();
        client.write_all(&packets[1..]).await.unwrap();
        for code in [ResponseCode::NoError, ResponseCode::NXDomain, ResponseCode::NoError] {
            let mut reply = vec![0; client.read_u16().await.unwrap().into()];
            client.read_exact(&mut reply).await.unwrap();
            assert_eq!(Message::from_vec(&reply).unwrap().metadata.response_code, code);
        }
    });
}

#[test]
fn a_connection_that_says_too_much_is_closed() {
    run(async {
        let inside = Inside::start(config(rules(&[], &[]), Default::default())).await;
        for start in [&[0xff, 0xff][..], &[0, 0], &[0, 3, 1, 2, 3]] {
            let mut client = connected(&inside).await;
            client.write_all(start).await.unwrap();
            assert_eq!(client.read(&mut [0; 9]).await.unwrap(), 0, "{start:?}");
        }
    });
}

/// What a query costs, without the look-up: far less than 50 µs in a release build.
#[test]
fn a_query_costs_little() {
    run(async {
        let lookup = crate::config::Lookup {
            servers: Vec::new(),
            known: vec![("known.example".to_owned(), "203.0.113.10".parse().unwrap())],
        };
        let mut config = config(rules(&["*.example"], &[]), lookup);
        config.checks = Checks { bounded: false, ..Checks::default() };
        let mut inside = Inside::start(config).await;
        let packet = question("known.example", RecordType::A, DNSClass::IN).to_vec().unwrap();
        const QUERIES: u32 = 2000;
        let before = cpu();
        for _ in 0..QUERIES {
            match hear(&inside.engine, &packet) {
                Heard::LookUp(look_up) => drop(look_up.finish(&inside.engine).await),
                Heard::Reply(_) | Heard::Nothing => panic!("not looked up"),
            }
        }
        let each = (cpu() - before) / QUERIES;
        println!("{each:?} a query");
        inside.event();
        let most = if cfg!(debug_assertions) { 1000 } else { 50 };
        assert!(each < Duration::from_micros(most), "{each:?}");
    });
}

fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}
