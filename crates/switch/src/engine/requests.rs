//! Answers requests of the switch's owner and of the control socket.
use super::Engine;
use super::channel_table::PART_ENTRIES;
use crate::handle::SwitchError;
use crate::snapshot::{PortSnapshot, TableSnapshot, VirtualSwitchSnapshot, WorkerSnapshot};
use std::collections::HashMap;
use weir_datapath::{ChannelId, FlowWalk, PipelineTrace};
use weir_device::TimingSnapshot;
use weir_openflow::model::multipart::{FlowRequest, FlowStats, ReplyBody, RequestBody};
use weir_openflow::model::role::Role;
use weir_openflow::model::{FlowMod, MultipartRequest, PortNo};
use weir_openflow::{Body, Message};
use weir_packet::Frame;
use weir_units::Clock;

/// The engine's part of a switch snapshot.
pub(crate) struct EngineSnapshot {
    pub(crate) uptime_s: f64,
    pub(crate) ports: Vec<PortSnapshot>,
    pub(crate) virtual_switches: Vec<VirtualSwitchSnapshot>,
    pub(crate) tables: Vec<TableSnapshot>,
    pub(crate) workers: Vec<WorkerSnapshot>,
    pub(crate) drops: Vec<(String, u64)>,
    pub(crate) perf_watchers: u32,
    pub(crate) timing: Option<TimingSnapshot>,
    /// Roles of the channels that are up.
    pub(crate) roles: HashMap<ChannelId, Role>,
}

impl Engine {
    /// Returns the state of the served switch.
    pub(crate) fn snapshot(&mut self) -> EngineSnapshot {
        EngineSnapshot {
            uptime_s: self.clock.now().as_secs_f64(),
            ports: self
                .virtual_port_snapshots()
                .unwrap_or_else(|| self.ports.iter().map(|slot| slot.snapshot()).collect()),
            virtual_switches: if self.serving.is_none() { self.virtual_snapshots() } else { Vec::new() },
            tables: self.tables(),
            workers: self.workers.snapshot(),
            drops: self.drops(),
            perf_watchers: self.watchers,
            timing: self.logical.timed.as_mut().map(|timed| timed.snapshot()),
            roles: self
                .logical
                .channels
                .channels()
                .filter_map(|id| Some((id, self.logical.datapath.get().role(id)?)))
                .collect(),
        }
    }

    /// Starts a walk through flow entries; [`Engine::walk`] continues it.
    ///
    /// # Errors
    /// Returns the OpenFlow error that a controller would receive.
    pub(crate) fn flow_walk(&mut self, request: &FlowRequest) -> Result<FlowWalk, SwitchError> {
        self.logical
            .datapath
            .get()
            .flow_walk(request)
            .map_err(|error| SwitchError::Request(format!("refused: {error:?}")))
    }

    /// Returns the next flow entries of a walk with their counters, a bounded number, and the walk if there are more.
    pub(crate) fn walk(&mut self, mut walk: FlowWalk) -> (Vec<FlowStats>, Option<FlowWalk>) {
        let mut found = Vec::new();
        let more = self.logical.datapath.get().walk_flows(self.clock.now(), &mut walk, PART_ENTRIES, &mut found);
        (found, more.then_some(walk))
    }

    /// Adds, modifies or deletes flow entries.
    ///
    /// # Errors
    /// Returns the OpenFlow error that a controller would receive.
    pub(crate) fn flow_mod(&mut self, flow: &FlowMod) -> Result<(), SwitchError> {
        let now = self.clock.now();
        self.logical.datapath.get().flow_mod(now, flow).map_err(SwitchError::FlowMod)?;
        self.logical.expire_at = now;
        Ok(())
    }

    /// Adds the flow entries that the switch starts with.
    ///
    /// # Errors
    /// Fails if an entry cannot be parsed or is refused.
    pub(crate) fn install(&mut self, entries: &[String]) -> Result<(), SwitchError> {
        let now = self.clock.now();
        self.logical.datapath.get().add_entries(now, entries).map_err(SwitchError::Request)?;
        self.logical.expire_at = now;
        Ok(())
    }

    /// Returns what would happen to a frame: tables, flow entries, actions and outputs. Counters and learned entries
    /// do not change.
    ///
    /// # Errors
    /// Fails if there is no such port.
    pub(crate) fn trace(&mut self, in_port: PortNo, frame: &Frame) -> Result<PipelineTrace, SwitchError> {
        self.has_port(in_port)?;
        Ok(self.logical.datapath.get().trace(self.clock.now(), in_port, frame.bytes()))
    }

