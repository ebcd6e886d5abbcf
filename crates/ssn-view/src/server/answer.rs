//! Answers to requests.

use std::sync::Arc;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue,
    LOCATION, REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode};
use ssn_io::Result;

use super::guard::{Rules, Wanted};
use super::library::{Library, Shelf};
use super::opening::Opening;
use crate::page::{self, Origin, PAGE, damaged};

/// What every answer says to the browser beside its content.
const ALWAYS: [(HeaderName, &str); 7] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-embedder-policy"), "require-corp"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("x-frame-options"), "DENY"),
];

/// A whole answer.
type Answer = Response<Full<Bytes>>;

/// Where requests are answered.
pub(super) struct ServerState {
    rules: Rules,
    shelf: Arc<Shelf>,
    policy: HeaderValue,
    opening: Opening,
}

impl ServerState {
    pub(super) fn new(rules: Rules, library: Library) -> Result<Self> {
        let policy = HeaderValue::from_str(&page::policy(PAGE, Origin::Server))
            .map_err(|_| damaged("its policy is no text"))?;
        Ok(Self { rules, shelf: Arc::new(Shelf::new(library)?), policy, opening: Opening::new()? })
    }

    pub(super) fn token(&self) -> &str {
        &self.rules.token
    }

    pub(super) fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Answers a request. Never reads its body.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Answer {
        let (parts, _) = request.into_parts();
        let mut answer = match self.find(&parts).await {
            Ok(answer) => answer,
            Err(status) => refusal(status),
        };
        for (name, value) in ALWAYS {
            answer.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        answer.headers_mut().insert(CONTENT_SECURITY_POLICY, self.policy.clone());
        answer
    }

    async fn find(&self, request: &Parts) -> Result<Answer, StatusCode> {
        match self.rules.check(request)? {
            Wanted::Page => Ok(content("text/html; charset=utf-8", Bytes::from_static(PAGE.as_bytes()))),
            Wanted::Cases => Ok(content("application/json", self.shelf.list().into())),
            Wanted::Case(id) => {
                let number = self.shelf.find(&id).ok_or(StatusCode::NOT_FOUND)?;
                match self.shelf.package(number).await.ok_or(StatusCode::INTERNAL_SERVER_ERROR)? {
                    Ok(bytes) => Ok(content("application/octet-stream", bytes)),
                    Err(sentence) => Ok(failure(&sentence)),
                }
            }
            Wanted::Open(code) => self.open(&code).ok_or(StatusCode::NOT_FOUND),
        }
    }

    /// Leads to the page with the token, if the code is right and was not used before.
    fn open(&self, code: &str) -> Option<Answer> {
        if !self.opening.take(code) {
            return None;
        }
        let place = HeaderValue::from_str(&format!("/#token={}", self.rules.token)).ok()?;
        let mut answer = Response::new(Full::default());
        *answer.status_mut() = StatusCode::SEE_OTHER;
        answer.headers_mut().insert(LOCATION, place);
        Some(answer)
    }
}

fn content(kind: &'static str, bytes: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(bytes));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// A case that cannot be shown, and why.
fn failure(sentence: &str) -> Answer {
    let json = serde_json::json!({ "error": sentence }).to_string();
    let mut answer = content("application/json", json.into());
    *answer.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    answer
}

/// A refusal says its status and nothing else, and ends the connection.
fn refusal(status: StatusCode) -> Answer {
    let text = format!("{status}\n");
    let mut answer = content("text/plain; charset=utf-8", text.into());
    *answer.status_mut() = status;
    let fields = answer.headers_mut();
    fields.insert(CONNECTION, HeaderValue::from_static("close"));
    match status {
        StatusCode::METHOD_NOT_ALLOWED => {
            fields.insert(ALLOW, HeaderValue::from_static("GET"));
        }
        StatusCode::UNAUTHORIZED => {
            fields.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        _ => {}
    }
    answer
}
