//! Finds the port behind each interface: the switch is asked to send a packet out of each port.
use super::TestBench;
use crate::device::DeviceEvent;
use crate::{MeasurementSettings, ProfilerError};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_openflow::model::multipart::{MultipartRequest, ReplyBody, RequestBody};
use weir_openflow::model::{Action, Bytes, PacketOut, PortDesc, PortNo, Version};
use weir_openflow::{Body, Message};
use weir_traffic::ProbeHeader;

/// Rounds of packets to find ports that no interface has shown yet.
const ROUNDS: u32 = 5;
/// Time to wait for the packets of a round.
const ROUND: Duration = Duration::from_millis(400);
/// Most ports that are tried.
const MAX_TRIED: usize = 256;

impl TestBench<'_> {
    /// Finds the port behind each interface. `expected` are the ports as the user gave them; they are checked, unless
    /// the list is empty.
    pub(crate) fn learn_ports(&mut self, expected: &[PortNo]) -> Result<Vec<PortNo>, ProfilerError> {
        self.during = "looking for the ports behind the interfaces".to_owned();
        let descriptions = self.describe_ports()?;
        let known: Vec<PortNo> =
            descriptions.iter().map(|port| port.port_no).filter(|port| port.is_ordinary()).take(MAX_TRIED).collect();
        let run = self.next_run();
        let mut found: BTreeMap<usize, PortNo> = BTreeMap::new();
        for _ in 0..ROUNDS {
            self.check_stop()?;
            let messages: Vec<Message> = (0..).zip(&known).map(|(at, port)| self.send_out(*port, run, at)).collect();
            self.device.send(&messages)?;
            let until = self.device.now() + ROUND;
            while self.device.now() < until && found.len() < self.device.interfaces() {
                if let Some(DeviceEvent::Frame { interface, bytes, .. }) = self.device.wait(until)?
                    && let Some(mark) = ProbeHeader::find(&bytes, Some(run))
                    && let Some(port) = known.get(mark.sequence as usize)
                {
                    found.insert(interface, *port);
                }
            }
            if found.len() == self.device.interfaces() {
                break;
            }
        }
        self.ports = (0..self.device.interfaces())
            .map(|interface| found.get(&interface).copied().ok_or_else(|| nothing(interface, &known)))
            .collect::<Result<_, _>>()?;
        self.check_ports(expected)?;
        Ok(self.ports.clone())
    }

    fn check_ports(&self, expected: &[PortNo]) -> Result<(), ProfilerError> {
        for (interface, (found, expected)) in self.ports.iter().zip(expected).enumerate() {
            if found != expected {
                let what = format!("port behind interface {} of --data", interface + 1);
                let expected = format!("{expected} (--ports): are two cables the wrong way round?");
                return Err(ProfilerError::wrong(what, found, expected));
            }
        }
        let twice = (1..self.ports.len()).any(|at| self.ports[..at].contains(&self.ports[at]));
        if twice {
            let found = self.ports.iter().map(PortNo::to_string).collect::<Vec<_>>().join(", ");
            return Err(ProfilerError::wrong("interfaces (--data)", format!("ports {found}"), "a port for each"));
        }
        Ok(())
    }

    fn describe_ports(&mut self) -> Result<Vec<PortDesc>, ProfilerError> {
        if self.device.version() == Some(Version::V10) {
            let (_, body) = self.ask(Body::FeaturesRequest, "features reply")?;
            return Ok(match body {
                Body::FeaturesReply(features) => features.ports,
                _ => Vec::new(),
            });
        }
        let request = MultipartRequest { more: false, body: RequestBody::PortDesc(PortNo::ANY) };
        let (_, body) = self.ask(Body::MultipartRequest(request), "description of ports")?;
        Ok(match body {
            Body::MultipartReply(reply) => match reply.body {
                ReplyBody::PortDesc(ports) => ports,
                _ => Vec::new(),
            },
            _ => Vec::new(),
        })
    }

    fn send_out(&mut self, port: PortNo, run: u16, sequence: u32) -> Message {
        let now = self.device.now();
        let mark =
            ProbeHeader { run, sequence, sent_ns: now.as_nanos(), is_new_flow: false, counts: true, is_wall: false };
        let packet = MeasurementSettings::any_rule().packet(crate::rules::SHORTEST, &mark);
        self.message(Body::PacketOut(packet_out(port, packet)))
    }
}

/// Returns a packet-out that sends `packet` out of `port`.
pub(crate) fn packet_out(port: PortNo, packet: Vec<u8>) -> PacketOut {
    PacketOut {
        buffer_id: None,
        in_port: PortNo::ANY,
        matching: weir_openflow::model::Match::any(),
        actions: vec![Action::Output { port, max_len: 0 }],
        data: Bytes(packet),
    }
}

fn nothing(interface: usize, tried: &[PortNo]) -> ProfilerError {
    let tried = tried.iter().map(PortNo::to_string).collect::<Vec<_>>().join(", ");
    ProfilerError::wrong(
        format!("port behind interface {} of --data", interface + 1),
        format!("none: packets sent out of ports {tried} did not come"),
        "one; is the interface connected to the switch, and is the switch's port up?",
    )
}
