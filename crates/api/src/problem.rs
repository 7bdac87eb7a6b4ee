//! Errors as clients get them: JSON of the type `application/problem+json` (RFC 9457).
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use weir_routing::request::ErrorKind;

/// Media type of a [`Problem`] (RFC 9457, 6.1).
pub(crate) const PROBLEM_TYPE: &str = "application/problem+json";

/// Error of a request. Its type is `about:blank`: the status says which kind it is (RFC 9457, 4.2.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// HTTP status.
    pub status: u16,
    /// Phrase of the status.
    pub title: String,
    /// Description: what was found, and what is expected.
    pub detail: String,
    /// Seconds after which the client may try again, also sent as `Retry-After`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u64>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        let title = status.canonical_reason().unwrap_or("Error").to_owned();
        Problem { status: status.as_u16(), title, detail: detail.into(), retry_after_s: None }
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, detail)
    }

    pub(crate) fn unavailable(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    /// Returns the problem of an answer that does not belong to its request.
    pub(crate) fn unexpected_reply() -> Problem {
        Problem::new(StatusCode::BAD_GATEWAY, "the network gave an answer that does not belong to the request")
    }

    /// Returns the problem for an error of the network.
    pub(crate) fn of_network(kind: ErrorKind, message: String) -> Problem {
        let status = match kind {
            ErrorKind::Invalid => StatusCode::BAD_REQUEST,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Refused => StatusCode::CONFLICT,
        };
        Problem::new(status, message)
    }

    /// Returns the problem of too many requests.
    pub(crate) fn too_many(detail: &str, retry_after_s: u64) -> Problem {
        let retry_after_s = Some(retry_after_s);
        Problem { retry_after_s, ..Problem::new(StatusCode::TOO_MANY_REQUESTS, detail) }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let text = serde_json::to_string(&self).unwrap_or_default();
        let mut response = (status, [(header::CONTENT_TYPE, PROBLEM_TYPE)], text).into_response();
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
