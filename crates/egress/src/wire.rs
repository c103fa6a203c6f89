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

/// No packet is longer.
pub const MAX_PACKET_BYTES: usize = 16 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "told")]
pub enum EgressEvent {
    /// Everything is served from now on.
    Ready,
    Attempt(NetworkAttempt),
    Closed(ConnectionClosed),
    Queried(NameQueried),
    /// A connection waits for an answer. The same host and port are asked about once.
    Asked {
        ask: u64,
        host: String,
        port: u16,
        /// Who connected first, by the address of its socket inside.
        client: Option<SocketAddr>,
    },
    /// Nobody waits for it any more.
    Withdrawn {
        ask: u64,
    },
    /// It cannot go on; the supervisor ends the run.
    Unable {
        why: String,
    },
}

/// How long an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Holds {
    /// For those who wait now.
    Once,
    /// For as long as this process lives.
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
    /// Tell what is yet untold (counts), and go.
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
