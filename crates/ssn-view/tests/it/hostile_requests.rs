//! Hundreds of requests that must not get what they ask for: wrong names, other sites, stolen paths, missing tokens,
//! broken HTTP, endless heads. None learns a name, a package, a file or the token, and after each the server still
//! works.

use std::io::Write;

use ssn_view::ServerLimits;

use crate::common::client::{INSIDE, NAME, Running, library, limits, read_all};

/// A request, and what is allowed to come back.
struct Attack {
    name: String,
    bytes: Vec<u8>,
    allowed: Allowed,
}

/// What an attacker may get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Allowed {
    /// A refusal, or a closed connection.
    Refusal,
    /// A refusal with exactly this status.
    Status(u16),
    /// Also the page itself, which anybody may read.
    Page,
}

/// A request with every part in place; attacks change one part at a time.
#[derive(Clone, Copy)]
struct Parts<'a> {
    method: &'a str,
    path: &'a str,
    host: Option<&'a str>,
    token: Option<&'a str>,
    more: &'a str,
}

impl Parts<'_> {
    fn bytes(&self) -> Vec<u8> {
        let Self { method, path, host, token, more } = self;
        let host = host.map_or(String::new(), |host| format!("Host: {host}\r\n"));
        let token = token.map_or(String::new(), |token| format!("Authorization: {token}\r\n"));
        format!("{method} {path} HTTP/1.1\r\n{host}{token}{more}\r\n").into_bytes()
    }
}

#[derive(Default)]
struct Attacks(Vec<Attack>);

impl Attacks {
    fn add(&mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>, allowed: Allowed) {
        self.0.push(Attack { name: name.into(), bytes: bytes.into(), allowed });
    }
}

#[test]
fn no_hostile_request_gets_more_than_it_should() {
    let server = Running::start(library(), limits());
    let (own, bearer) = (format!("127.0.0.1:{}", server.port), format!("Bearer {}", server.token));
    let good = Parts { method: "GET", path: "/api/cases", host: Some(&own), token: Some(&bearer), more: "" };
    let mut attacks = Attacks::default();
    hosts(good, server.port, &mut attacks);
    origins(good, server.port, &mut attacks);
    paths(good, &server, &mut attacks);
    tokens(good, &server, &mut attacks);
    methods(good, &mut attacks);
    bodies(good, &server, &mut attacks);
    broken(&own, &mut attacks);
    let count = attacks.0.len();
    assert!(count >= 200, "only {count} attacks");
    for attack in attacks.0 {
        let answer = server.exchange(&attack.bytes);
        judge(&server, &attack, &answer);
        assert_eq!(server.get("/api/cases").status, 200, "the server works after: {}", attack.name);
    }
    println!("{count} hostile requests");
}

/// Fails if an answer has more than it may.
fn judge(server: &Running, attack: &Attack, answer: &[u8]) {
    let whole = String::from_utf8_lossy(answer);
    let name = &attack.name;
    for secret in [INSIDE, NAME, &server.token, "root:x:0", "[package]", "PATH="] {
        assert!(!whole.contains(secret), "{name} gets {secret:?}");
    }
    // The page is long; what it says of itself comes first.
    let text: String = whole.chars().take(2000).collect();
    let lower = text.to_lowercase();
    assert!(!lower.contains("access-control-allow"), "{name}: {text}");
    assert!(!lower.contains("set-cookie"), "{name}: {text}");
    let answers = whole.matches("HTTP/1.").count();
    assert!(answers <= 1, "{name}: {answers} answers to one request: {text}");
    let status = text.strip_prefix("HTTP/1.").map(|rest| rest[2..5].parse::<u16>().unwrap());
    match (attack.allowed, status) {
        (Allowed::Refusal | Allowed::Page, None) => assert!(text.is_empty(), "{name}: {text}"),
        (Allowed::Refusal | Allowed::Page, Some(400..=499 | 505)) => {}
        (Allowed::Page, Some(200)) => assert!(lower.contains("text/html"), "{name}: {text}"),
        (Allowed::Status(expected), Some(found)) if expected == found => {}
        (allowed, found) => panic!("{name}: {found:?} where {allowed:?} was expected: {text}"),
    }
}

