//! One record of the audit log: an event, chained to the record before it.
//!
//! A record is one line. Its last field is the SHA-256 of the bytes before that field; the field before it is the hash
//! of the previous record. The hash covers bytes, not parsed JSON, so that a change of spelling is detected, too.

use crate::digest::Digest;
use crate::error::Result;
use crate::escape;
use crate::event::Event;
use crate::fault::LogFault;
use serde::{Deserialize, Serialize};

const HASH_OPENS: &str = r#","hash":""#;
const HASH_CLOSES: &str = r#""}"#;

/// A record read from the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    #[serde(flatten)]
    pub event: Event,
    /// Counts from 1.
    pub seq: u64,
    pub prev: Digest,
    pub hash: Digest,
}

/// Appends the event's line to `lines` and returns the record's hash.
pub(crate) fn seal(lines: &mut Vec<u8>, event: &Event, seq: u64, prev: Digest) -> Result<Digest> {
    let json = escape::json(serde_json::to_string(event)?);
    let start = lines.len();
    lines.extend_from_slice(json.strip_suffix('}').unwrap_or(&json).as_bytes());
    lines.extend_from_slice(link(seq, prev).as_bytes());
    let hash = Digest::of(&lines[start..]);
    lines.extend_from_slice(ending(hash).as_bytes());
    Ok(hash)
}

/// Checks one line, without its newline, as the record that follows `prev`.
pub(crate) fn check(line: &[u8], seq: u64, prev: Digest) -> Result<Digest, LogFault> {
    let (sealed, hash) = split_hash(line).ok_or(LogFault::Malformed)?;
    if Digest::of(sealed) != hash {
        return Err(LogFault::Edited);
    }
    if !sealed.ends_with(link(seq, prev).as_bytes()) {
        return Err(LogFault::ChainBroken);
    }
    Ok(hash)
}

fn split_hash(line: &[u8]) -> Option<(&[u8], Digest)> {
    let unclosed = line.strip_suffix(HASH_CLOSES.as_bytes())?;
    let (rest, hex) = unclosed.split_at_checked(unclosed.len().checked_sub(Digest::HEX_LEN)?)?;
    Some((rest.strip_suffix(HASH_OPENS.as_bytes())?, Digest::from_hex(hex)?))
}

fn link(seq: u64, prev: Digest) -> String {
    format!(r#","seq":{seq},"prev":"{prev}""#)
}

/// The end of the line of the record with this hash.
pub(crate) fn ending(hash: Digest) -> String {
    format!("{HASH_OPENS}{hash}{HASH_CLOSES}\n")
}
