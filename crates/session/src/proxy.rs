//! `sandbox proxy`: the egress proxy as a standalone program, with the rules of one file (NET-10).
//!
//! Its events are recorded like those of a run, under its own id; if that fails, it exits. If the file cannot be
//! reread, the rules stay unchanged. It must never serve a client before it has dropped the privileges it does not
//! need.

use crate::app_dirs::read_document;
use crate::caller::Caller;
use crate::egress;
use crate::error::{Result, SessionError};
use crate::journal::Journal;
use crate::session_id::new_session_id;
use palisade_egress::alone::{self, Operator};
use palisade_egress::config::Config;
use palisade_egress::error::EgressError;
use palisade_egress::wire::EgressEvent;
use palisade_policy::{LayerKind, Mode, NetworkMode, Policy, PolicyLayer, Subject, merge};
use palisade_record::EventKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// The default address, reachable from this machine only.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 3128);

#[derive(Clone, Debug)]
pub struct ProxyRequest {
    /// In any format that a policy can have.
    pub config: PathBuf,
    /// Takes precedence over the file.
    pub listen: Option<SocketAddr>,
}

/// Events while the proxy serves.
#[derive(Debug)]
pub enum ProxyEvent<'a> {
    /// It serves at this address, under this id.
    Listening { address: SocketAddr, session: &'a str },
    /// An event that is also in the log.
    Happened(&'a EventKind),
    /// A warning about the file.
    Note(String),
    /// The file was reread.
    Reread,
    /// The file is invalid; the rules stay unchanged.
    NotReread(SessionError),
}

/// Serves until a signal ends it.
pub fn serve(
    caller: &Caller,
    request: &ProxyRequest,
    hear: &mut dyn FnMut(ProxyEvent<'_>),
) -> Result<()> {
    // The confined process can no longer find out.
    let files = egress::most_files();
    let read = read(caller, request, files)?;
    read.notes.into_iter().for_each(|note| hear(ProxyEvent::Note(note)));
    let wanted = request.listen.or(read.listen).unwrap_or(LISTEN);
    let io = |source| SessionError::Listen { address: wanted, source };
    let listener = TcpListener::bind(wanted).map_err(io)?;
    let address = listener.local_addr().map_err(io)?;
    let session = new_session_id();
    let journal = Journal::open(&caller.places, &session)?.pinned()?;
    let mut alone = Alone { caller, request, files, hear, journal, session, address, failed: None };
    alone::serve(listener, read.config, &mut alone)?;
    alone.failed.map_or(Ok(()), Err)
}

struct Alone<'a> {
    caller: &'a Caller,
    request: &'a ProxyRequest,
    files: u64,
    hear: &'a mut dyn FnMut(ProxyEvent<'_>),
    journal: Journal,
    session: String,
    address: SocketAddr,
    failed: Option<SessionError>,
}

impl Operator for Alone<'_> {
    fn hear(&mut self, event: EgressEvent) -> ControlFlow<()> {
        let kind = match event {
            EgressEvent::Attempt(attempt) => EventKind::NetworkAttempt(Box::new(attempt)),
            EgressEvent::Closed(closed) => EventKind::ConnectionClosed(Box::new(closed)),
            EgressEvent::Queried(queried) => EventKind::NameQueried(Box::new(queried)),
            // Everything is open now, and no client is served yet.
            EgressEvent::Ready => {
                if let Err(error) = palisade_launch::confine_alone() {
                    self.failed = Some(error.into());
                    return ControlFlow::Break(());
                }
                (self.hear)(ProxyEvent::Listening {
                    address: self.address,
                    session: &self.session,
                });
                return ControlFlow::Continue(());
            }
            // A standalone proxy asks no questions.
            EgressEvent::Asked { .. }
            | EgressEvent::Withdrawn { .. }
            | EgressEvent::Unable { .. } => {
                return ControlFlow::Continue(());
            }
        };
        (self.hear)(ProxyEvent::Happened(&kind));
        self.journal.add(kind);
        match self.journal.commit() {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error.into());
                ControlFlow::Break(())
            }
        }
    }

    fn reread(&mut self) -> Option<Config> {
        match read(self.caller, self.request, self.files) {
            Ok(read) => {
                read.notes.into_iter().for_each(|note| (self.hear)(ProxyEvent::Note(note)));
                Some(read.config)
            }
            Err(error) => {
                (self.hear)(ProxyEvent::NotReread(error));
                None
            }
        }
    }

    fn renewed(&mut self, renewed: Result<(), EgressError>) {
        (self.hear)(match renewed {
            Ok(()) => ProxyEvent::Reread,
            Err(error) => ProxyEvent::NotReread(error.into()),
        });
    }
}

struct Read {
    config: Config,
    listen: Option<SocketAddr>,
    notes: Vec<String>,
}

fn read(caller: &Caller, request: &ProxyRequest, files: u64) -> Result<Read> {
    let text = read_document(&request.config)?
        .ok_or_else(|| SessionError::NoSuchPolicy { path: request.config.clone() })?;
    let name = request.config.to_string_lossy();
    let loaded = palisade_policy::load(&text, &name).map_err(SessionError::Policy)?;
    let layer = PolicyLayer { kind: LayerKind::User, document: loaded.document };
    let merged = merge(&Subject::Run, vec![layer]).map_err(SessionError::Policy)?;
    let policy = for_a_proxy(merged.policy)?;
    let (facts, _) = egress::facts(caller, &policy)?;
    let (plan, notes) = palisade_plan::proxy_alone(&policy, &facts)?;
    let mut config = egress::of_proxy(&plan, &facts, None)?;
    let bound = egress::bound(&mut config, files);
    let warnings = loaded.warnings.iter().chain(&merged.notes).map(ToString::to_string);
    let notes = warnings.chain(notes.into_iter().map(|note| note.text)).chain(bound).collect();
    Ok(Read { config, listen: loaded.listen, notes })
}

/// The file's rules. A standalone proxy cannot ask, and no client trusts its certificate authority.
fn for_a_proxy(mut policy: Policy) -> Result<Policy> {
    if policy.network.intercept {
        return Err(SessionError::NoInterception);
    }
    policy.network.mode = NetworkMode::Proxy;
    policy.mode = Mode::Static;
    Ok(policy)
}
