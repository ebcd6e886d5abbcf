//! A server with two synthetic cases, and requests as raw bytes.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use ssn_view::{Library, Listed, Server, ServerLimits};
use tokio::sync::oneshot;

/// What only a package holds.
pub const INSIDE: &str = "SSNVIEW1 what the patient has";
/// The name of a case, which only the list tells.
pub const NAME: &str = "Jane Doe";

/// A server that runs until it is dropped.
pub struct Running {
    pub port: u16,
    pub token: String,
    pub url: String,
    pub opening_url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Limits that tests need not wait for.
pub fn limits() -> ServerLimits {
    ServerLimits { connections: 8, head_time: Duration::from_millis(300), ..ServerLimits::default() }
}

/// Case 0 has a package; case 1 cannot be shown.
pub fn library() -> Library {
    let listed = |name: &str| Listed { name: name.to_owned(), size: [1, 2, 3], scores: None, bytes: 100 };
    Library {
        title: "predictions".to_owned(),
        cases: vec![listed(NAME), listed("broken")],
        make: Box::new(|number| match number {
            0 => Ok(INSIDE.as_bytes().to_vec()),
            _ => Err("the file is damaged".to_owned()),
        }),
    }
}

impl Running {
    pub fn start(library: Library, limits: ServerLimits) -> Self {
        let server = Server::bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0, library, limits).unwrap();
        let (port, token) = (server.port(), server.token().to_owned());
        let (url, opening_url) = (server.url(), server.opening_url());
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            server.run(async {
                let _ = stopped.await;
            });
        });
        Self { port, token, url, opening_url, stop: Some(stop), thread: Some(thread) }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        // A server that never answers and never closes fails the test instead of holding it up.
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends bytes and gives all that comes back until the server closes.
    pub fn exchange(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        // A server that has seen enough may close before all is sent.
        let _ = stream.write_all(bytes);
        read_all(&mut stream)
    }

    /// A request as it should be, for a path.
    pub fn good(&self, path: &str) -> Vec<u8> {
        format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            self.port, self.token
        )
        .into_bytes()
    }

    /// The answer to such a request.
    pub fn get(&self, path: &str) -> Answer {
        Answer::parse(&self.exchange(&self.good(path)))
    }

    /// The ids in the list of cases.
    pub fn ids(&self) -> Vec<String> {
        let list: serde_json::Value = serde_json::from_slice(&self.get("/api/cases").body).unwrap();
        let id = |case: &serde_json::Value| case["id"].as_str().unwrap().to_owned();
        list["cases"].as_array().unwrap().iter().map(id).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the server panicked");
        }
    }
}

/// Everything until the connection closes, however it does.
pub fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut answer = vec![];
    let mut block = [0; 4096];
    loop {
        match stream.read(&mut block) {
            Ok(0) => return answer,
            Ok(count) => answer.extend(&block[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return answer,
            Err(error) => panic!("the server neither answers nor closes: {error}"),
        }
    }
}

/// An answer, taken apart.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// In lower case.
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or_else(|| {
            panic!("no answer: {:?}", String::from_utf8_lossy(bytes));
        });
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, head: head + "\r\n", body: bytes[end + 4..].to_vec() }
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        let start = format!("\r\n{name}: ");
        let (_, rest) = self.head.split_once(&start)?;
        rest.split("\r\n").next()
    }
}
