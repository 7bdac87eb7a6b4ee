//! Address of a switch.
use std::str::FromStr;

/// Address of a switch, or address on which to wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The switch listens on a host and port.
    Tcp(String),
    /// The switch listens on a Unix socket, given by its path.
    Unix(String),
    /// The switch connects to this address and port.
    Listen(String),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        match text.split_once(':') {
            Some(("tcp", address)) if address.contains(':') => Ok(Target::Tcp(address.to_owned())),
            Some(("unix", path)) if !path.is_empty() => Ok(Target::Unix(path.to_owned())),
            Some(("ptcp", port)) if port.parse::<u16>().is_ok() => Ok(Target::Listen(format!("[::]:{port}"))),
            Some(("ptcp", address)) if address.contains(':') => Ok(Target::Listen(address.to_owned())),
            _ => Err(format!(
                "found `{text}`, expected tcp:HOST:PORT or unix:PATH of a switch that listens, or ptcp:PORT for one that connects to us"
            )),
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Tcp(address) => write!(f, "tcp:{address}"),
            Target::Unix(path) => write!(f, "unix:{path}"),
            Target::Listen(address) => write!(f, "ptcp:{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read() {
        assert_eq!("tcp:10.0.0.1:6653".parse(), Ok(Target::Tcp("10.0.0.1:6653".to_owned())));
        assert_eq!("ptcp:6653".parse(), Ok(Target::Listen("[::]:6653".to_owned())));
        assert_eq!("ptcp:127.0.0.1:6653".parse(), Ok(Target::Listen("127.0.0.1:6653".to_owned())));
        for wrong in ["tcp:host", "udp:1:2", "ptcp:", "6653", "unix:"] {
            let error = wrong.parse::<Target>().unwrap_err();
            assert!(error.contains(wrong) && error.contains("tcp:HOST:PORT"), "{error}");
        }
    }
}
