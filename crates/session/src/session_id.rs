//! How a session is named.

/// A new session id; ids sort by time.
pub fn new_session_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
