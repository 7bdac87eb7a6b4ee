//! Access to the interface: who asks, what its role permits, and how often it may ask.
//!
//! A role includes those below it. `read` sees everything and asks what-if questions, which change nothing. `operate`
//! also adds and removes intents. `admin` also has the file with tokens read again.
mod rate;
mod tokens;

pub use rate::{RateLimiter, RequestRate};
pub use tokens::{Token, TokenError, Tokens};

use crate::Problem;
use axum::http::{HeaderMap, Method, StatusCode, header};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError, RwLock};
use weir_units::Instant;

/// Rights of a client. A greater role includes the lesser ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApiRole {
    /// Reads, and asks what-if questions.
    Read,
    /// Adds, changes and removes intents, too.
    Operate,
    /// Everything.
    Admin,
}

impl ApiRole {
    /// Roles with their names, as files with tokens have them.
    pub const ALL: [(ApiRole, &'static str); 3] =
        [(ApiRole::Read, "read"), (ApiRole::Operate, "operate"), (ApiRole::Admin, "admin")];

    /// Returns the name of the role.
    pub fn name(self) -> &'static str {
        ApiRole::ALL.iter().find(|(role, _)| *role == self).map_or("", |(_, name)| name)
    }
}

/// Other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApiPeer {
    /// Owner of the Unix socket, or root.
    Owner,
    /// An address, which needs a token.
    Address(IpAddr),
}

/// Tokens, and the rates at which their clients ask.
pub(crate) struct AccessControl {
    tokens: RwLock<Tokens>,
    rates: Mutex<RateLimiter>,
}

impl AccessControl {
    pub(crate) fn new(tokens: Tokens, limit: RequestRate) -> AccessControl {
        AccessControl { tokens: RwLock::new(tokens), rates: Mutex::new(RateLimiter::new(limit)) }
    }

    /// Decides whether a request may be answered.
    ///
    /// # Errors
    /// The client asks too often, has no valid token, or has a role that is too low.
    pub(crate) fn admit(
        &self,
        now: Instant,
        peer: ApiPeer,
        headers: &HeaderMap,
        needed: Option<ApiRole>,
    ) -> Result<(), Problem> {
        let ApiPeer::Address(address) = peer else { return Ok(()) };
        let client = self.client(headers);
        let key = client.as_ref().map_or_else(|_| address.to_string(), |(name, _)| format!("token {name}"));
        let allowed = self.rates.lock().unwrap_or_else(PoisonError::into_inner).take(now, &key);
        allowed.map_err(|wait| Problem::too_many("too many requests; wait, and ask less often", wait))?;
        let Some(needed) = needed else { return Ok(()) };
        let (_, role) = client?;
        if role >= needed {
            return Ok(());
        }
        let detail = format!("the token's role is {}, expected {} for this request", role.name(), needed.name());
        Err(Problem::new(StatusCode::FORBIDDEN, detail))
    }

    /// Returns name and role of the client that has a valid token.
    fn client(&self, headers: &HeaderMap) -> Result<(String, ApiRole), Problem> {
        let unauthorized = |detail: &str| Problem::new(StatusCode::UNAUTHORIZED, detail);
        let given = headers
            .get(header::AUTHORIZATION)
            .ok_or_else(|| unauthorized("no token was given, expected the header `Authorization: Bearer TOKEN`"))?;
        let bearer = given.to_str().ok().and_then(|text| text.split_once(' '));
        let token = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
        let token =
            token.ok_or_else(|| unauthorized("the header `Authorization` is malformed, expected `Bearer TOKEN`"))?;
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let found = tokens.find(token).ok_or_else(|| unauthorized("the token is not valid"))?;
        Ok((found.name.clone(), found.role))
    }

    /// Reads the file with tokens again. Returns the number of tokens.
    ///
    /// # Errors
    /// There is no file, or it cannot be used; the tokens read before stay valid.
    pub(crate) fn reload(&self) -> Result<usize, TokenError> {
        let mut tokens = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        let read = tokens.read_again()?;
        *tokens = read;
        Ok(tokens.len())
    }
}

/// Returns the role that a request needs; `None` for what is open to all: the page's files, the description of the
/// interface, and whether the controller answers.
pub(crate) fn needed_role(method: &Method, path: &str) -> Option<ApiRole> {
    let path = path.strip_prefix("/api/v1")?;
    let reads = method == Method::GET || method == Method::HEAD;
    match path {
        "/health" | "/openapi.json" if reads => None,
        "/what-if" => Some(ApiRole::Read),
        _ if reads => Some(ApiRole::Read),
        "/intents" => Some(ApiRole::Operate),
        _ if path.starts_with("/intents/") => Some(ApiRole::Operate),
        _ => Some(ApiRole::Admin),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_needs_a_role() {
        let needed = |method: Method, path: &str| needed_role(&method, path);
        assert_eq!(needed(Method::GET, "/"), None);
        assert_eq!(needed(Method::GET, "/api/v1/health"), None);
        assert_eq!(needed(Method::GET, "/api/v1/network"), Some(ApiRole::Read));
        assert_eq!(needed(Method::HEAD, "/api/v1/intents/a"), Some(ApiRole::Read));
        assert_eq!(needed(Method::POST, "/api/v1/what-if"), Some(ApiRole::Read));
        assert_eq!(needed(Method::PUT, "/api/v1/intents/a"), Some(ApiRole::Operate));
        assert_eq!(needed(Method::DELETE, "/api/v1/intents/a"), Some(ApiRole::Operate));
        assert_eq!(needed(Method::POST, "/api/v1/intents"), Some(ApiRole::Operate));
        assert_eq!(needed(Method::DELETE, "/api/v1/intents"), Some(ApiRole::Operate));
        assert_eq!(needed(Method::POST, "/api/v1/tokens/reload"), Some(ApiRole::Admin));
        assert_eq!(needed(Method::DELETE, "/api/v1/health"), Some(ApiRole::Admin), "what is new is closed first");
        assert!(ApiRole::Read < ApiRole::Operate && ApiRole::Operate < ApiRole::Admin);
    }
}
