//! Whole virtual networks: requests as users write them, what is admitted, refused and offered, and what is reserved.
mod offers;
mod promises;
mod requests;
mod restored;
mod ways;

use std::time::Duration;
use weir_units::{Bps, Instant};
use weir_vnet::allocation::SharingRule;
use weir_vnet::service::{
    AttachedHost, Bandwidth, Line, NetworkBook, NetworkServiceRequest, NetworkSubstrate, PortName, ServiceError,
    ShareSettings, SubstrateCable, SwitchLimits,
};

/// Returns a book over a row of switches `s1`, `s2`, ..., each with two hosts: `a1` and `b1` at ports 1 and 2 of `s1`.
/// Port 3 leads to the switch before, port 4 to the next one. All lines have 100 Mbit/s and 50 us.
fn row(switches: usize) -> NetworkBook {
    let line = Line { capacity: mbps(100), propagation: Duration::from_micros(50) };
    let name = |number: usize| format!("s{number}");
    let cables = (1..switches).map(|number| SubstrateCable {
        ends: [PortName::new(name(number), 4), PortName::new(name(number + 1), 3)],
        line,
    });
    book((1..=switches).map(name).collect(), cables.collect(), line)
}

/// Returns a book over a ring of switches, as [`row`] does; port 3 of `s1` and port 4 of the last switch are joined.
fn ring(switches: usize) -> NetworkBook {
    let line = Line { capacity: mbps(100), propagation: Duration::from_micros(50) };
    let name = |number: usize| format!("s{number}");
    let cables = (1..=switches).map(|number| SubstrateCable {
        ends: [PortName::new(name(number), 4), PortName::new(name(number % switches + 1), 3)],
        line,
    });
    book((1..=switches).map(name).collect(), cables.collect(), line)
}

fn book(switches: Vec<String>, cables: Vec<SubstrateCable>, line: Line) -> NetworkBook {
    let hosts = switches.iter().enumerate().flat_map(|(at, switch)| {
        [("a", 1), ("b", 2)].map(|(letter, port)| AttachedHost {
            name: format!("{letter}{}", at + 1),
            port: PortName::new(switch.as_str(), port),
            line,
        })
    });
    let hosts = hosts.collect();
    let substrate = NetworkSubstrate::new(switches, cables, hosts).unwrap();
    NetworkBook::new(substrate, ShareSettings::default(), SwitchLimits::default(), SharingRule::MaximumSum).unwrap()
}

fn mbps(rate: u64) -> Bps {
    Bps(rate * 1_000_000)
}

fn fixed(rate: u64) -> Bandwidth {
    Bandwidth::Static(mbps(rate))
}

/// Returns a request written in TOML.
fn written(text: &str) -> NetworkServiceRequest {
    toml::from_str(text).unwrap()
}

/// Returns the text of the error of a request.
fn refused(book: &mut NetworkBook, request: &NetworkServiceRequest) -> String {
    let before = format!("{book:?}");
    let error = book.request(request, Instant::ZERO).unwrap_err();
    assert!(format!("{book:?}") == before, "a refused request has changed something: {error}");
    error.to_string()
}

fn admit(book: &mut NetworkBook, request: &NetworkServiceRequest) {
    if let Err(error) = book.request(request, Instant::ZERO) {
        panic!("{error}");
    }
}

fn refusal(book: &mut NetworkBook, request: &NetworkServiceRequest) -> weir_vnet::service::Refusal {
    match book.request(request, Instant::ZERO) {
        Err(ServiceError::Refused(refusal)) => *refusal,
        other => panic!("{other:?}"),
    }
}