/// Names that are not exactly the server's, with the right token.
fn hosts(good: Parts<'_>, port: u16, attacks: &mut Attacks) {
    let (own, bearer) = (good.host.unwrap(), good.token.unwrap());
    let names = [
        "",
        "evil.example",
        "evil.example:{p}",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:1",
        "127.0.0.1:0{p}",
        "127.0.0.1:{p}0",
        "127.0.0.1:{p}.evil.example",
        "evil.example.127.0.0.1:{p}",
        "127.0.0.1.:{p}",
        "127.1:{p}",
        "127.0.0.2:{p}",
        "2130706433:{p}",
        "0x7f.0.0.1:{p}",
        "0x7f000001:{p}",
        "0177.0.0.1:{p}",
        "0.0.0.0:{p}",
        "localhost",
        "LOCALHOST:{p}",
        "Localhost:{p}",
        "localhost.:{p}",
        "localhost.localdomain:{p}",
        "localhost:80",
        "[::1]:{p}",
        "[::]:{p}",
        "[::ffff:127.0.0.1]:{p}",
        "user@127.0.0.1:{p}",
        "user:pw@localhost:{p}",
        "127.0.0.1:{p}@evil.example",
        "http://127.0.0.1:{p}",
        "//127.0.0.1:{p}",
        "127.0.0.1:{p}/",
        "127.0.0.1:{p}#",
        "127.0.0.1:{p}?",
        "127.0.0.1:{p},evil.example",
        "evil.example, 127.0.0.1:{p}",
        "127.0.0.1 :{p}",
        "127.0.0.1:{p};x",
        "127。0。0。1:{p}",
        "１２７.0.0.1:{p}",
        "*",
        "*:{p}",
        "..",
        "%31%32%37.0.0.1:{p}",
        "null",
        "127.0.0.1:-1",
        "127.0.0.1:99999",
        "127.0.0.1.nip.example:{p}",
    ];
    for name in names {
        let name = name.replace("{p}", &port.to_string());
        let parts = Parts { host: Some(&name), ..good };
        attacks.add(format!("host {name:?}"), parts.bytes(), Allowed::Refusal);
        // Not even the page, so that no other site ever runs it.
        let page = Parts { path: "/", ..parts };
        attacks.add(format!("page by host {name:?}"), page.bytes(), Allowed::Refusal);
    }
    let twice = [format!("Host: {own}\r\n"), "Host: evil.example\r\n".to_owned()];
    for more in &twice {
        attacks.add(format!("two hosts, {more:?}"), Parts { more, ..good }.bytes(), Allowed::Refusal);
    }
    attacks.add("no host", Parts { host: None, ..good }.bytes(), Allowed::Refusal);
    let old = format!("GET /api/cases HTTP/1.0\r\nAuthorization: {bearer}\r\n\r\n");
    attacks.add("no host in HTTP/1.0", old, Allowed::Refusal);
    for forwarded in ["X-Forwarded-Host", "X-Host", "Forwarded", "X-Original-Host"] {
        let more = format!("{forwarded}: {own}\r\n");
        let parts = Parts { host: Some("evil.example"), more: &more, ..good };
        attacks.add(format!("host by {forwarded}"), parts.bytes(), Allowed::Status(403));
    }
}

/// Other sites, with the right token.
fn origins(good: Parts<'_>, port: u16, attacks: &mut Attacks) {
    let own = good.host.unwrap();
    let origins = [
        "null",
        "",
        "http://evil.example",
        "https://{o}",
        "http://127.0.0.1",
        "http://127.0.0.1:80",
        "http://localhost",
        "http://localhost:{p}",
        "http://{o}/",
        "http://{o}.evil.example",
        "http://{o}@evil.example",
        "HTTP://{o}",
        "{o}",
        "file://",
        "http://{o} http://evil.example",
        "http://evil.example, http://{o}",
        "ws://{o}",
        "http://[::1]:{p}",
        "chrome-extension://abcdefgh",
        "http://{o}:80",
        "http:/{o}",
        "http://user@{o}",
    ];
    for origin in origins {
        let origin = origin.replace("{o}", own).replace("{p}", &port.to_string());
        let parts = Parts { more: &format!("Origin: {origin}\r\n"), ..good };
        attacks.add(format!("origin {origin:?}"), parts.bytes(), Allowed::Status(403));
    }
    let more = format!("Origin: http://{own}\r\nOrigin: http://evil.example\r\n");
    attacks.add("two origins", Parts { more: &more, ..good }.bytes(), Allowed::Refusal);
    let more = "Origin: http://evil.example\r\nAccess-Control-Request-Method: GET\r\n\
                Access-Control-Request-Headers: authorization\r\n";
    let parts = Parts { method: "OPTIONS", token: None, more, ..good };
    attacks.add("preflight of another site", parts.bytes(), Allowed::Status(403));
}

