//! Malformed requests to the viewer's server, which goes on serving.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::lab::Lab;
use super::{Findings, Kind};
use crate::error::Error;

/// A legitimate request is made after so many others.
const BETWEEN: usize = 50;
/// Within this it must be answered.
const LONGEST: Duration = Duration::from_secs(10);
/// A server that starts.
const START: Duration = Duration::from_secs(60);

/// What requests are made of.
const PARTS: [&str; 24] = [
    "GET / HTTP/1.1\r\n",
    "POST / HTTP/1.1\r\n",
    "GET /../../etc/passwd HTTP/1.1\r\n",
    "GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.0\r\n",
    "GET /api/cases HTTP/1.1\r\n",
    "GET /open/xxxxxxxx HTTP/1.1\r\n",
    "OPTIONS * HTTP/1.1\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "Host: localhost\r\n",
    "Host: example.org\r\n",
    "Host: localhost\r\nHost: localhost\r\n",
    "Content-Length: 18446744073709551616\r\n",
    "Content-Length: -1\r\n",
    "Content-Length: 5\r\nContent-Length: 6\r\n",
    "Transfer-Encoding: chunked\r\n",
    "ffffffffffffffff\r\n",
    "Range: bytes=0-18446744073709551615,1-,-5\r\n",
    "Cookie: session=\u{fffd}\r\n",
    "Connection: keep-alive, close\r\n",
    " continued: header\r\n",
    "Expect: 100-continue\r\n",
    "Upgrade: websocket\r\n",
    "\0\0\0\0",
    "\r\n",
];

/// Sends requests that are put together and mutated at random.
pub fn malformed(lab: &Lab, rng: &mut Rng, until: Instant, findings: &mut Findings) -> Result<(), Error> {
    let mut server = Server::start(lab)?;
    while Instant::now() < until {
        for _ in 0..BETWEEN {
            // A connection that the server closes early is its answer.
            let _ = send(server.address, &request(rng));
            findings.tried(1);
        }
        let ended = server.child.try_wait().map_err(Error::io("run", &lab.program("ssn")))?;
        if ended.is_some() {
            findings.found(Kind::Crash, format!("the server ended with {ended:?}"));
            server = Server::start(lab)?;
        } else if !server.is_serving() {
            findings.found(Kind::Hang, format!("no answer within {LONGEST:?}"));
            server = Server::start(lab)?;
        }
    }
    Ok(())
}

fn request(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..rng.usize(1..8) {
        bytes.extend(PARTS[rng.usize(..PARTS.len())].as_bytes());
    }
    if rng.u8(..10) == 0 {
        bytes.extend(std::iter::repeat_n(b'a', rng.usize(..200_000)));
    }
    for _ in 0..rng.usize(..4) {
        let place = rng.usize(..bytes.len());
        bytes[place] = rng.u8(..);
    }
    bytes
}

fn send(address: SocketAddr, bytes: &[u8]) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, LONGEST)?;
    stream.set_read_timeout(Some(Duration::from_millis(20)))?;
    stream.set_write_timeout(Some(Duration::from_millis(200)))?;
    stream.write_all(bytes)?;
    let mut answer = [0; 256];
    stream.read(&mut answer).map(|_| ())
}

struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(lab: &Lab) -> Result<Self, Error> {
        let out = lab.path("server");
        let failed = |reason: &str| Error::answer("ssn view", reason);
        let words: [OsString; 3] = ["view".into(), lab.predictions().into(), "--no-open".into()];
        let file = fs::File::create(&out).map_err(Error::io("write", &out))?;
        let copy = file.try_clone().map_err(Error::io("write", &out))?;
        let child = lab.ssn(&words).stdin(Stdio::null()).stdout(file).stderr(copy).spawn();
        let child = child.map_err(Error::io("run", &lab.program("ssn")))?;
        let mut server = Self { child, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let start = Instant::now();
        while start.elapsed() < START {
            let said = fs::read_to_string(&out).unwrap_or_default();
            let port = said
                .split("127.0.0.1:")
                .nth(1)
                .map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
            if let Some(port) = port.and_then(|port| port.parse().ok()).filter(|_| said.contains('\n')) {
                server.address.set_port(port);
                return Ok(server);
            }
            sleep(Duration::from_millis(20));
        }
        Err(failed("it did not say where it serves"))
    }

    /// Whether a plain request gets any answer.
    fn is_serving(&self) -> bool {
        let answer = || -> io::Result<usize> {
            let mut stream = TcpStream::connect_timeout(&self.address, LONGEST)?;
            stream.set_read_timeout(Some(LONGEST))?;
            write!(stream, "GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address)?;
            stream.read(&mut [0; 64])
        };
        answer().is_ok_and(|bytes| bytes > 0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
