//! Servers of other people's, started and waited for.

use std::net::TcpStream;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;

const TIMEOUT: Duration = Duration::from_secs(20);

/// Starts it, and waits until it answers there.
pub(crate) fn started(server: &mut Command, place: &str) -> Result<Child> {
    let mut process = server.spawn()?;
    let end = Instant::now() + TIMEOUT;
    while TcpStream::connect(place).is_err() {
        if let Some(ended) = process.try_wait()? {
            return Err(format!("{server:?}: {ended}").into());
        }
        if Instant::now() > end {
            return Err(format!("nobody answers at {place}: {server:?}").into());
        }
        thread::yield_now();
    }
    Ok(process)
}