/// Paths to what is not there, with and without the right token.
fn paths(good: Parts<'_>, server: &Running, attacks: &mut Attacks) {
    let id = &server.ids()[0];
    let strange = [
        "/../../../../etc/passwd",
        "/..%2f..%2f..%2fetc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/%252e%252e/etc/passwd",
        "/..\\..\\etc\\passwd",
        "/..%5c..%5cetc%5cpasswd",
        "//etc/passwd",
        "/etc/passwd",
        "/proc/self/environ",
        "/./",
        "/%00",
        "/page/dist/viewer.html",
        "/viewer.html",
        "/index.html",
        "/favicon.ico",
        "/.git/config",
        "/Cargo.toml",
        "/predictions.json",
        "/api",
        "/api/",
        "/api//cases",
        "//api/cases",
        "/API/cases",
        "/api/CASES",
        "/api/cases/",
        "/api/cases//",
        "/api/cases;x=1",
        "/api/cases%2f",
        "/api%2fcases",
        "/api/cases.json",
        "/api/cases?",
        "/api/cases?x=1",
        "/api/cases?token={t}",
        "/api/cases/0",
        "/api/cases/1",
        "/api/cases/-1",
        "/api/cases/NaN",
        "/api/cases/Jane%20Doe",
        "/api/cases/../cases",
        "/api/cases/../../etc/passwd",
        "/api/cases/%2e%2e%2fcases",
        "/api/cases/..%2f..%2fetc%2fpasswd",
        "/api/cases/{i}/",
        "/api/cases/{i}/..",
        "/api/cases/{i}%00",
        "/api/cases/{i}%20",
        "/api/cases/{i}x",
        "/api/cases/{i}?x",
        "/api/cases/{i}.ssn.safetensors",
        "/api/token",
        "/api/files/etc/passwd",
        "/open",
        "/open/",
        "/open/{t}",
        "/open/..",
        "/open/x/y",
        "/?x",
        "/?/api/cases",
        "/%2f",
    ];
    for path in strange {
        let path = path.replace("{i}", id).replace("{t}", &server.token);
        let parts = Parts { path: &path, ..good };
        attacks.add(format!("path {path}"), parts.bytes(), Allowed::Refusal);
        let unknown = Parts { token: None, ..parts };
        let allowed = if path.starts_with("/api/") && !path.contains('?') {
            Allowed::Status(401)
        } else {
            Allowed::Refusal
        };
        attacks.add(format!("path {path} without token"), unknown.bytes(), allowed);
    }
    for target in [
        "http://evil.example/api/cases",
        "http://{o}/api/cases",
        "https://{o}/api/cases",
        "*",
        "evil.example:80",
    ] {
        let target = target.replace("{o}", good.host.unwrap());
        attacks.add(format!("target {target}"), Parts { path: &target, ..good }.bytes(), Allowed::Refusal);
    }
    let long = format!("/api/cases/{}", "a".repeat(30_000));
    attacks.add("a path of 30 kB", Parts { path: &long, ..good }.bytes(), Allowed::Refusal);
}

