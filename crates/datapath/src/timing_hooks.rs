//! Interfaces for callers that delay the datapath's changes and packets: the entries a message affects, the changes
//! of flow entries, and packets processed one by one.
use crate::effects::BurstEffects as _;
use crate::engine_effects::EngineEffects;
use crate::packet::PipelinePacket;
use crate::version_semantics::FlowModSemantics;
use crate::{ChannelId, Datapath, DatapathOutput, DropReason, EntryChange, FlowModEffect, execute, pipeline};
use weir_openflow::model::nicira::NxMessage;
use weir_openflow::model::role::Role;
use weir_openflow::model::{Body, PortNo};
use weir_packet::{Field, Frame, FramePool, ParsedHeaders};
use weir_units::Instant;

impl Datapath {
    /// Starts recording changes of flow entries, with an addition for each present entry. The caller must then call
    /// [`Datapath::entry_changes`] now and then, because the record grows.
    pub fn watch_entries(&mut self) {
        self.tables.watch();
    }

    /// Appends the changes of flow entries since the last call, table by table.
    pub fn entry_changes(&mut self, into: &mut Vec<EntryChange>) {
        self.tables.take_changes(into);
    }

    /// Returns a number that is incremented whenever flow entries may have changed. While it stays equal,
    /// [`Datapath::entry_changes`] returns no new changes.
    pub fn generation(&self) -> u64 {
        self.tables.generation()
    }

    /// Returns what a channel's flow-mod would do to the present entries: [`FlowModEffect::Nothing`] if `body` is no
    /// flow-mod or would be refused.
    pub fn subject(&mut self, channel: ChannelId, body: &Body) -> FlowModEffect {
        let Some(version) =
            self.plane.channels.version(channel).filter(|_| self.plane.channels.role_of(channel) != Role::Slave)
        else {
            return FlowModEffect::Nothing;
        };
        let found = match body {
            Body::FlowMod(flow) => self.edit_tables().subject(flow, FlowModSemantics::of(flow, version)),
            Body::Nx(message) => match &**message {
                // Nicira's flow-mod does not follow the entry order of version 1.0.
                NxMessage::FlowMod(flow) => {
                    self.edit_tables().subject(flow, FlowModSemantics::of_nicira(flow, version))
                }
                _ => return FlowModEffect::Nothing,
            },
            _ => return FlowModEffect::Nothing,
        };
        found.unwrap_or(FlowModEffect::Nothing)
    }

    /// Runs one frame that arrived on a port through the pipeline. Appends to `met` the stamps of the entries it
    /// matched, in order.
    pub fn process_one(
        &mut self,
        now: Instant,
        in_port: PortNo,
        mut frame: Frame,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
        met: &mut Vec<u64>,
    ) {
        let (is_standalone, drops_fragments) = (self.is_standalone(), self.drops_fragments);
        let may_receive = self.plane.ports.may_receive(in_port);
        let mut live = EngineEffects::new(now, &self.tables, &self.groups, &mut self.plane, pool, out).noting(met);
        let parsed = may_receive.and_then(|()| ParsedHeaders::of(&frame, in_port).map_err(|_| DropReason::TooShort));
        let passed = parsed.and_then(|parsed| {
            let is_dropped = drops_fragments && parsed.key.get(Field::IpFrag) != 0;
            if is_dropped { Err(DropReason::Fragment) } else { Ok(parsed) }
        });
        match passed {
            Err(reason) => return live.refuse(&mut frame, reason),
            Ok(mut parsed) => {
                let mut packet = PipelinePacket::new(&mut frame, &mut parsed, in_port);
                if is_standalone {
                    execute::normal(&mut packet, &mut live);
                } else {
                    pipeline::run(self.tables.all(), &mut packet, &mut self.set, &mut live);
                }
                packet.finish(&mut live);
            }
        }
        if !self.plane.to_learn.is_empty() && !self.is_busy() {
            self.learn(now, out);
        }
    }
}
