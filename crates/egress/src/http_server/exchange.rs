//! One request to a server and its response, which may arrive before the request is sent completely.

use super::answer::{self, Shape};
use super::connection::{Broken, Connection, Last, Readable, Writable, pass_body};
use crate::engine::{Admitted, Engine};
use crate::http::body::{Body, BodyFault, Frames, From};
use crate::http::head::{Framing, MAX_HEAD_BYTES, RequestHead, Version};
use crate::http::incoming::Incoming;
use crate::http::response::{self, ResponseFault, ResponseHead};
use std::cell::Cell;
use std::future::pending;
use std::io;
use tokio::io::AsyncWriteExt as _;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Both connections can be used again.
    Another,
    Close,
    /// The connection no longer carries HTTP.
    Upgraded,
}

/// Whether a part of the response was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    Yes,
    No,
}

/// Why an exchange was not completed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A part of the response was sent, or the client is gone.
    Cut,
    /// The client sent an invalid body.
    Body(BodyFault),
    Response(ResponseFault),
    /// The server closed the connection before it responded.
    Server,
    /// The byte limit is reached.
    Spent(Begun),
}

impl Failure {
    /// An error on the server's connection before it responded.
    pub(crate) fn with_server(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::QuotaExceeded {
            Self::Spent(Begun::No)
        } else {
            Self::Server
        }
    }

    /// How to end the client's connection.
    pub(crate) fn last(&self, engine: &Engine, admitted: &Admitted, shape: Shape) -> Last {
        Last::Words(match self {
            Self::Cut => return Last::Cut,
            Self::Body(fault) => answer::bad(400, &fault.to_string(), shape),
            Self::Response(fault) => answer::bad(502, &fault.to_string(), shape),
            Self::Spent(begun) => {
                let refused = engine.spent(admitted);
                if *begun == Begun::Yes {
                    return Last::Cut;
                }
                answer::refused(&refused, shape)
            }
            Self::Server => answer::bad(502, "the host closed before it answered", shape),
        })
    }
}

/// Forwards one request and its response. The response may arrive before the request's body is sent.
pub(crate) async fn exchange<CR: Readable, CW: Writable, SR: Readable, SW: Writable>(
    client: &mut Connection<CR, CW>,
    server: &mut Connection<SR, SW>,
    head: &RequestHead,
    request: &[u8],
    admitted: &Admitted,
) -> Result<After, Failure> {
    admitted.sent(request.len() as u64).map_err(|error| Failure::with_server(&error))?;
    server.outgoing.write_all(request).await.map_err(|error| Failure::with_server(&error))?;
    server.outgoing.flush().await.map_err(|error| Failure::with_server(&error))?;
    let (whole, begun) = (Cell::new(false), Cell::new(Begun::No));
    let sending = async {
        let body = Body::new(head.body, From::Inside);
        let frames = Frames::of(head.body);
        let count = |bytes| admitted.sent(bytes);
        pass_body(&mut client.incoming, &mut server.outgoing, body, frames, admitted, count)
            .await?;
        whole.set(true);
        // A client that is gone needs no response. One that has only ended its sending side may wait for it.
        if client.incoming.bytes().is_empty() {
            client.incoming.fill().await.map_err(|_| Broken::Reading)?;
        }
        pending::<Result<(), Broken>>().await
    };
    let answer = Answering {
        incoming: &mut server.incoming,
        outgoing: &mut client.outgoing,
        admitted,
        begun: &begun,
    };
    let answering = answer.pass(head);
    tokio::pin!(answering);
    let answered = tokio::select! {
        answered = &mut answering => answered,
        Err(broken) = sending => match broken {
            // A server may respond and close before it has read everything.
            Broken::Writing(error) if error.kind() != io::ErrorKind::QuotaExceeded => answering.await,
            Broken::Writing(_) => Err(Failure::Spent(begun.get())),
            Broken::Fault(fault) if begun.get() == Begun::No => Err(Failure::Body(fault)),
            Broken::Reading | Broken::Fault(_) => Err(Failure::Cut),
        },
    };
    match answered? {
        // The rest of the request would be taken for the next one.
        After::Another if !whole.get() => Ok(After::Close),
        after => Ok(after),
    }
}

