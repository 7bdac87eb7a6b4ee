//! Extracts and prints the OpenFlow messages of a capture's TCP connections.
use super::capture;
use super::framing::{FramerEvent, OpenFlowFramer};
use super::printer::{CaptureMetadata, OfpMessagePrinter};
use super::segment::TcpDirection;
use super::tcp::{TcpReassembler, TcpStreamEvent};
use std::collections::HashMap;
use std::io::{self, Write};

/// Maximum number of streams without OpenFlow that are named; further ones are only counted.
const MAX_NAMED: usize = 10;

/// Prints the messages of a capture's TCP connections. With `port`, only connections of that TCP port are read.
pub(super) fn print(
    file: impl io::Read + Send,
    port: Option<u16>,
    printer: &mut OfpMessagePrinter<impl Write>,
) -> anyhow::Result<()> {
    let mut connections = CapturedConnections { port, framings: HashMap::new(), messages: 0 };
    let mut streams = TcpReassembler::default();
    let mut written = Ok(());
    let mut take = |direction: TcpDirection, time_ns: u64, piece: TcpStreamEvent| {
        let result = connections.handle_event(CaptureMetadata { time_ns, direction }, piece, printer);
        written = std::mem::replace(&mut written, Ok(())).and(result);
    };
    let read = capture::read(file, |packet| streams.receive(packet.time_ns, &packet.frame, &mut take));
    let left_out = streams.left_out;
    streams.finish(&mut take);
    written?;
    printer.out.flush()?;
    connections.report(left_out);
    read.map_err(anyhow::Error::msg)?;
    anyhow::ensure!(connections.messages > 0, "found no OpenFlow message, expected a TCP connection with some");
    Ok(())
}

/// State of all directions of a capture's connections.
struct CapturedConnections {
    port: Option<u16>,
    framings: HashMap<TcpDirection, OpenFlowFramer>,
    messages: u64,
}

impl CapturedConnections {
    fn handle_event(
        &mut self,
        place: CaptureMetadata,
        piece: TcpStreamEvent,
        printer: &mut OfpMessagePrinter<impl Write>,
    ) -> io::Result<()> {
        let direction = place.direction;
        let wanted = |port| direction.from.port() == port || direction.to.port() == port;
        if !self.port.is_none_or(wanted) {
            return Ok(());
        }
        let framing = self.framings.entry(direction).or_default();
        let mut written = Ok(());
        match piece {
            TcpStreamEvent::Data(data) => framing.receive(&data, self.port.is_some(), |found| {
                let result = match found {
                    FramerEvent::Message(bytes) => {
                        self.messages += 1;
                        printer.message(Some(place), &bytes)
                    }
                    FramerEvent::OutOfSync(reason) => printer.remark(place, &reason),
                };
                written = std::mem::replace(&mut written, Ok(())).and(result);
            }),
            TcpStreamEvent::Lost(bytes) => {
                framing.lose();
                if framing.is_openflow() {
                    written = printer.remark(place, &format!("{bytes} bytes are missing in the capture"));
                }
            }
            TcpStreamEvent::Start => *framing = OpenFlowFramer::default(),
        }
        written
    }

    /// Reports on standard error which streams and packets were left out.
    fn report(&self, left_out: u64) {
        let mut foreign: Vec<_> = self.framings.iter().filter(|(_, framing)| !framing.is_openflow()).collect();
        foreign.retain(|(_, framing)| framing.foreign_bytes > 0);
        foreign.sort_by_key(|(direction, _)| **direction);
        for (direction, framing) in foreign.iter().take(MAX_NAMED) {
            eprintln!("weir: {direction}: {} bytes, not OpenFlow", framing.foreign_bytes);
        }
        if foreign.len() > MAX_NAMED {
            eprintln!("weir: {} more streams are not OpenFlow", foreign.len() - MAX_NAMED);
        }
        if left_out > 0 {
            eprintln!("weir: {left_out} packets of further connections were left out");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::text::PrintDetail;

    #[test]
    fn a_changed_capture_is_read_or_refused() {
        for name in ["of10_7050q.pcapng", "of10_inv_OFPST_FLOW.pcap"] {
            let Some(path) = weir_testing::shared(&format!("data/external/rules/openflow/tcpdump-pcap/{name}")) else {
                return;
            };
            let file = std::fs::read(path).unwrap();
            for (at, value) in (0..file.len()).flat_map(|at| [0, 1, 0x7f, 0xff].map(|value| (at, value))) {
                let mut changed = file.clone();
                changed[at] = value;
                let mut printer = OfpMessagePrinter::new(io::sink(), at % 2 == 0, PrintDetail::Bytes);
                let port = (at % 3 == 0).then_some(6653);
                // The result does not matter: the test checks only that nothing panics or hangs.
                let _ = print(changed.as_slice(), port, &mut printer);
            }
        }
    }
}
