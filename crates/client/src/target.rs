//! Address of a switch.
use std::str::FromStr;

/// Address of a switch, or address on which to wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SwitchAddress {
    /// The switch listens on a host and port.
    Tcp(String),
    /// The switch listens on a Unix socket, given by its path.
    Unix(String),
    /// The switch connects to this address and port.
    Listen(String),
}

impl FromStr for SwitchAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<SwitchAddress, String> {
        match text.split_once(':') {
            Some(("tcp", address)) if address.contains(':') => Ok(SwitchAddress::Tcp(address.to_owned())),
            Some(("unix", path)) if !path.is_empty() => Ok(SwitchAddress::Unix(path.to_owned())),
            Some(("ptcp", port)) if port.parse::<u16>().is_ok() => Ok(SwitchAddress::Listen(format!("[::]:{port}"))),
            Some(("ptcp", address)) if address.contains(':') => Ok(SwitchAddress::Listen(address.to_owned())),
            _ => Err(format!(
                "found `{text}`, expected tcp:HOST:PORT or unix:PATH of a switch that listens, or ptcp:PORT for one that connects to us"
            )),
        }
    }
}

impl std::fmt::Display for SwitchAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SwitchAddress::Tcp(address) => write!(f, "tcp:{address}"),
            SwitchAddress::Unix(path) => write!(f, "unix:{path}"),
            SwitchAddress::Listen(address) => write!(f, "ptcp:{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read() {
        assert_eq!("tcp:10.0.0.1:6653".parse(), Ok(SwitchAddress::Tcp("10.0.0.1:6653".to_owned())));
        assert_eq!("ptcp:6653".parse(), Ok(SwitchAddress::Listen("[::]:6653".to_owned())));
        assert_eq!("ptcp:127.0.0.1:6653".parse(), Ok(SwitchAddress::Listen("127.0.0.1:6653".to_owned())));
        for wrong in ["tcp:host", "udp:1:2", "ptcp:", "6653", "unix:"] {
            let error = wrong.parse::<SwitchAddress>().unwrap_err();
            assert!(error.contains(wrong) && error.contains("tcp:HOST:PORT"), "{error}");
        }
    }
}
