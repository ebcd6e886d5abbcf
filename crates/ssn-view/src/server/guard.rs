//! What a request may have: the checks that every one goes through, in one place.

use std::net::{IpAddr, SocketAddr};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, ORIGIN, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use ssn_io::{Error, Result};

/// The port of addresses that name none.
const HTTP_PORT: u16 = 80;

/// What a request asks for and may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The page, which holds no secrets.
    Page,
    /// The list of cases.
    Cases,
    /// One case, by the id that the list gave it.
    Case(String),
    /// To be led to the page with the token.
    Open(String),
}

/// Addresses and token of the server.
#[derive(Debug)]
pub(super) struct Rules {
    address: SocketAddr,
    /// What a client must know.
    pub(super) token: String,
}

impl Rules {
    /// The rules of a server at an address, with a new token.
    pub(super) fn new(address: SocketAddr) -> Result<Self> {
        Ok(Self { address, token: secret()? })
    }

    /// Returns `true` if a `Host` field names this server.
    ///
    /// A server at every address of the machine cannot list them: any IP address with its port is accepted. A page of
    /// another site, which a name server may point here, always has a name.
    fn is_own(&self, host: &[u8]) -> bool {
        let Ok(host) = std::str::from_utf8(host) else { return false };
        let (ip, port) = (self.address.ip(), self.address.port());
        // Browsers leave out the port that the protocol has by itself.
        let full = match port {
            HTTP_PORT if !host.ends_with(":80") => format!("{host}:{HTTP_PORT}"),
            _ => host.to_owned(),
        };
        if full == format!("localhost:{port}") {
            return is_usual(ip) || ip.is_unspecified();
        }
        match full.parse::<SocketAddr>() {
            // Written in the one usual way: there are many spellings of an address of IPv6.
            Ok(named) if named.to_string() == full => {
                named == self.address || ip.is_unspecified() && named.port() == port
            }
            _ => false,
        }
    }

    /// What a request may have, or the status with which it is refused.
    pub(super) fn check(&self, request: &Parts) -> Result<Wanted, StatusCode> {
        let fields = &request.headers;
        // A page of another site that found this port is refused before anything else is looked at: its `Host` is that of
        // the other site even if a name server points that name here.
        let host = only(fields, HOST)?.ok_or(StatusCode::FORBIDDEN)?;
        if !self.is_own(host) {
            return Err(StatusCode::FORBIDDEN);
        }
        if let Some(origin) = only(fields, ORIGIN)?
            && origin.strip_prefix(b"http://") != Some(host)
        {
            return Err(StatusCode::FORBIDDEN);
        }
        // Whole addresses are for proxies, and this is none.
        if request.uri.authority().is_some() || request.uri.scheme().is_some() {
            return Err(StatusCode::FORBIDDEN);
        }
        if request.method != Method::GET {
            return Err(StatusCode::METHOD_NOT_ALLOWED);
        }
        let empty = only(fields, CONTENT_LENGTH)?.is_none_or(|length| length == b"0");
        if !empty || fields.contains_key(TRANSFER_ENCODING) {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        let path = match request.uri.query() {
            None => request.uri.path(),
            Some(_) => return Err(StatusCode::NOT_FOUND),
        };
        if path == "/" {
            return Ok(Wanted::Page);
        }
        if let Some(code) = path.strip_prefix("/open/") {
            return Ok(Wanted::Open(code.to_owned()));
        }
        if !path.starts_with("/api/") {
            return Err(StatusCode::NOT_FOUND);
        }
        // Who has no token does not learn what there is.
        let given = only(fields, AUTHORIZATION)?.and_then(|value| value.strip_prefix(b"Bearer "));
        if !given.is_some_and(|given| same(given, self.token.as_bytes())) {
            return Err(StatusCode::UNAUTHORIZED);
        }
        match path.strip_prefix("/api/cases") {
            Some("") => Ok(Wanted::Cases),
            Some(rest) => match rest.strip_prefix('/') {
                Some(id) if !id.is_empty() => Ok(Wanted::Case(id.to_owned())),
                _ => Err(StatusCode::NOT_FOUND),
            },
            None => Err(StatusCode::NOT_FOUND),
        }
    }
}

/// The value of a field that may stand there once.
fn only(fields: &HeaderMap, name: HeaderName) -> Result<Option<&[u8]>, StatusCode> {
    let mut values = fields.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value.map(|value| value.as_bytes())),
        _ => Err(StatusCode::BAD_REQUEST),
    }
}

/// Whether an address is the one that `localhost` is known for.
fn is_usual(address: IpAddr) -> bool {
    address == IpAddr::from([127, 0, 0, 1]) || address == IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])
}

/// A random text of 32 bytes from the operating system, in letters that may stand in an address.
pub(super) fn secret() -> Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        Error::internal(format!("cannot start the server: the system gives no random numbers: {error}"))
    })?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Whether two texts are the same, in a time that does not tell how much of them is.
pub(super) fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |different, (x, y)| different | (x ^ y)) == 0
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn check(rules: &Rules, path: &str, fields: &[(&str, &str)]) -> Result<Wanted, u16> {
        let mut request = Request::builder().uri(path);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        rules.check(&request.body(()).unwrap().into_parts().0).map_err(|status| status.as_u16())
    }

    #[test]
    fn other_addresses_are_known_by_their_numbers_alone() {
        let rules = Rules::new("10.0.0.7:80".parse().unwrap()).unwrap();
        assert_eq!(check(&rules, "/", &[("host", "10.0.0.7:80")]), Ok(Wanted::Page));
        assert_eq!(check(&rules, "/", &[("host", "localhost:80")]), Err(403));
        assert_eq!(
            check(&rules, "/", &[("host", "10.0.0.7")]),
            Ok(Wanted::Page),
            "browsers leave out port 80"
        );
        let rules = Rules::new("[::1]:80".parse().unwrap()).unwrap();
        for host in ["[::1]:80", "[::1]", "localhost"] {
            assert_eq!(check(&rules, "/", &[("host", host)]), Ok(Wanted::Page), "{host}");
        }
        let rules = Rules::new("127.0.0.1:8080".parse().unwrap()).unwrap();
        assert_eq!(check(&rules, "/", &[("host", "127.0.0.1")]), Err(403));
    }

    #[test]
    fn a_server_at_every_address_is_known_by_any_number() {
        let rules = Rules::new("0.0.0.0:8000".parse().unwrap()).unwrap();
        for host in ["127.0.0.1:8000", "10.0.0.7:8000", "localhost:8000", "[::1]:8000"] {
            assert_eq!(check(&rules, "/", &[("host", host)]), Ok(Wanted::Page), "{host}");
        }
        for host in ["10.0.0.7:8001", "10.0.0.7", "example.org:8000", "010.0.0.7:8000", "localhost"] {
            assert_eq!(check(&rules, "/", &[("host", host)]), Err(403), "{host}");
        }
    }

    #[test]
    fn secrets_are_long_and_differ() {
        let (a, b) = (secret().unwrap(), secret().unwrap());
        assert!(a.len() == 43 && a != b);
        assert!(same(a.as_bytes(), a.as_bytes()) && !same(a.as_bytes(), b.as_bytes()));
        assert!(!same(a.as_bytes(), &a.as_bytes()[..42]) && !same(b"", b"x"));
    }
}