/// Everything but the right token, for the list and for a case.
fn tokens(good: Parts<'_>, server: &Running, attacks: &mut Attacks) {
    let token = &server.token;
    let changed = format!("{}{}", &token[..42], if token.ends_with('A') { 'B' } else { 'A' });
    let wrong = [
        String::new(),
        token.clone(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("bearer {token}"),
        format!("BEARER {token}"),
        format!("Basic {token}"),
        format!("Token {token}"),
        format!("Bearer  {token}"),
        format!("Bearer\t{token}"),
        format!("Bearer {}", &token[..42]),
        format!("Bearer {}", &token[1..]),
        format!("Bearer {token}A"),
        format!("Bearer {token},"),
        format!("Bearer {token} {token}"),
        format!("Bearer \"{token}\""),
        format!("Bearer {changed}"),
        format!("Bearer {}", token.to_lowercase()),
        format!("Bearer {}", "A".repeat(43)),
        format!("Bearer {}", "A".repeat(8000)),
        "Bearer null".to_owned(),
        "Bearer undefined".to_owned(),
        "Bearer *".to_owned(),
        "Bearer %".to_owned(),
        "Bearer é".to_owned(),
    ];
    let paths = ["/api/cases".to_owned(), format!("/api/cases/{}", server.ids()[0])];
    for path in &paths {
        for value in &wrong {
            let parts = Parts { path, token: Some(value), ..good };
            attacks.add(format!("token {value:?} for {path}"), parts.bytes(), Allowed::Status(401));
        }
        for more in [
            String::new(),
            format!("Cookie: token={token}\r\n"),
            format!("X-Token: {token}\r\n"),
            format!("Proxy-Authorization: Bearer {token}\r\n"),
            format!("Referer: http://{}/#token={token}\r\n", good.host.unwrap()),
        ] {
            let parts = Parts { path, token: None, more: &more, ..good };
            attacks.add(format!("{more:?} for {path}"), parts.bytes(), Allowed::Status(401));
        }
        let parts = Parts { path, more: "Authorization: Bearer x\r\n", ..good };
        attacks.add(format!("two tokens for {path}"), parts.bytes(), Allowed::Status(400));
    }
}

/// Other methods, with the right token.
fn methods(good: Parts<'_>, attacks: &mut Attacks) {
    for method in
        ["POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "GETT", "get", "X"]
    {
        for path in ["/", "/api/cases"] {
            let parts = Parts { method, path, ..good };
            attacks.add(format!("{method} {path}"), parts.bytes(), Allowed::Status(405));
        }
    }
    let parts = Parts { method: "CONNECT", path: "evil.example:443", ..good };
    attacks.add("CONNECT", parts.bytes(), Allowed::Refusal);
    for more in ["X-HTTP-Method-Override: GET\r\n", "X-Method-Override: GET\r\n"] {
        let parts = Parts { method: "DELETE", more, ..good };
        attacks.add(format!("DELETE with {more:?}"), parts.bytes(), Allowed::Status(405));
    }
}

/// Requests with bodies, some of which hold a second request.
fn bodies(good: Parts<'_>, server: &Running, attacks: &mut Attacks) {
    let inner = String::from_utf8(server.good("/api/cases")).unwrap();
    let length = inner.len();
    let cases = [
        ("a body", format!("Content-Length: {length}\r\n"), inner.clone()),
        ("a short body", "Content-Length: 999\r\n".to_owned(), "x".to_owned()),
        ("an endless body", "Content-Length: 99999999999999\r\n".to_owned(), "x".repeat(300_000)),
        ("a length below 0", "Content-Length: -1\r\n".to_owned(), inner.clone()),
        ("a length with a sign", "Content-Length: +5\r\n".to_owned(), inner.clone()),
        ("a length in hexadecimal", "Content-Length: 0x5\r\n".to_owned(), inner.clone()),
        (
            "a length beyond all numbers",
            "Content-Length: 99999999999999999999999\r\n".to_owned(),
            inner.clone(),
        ),
        ("two lengths", format!("Content-Length: 0\r\nContent-Length: {length}\r\n"), inner.clone()),
        ("a list of lengths", format!("Content-Length: 0, {length}\r\n"), inner.clone()),
        (
            "chunks",
            "Transfer-Encoding: chunked\r\n".to_owned(),
            format!("{length:x}\r\n{inner}\r\n0\r\n\r\n"),
        ),
        ("no chunks", "Transfer-Encoding: chunked\r\n".to_owned(), format!("0\r\n\r\n{inner}")),
        (
            "length and chunks",
            format!("Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n"),
            format!("0\r\n\r\n{inner}"),
        ),
        ("an endless chunk", "Transfer-Encoding: chunked\r\n".to_owned(), "ffffffffffffffff\r\nx".to_owned()),
        ("a chunk of nonsense", "Transfer-Encoding: chunked\r\n".to_owned(), "zz\r\n".to_owned()),
        ("another encoding", "Transfer-Encoding: gzip\r\n".to_owned(), inner.clone()),
        ("a hidden encoding", "Transfer-Encoding: xchunked\r\n".to_owned(), inner.clone()),
        (
            "two encodings",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n".to_owned(),
            format!("0\r\n\r\n{inner}"),
        ),
        ("a promise of a body", "Content-Length: 9\r\nExpect: 100-continue\r\n".to_owned(), String::new()),
    ];
    for (name, more, body) in cases {
        // With the right token the first request would be answered; a refusal shows that the body is not let in.
        let parts = Parts { more: &more, ..good };
        attacks.add(name, [parts.bytes(), body.clone().into_bytes()].concat(), Allowed::Refusal);
        let page = Parts { path: "/", token: None, ..parts };
        attacks.add(
            format!("{name} for the page"),
            [page.bytes(), body.into_bytes()].concat(),
            Allowed::Refusal,
        );
    }
}

/// What is hardly HTTP, without a token.
fn broken(own: &str, attacks: &mut Attacks) {
    let head = format!("GET /api/cases HTTP/1.1\r\nHost: {own}\r\n");
    let many: String = (0..100).map(|i| format!("X-{i}: 1\r\n")).collect();
    let texts = [
        ("nothing", String::new()),
        ("only a line end", "\r\n\r\n".to_owned()),
        ("a method", "GET".to_owned()),
        ("no version", "GET /api/cases\r\n\r\n".to_owned()),
        ("version 0.9", "GET /api/cases HTTP/0.9\r\n\r\n".to_owned()),
        ("version 2", format!("GET /api/cases HTTP/2.0\r\nHost: {own}\r\n\r\n")),
        ("version 1.9", format!("GET /api/cases HTTP/1.9\r\nHost: {own}\r\n\r\n")),
        ("HTTP/2 at once", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned()),
        ("no path", format!("GET  HTTP/1.1\r\nHost: {own}\r\n\r\n")),
        ("a path without a slash", format!("GET api/cases HTTP/1.1\r\nHost: {own}\r\n\r\n")),
        ("a space in the path", format!("GET /api/cases /x HTTP/1.1\r\nHost: {own}\r\n\r\n")),
        ("line feeds alone", format!("GET /api/cases HTTP/1.1\nHost: {own}\n\n")),
        ("carriage returns alone", format!("GET /api/cases HTTP/1.1\rHost: {own}\r\r")),
        ("a field without a colon", format!("{head}nonsense\r\n\r\n")),
        ("a field without a name", format!("{head}: x\r\n\r\n")),
        ("a space before the colon", format!("{head}Origin : http://evil.example\r\n\r\n")),
        ("a folded field", format!("{head}X: a\r\n b\r\n\r\n")),
        ("a field that starts with a space", format!("GET /api/cases HTTP/1.1\r\n Host: {own}\r\n\r\n")),
        ("a zero in a field", format!("{head}X: a\0b\r\n\r\n")),
        ("a zero in the path", format!("GET /\0 HTTP/1.1\r\nHost: {own}\r\n\r\n")),
        ("a large field", format!("{head}X: {}\r\n\r\n", "a".repeat(20_000))),
        ("a huge field", format!("{head}X: {}\r\n\r\n", "a".repeat(2_000_000))),
        ("a huge name", format!("{head}{}: x\r\n\r\n", "X".repeat(70_000))),
        ("many fields", format!("{head}{many}\r\n")),
        ("a head that does not end", head.clone()),
        (
            "a web socket",
            format!("{head}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n"),
        ),
        (
            "an upgrade to HTTP/2",
            format!(
                "{head}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"
            ),
        ),
        ("a range", format!("{head}Range: bytes=0-\r\n\r\n")),
        ("another protocol", "SSH-2.0-OpenSSH_9.6\r\n".to_owned()),
        ("a proxy's greeting", format!("PROXY TCP4 1.2.3.4 127.0.0.1 1 2\r\n{head}\r\n")),
        ("an answer", "HTTP/1.1 200 OK\r\n\r\n".to_owned()),
    ];
    for (name, text) in texts {
        attacks.add(name, text, Allowed::Refusal);
    }
    let bytes: [(&str, Vec<u8>); 4] = [
        ("zeros", vec![0; 5000]),
        ("all bytes", (0..=255).cycle().take(10_000).collect()),
        ("a TLS greeting", [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[7; 600]].concat()),
        (
            "a path that is no text",
            [b"GET /api/\xff\xfe HTTP/1.1\r\nHost: ", own.as_bytes(), b"\r\n\r\n"].concat(),
        ),
    ];
    for (name, bytes) in bytes {
        attacks.add(name, bytes, Allowed::Refusal);
    }
    let page = format!(
        "GET / HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\nIf-None-Match: *\r\nRange: bytes=0-10\r\n\r\n"
    );
    attacks.add("a part of the page", page, Allowed::Page);
}

#[test]
fn a_thousand_mutated_requests_get_nothing() {
    let head_time = std::time::Duration::from_millis(50);
    let server = Running::start(library(), ServerLimits { connections: 64, head_time, ..limits() });
    let base = format!(
        "GET /api/cases/{} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer x\r\nConnection: close\r\n\r\n",
        server.ids()[0],
        server.port
    );
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (server, base) = (&server, base.as_bytes());
            scope.spawn(move || {
                let mut random = SplitMix(thread);
                for number in 0..125 {
                    let request = mutated(base, &mut random);
                    let name = format!("request {number} of thread {thread}");
                    judge(
                        server,
                        &Attack { name, bytes: vec![], allowed: Allowed::Page },
                        &server.exchange(&request),
                    );
                }
            });
        }
    });
    assert_eq!(server.get("/api/cases").status, 200);
}

