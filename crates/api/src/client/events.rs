//! Reads a stream of events (Server-Sent Events, HTML Standard, 9.2).
use super::{ApiClientError, ClientAddress};
use hyper::body::{Body as _, Incoming};
use std::pin::Pin;
use weir_routing::state::EventRecord;

/// Longest event in bytes, as a limit for what is kept until its end arrives.
const MAX_EVENT: usize = 1 << 20;

/// Events as they arrive.
pub struct EventStream {
    address: ClientAddress,
    body: Incoming,
    /// Bytes that arrived and were not returned yet.
    arrived: Vec<u8>,
}

/// Message of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamedEvent {
    /// An event.
    Event(EventRecord),
    /// Events that were asked for are no longer kept: their number.
    Lost(u64),
    /// The controller was started anew, so the numbers of events begin anew.
    Restarted,
}

impl EventStream {
    pub(super) fn new(address: ClientAddress, body: Incoming) -> EventStream {
        EventStream { address, body, arrived: Vec::new() }
    }

    /// Waits for the next event; `None` at the end of the stream.
    ///
    /// # Errors
    /// The connection broke, or what arrived is no event.
    pub async fn next(&mut self) -> Result<Option<StreamedEvent>, ApiClientError> {
        loop {
            while let Some(end) = self.arrived.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.arrived.drain(..end + 2).collect();
                if let Some(event) = parse(&String::from_utf8_lossy(&block)).map_err(|error| self.broken(&error))? {
                    return Ok(Some(event));
                }
            }
            if self.arrived.len() > MAX_EVENT {
                return Err(self.broken(&format!("found an event longer than {MAX_EVENT} bytes")));
            }
            let frame = std::future::poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await;
            match frame.transpose().map_err(|error| self.broken(&error.to_string()))? {
                Some(frame) => self.arrived.extend(frame.data_ref().into_iter().flatten()),
                None => return Ok(None),
            }
        }
    }

    fn broken(&self, problem: &str) -> ApiClientError {
        ApiClientError::Broken { address: self.address.clone(), problem: problem.to_owned() }
    }
}

/// Parses a block of lines; `None` if it is a comment.
fn parse(block: &str) -> Result<Option<StreamedEvent>, String> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let Some(data) = field("data") else { return Ok(None) };
    let wrong = |error: serde_json::Error| format!("found an event that is not as expected: {error}");
    match field("event") {
        None => serde_json::from_str(data).map(|event| Some(StreamedEvent::Event(event))).map_err(wrong),
        Some("lost") => {
            let lost: serde_json::Value = serde_json::from_str(data).map_err(wrong)?;
            Ok(lost["lost"].as_u64().map(StreamedEvent::Lost))
        }
        Some("restarted") => Ok(Some(StreamedEvent::Restarted)),
        // Kinds that later servers may have.
        Some(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read() {
        let event =
            "id: 7\ndata: {\"number\":7,\"time_s\":1.5,\"kind\":\"link-down\",\"text\":\"x\",\"alarm\":true}\n\n";
        let Ok(Some(StreamedEvent::Event(read))) = parse(event) else { panic!("expected an event") };
        assert_eq!((read.number, read.kind.as_str(), read.alarm), (7, "link-down", true));
        assert_eq!(parse(": heartbeat\n\n"), Ok(None));
        assert_eq!(parse("event: lost\ndata: {\"lost\":3}\n\n"), Ok(Some(StreamedEvent::Lost(3))));
        assert_eq!(parse("event: restarted\nid: 0\ndata: {}\n\n"), Ok(Some(StreamedEvent::Restarted)));
        assert_eq!(parse("event: later\ndata: {}\n\n"), Ok(None));
        assert!(parse("data: {\"number\":\"x\"}\n\n").unwrap_err().contains("not as expected"));
    }
}
