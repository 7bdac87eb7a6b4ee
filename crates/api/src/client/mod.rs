//! Client of the interface, over a Unix socket, HTTP or HTTPS: one connection for each request.
mod address;
mod events;

pub use address::ClientAddress;
pub use events::{EventStream, StreamedEvent};

use crate::Problem;
use hyper::body::{Bytes, Frame, Incoming};
use hyper::client::conn::http1;
use hyper::http::{Request, Response, header};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use weir_tls::ServerTrust;

/// Longest wait for the head of an answer, which includes connecting.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// Largest answer in bytes.
const MAX_ANSWER: usize = 256 << 20;

/// Client of the interface.
pub struct ApiClient {
    address: ClientAddress,
    token: Option<String>,
    trust: Option<ServerTrust>,
}

/// Reasons why a request was not answered as expected.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ApiClientError {
    #[error("cannot connect to {address}: {problem}")]
    Connect { address: ClientAddress, problem: String },
    #[error("{0} needs the certificates of the CAs that sign for servers")]
    NoTrust(ClientAddress),
    #[error("{address}: {problem}")]
    Broken { address: ClientAddress, problem: String },
    #[error("{}", .0.detail)]
    Refused(Problem),
}

/// Answer to a request that was carried out.
#[derive(Debug, Clone)]
pub struct ApiAnswer {
    /// HTTP status, from 200 to 299.
    pub status: u16,
    /// Body, JSON unless it is empty.
    pub body: Bytes,
}

impl ApiClient {
    /// Returns a client. A token is needed over HTTP and HTTPS, `trust` for HTTPS.
    pub fn new(address: ClientAddress, token: Option<String>, trust: Option<ServerTrust>) -> ApiClient {
        ApiClient { address, token, trust }
    }

    /// Returns the address of the server.
    pub fn address(&self) -> &ClientAddress {
        &self.address
    }

    /// Sends a request to a path, which begins with `/`, and returns the answer.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses the request.
    pub async fn ask(&self, method: &str, path: &str, body: Option<String>) -> Result<ApiAnswer, ApiClientError> {
        let response = self.send(method, path, body, &[]).await?;
        self.whole(response).await
    }

    /// Listens to events, to those after a number or to new ones.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses the request.
    pub async fn events(&self, after: Option<u64>) -> Result<EventStream, ApiClientError> {
        let path = after.map_or_else(String::new, |after| format!("?after={after}"));
        let path = format!("/api/v1/events/stream{path}");
        let response = self.send("GET", &path, None, &[(header::ACCEPT, "text/event-stream")]).await?;
        if response.status().is_success() {
            return Ok(EventStream::new(self.address.clone(), response.into_body()));
        }
        match self.whole(response).await {
            Err(error) => Err(error),
            Ok(_) => Err(self.broken("the answer is no stream of events")),
        }
    }

    fn broken(&self, problem: impl ToString) -> ApiClientError {
        ApiClientError::Broken { address: self.address.clone(), problem: problem.to_string() }
    }

    /// Reads the rest of an answer. One that is not a success becomes an error.
    async fn whole(&self, response: Response<Incoming>) -> Result<ApiAnswer, ApiClientError> {
        let status = response.status();
        let read = axum::body::to_bytes(axum::body::Body::new(response.into_body()), MAX_ANSWER);
        let body = tokio::time::timeout(ANSWER_TIME, read).await.map_err(|_| self.broken("the answer did not end"))?;
        let body = body.map_err(|error| self.broken(error))?;
        if status.is_success() {
            return Ok(ApiAnswer { status: status.as_u16(), body });
        }
        let told = serde_json::from_slice(&body);
        Err(ApiClientError::Refused(
            told.unwrap_or_else(|_| Problem::new(status, format!("the server answered {status}"))),
        ))
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<String>,
        headers: &[(header::HeaderName, &str)],
    ) -> Result<Response<Incoming>, ApiClientError> {
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, self.address.host());
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request.body(OneText(body.map(Bytes::from))).map_err(|error| self.broken(error))?;
        let late = |_| self.broken(format!("no answer within {} s", ANSWER_TIME.as_secs()));
        tokio::time::timeout(ANSWER_TIME, self.exchange(request)).await.map_err(late)?
    }

    /// Connects, sends a request, and returns the answer's head with its body to be read.
    async fn exchange(&self, request: Request<OneText>) -> Result<Response<Incoming>, ApiClientError> {
        let failed = |problem: String| ApiClientError::Connect { address: self.address.clone(), problem };
        let told = |error: std::io::Error| failed(error.to_string());
        match &self.address {
            ClientAddress::Unix(path) => {
                let stream = tokio::net::UnixStream::connect(path).await.map_err(told)?;
                self.over(stream, request).await
            }
            ClientAddress::Http { host, port } => {
                let stream = tokio::net::TcpStream::connect((host.as_str(), *port)).await.map_err(told)?;
                self.over(stream, request).await
            }
            ClientAddress::Https { host, port } => {
                let trust = self.trust.as_ref().ok_or_else(|| ApiClientError::NoTrust(self.address.clone()))?;
                let name = weir_tls::ServerName::try_from(host.clone());
                let name = name.map_err(|error| failed(error.to_string()))?;
                let stream = tokio::net::TcpStream::connect((host.as_str(), *port)).await.map_err(told)?;
                let stream = trust.connect(stream, name).await;
                self.over(stream.map_err(|error| failed(weir_tls::explain(&error)))?, request).await
            }
        }
    }

    async fn over<S>(&self, stream: S, request: Request<OneText>) -> Result<Response<Incoming>, ApiClientError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let shaken = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.map_err(|error| self.broken(error))?;
        // Moves the bytes; ends with the answer.
        tokio::spawn(connection);
        sender.send_request(request).await.map_err(|error| self.broken(error))
    }
}

/// Body of a request: a text or nothing.
struct OneText(Option<Bytes>);

impl hyper::body::Body for OneText {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|text| Ok(Frame::data(text))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        hyper::body::SizeHint::with_exact(self.0.as_ref().map_or(0, |text| text.len() as u64))
    }
}

/// Returns a text as part of a path or query: all but letters, digits and `-._~` as `%XX` (RFC 3986, 2.1).
pub fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let each = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_encoded_for_paths() {
        assert_eq!(encoded("web-1.a_b~c"), "web-1.a_b~c");
        assert_eq!(encoded("a/b c?d&e=\u{e9}:1"), "a%2Fb%20c%3Fd%26e%3D%C3%A9%3A1");
    }
}
