//! Idle connections and defects do not keep a user from the page.

use std::io::Write;
use std::time::Duration;

use ssn_view::{Library, Listed, ServerLimits};

use crate::common::client::{INSIDE, Running, library, limits};

#[test]
fn two_hundred_idle_connections_do_not_lock_a_user_out() {
    let server = Running::start(library(), ServerLimits::default());
    let head = format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nX: ", server.port);
    let mut idle: Vec<_> = (0..200).map(|_| server.connect()).collect();
    for (stream, head) in idle.iter_mut().zip(["", &head].iter().cycle()) {
        stream.write_all(head.as_bytes()).unwrap();
    }
    let case = format!("/api/cases/{}", server.ids()[0]);
    for _ in 0..10 {
        assert_eq!(server.get("/").status, 200);
        assert_eq!(server.get(&case).body, INSIDE.as_bytes());
    }
}

#[test]
fn a_client_that_does_not_read_its_answers_is_ended() {
    let stall_time = Duration::from_millis(300);
    let server = Running::start(library(), ServerLimits { connections: 1, stall_time, ..limits() });
    let mut greedy = server.connect();
    // More answers than the buffers of both sides hold.
    let request = format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", server.port);
    greedy.write_all(request.repeat(200).as_bytes()).unwrap();
    assert_eq!(server.get("/").status, 200);
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
