//! Asks the server over HTTP, with good and bad requests.
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use weir_metrics::{MetricFamily, MetricKind, MetricSample, MetricsServer};

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

fn place(server: &MetricsServer) -> String {
    server.url().trim_start_matches("http://").trim_end_matches("/metrics").to_owned()
}

/// Sends a request, and returns the whole answer.
fn ask(server: &MetricsServer, request: &str) -> String {
    let mut stream = TcpStream::connect(place(server)).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn get(server: &MetricsServer, path: &str) -> String {
    ask(server, &format!("GET {path} HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n"))
}

fn counting() -> MetricsServer {
    let asked = AtomicU64::new(0);
    let read = move || {
        let count = asked.fetch_add(1, Ordering::Relaxed) + 1;
        let samples = vec![MetricSample { labels: Vec::new(), value: count.into() }];
        Ok(vec![MetricFamily { name: "asked", help: "Requests", kind: MetricKind::Counter, samples }])
    };
    MetricsServer::start("0".parse().expect("an address"), Arc::new(read)).expect("a server")
}

#[test]
fn each_request_reads_the_counters_anew() {
    let server = counting();
    for count in [1, 2] {
        let answer = get(&server, "/metrics");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"));
        assert!(answer.ends_with(&format!("asked_total {count}\n# EOF\n")), "{answer}");
    }
    assert!(get(&server, "/").contains("href=\"/metrics\""));
}

#[test]
fn bad_requests_are_refused_and_others_are_served() {
    let server = counting();
    assert!(get(&server, "/other").starts_with("HTTP/1.1 404 "));
    assert!(ask(&server, "POST /metrics HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n").contains(" 405 "));
    assert!(ask(&server, "\x04\x00\x00\x08\x00\x00\x00\x01 no HTTP\r\n\r\n").contains(" 400 "));
    let long = "x".repeat(1 << 20);
    let mut stream = TcpStream::connect(place(&server)).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    // The server refuses before it has read everything.
    let _ = stream.write_all(format!("GET /{long} HTTP/1.1\r\n").as_bytes());
    // Clients that connect and say nothing.
    let silent: Vec<_> = (0..8).map(|_| TcpStream::connect(place(&server)).expect("a connection")).collect();
    assert!(get(&server, "/metrics").contains("asked_total 1\n"));
    // The server stops although they are connected.
    drop(server);
    drop(silent);
}

#[test]
fn no_counters_are_an_error_with_its_reason() {
    let read = || Err("the switch has stopped".to_owned());
    let server = MetricsServer::start("0".parse().expect("an address"), Arc::new(read)).expect("a server");
    let answer = get(&server, "/metrics");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.ends_with("no metrics: the switch has stopped\n"), "{answer}");
}

#[test]
fn an_address_in_use_is_named() {
    let server = counting();
    let again = place(&server).parse().expect("an address");
    let error = MetricsServer::start(again, Arc::new(|| Ok(Vec::new()))).err().expect("an error").to_string();
    assert!(error.starts_with(&format!("cannot serve metrics on {}: ", place(&server))), "{error}");
}