    /// Returns an error if the port does not exist.
    pub(super) fn has_port(&self, number: PortNo) -> Result<(), SwitchError> {
        let must_be_there = number.is_ordinary() || number == PortNo::LOCAL;
        if must_be_there && !self.numbered_ports().iter().any(|(known, _)| *known == number) {
            Err(self.no_port(number))
        } else {
            Ok(())
        }
    }

    /// Returns the number of a port given by number, name or specification.
    ///
    /// # Errors
    /// Fails if there is no such port.
    pub(crate) fn find_port(&self, text: &str) -> Result<PortNo, SwitchError> {
        let ports = self.numbered_ports();
        let by_number = text.parse().ok().filter(|number| ports.iter().any(|(known, _)| known == number));
        let by_name = || ports.iter().find(|(_, name)| name == text).map(|(number, _)| *number);
        by_number
            .or_else(by_name)
            .or_else(|| self.ports.number_of(text).filter(|_| self.serving.is_none()))
            .ok_or_else(|| SwitchError::NoPort { found: text.to_owned(), ports: self.port_list() })
    }

    /// Returns the error for a number that no port has.
    pub(crate) fn no_port(&self, number: PortNo) -> SwitchError {
        SwitchError::NoPort { found: number.to_string(), ports: self.port_list() }
    }

    /// Numbers and names of the ports of the served switch.
    fn numbered_ports(&self) -> Vec<(PortNo, String)> {
        let own = || self.ports.iter().map(|slot| (slot.number, slot.name().to_owned())).collect();
        self.virtual_ports().unwrap_or_else(own)
    }

    fn port_list(&self) -> String {
        let ports: Vec<String> =
            self.numbered_ports().iter().map(|(number, name)| format!("{number}={name}")).collect();
        if ports.is_empty() { "none".to_owned() } else { ports.join(", ") }
    }

    fn tables(&mut self) -> Vec<TableSnapshot> {
        let parts = self.ask(RequestBody::Table);
        let tables = parts.into_iter().flat_map(|part| match part {
            ReplyBody::Table(tables) => tables,
            _ => Vec::new(),
        });
        let seen = tables.filter(|table| table.active_count > 0 || table.lookup_count > 0);
        seen.map(|table| TableSnapshot {
            table: table.table.0,
            entries: table.active_count,
            lookups: table.lookup_count,
            matches: table.matched_count,
        })
        .collect()
    }

    pub(crate) fn drops(&mut self) -> Vec<(String, u64)> {
        let mut drops = self.logical.datapath.get().drops();
        if self.serving.is_none() {
            for (reason, count) in self.workers.packets_dropped() {
                drops.count(reason, count);
            }
        }
        let serde_json::Value::Object(drops) = serde_json::json!(drops) else { return Vec::new() };
        let counted = drops.into_iter().filter_map(|(reason, count)| Some((reason, count.as_u64()?)));
        let rings = self.workers.drops().map(|(reason, count)| (reason.to_owned(), count));
        let own = if self.serving.is_none() { self.own_dropped() } else { 0 };
        let behind = ("behind_virtual_switches".to_owned(), own);
        let unserved = ("virtual_switch_without_turn".to_owned(), self.unserved());
        let timed = self.logical.timed.iter().flat_map(|timed| timed.drops());
        let timed = timed.map(|(reason, count)| (reason.to_owned(), count));
        counted.chain(rings).chain(timed).chain([behind, unserved]).filter(|(_, count)| *count > 0).collect()
    }

    /// Sends the datapath a multipart request as a controller would, and returns the parts of the reply.
    pub(crate) fn ask(&mut self, body: RequestBody) -> Vec<ReplyBody> {
        let now = self.clock.now();
        let request = Message { xid: 0, body: Body::MultipartRequest(MultipartRequest { more: false, body }) };
        self.logical.datapath.get().handle(now, ChannelId::LOCAL, request, &mut self.pool, &mut self.logical.out);
        let (local, others): (Vec<_>, Vec<_>) =
            self.logical.out.messages.drain(..).partition(|(channel, _)| *channel == ChannelId::LOCAL);
        self.logical.out.messages = others;
        self.deliver(now);
        let replies = local.into_iter().filter_map(|(_, message)| match message.body {
            Body::MultipartReply(reply) => Some(reply.body),
            _ => None,
        });
        replies.collect()
    }
}