/// Numbers from a seed.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ mixed >> 27) % limit as u64) as usize
    }
}

/// Changes, removes, inserts, swaps or repeats bytes of a request.
fn mutated(request: &[u8], random: &mut SplitMix) -> Vec<u8> {
    let mut bytes = request.to_vec();
    for _ in 0..1 + random.below(4) {
        let (from, to) = (random.below(bytes.len()), random.below(bytes.len()));
        match random.below(5) {
            0 => bytes[from] = random.below(256) as u8,
            1 => bytes.truncate(from + 1),
            2 => bytes.insert(from, b"\r\n :/%\0\xff"[random.below(8)]),
            3 => bytes.swap(from, to),
            _ => bytes.extend_from_within(from.min(to)..from.max(to)),
        }
    }
    bytes
}

#[test]
fn several_requests_at_once_are_judged_one_by_one() {
    let server = Running::start(library(), limits());
    let own = format!("127.0.0.1:{}", server.port);
    // After a refusal the connection ends: what follows on it is not answered.
    let bad = format!("GET /api/cases HTTP/1.1\r\nHost: {own}\r\n\r\n").into_bytes();
    let answer = server.exchange(&[bad, server.good("/api/cases")].concat());
    let text = String::from_utf8(answer).unwrap();
    assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "{text}");
    assert!(text.starts_with("HTTP/1.1 401 ") && !text.contains(NAME), "{text}");
}

