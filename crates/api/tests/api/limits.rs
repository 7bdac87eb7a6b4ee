//! Limits: sizes, rates, connections, and requests that are no HTTP.
use crate::network::{ADMIN, OPERATE, READ, ServedNetwork, client};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;
use weir_api::access::RequestRate;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

fn connect(served: &ServedNetwork) -> TcpStream {
    let stream = TcpStream::connect(served.place()).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    stream
}

/// Sends bytes, and returns what comes until the server closes. The server may close before it has read everything.
fn exchange(served: &ServedNetwork, request: &[u8]) -> String {
    let mut stream = connect(served);
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn put(length: &str, kind: &str, body: &str) -> Vec<u8> {
    let head = format!(
        "PUT /api/v1/intents/a HTTP/1.1\r\nHost: weir\r\nConnection: close\r\nAuthorization: Bearer {OPERATE}\r\n\
         Content-Type: {kind}\r\n{length}\r\n\r\n"
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

#[test]
fn bodies_have_a_largest_size_and_a_type() {
    let served = ServedNetwork::start();
    let told = exchange(&served, &put("Content-Length: 300000", "application/json", ""));
    assert!(told.starts_with("HTTP/1.1 413 ") && told.contains("at most 262144 bytes"), "{told}");
    assert!(told.contains("content-type: application/problem+json\r\n"), "{told}");
    // Without a length, in chunks.
    let chunks = format!("{:x}\r\n{}\r\n0\r\n\r\n", 300_000, " ".repeat(300_000));
    let told = exchange(&served, &put("Transfer-Encoding: chunked", "application/json", &chunks));
    assert!(told.starts_with("HTTP/1.1 413 "), "{told}");
    // Many intents may be longer.
    let many = |length: u32| {
        let request = put(&format!("Content-Length: {length}"), "application/json", "");
        String::from_utf8(request).expect("text").replace("PUT /api/v1/intents/a", "POST /api/v1/intents").into_bytes()
    };
    let told = exchange(&served, &many(5_000_000));
    assert!(told.starts_with("HTTP/1.1 413 ") && told.contains("at most 4194304 bytes"), "{told}");
    let told = exchange(&served, &put("Content-Length: 2", "text/plain", "{}"));
    assert!(told.starts_with("HTTP/1.1 415 ") && told.contains("found the content type `text/plain`"), "{told}");
}

#[test]
fn what_is_no_http_is_refused_and_others_are_served() {
    let served = ServedNetwork::start();
    let answer = exchange(&served, b"\x04\x00\x00\x08\x00\x00\x00\x01 no HTTP\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let long = format!("GET /{} HTTP/1.1\r\nHost: weir\r\n\r\n", "x".repeat(100_000));
    let answer = exchange(&served, long.as_bytes());
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    // Clients that connect and say nothing.
    let silent: Vec<_> = (0..8).map(|_| connect(&served)).collect();
    assert_eq!(served.ask(&served.holder(READ), "GET /api/v1/hosts", None).0, 200);
    // The server stops although they are connected.
    drop(served.server);
    drop(silent);
}

#[test]
fn further_connections_wait_for_a_place_and_the_owner_has_its_own() {
    let served = ServedNetwork::start();
    let silent: Vec<_> = (0..64).map(|_| connect(&served)).collect();
    let mut waiting = connect(&served);
    let request = format!(
        "GET /api/v1/hosts HTTP/1.1\r\nHost: weir\r\nConnection: close\r\nAuthorization: Bearer {READ}\r\n\r\n"
    );
    waiting.write_all(request.as_bytes()).unwrap();
    waiting.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(waiting.read(&mut [0; 1]).is_err(), "no place");
    assert_eq!(served.ask(&served.owner(), "GET /api/v1/hosts", None).0, 200);
    drop(silent);
    waiting.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn a_client_that_asks_too_often_has_to_wait() {
    let served = ServedNetwork::with_rate(RequestRate { per_second: 0.01, burst: 3.0 });
    let holder = served.holder(READ);
    let statuses: Vec<u16> = (0..4).map(|_| served.ask(&holder, "GET /api/v1/hosts", None).0).collect();
    assert_eq!(statuses, [200, 200, 200, 429]);
    let (_, problem) = served.ask(&holder, "GET /api/v1/hosts", None);
    assert_eq!(problem["retry_after_s"], 100, "{problem}");
    let request = format!(
        "GET /api/v1/hosts HTTP/1.1\r\nHost: weir\r\nConnection: close\r\nAuthorization: Bearer {READ}\r\n\r\n"
    );
    let answer = exchange(&served, request.as_bytes());
    assert!(answer.contains("retry-after: 100\r\n"), "{answer}");
    assert_eq!(served.ask(&served.holder(ADMIN), "GET /api/v1/hosts", None).0, 200, "each token has its own");
    // Guesses count for the address.
    let guess = |token: &str| served.ask(&served.holder(token), "GET /api/v1/hosts", None).0;
    assert_eq!([guess("a"), guess("b"), guess("c"), guess("d")], [401, 401, 401, 429]);
    let nobody = client(&served.server.addresses()[1], None);
    assert_eq!(served.ask(&nobody, "GET /api/v1/health", None).0, 429);
    for _ in 0..10 {
        assert_eq!(served.ask(&served.owner(), "GET /api/v1/hosts", None).0, 200, "the owner is not limited");
    }
}
