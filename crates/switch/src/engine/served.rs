//! Gives a logical switch what it needs from the engine while its controllers, its owner or its timers are served.
use super::io::{EngineIo, PortEvent, port_list};
use super::logical::LogicalSwitch;
use super::queues::port_queues;
use super::virtuals::{EngineFabric, VirtualPorts};
use crate::control::backlog::is_flow_update;
use crate::handle::SwitchError;
use weir_openflow::Body;
use weir_openflow::model::PortNo;
use weir_openflow::model::multipart::RequestBody;
use weir_units::Instant;

/// A logical switch together with its ports and the engine's clock and buffers.
pub(crate) struct ServedSwitch<'a> {
    pub(super) logical: &'a mut LogicalSwitch,
    pub(super) io: &'a mut EngineIo,
    pub(super) ports: ServedPorts<'a>,
}

/// Ports of a logical switch.
pub(super) enum ServedPorts<'a> {
    /// All ports of the engine, for the physical switch. The fabric is present if virtual switches share some of them.
    Physical(Option<&'a mut EngineFabric>),
    /// Shares of the engine's ports, behind the fabric.
    Virtual(&'a mut VirtualPorts, &'a mut EngineFabric),
}

impl ServedSwitch<'_> {
    /// Hands out the datapath's output: frames to ports, messages to channels.
    pub(super) fn deliver(&mut self, now: Instant) {
        self.deliver_frames(now);
        let out = &mut self.logical.out;
        if !(out.messages.is_empty() && out.limited.is_empty() && out.port_admin.is_empty()) {
            self.deliver_messages(now);
        }
    }

    /// Passes frames on to their ports, or to the fabric where virtual switches share a port.
    #[inline]
    fn deliver_frames(&mut self, now: Instant) {
        let frames = &mut self.logical.out.frames;
        match &mut self.ports {
            ServedPorts::Physical(None) => {}
            ServedPorts::Physical(Some(fabric)) => {
                for (port, frames) in frames.iter_mut() {
                    fabric.queue_own(now, *port, frames, &mut self.io.pool);
                }
            }
            ServedPorts::Virtual(ports, fabric) => {
                return fabric.ingress().enqueue(now, ports.source(None), frames, &mut self.io.pool);
            }
        }
        for (number, frames) in frames.iter_mut().filter(|(_, frames)| !frames.is_empty()) {
            self.io.transmit(now, *number, frames);
        }
    }

    /// Passes messages on to their channels, and pauses the flow monitors of channels that do not read.
    fn deliver_messages(&mut self, now: Instant) {
        let LogicalSwitch { channels, out, .. } = &mut *self.logical;
        let mut crowded = Vec::new();
        for (channel, message) in out.messages.drain(..) {
            let Some(outbox) = channels.outbox(channel) else { continue };
            if is_flow_update(&message) && outbox.is_crowded() {
                crowded.push(channel);
            }
            outbox.send(message);
        }
        if !crowded.is_empty() {
            self.logical.pause_monitors(now, crowded);
        }
        let LogicalSwitch { channels, out, .. } = &mut *self.logical;
        for (channel, packet_ins) in out.limited.drain(..) {
            if let Some(outbox) = channels.outbox(channel) {
                outbox.limited(packet_ins);
            }
        }
        for (number, up) in out.port_admin.drain(..) {
            // A port that a virtual switch sets down is down for that virtual switch only.
            if let ServedPorts::Physical(_) = self.ports {
                self.io.note(PortEvent::Admin(number, up));
            }
        }
    }

    /// Copies counters and queues of ports into the datapath if a message asks for them.
    pub(super) fn copy_port_state_for(&mut self, body: &Body) {
        let (counters, queues) = match body {
            Body::QueueGetConfigRequest(_) => (false, true),
            Body::MultipartRequest(request) => match request.body {
                RequestBody::PortStats(_) => (true, false),
                RequestBody::Queue { .. } | RequestBody::QueueDesc { .. } => (false, true),
                _ => return,
            },
            _ => return,
        };
        let datapath = self.logical.datapath.get();
        match &self.ports {
            ServedPorts::Physical(_) => {
                for slot in self.io.ports.iter() {
                    if counters {
                        datapath.set_port_counters(slot.number, slot.counters());
                    }
                    if queues {
                        datapath.set_port_queues(slot.number, slot.queues(port_queues).unwrap_or_default());
                    }
                }
            }
            ServedPorts::Virtual(ports, fabric) => {
                for (at, inlet) in ports.inlets.iter().enumerate() {
                    if counters {
                        datapath.set_port_counters(inlet.number, fabric.port_counters(ports, at));
                    }
                    if queues {
                        datapath.set_port_queues(inlet.number, fabric.port_queues(ports, at));
                    }
                }
            }
        }
    }

    /// Returns an error if the port does not exist.
    pub(super) fn has_port(&self, number: PortNo) -> Result<(), SwitchError> {
        let ports = self.named_ports();
        let must_be_there = number.is_ordinary() || number == PortNo::LOCAL;
        if must_be_there && !ports.iter().any(|(known, _)| *known == number) {
            return Err(SwitchError::NoPort { found: number.to_string(), ports: port_list(&ports) });
        }
        Ok(())
    }

    /// Returns the number of a port given by number or name; ports of the physical switch also by specification.
    ///
    /// # Errors
    /// Fails if there is no such port.
    pub(crate) fn find_port(&self, text: &str) -> Result<PortNo, SwitchError> {
        let ports = self.named_ports();
        let by_number = text.parse().ok().filter(|number| ports.iter().any(|(known, _)| known == number));
        let by_name = || ports.iter().find(|(_, name)| name == text).map(|(number, _)| *number);
        let by_spec = || match self.ports {
            ServedPorts::Physical(_) => self.io.ports.number_of(text),
            ServedPorts::Virtual(..) => None,
        };
        let found = by_number.or_else(by_name).or_else(by_spec);
        found.ok_or_else(|| SwitchError::NoPort { found: text.to_owned(), ports: port_list(&ports) })
    }

    /// Returns the numbers and names of the switch's ports.
    fn named_ports(&self) -> Vec<(PortNo, String)> {
        match &self.ports {
            ServedPorts::Physical(_) => self.io.ports.named(),
            ServedPorts::Virtual(ports, _) => ports.named(&self.io.ports),
        }
    }
}
