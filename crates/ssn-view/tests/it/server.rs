//! The server gives its own page what it needs, and says how it is to be treated.

use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ssn_view::{Library, Listed};

use crate::common::client::{Answer, INSIDE, NAME, Running, library, limits};

#[test]
fn the_page_and_its_data() {
    let server = Running::start(library(), limits());
    let page = server.get("/");
    assert_eq!((page.status, page.field("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.body.starts_with(b"<!doctype html>"));
    let list = server.get("/api/cases");
    let json: serde_json::Value = serde_json::from_slice(&list.body).unwrap();
    assert_eq!((json["version"].as_u64(), json["title"].as_str()), (Some(1), Some("predictions")));
    assert_eq!(json["cases"][0]["name"], NAME);
    assert_eq!(json["cases"][0]["size"], serde_json::json!([1, 2, 3]));
    let ids = server.ids();
    assert!(ids.iter().all(|id| id.len() == 43) && ids[0] != ids[1]);
    let case = server.get(&format!("/api/cases/{}", ids[0]));
    assert_eq!((case.status, case.body.as_slice()), (200, INSIDE.as_bytes()));
    assert_eq!(case.field("content-type"), Some("application/octet-stream"));
    let broken = server.get(&format!("/api/cases/{}", ids[1]));
    assert_eq!((broken.status, broken.body.as_slice()), (422, &br#"{"error":"the file is damaged"}"#[..]));
}

#[test]
fn every_answer_tells_the_browser_what_not_to_do() {
    let server = Running::start(library(), limits());
    let asked = [server.get("/"), server.get("/api/cases"), server.get("/none"), server.get("/api/none")];
    let refused = server.exchange(b"GET /api/cases HTTP/1.1\r\nHost: evil\r\n\r\n");
    let refused = Answer::parse(&refused);
    for answer in asked.iter().chain([&refused]) {
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-embedder-policy", "require-corp"),
            ("cross-origin-resource-policy", "same-origin"),
            ("x-frame-options", "deny"),
        ] {
            assert_eq!(answer.field(name), Some(value), "{name}");
        }
        let policy = answer.field("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
        assert!(policy.ends_with("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(!answer.head.contains("access-control-"), "no other site may read answers");
    }
    let statuses: Vec<u16> = asked.iter().chain([&refused]).map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 200, 404, 404, 403]);
}

#[test]
fn the_opening_address_works_once() {
    let server = Running::start(library(), limits());
    let path = server.opening_url.strip_prefix(&format!("http://127.0.0.1:{}", server.port)).unwrap();
    assert!(!path.contains(&server.token));
    assert_eq!(server.get(&path[..path.len() - 1]).status, 404, "a part of the code is not enough");
    let first = server.exchange(
        format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n", server.port)
            .as_bytes(),
    );
    let first = String::from_utf8(first).unwrap();
    assert!(first.starts_with("HTTP/1.1 303 ") && first.contains(&format!("/#token={}\r\n", server.token)));
    assert!(server.url.ends_with(&format!("/#token={}", server.token)));
    assert_eq!(server.get(path).status, 404, "the second time");
}

#[test]
fn one_connection_serves_many_requests() {
    use std::io::{Read, Write};
    let server = Running::start(library(), limits());
    let mut stream = server.connect();
    for _ in 0..3 {
        let request =
            String::from_utf8(server.good("/api/cases")).unwrap().replace("Connection: close\r\n", "");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = [0; 4096];
        let count = stream.read(&mut answer).unwrap();
        assert!(answer[..count].starts_with(b"HTTP/1.1 200 OK"));
    }
}

#[test]
fn packages_are_kept_while_there_is_room() {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = made.clone();
    // Two of these do not fit beside each other.
    let listed = |name: &str, bytes| Listed { name: name.to_owned(), size: [1; 3], scores: None, bytes };
    let library = Library {
        title: String::new(),
        cases: vec![listed("small", 1), listed("small too", 1), listed("large", 1 << 40)],
        make: Box::new(move |number| {
            counter.fetch_add(1, Ordering::SeqCst);
            Ok(vec![number as u8])
        }),
    };
    let server = Running::start(library, limits());
    let ids = server.ids();
    let get = |number: usize| server.get(&format!("/api/cases/{}", ids[number])).body;
    let expected = [(0, 1), (1, 2), (0, 2), (1, 2), (2, 3), (2, 3), (0, 4)];
    for (step, (number, total)) in expected.into_iter().enumerate() {
        assert_eq!(get(number), [number as u8]);
        assert_eq!(made.load(Ordering::SeqCst), total, "step {step}");
    }
}

#[test]
fn the_end_closes_the_port() {
    let server = Running::start(library(), limits());
    let port = server.port;
    drop(server);
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
}
