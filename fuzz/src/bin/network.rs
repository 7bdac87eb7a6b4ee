//! The controller of a network: the file of its applications, requests, and what its switches send.
//!
//! The first byte chooses. Text is refused, or written and read as the same value. Otherwise operations follow: a byte
//! that chooses, a byte of length, and as many bytes. They are packets of hosts (ARP, neighbour discovery, DHCP, for
//! the router and the access list), link probes that come again, port statuses, errors, removed entries, switches that
//! come and go, requests and time. The controller must stay within its limits, say nothing that cannot be encoded, and
//! wait in between.
#![no_main]
use libfuzzer_sys::fuzz_target;
use weir_fuzz::bounded_by;
use weir_fuzz::fake_network::FakeNetwork;
use weir_routing::apps::NetworkFile;
use weir_routing::request::NetworkRequest;

/// Memory limit in bytes: hosts, claims, pairs, intents and events are limited.
const MEMORY: usize = 64 << 20;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else { return };
    bounded_by(MEMORY, || match (choice & 3, std::str::from_utf8(rest)) {
        (0, Ok(text)) => file(text),
        (1, Ok(text)) => request(text),
        (0 | 1, Err(_)) => {}
        _ => FakeNetwork::new(choice).run(rest),
    });
});

/// Reads a file of applications. What it says can be run.
fn file(text: &str) {
    if let Ok(file) = NetworkFile::parse("fuzz.toml", text) {
        assert!(file.apps().is_ok());
    }
}

/// Reads a request. It is the same after writing and reading it again.
fn request(text: &str) {
    let Ok(meant) = serde_json::from_str::<NetworkRequest>(text) else { return };
    let told = serde_json::to_string(&meant).expect("nothing in it has no JSON form");
    let understood: NetworkRequest = serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}\n{told}"));
    assert_eq!(understood, meant, "{told}");
}
