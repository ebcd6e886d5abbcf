//! Clients that take up connections and give nothing: others are answered all the same, and who takes an answer slowly but
//! steadily gets all of it.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use ssn_view::{Library, Listed, ServerLimits};

use crate::common::client::{Running, limits};

/// Far more than the system keeps for a client that does not read.
const LARGE: usize = 48 << 20;

fn library(bytes: usize) -> Library {
    let listed = Listed { name: "large".to_owned(), size: [1; 3], scores: None, bytes: bytes as u64 };
    Library { title: String::new(), cases: vec![listed], make: Box::new(move |_| Ok(vec![7; bytes])) }
}

/// Connections that are there all the time: one that the server closes is opened again.
struct Crowd<'a> {
    server: &'a Running,
    /// What each sends first.
    first: Vec<u8>,
    /// Whether each sends a byte and takes a byte a second.
    trickles: bool,
    size: usize,
}

impl Crowd<'_> {
    fn join(&self) -> TcpStream {
        let mut stream = self.server.connect();
        let _ = stream.write_all(&self.first);
        stream.set_nonblocking(true).unwrap();
        stream
    }

    /// Whether a member is still connected.
    fn is_there(&self, stream: &mut TcpStream) -> bool {
        if self.trickles && stream.write(b"a").is_err() {
            return false;
        }
        match stream.read(&mut [0]) {
            Ok(count) => count > 0,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        }
    }

    /// Stays until `end`, and counts how often members were sent away.
    fn stay(self, members: Vec<TcpStream>, end: &AtomicBool) -> usize {
        let (mut members, mut closed) = (members, 0);
        while !end.load(Ordering::Relaxed) {
            for member in &mut members {
                if !self.is_there(member) {
                    (*member, closed) = (self.join(), closed + 1);
                }
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        closed
    }

    fn start<'s>(self, scope: &'s Scope<'s, '_>, end: &'s AtomicBool) -> ScopedJoinHandle<'s, usize>
    where
        Self: 's,
    {
        let members = (0..self.size).map(|_| self.join()).collect();
        scope.spawn(move || self.stay(members, end))
    }
}

/// Sends the crowds home, also when the test fails.
struct AtEnd<'a>(&'a AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reads an answer in small parts with pauses; gives how many bytes came.
fn read_steadily(stream: &mut TcpStream, part: usize, pause: Duration) -> usize {
    let (mut buffer, mut total) = (vec![0; part], 0);
    loop {
        match stream.read(&mut buffer).unwrap() {
            0 => return total,
            count => total += count,
        }
        std::thread::sleep(pause);
    }
}

#[test]
fn idle_and_slow_clients_do_not_hold_up_others() {
    let server = Running::start(library(LARGE), ServerLimits::default());
    let case = format!("/api/cases/{}", server.ids()[0]);
    let head = format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nX: ", server.port).into_bytes();
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let at_end = AtEnd(&end);
        let crowd = |first: Vec<u8>, trickles, size| Crowd { server: &server, first, trickles, size };
        let crowds = [
            crowd(vec![], false, 500),
            crowd(head, true, 100),
            // The worst of them know the token.
            crowd(server.good(&case), false, 80),
        ]
        .map(|crowd| crowd.start(scope, &end));
        let download = scope.spawn(|| {
            let mut stream = server.connect();
            stream.write_all(&server.good(&case)).unwrap();
            read_steadily(&mut stream, 1 << 18, Duration::from_millis(50))
        });
        let mut slowest = Duration::ZERO;
        for number in 0..30 {
            let begin = Instant::now();
            let path = ["/", "/api/cases"][number % 2];
            assert_eq!(server.get(path).status, 200);
            slowest = slowest.max(begin.elapsed());
            std::thread::sleep(Duration::from_millis(200));
        }
        let downloaded = download.join();
        drop(at_end);
        let closed = crowds.map(|crowd| crowd.join().unwrap());
        println!("the slowest request took {slowest:?}; {closed:?} connections were closed");
        assert!(slowest <= Duration::from_secs(2), "the slowest request took {slowest:?}");
        assert!(closed[0] > 0, "the crowd was too small to be felt");
        assert!(downloaded.unwrap() > LARGE, "the download was cut");
    });
}

#[test]
fn only_clients_that_take_nothing_are_cut_off() {
    let stall_time = Duration::from_millis(800);
    let server = Running::start(library(LARGE), ServerLimits { stall_time, ..limits() });
    let request = server.good(&format!("/api/cases/{}", server.ids()[0]));
    let mut still = server.connect();
    still.write_all(&request).unwrap();
    let mut steady = server.connect();
    steady.write_all(&request).unwrap();
    let begin = Instant::now();
    assert!(read_steadily(&mut steady, 1 << 18, Duration::from_millis(20)) > LARGE, "it was cut");
    assert!(begin.elapsed() > 3 * stall_time, "it was not slow enough to show anything");
    let mut taken = vec![];
    let ended = still.read_to_end(&mut taken);
    assert!(taken.len() < LARGE, "all of it came");
    assert!(ended.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset), "it was not cut off");
}

#[test]
fn a_defect_in_one_case_leaves_the_server_working() {
    let listed = |name: &str| Listed { name: name.to_owned(), size: [1; 3], scores: None, bytes: 1 };
    let library = Library {
        title: String::new(),
        cases: vec![listed("good"), listed("bad")],
        make: Box::new(|number| if number == 0 { Ok(vec![1]) } else { panic!("a defect") }),
    };
    let server = Running::start(library, limits());
    let ids = server.ids();
    for _ in 0..3 {
        assert_eq!(server.get(&format!("/api/cases/{}", ids[1])).status, 500);
    }
    assert_eq!(server.get(&format!("/api/cases/{}", ids[0])).body, [1]);
}
