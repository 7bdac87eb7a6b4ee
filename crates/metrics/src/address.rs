//! Address on which metrics are served.
use serde::Deserialize;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// Address on which metrics are served: `IP:PORT`, or a port alone for 127.0.0.1. Port 0 is any free port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct MetricsAddress(pub SocketAddr);

impl FromStr for MetricsAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<MetricsAddress, String> {
        if let Ok(port) = text.parse() {
            return Ok(MetricsAddress(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
        }
        text.parse().map(MetricsAddress).map_err(|_| {
            format!("found `{text}`, expected IP:PORT or a port of 127.0.0.1, such as 9100 or 192.0.2.1:9100")
        })
    }
}

impl TryFrom<String> for MetricsAddress {
    type Error = String;

    fn try_from(text: String) -> Result<MetricsAddress, String> {
        text.parse()
    }
}

impl fmt::Display for MetricsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_port_or_ip_and_port() {
        let shown = |text: &str| text.parse::<MetricsAddress>().map(|address| address.to_string());
        assert_eq!(shown("9100"), Ok("127.0.0.1:9100".to_owned()));
        assert_eq!(shown("[::1]:0"), Ok("[::1]:0".to_owned()));
        for wrong in ["", "70000", "localhost:9100", "127.0.0.1", "tcp:127.0.0.1:9100", "-1"] {
            assert!(shown(wrong).unwrap_err().contains("such as 9100"), "{wrong}");
        }
    }
}
