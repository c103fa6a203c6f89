//! A real WebSocket server (the library `websockets` of Python), with TLS and without. It sends back what it gets.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::Result;
use crate::certificates::Certificates;
use crate::started::started;

const ADDRESS: &str = "203.0.113.27";
const NAME: &str = "ws.example";
const PLAIN: u16 = 8000;
const SECURE: u16 = 9443;
const SERVER: &str = "
import asyncio, ssl, sys, websockets
address, plain, secure, key, certificate = sys.argv[1:]
async def echo(socket):
    async for message in socket: await socket.send(message)
async def main():
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    as_it_is = dict(compression=None, max_size=None)
    async with websockets.serve(echo, address, int(secure), ssl=tls, **as_it_is):
        async with websockets.serve(echo, address, int(plain), **as_it_is):
            await asyncio.Future()
asyncio.run(main())
";

/// The server, once it answers: at its port without TLS it does last.
pub(crate) fn serve(directory: &Path, certificates: &Certificates) -> Result<Child> {
    let files = certificates.write(directory, &[NAME])?;
    // It ends with this process, whatever ends that.
    let mut server = Command::new("setpriv");
    server
        .args(["--pdeathsig", "KILL", "/usr/bin/python3", "-c", SERVER, ADDRESS])
        .args([PLAIN.to_string(), SECURE.to_string()])
        .args([&files.key, &files.certificate])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    started(&mut server, &format!("{ADDRESS}:{PLAIN}"))
}
