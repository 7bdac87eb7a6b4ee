//! Answers packet-ins. The usual answers are messages that were encoded once per switch, in which numbers are replaced.
use super::config::LearningConfig;
use super::entries::{self, EthernetFlow};
use super::ports::VlanPorts;
use super::send;
use crate::{ConnectionId, ControllerOutbox, SentKind};
use std::ops::Range;
use std::time::Duration;
use weir_openflow::model::{Action, Body, BufferId, PortNo};
use weir_openflow::{Message, Version, encode};
use weir_packet::MacAddr;

/// Number of "no buffer" in messages.
const NO_BUFFER_ID: u32 = u32::MAX;

/// Parts of a packet-in that the application looks at.
pub(super) struct SeenPacket<'a> {
    pub(super) in_port: Option<PortNo>,
    pub(super) buffer_id: Option<BufferId>,
    pub(super) total_len: u16,
    pub(super) data: &'a [u8],
}

/// Answer to a packet-in of a switch. Methods return false if the packet should be sent on, but the switch neither
/// buffered it nor sent it whole.
pub(super) struct Answer<'a> {
    pub(super) id: ConnectionId,
    pub(super) packet: &'a SeenPacket<'a>,
    pub(super) ports: &'a VlanPorts,
    pub(super) templates: Option<&'a AnswerTemplates>,
}

impl Answer<'_> {
    /// Adds an entry that sends the flow to `port`, and sends the packet there.
    pub(super) fn forward(
        &self,
        flow: &EthernetFlow,
        port: PortNo,
        config: &LearningConfig,
        out: &mut ControllerOutbox,
    ) -> bool {
        let buffer_id = self.packet.buffer_id.filter(|_| config.entry_sends_packet);
        if let Some(templates) = self.templates.filter(|_| self.is_plain(flow, port)) {
            let values = TemplateValues { in_port: flow.in_port, src: flow.src, dst: flow.dst, buffer_id, port };
            out.push_encoded(self.id, SentKind::FlowMod, |bytes| templates.flow_mod.write(&values, &[], bytes));
        } else {
            let actions = self.ports.send(flow.vlan, flow.tag, port);
            let entry = entries::forward(flow, config.priority, config.idle_timeout, buffer_id, actions);
            send(self.id, [entry], out);
        }
        buffer_id.is_some() || self.send(flow, port, out)
    }

    /// Sends the packet to `port`.
    pub(super) fn send(&self, flow: &EthernetFlow, port: PortNo, out: &mut ControllerOutbox) -> bool {
        if self.is_plain(flow, port) {
            return self.send_packet(flow.in_port, port, out);
        }
        self.send_with_actions(flow.in_port, self.ports.send(flow.vlan, flow.tag, port), out)
    }

    /// Returns true if the packet leaves by `port` unchanged and without a VLAN.
    fn is_plain(&self, flow: &EthernetFlow, port: PortNo) -> bool {
        flow.vlan == 0 && flow.tag.is_none() && self.ports.fits(port, flow.vlan, flow.tag)
    }

    /// Sends the packet to all ports of its VLAN.
    pub(super) fn flood(&self, flow: &EthernetFlow, out: &mut ControllerOutbox) -> bool {
        if self.ports.floods_by_itself() {
            return self.send_packet(flow.in_port, PortNo::FLOOD, out);
        }
        self.send_with_actions(flow.in_port, self.ports.flood(flow.vlan, flow.tag, flow.in_port), out)
    }

    /// Adds an entry that drops the flow for a while, and drops the packet.
    pub(super) fn drop_flow(&self, flow: &EthernetFlow, config: &LearningConfig, out: &mut ControllerOutbox) -> bool {
        let buffer_id = self.packet.buffer_id.filter(|_| config.entry_sends_packet);
        send(self.id, [entries::drop_for_a_while(flow, config.priority, buffer_id)], out);
        buffer_id.is_some() || self.drop(out)
    }

    /// Drops the packet, from the switch's buffer if it is there.
    pub(super) fn drop(&self, out: &mut ControllerOutbox) -> bool {
        let in_port = self.packet.in_port.unwrap_or(PortNo::CONTROLLER);
        if self.packet.buffer_id.is_some() {
            send(self.id, [entries::packet_out(self.packet.buffer_id, in_port, Vec::new(), &[])], out);
        }
        true
    }

    /// Sends the packet unchanged to a port, or to `FLOOD`.
    fn send_packet(&self, in_port: PortNo, port: PortNo, out: &mut ControllerOutbox) -> bool {
        let Some(templates) = self.templates else {
            return self.send_with_actions(in_port, vec![Action::output(port)], out);
        };
        let buffer_id = self.packet.buffer_id;
        let data = if buffer_id.is_some() { &[] } else { self.packet.data };
        if templates.packet_out.bytes.len() + data.len() > usize::from(u16::MAX) {
            return self.send_with_actions(in_port, vec![Action::output(port)], out);
        }
        if !self.is_whole() {
            return false;
        }
        let (src, dst) = Default::default();
        let values = TemplateValues { in_port, src, dst, buffer_id, port };
        out.push_encoded(self.id, SentKind::PacketOut, |bytes| templates.packet_out.write(&values, data, bytes));
        true
    }

    fn send_with_actions(&self, in_port: PortNo, actions: Vec<Action>, out: &mut ControllerOutbox) -> bool {
        if self.is_whole() {
            let SeenPacket { buffer_id, data, .. } = *self.packet;
            send(self.id, [entries::packet_out(buffer_id, in_port, actions, data)], out);
        }
        self.is_whole()
    }

    fn is_whole(&self) -> bool {
        self.packet.buffer_id.is_some() || self.packet.data.len() >= usize::from(self.packet.total_len)
    }
}

