//! HTTP without strict parsing, for test builds that show what it prevents: the bytes are forwarded unchanged.
//!
//! Only the `Host` field of the first request is checked, as a careless proxy would.

use super::answer::{self, Shape};
use crate::engine::tunnel;
use crate::engine::{Admitted, Engine};
use crate::http::head::Authority;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const MAX_FIELDS: usize = 256;

pub(crate) async fn serve(
    engine: &Engine,
    mut client: TcpStream,
    upstream: TcpStream,
    admitted: &Admitted,
    mut first: Vec<u8>,
) {
    let named = loop {
        match host(&first) {
            Ok(Some(named)) => break named,
            Ok(None) => {}
            Err(()) => break None,
        }
        match client.read_buf(&mut first).await {
            Ok(1..) => {}
            Ok(_) => break None,
            Err(_) => return,
        }
    };
    let disagrees =
        named.filter(|named| engine.config.checks.agreement && named.host != admitted.host);
    if let Some(named) = disagrees {
        let reason = format!("the request is for {named}, the connection for {}", admitted.host);
        let answer = answer::refused(&engine.disagrees(admitted, reason), Shape::Whole);
        // The client may be gone.
        let _ = client.write_all(&answer).await;
        return;
    }
    // The first side that fails ends it, and nobody is left to report to.
    let _ = tunnel::relay(client, upstream, &first, admitted).await;
}

/// The first `Host` field, once the head is complete. Fails if it is not a head.
fn host(bytes: &[u8]) -> Result<Option<Option<Authority>>, ()> {
    let mut slots = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut slots);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {
            let value = request.headers.iter().find(|one| one.name.eq_ignore_ascii_case("host"));
            let text = value.and_then(|one| std::str::from_utf8(one.value).ok());
            Ok(Some(text.and_then(Authority::parse)))
        }
        Ok(httparse::Status::Partial) => Ok(None),
        Err(_) => Err(()),
    }
}
