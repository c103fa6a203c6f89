//! Messages between the egress process and the supervisor: JSON, one message per packet.
//!
//! Not the compact format of `palisade-wire`: events are records of the audit log as written there, and fields
//! that those omit cannot be omitted in a format without field names.
//!
//! The process only reports and asks; it does not matter to it who answers. A packet that does not parse is an
//! error, never a guess.

use palisade_record::network::{ConnectionClosed, NameQueried, NetworkAttempt};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Maximum length of a packet.
pub const MAX_PACKET_BYTES: usize = 16 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "told")]
pub enum EgressEvent {
    /// The process is serving.
    Ready,
    Attempt(NetworkAttempt),
    Closed(ConnectionClosed),
    Queried(NameQueried),
    /// A connection waits for an answer. Each host and port is asked about once at a time.
    Asked {
        ask: u64,
        host: String,
        port: u16,
        /// The client that connected first, by the address of its socket inside.
        client: Option<SocketAddr>,
    },
    /// No connection waits for the answer any more.
    Withdrawn {
        ask: u64,
    },
    /// The process cannot continue; the supervisor ends the run.
    Unable {
        why: String,
    },
}

/// How long an answer is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Holds {
    /// For the connections that wait now.
    Once,
    /// Until this process ends.
    Session,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "order")]
pub enum EgressRequest {
    Answer {
        ask: u64,
        allowed: bool,
        holds: Holds,
        /// Who decided, for the log: `terminal`, `socket`, `timeout` …
        source: String,
    },
    /// Report what is not reported yet (counts), then exit.
    End,
}

macro_rules! packets {
    ($type:ty) => {
        impl $type {
            pub fn encode(&self) -> Vec<u8> {
                serde_json::to_vec(self).unwrap_or_default()
            }

            pub fn decode(packet: &[u8]) -> Option<Self> {
                serde_json::from_slice(packet).ok()
            }
        }
    };
}

packets!(EgressEvent);
packets!(EgressRequest);
