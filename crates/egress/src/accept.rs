//! Accepts connections, for all listeners.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// Pause after descriptors have run out; meanwhile connections wait in the kernel's queue.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(20);

/// The next connection and its peer address. Cancel-safe.
pub(crate) async fn next(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_of_one_connection(&error) => {}
            Err(_scarce) => sleep(OUT_OF_DESCRIPTORS).await,
        }
    }
}

/// Whether the error concerns only the connection that was to be accepted, not the listener. See accept(2).
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}