#[test]
fn slow_clients_do_not_keep_others_out() {
    let server = Running::start(library(), limits());
    let own = format!("127.0.0.1:{}", server.port);
    let heads = [
        String::new(),
        "GET /api/ca".to_owned(),
        format!("GET / HTTP/1.1\r\nHost: {own}\r\n"),
        format!("GET / HTTP/1.1\r\nHost: {own}\r\nX: "),
    ];
    // More than there is room for, all of which wait for nothing.
    let mut slow: Vec<_> = (0..24).map(|_| server.connect()).collect();
    for (stream, head) in slow.iter_mut().zip(heads.iter().cycle()) {
        let _ = stream.write_all(head.as_bytes());
    }
    assert_eq!(
        server.get("/api/cases").status,
        200,
        "a good request is answered once slow ones are given up"
    );
    for stream in &mut slow {
        let rest = read_all(stream);
        assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&rest));
    }
}

#[test]
fn a_client_that_trickles_is_cut_off() {
    let server = Running::start(library(), limits());
    let mut stream = server.connect();
    let head = format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nX: {}", server.port, "a".repeat(200));
    // The head would take ten seconds; the limit is a third of one.
    let cut_off = head.bytes().any(|byte| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        stream.write_all(&[byte]).is_err()
    });
    assert!(cut_off, "the whole head was taken, a byte at a time");
}
