//! Test bed: a switch divided into virtual switches, each with a load on its own port, all sharing one output.
use super::tenant_ports::{LARGEST, TenantSinkCounters, TenantSinkPort, TenantSourcePort};
use anyhow::anyhow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use weir_openflow::model::{Action, FlowMod, Instruction, Match, PortNo};
use weir_packet::Field;
use weir_scenario::FabricSpec;
use weir_switch::{ListenTarget, PortConfig, SoftwareSwitch, SoftwareSwitchConfig, Spin, SwitchHandle};
use weir_units::{Bps, SystemClock};

/// Bytes of each virtual switch's buffer at the output. It must exceed what the line sends while the engine is
/// stopped, because otherwise the queues of the virtual switches with the largest shares run empty first.
const BUFFER: u64 = 512_000;
/// Promised share of the output; the rest is a margin for rounding in the admission check.
const PROMISED: f64 = 0.98;

/// Traffic of one tenant.
#[derive(Debug, Clone, Copy)]
pub(super) struct TenantTraffic {
    /// Quantum in packets of the largest size; shares are proportional to weights.
    pub(super) weight: u32,
    /// Frame size in bytes.
    pub(super) size: usize,
    /// Offered rate as a multiple of the promised rate.
    pub(super) offers: f64,
    /// True if every frame belongs to a different flow.
    pub(super) is_varied: bool,
    /// Priority; 0 is first under strict priority.
    pub(super) priority: u8,
}

impl TenantTraffic {
    pub(super) const PLAIN: TenantTraffic =
        TenantTraffic { weight: 1, size: LARGEST, offers: 2.0, is_varied: false, priority: 0 };
}

pub(super) struct TenantTestbed {
    pub(super) switch: SwitchHandle,
    /// Listening address of each virtual switch.
    pub(super) listeners: Vec<ListenTarget>,
    seen: Arc<Mutex<TenantSinkCounters>>,
    /// Promised rate of each virtual switch.
    pub(super) promised: Vec<Bps>,
}

impl TenantTestbed {
    /// Starts the switch with the scheduling discipline `discipline`, named as in files.
    pub(super) fn start(rate: Bps, discipline: &str, tenants: &[TenantTraffic]) -> anyhow::Result<TenantTestbed> {
        let clock = SystemClock::start();
        let (sink, seen) = TenantSinkPort::new(tenants.len(), clock);
        let out = u32::try_from(tenants.len())? + 1;
        let weights: u32 = tenants.iter().map(|tenant| tenant.weight).sum();
        let share = |tenant: &TenantTraffic| rate.0 as f64 * PROMISED * f64::from(tenant.weight) / f64::from(weights);
        let mut ports = Vec::new();
        let mut text = format!("[fabric]\nrate = \"{rate}\"\ncrosspoint = \"1MB\"\ndiscipline = \"{discipline}\"\n");
        let mut promised = Vec::new();
        for (number, tenant) in (0u16..).zip(tenants) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate below the line's")]
            let (its, offered) = (Bps(share(tenant) as u64), Bps((share(tenant) * tenant.offers) as u64));
            let load = TenantSourcePort::new(number, tenant.size, offered, tenant.is_varied);
            let port = u32::from(number) + 1;
            ports.push(PortConfig::new(PortNo(port), Box::new(load)));
            promised.push(its);
            let quantum = u64::from(tenant.weight) * LARGEST as u64;
            write!(
                text,
                "[[virtual]]\nname = \"t{number}\"\ndpid = {dpid}\nports = [{{ port = {port}, rate = \"{bps}bit/s\" }}, \
                 {{ port = {out}, rate = \"{bps}bit/s\", quantum = \"{quantum}B\" }}]\nselect = [{{ port = {port} }}]\n\
                 paths = [[{port}, {out}]]\nbuffer = \"{BUFFER}B\"\npriority = {priority}\nlisten = \"ptcp:0\"\n\
                 max_packet_ins = 1000000\n",
                dpid = 0x100 + u32::from(number),
                bps = its.0,
                priority = tenant.priority,
            )?;
        }
        ports.push(PortConfig::new(PortNo(out), Box::new(sink)));
        let known: BTreeMap<u32, Option<Bps>> = (1..=out).map(|port| (port, None)).collect();
        let (fabric, cuts) =
            FabricSpec::parse_cut(&text, "tenants", "bench", known).map_err(|error| anyhow!("{error}"))?;
        let config = SoftwareSwitchConfig {
            ports,
            clock,
            spin: Spin::Auto,
            fabric: Some(fabric),
            ..SoftwareSwitchConfig::default()
        };
        let switch = SoftwareSwitch::start(config).map_err(|error| anyhow!("{error}"))?;
        let mut listeners = Vec::new();
        for (number, cut) in (1u32..).zip(cuts) {
            let name = cut.name.clone();
            listeners.extend(switch.add_virtual(cut).map_err(|error| anyhow!("{error}"))?);
            let actions = vec![Instruction::ApplyActions(vec![Action::output(PortNo(out))])];
            let flow = FlowMod::add(10, Match::any().with(Field::InPort, number), actions);
            switch.virtual_flow_mod(&name, flow).map_err(|error| anyhow!("{error}"))?;
        }
        Ok(TenantTestbed { switch, listeners, seen, promised })
    }

    pub(super) fn sink_counters(&self) -> MutexGuard<'_, TenantSinkCounters> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the delays of tenant `tenant`'s packets from now on.
    pub(super) fn watch(&self, tenant: u16) {
        let mut seen = self.sink_counters();
        seen.watched = tenant;
        seen.delays.clear();
    }

    /// Returns the bytes that leave for each tenant within `time`.
    pub(super) fn measure(&self, time: Duration) -> Vec<u64> {
        let before = self.sink_counters().bytes.clone();
        pause(time);
        let after = self.sink_counters().bytes.clone();
        after.iter().zip(before).map(|(after, before)| after - before).collect()
    }
}

/// Waits; the benchmark has nothing to do meanwhile.
pub(super) fn pause(time: Duration) {
    std::thread::park_timeout(time);
}