/// Messages for packets without a tag that leave by one port, in a switch's version.
#[derive(Debug)]
pub(super) struct AnswerTemplates {
    flow_mod: AnswerTemplate,
    packet_out: AnswerTemplate,
}

/// An encoded message, and where its numbers are. Empty ranges are of numbers that it does not have.
#[derive(Debug, Default, PartialEq, Eq)]
struct AnswerTemplate {
    bytes: Vec<u8>,
    in_port: Range<usize>,
    src: Range<usize>,
    dst: Range<usize>,
    buffer_id: Range<usize>,
    port: Range<usize>,
}

/// Numbers in an answer.
#[derive(Debug, Clone, Copy)]
struct TemplateValues {
    in_port: PortNo,
    src: MacAddr,
    dst: MacAddr,
    buffer_id: Option<BufferId>,
    port: PortNo,
}

impl AnswerTemplates {
    /// Encodes the messages. Returns `None` if the version cannot carry them.
    pub(super) fn new(version: Version, priority: u16, idle_timeout: Duration) -> Option<AnswerTemplates> {
        let flow_mod = |values: &TemplateValues| {
            let flow = EthernetFlow { in_port: values.in_port, tag: None, vlan: 0, src: values.src, dst: values.dst };
            let actions = vec![Action::output(values.port)];
            entries::forward(&flow, priority, idle_timeout, values.buffer_id, actions)
        };
        let packet_out = |values: &TemplateValues| {
            entries::packet_out(values.buffer_id, values.in_port, vec![Action::output(values.port)], &[])
        };
        Some(AnswerTemplates {
            flow_mod: AnswerTemplate::new(version, flow_mod)?,
            packet_out: AnswerTemplate::new(version, packet_out)?,
        })
    }
}

