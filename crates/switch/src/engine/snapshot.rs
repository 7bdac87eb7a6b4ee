//! Reports the state of an engine and of its logical switches.
use super::Engine;
use super::logical::LogicalSwitch;
use super::virtuals::VirtualId;
use crate::drop_reasons;
use crate::snapshot::{InBandSnapshot, PortSnapshot, TableSnapshot, VirtualSwitchSnapshot, WorkerSnapshot};
use std::collections::HashMap;
use weir_datapath::{ChannelId, Drops};
use weir_device::TimingSnapshot;
use weir_openflow::model::role::Role;

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
    pub(crate) in_band: Option<InBandSnapshot>,
    /// Roles of the channels that are up.
    pub(crate) roles: HashMap<ChannelId, Role>,
}

impl Engine {
    /// Returns the state of the physical switch, or of the virtual switch `of`. Returns `None` if that does not exist.
    pub(crate) fn snapshot(&mut self, of: Option<VirtualId>) -> Option<EngineSnapshot> {
        let drops = self.drops(of)?;
        let (virtual_switches, ports) = match of {
            None => (self.virtual_snapshots(), self.io.ports.iter().map(|slot| slot.snapshot()).collect()),
            Some(id) => (Vec::new(), self.virtuals.as_ref()?.port_snapshots(id, &self.io.ports)?),
        };
        let now = self.io.now();
        let mut served = self.served(of)?;
        let tables = served.tables();
        let logical = served.logical;
        let channels: Vec<ChannelId> = logical.channels.channels().collect();
        let datapath = logical.datapath.get();
        let roles = channels.into_iter().filter_map(|id| Some((id, datapath.role(id)?))).collect();
        Some(EngineSnapshot {
            in_band: datapath.in_band(now).map(InBandSnapshot::from),
            timing: logical.timed.as_mut().map(|timed| timed.snapshot()),
            uptime_s: self.io.now().as_secs_f64(),
            ports,
            virtual_switches,
            tables,
            workers: self.workers.snapshot(),
            drops,
            perf_watchers: self.perf.watchers(),
            roles,
        })
    }

    /// Returns the packets dropped by the physical switch or by the virtual switch `of`, by reason. Reasons without
    /// packets are left out. Returns `None` if the virtual switch does not exist.
    pub(crate) fn drops(&mut self, of: Option<VirtualId>) -> Option<Vec<(String, u64)>> {
        let logical = self.served(of)?.logical;
        let mut drops = logical.datapath.get().drops();
        let timed: Vec<_> = logical.timed.iter().flat_map(|timed| timed.drops()).collect();
        if of.is_none() {
            for (reason, count) in self.workers.packets_dropped() {
                drops.count(reason, count);
            }
        }
        let counted = named(&drops).into_iter();
        let (unserved, behind) = self
            .virtuals
            .as_ref()
            .map_or((0, 0), |virtuals| (virtuals.unserved(of), if of.is_none() { virtuals.own_dropped() } else { 0 }));
        let gone = (drop_reasons::PORT_GONE, self.io.removed.count());
        let virtuals = drop_reasons::VIRTUALS.into_iter().zip([behind, unserved]);
        let rest = self.workers.drops().into_iter().chain([gone]).chain(timed).chain(virtuals);
        let all = counted.chain(rest.map(|(reason, count)| (reason.to_owned(), count)));
        Some(all.filter(|(_, count)| *count > 0).collect())
    }
}

impl LogicalSwitch {
    /// Returns the packets dropped by the datapath, by reason. Reasons without packets are left out.
    pub(super) fn drops(&mut self) -> Vec<(String, u64)> {
        named(&self.datapath.get().drops()).into_iter().filter(|(_, count)| *count > 0).collect()
    }
}

/// Returns counted drops with the names of their reasons.
fn named(drops: &Drops) -> Vec<(String, u64)> {
    let serde_json::Value::Object(drops) = serde_json::json!(drops) else { return Vec::new() };
    drops.into_iter().filter_map(|(reason, count)| Some((reason, count.as_u64()?))).collect()
}
