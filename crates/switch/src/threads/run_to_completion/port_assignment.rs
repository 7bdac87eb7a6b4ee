//! Assigns ports to receiving threads by configuration.
use serde::Deserialize;
use std::fmt;
use std::str::FromStr;
use weir_openflow::model::PortNo;

/// Ports with the threads that receive from them, written as `1=0,2=1`. Ports that are not named go to the thread
/// with the fewest ports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PortAssignment(Vec<(PortNo, usize)>);

impl PortAssignment {
    /// Returns the thread of a port, if the port is named.
    pub(super) fn thread_of(&self, port: PortNo) -> Option<usize> {
        self.0.iter().find(|(named, _)| *named == port).map(|(_, thread)| *thread)
    }

    /// Returns the first port that is assigned to a thread number of `threads` or more, with that number.
    pub(crate) fn beyond(&self, threads: usize) -> Option<(PortNo, usize)> {
        self.0.iter().find(|(_, thread)| *thread >= threads).copied()
    }

    /// Returns true if no port is named.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for PortAssignment {
    type Err = String;

    fn from_str(text: &str) -> Result<PortAssignment, String> {
        let wrong = || format!("found deal `{text}`, expected ports with their threads, each port once, as in 1=0,2=1");
        let mut deal = PortAssignment::default();
        for part in text.split(',') {
            let (port, thread) = part.split_once('=').ok_or_else(wrong)?;
            let port: PortNo = port.trim().parse().map_err(|_| wrong())?;
            let thread = thread.trim().parse().map_err(|_| wrong())?;
            let is_port = port.is_ordinary() || port == PortNo::LOCAL;
            if !is_port || deal.thread_of(port).is_some() {
                return Err(wrong());
            }
            deal.0.push((port, thread));
        }
        Ok(deal)
    }
}

impl fmt::Display for PortAssignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(|(port, thread)| format!("{port}={thread}")).collect();
        f.write_str(&parts.join(","))
    }
}

impl<'de> Deserialize<'de> for PortAssignment {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_dealt_as_written() {
        let deal: PortAssignment = "1=0, 7=1,LOCAL=0".parse().unwrap();
        assert_eq!([1, 7, 2].map(|port| deal.thread_of(PortNo(port))), [Some(0), Some(1), None]);
        assert_eq!((deal.beyond(2), deal.beyond(1)), (None, Some((PortNo(7), 1))));
        assert_eq!(deal.to_string(), "1=0,7=1,LOCAL=0");
        for wrong in ["", "1", "1=", "=1", "1=a", "1=0,1=1", "0=1", "1=0,", "1=-1"] {
            assert!(wrong.parse::<PortAssignment>().unwrap_err().contains("as in 1=0,2=1"), "{wrong}");
        }
    }
}