impl AnswerTemplate {
    /// Encodes a message with zeros and, for each number, with other bits, which shows its place.
    fn new(version: Version, body: impl Fn(&TemplateValues) -> Body) -> Option<AnswerTemplate> {
        let encoded = |values: &TemplateValues| {
            let mut bytes = Vec::new();
            encode(&Message { xid: 0, body: body(values) }, version, &mut bytes).ok()?;
            Some(bytes)
        };
        // Ports of 1.0 have 16 bits.
        let port = PortNo(if version == Version::V10 { 0x7f7f } else { 0x7f7f_7f7f });
        let (other_mac, zero_mac) = (MacAddr([0xff; 6]), MacAddr([0; 6]));
        let zero = TemplateValues {
            in_port: PortNo(0),
            src: zero_mac,
            dst: zero_mac,
            buffer_id: Some(BufferId(0)),
            port: PortNo(0),
        };
        let bytes = encoded(&zero)?;
        let place = |values: TemplateValues| Some(difference(&bytes, &encoded(&values)?));
        Some(AnswerTemplate {
            in_port: place(TemplateValues { in_port: port, ..zero })?,
            src: place(TemplateValues { src: other_mac, ..zero })?,
            dst: place(TemplateValues { dst: other_mac, ..zero })?,
            buffer_id: place(TemplateValues { buffer_id: Some(BufferId(0x7f7f_7f7f)), ..zero })?,
            port: place(TemplateValues { port, ..zero })?,
            bytes,
        })
    }

    /// Appends the message with these numbers, followed by `data`.
    #[expect(clippy::cast_possible_truncation, reason = "the caller has looked at the length")]
    fn write(&self, values: &TemplateValues, data: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        out.extend_from_slice(data);
        let message = &mut out[start..];
        let length = message.len() as u16;
        message[2..4].copy_from_slice(&length.to_be_bytes());
        put(message, &self.in_port, &values.in_port.0.to_be_bytes());
        put(message, &self.src, &values.src.0);
        put(message, &self.dst, &values.dst.0);
        put(message, &self.buffer_id, &values.buffer_id.map_or(NO_BUFFER_ID, |id| id.0).to_be_bytes());
        put(message, &self.port, &values.port.0.to_be_bytes());
    }
}

/// Returns where two messages of one length differ.
fn difference(a: &[u8], b: &[u8]) -> Range<usize> {
    let differs = |(at, (a, b)): (usize, (&u8, &u8))| (a != b).then_some(at);
    let mut places = a.iter().zip(b).enumerate().filter_map(differs);
    let Some(first) = places.next() else { return 0..0 };
    first..places.next_back().unwrap_or(first) + 1
}

/// Writes the last bytes of a number, as many as its place has. In 1.0 reserved ports are those of later versions
/// without the high bits.
fn put(message: &mut [u8], place: &Range<usize>, number: &[u8]) {
    message[place.clone()].copy_from_slice(&number[number.len() - place.len()..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::decode;

    /// Compares templates with the codec, for every version.
    #[test]
    fn templates_are_messages_of_the_codec() {
        let mac = |last| MacAddr([2, 0xff, 0, 7, 0x7f, last]);
        for version in Version::ALL {
            let templates = AnswerTemplates::new(version, 100, Duration::from_secs(60)).unwrap();
            for (in_port, port, buffer_id) in [
                (PortNo(1), PortNo(2), Some(BufferId(77))),
                (PortNo(0xfeff), PortNo(0x102), None),
                (PortNo::LOCAL, PortNo::FLOOD, Some(BufferId(0xffff_fffe))),
            ] {
                let values = TemplateValues { in_port, src: mac(1), dst: mac(2), buffer_id, port };
                let flow = EthernetFlow { in_port, tag: None, vlan: 0, src: mac(1), dst: mac(2) };
                let actions = vec![Action::output(port)];
                let entry = entries::forward(&flow, 100, Duration::from_secs(60), buffer_id, actions.clone());
                let data = if buffer_id.is_some() { &[][..] } else { &[9; 60] };
                let packet_out = entries::packet_out(buffer_id, in_port, actions, data);
                for (template, body, data) in
                    [(&templates.flow_mod, entry, &[][..]), (&templates.packet_out, packet_out, data)]
                {
                    let (mut written, mut expected) = (vec![1, 2, 3], vec![1, 2, 3]);
                    template.write(&values, data, &mut written);
                    encode(&Message { xid: 0, body }, version, &mut expected).unwrap();
                    assert_eq!(written, expected, "{version:?} {:?}", decode(&written[3..]));
                }
            }
        }
    }
}
