//! Reads queries and bodies of requests, with clear errors.
use crate::Problem;
use axum::extract::Request;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query};
use axum::http::{StatusCode, header};
use hyper::body::Bytes;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Largest body of a request in bytes.
pub(super) const MAX_BODY: usize = 256 << 10;
/// Longest time for a body to arrive.
const BODY_TIME: Duration = Duration::from_secs(10);

/// Reads the JSON body of a request.
pub(super) async fn json<T: DeserializeOwned>(request: Request) -> Result<T, Problem> {
    let body = bytes(request, MAX_BODY).await?;
    serde_json::from_slice(&body).map_err(|error| unexpected(&error))
}

/// Returns the problem of a body that is no JSON, or other JSON than expected.
pub(super) fn unexpected(error: &serde_json::Error) -> Problem {
    Problem::bad_request(format!("the body is not as expected: {error}"))
}

/// Reads the body of a request, which says that it is JSON and has at most `most` bytes.
pub(super) async fn bytes(request: Request, most: usize) -> Result<Bytes, Problem> {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_json = kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
    if !is_json {
        let kind: String = kind.chars().take(100).collect();
        let detail = format!("found the content type `{kind}`, expected application/json");
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let length = length.and_then(|length| length.parse::<usize>().ok());
    let too_large = || {
        let detail = format!("the body is too large, expected at most {most} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    };
    if length.is_some_and(|length| length > most) {
        return Err(too_large());
    }
    let late = |_| {
        let detail = format!("the body did not arrive within {} s", BODY_TIME.as_secs());
        Problem::new(StatusCode::REQUEST_TIMEOUT, detail)
    };
    let body = tokio::time::timeout(BODY_TIME, axum::body::to_bytes(request.into_body(), most));
    // Reading ends at the limit, or because the connection ended, after which no answer arrives.
    body.await.map_err(late)?.map_err(|_| too_large())
}

/// Returns the parameters behind the `?` of a request.
pub(super) fn query<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, Problem> {
    let wrong = |error: QueryRejection| {
        let text = error.body_text();
        let why = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
        Problem::bad_request(format!("the parameters are not as expected: {why}"))
    };
    query.map(|Query(found)| found).map_err(wrong)
}

/// Returns the part of a path that names something.
pub(super) fn path<T>(path: Result<Path<T>, PathRejection>) -> Result<T, Problem> {
    path.map(|Path(found)| found).map_err(|error| Problem::bad_request(error.body_text()))
}