/// Forwards a response.
pub(crate) struct Answering<'a, R, W> {
    pub(crate) incoming: &'a mut Incoming<R>,
    pub(crate) outgoing: &'a mut W,
    pub(crate) admitted: &'a Admitted,
    /// Whether a part of the final response was sent to the client.
    pub(crate) begun: &'a Cell<Begun>,
}

impl<R: Readable, W: Writable> Answering<'_, R, W> {
    async fn pass(mut self, head: &RequestHead) -> Result<After, Failure> {
        let answer = self.head(head).await?;
        self.rest(head, &answer).await
    }

    /// Takes the head of the final response. Interim responses are forwarded.
    pub(crate) async fn head(&mut self, head: &RequestHead) -> Result<ResponseHead, Failure> {
        let mut read = 0;
        loop {
            let bytes = self.incoming.bytes();
            // Only a line ending can complete the head, see `Connection::next_head`.
            let is_worth =
                read == 0 || bytes[read..].contains(&b'\n') || bytes.len() >= MAX_HEAD_BYTES;
            read = bytes.len();
            let parsed = if is_worth { response::parse(bytes, &head.method) } else { Ok(None) };
            let Some(answer) = parsed.map_err(Failure::Response)? else {
                if self.incoming.fill().await.map_err(|error| Failure::with_server(&error))? == 0 {
                    return Err(Failure::Server);
                }
                continue;
            };
            self.incoming.take(answer.size);
            read = 0;
            self.admitted
                .received(answer.size as u64)
                .map_err(|error| Failure::with_server(&error))?;
            // It concerns our credentials, which an error page may show, and programs inside cannot fix it.
            if answer.status == 407 && self.admitted.is_forwarded() {
                return Err(Failure::Response(ResponseFault::Login));
            }
            if !answer.is_interim() {
                return Ok(answer);
            }
            if head.version == Version::Http11 {
                let (bytes, _) = answer.write(head, true);
                self.say(&bytes).await?;
            }
        }
    }

    async fn say(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.outgoing.write_all(bytes).await.map_err(|_| Failure::Cut)?;
        self.outgoing.flush().await.map_err(|_| Failure::Cut)
    }

    /// Sends that head, and the body after it.
    pub(crate) async fn rest(
        mut self,
        head: &RequestHead,
        answer: &ResponseHead,
    ) -> Result<After, Failure> {
        let may_upgrade = head.upgrade().is_some()
            && !self.admitted.is_forwarded()
            && answer.fields.lists("upgrade", "websocket");
        if answer.status == 101 && !may_upgrade {
            return Err(Failure::Response(ResponseFault::NotHttp));
        }
        let keep_alive = head.keeps_alive() && answer.keeps_alive;
        let (bytes, framing) = answer.write(head, keep_alive);
        self.begun.set(Begun::Yes);
        self.say(&bytes).await?;
        if answer.status == 101 {
            return Ok(After::Upgraded);
        }
        let body = Body::new(answer.body, From::Server);
        let count = |bytes| self.admitted.received(bytes);
        let passed = pass_body(
            self.incoming,
            self.outgoing,
            body,
            Frames::of(framing),
            self.admitted,
            count,
        )
        .await;
        // Unexpected bytes would be taken for the response to the next request.
        let is_clean = self.incoming.bytes().is_empty();
        match passed {
            Ok(()) if keep_alive && is_clean && framing != Framing::UntilClose => {
                Ok(After::Another)
            }
            Ok(()) => Ok(After::Close),
            Err(Broken::Writing(error)) if error.kind() == io::ErrorKind::QuotaExceeded => {
                Err(Failure::Spent(Begun::Yes))
            }
            // A partial response cannot be repaired; closing early shows the client that it is incomplete.
            Err(_) => Err(Failure::Cut),
        }
    }
}
