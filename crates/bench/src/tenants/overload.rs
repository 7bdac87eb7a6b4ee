//! Measures the effect of a hostile tenant on the others, and the cost of a packet.
use super::report::{EngineTimeShares, OverloadResult, VirtualSwitchCost};
use super::tenant_ports::SMALLEST;
use super::testbed::{TenantTestbed, TenantTraffic, pause};
use crate::PATIENCE;
use crate::entries::{self, EntryMatchKind as EntryKind};
use anyhow::{Context as _, anyhow};
use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use weir_client::{OpenFlowClient, SwitchAddress};
use weir_openflow::model::{Action, FlowMod, Instruction, Match, PortNo};
use weir_openflow::{Body, Version};
use weir_packet::Field;
use weir_packet::field::eth_type;
use weir_port::null::{FlowHeaderKind, FlowSequence, GeneratedFlows, NullPort};
use weir_switch::{ListenTarget, PortConfig, SoftwareSwitch, SoftwareSwitchConfig, Spin};
use weir_units::{Bps, SystemClock};

/// Behaviour of the hostile tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum OverloadKind {
    /// Harmless: offers half of its promised rate.
    Nothing,
    /// Offers ten times its promised rate, in the smallest frames.
    Flood,
    /// Offers ten times its promised rate in the smallest frames, each of a different flow, over entries with many
    /// masks.
    TupleSpace,
    /// Sends flow-mods without pause.
    FlowMods,
    /// Floods with frames that all go to its controller.
    PacketIns,
}

impl OverloadKind {
    pub(super) const ALL: [OverloadKind; 5] = [
        OverloadKind::Nothing,
        OverloadKind::Flood,
        OverloadKind::TupleSpace,
        OverloadKind::FlowMods,
        OverloadKind::PacketIns,
    ];
}

/// Number of tenants; the last one is hostile.
const TENANTS: usize = 4;
/// Number of flow-mods that are sent repeatedly.
const FLOW_MODS: u32 = 20_000;

/// Measures the forwarded share of the others' traffic; they offer less than their promised rate.
pub(super) fn measure(kind: OverloadKind, rate: Bps, time: Duration) -> anyhow::Result<OverloadResult> {
    let victim = TenantTraffic { offers: 0.9, ..TenantTraffic::PLAIN };
    let hostile = match kind {
        OverloadKind::Nothing | OverloadKind::FlowMods => TenantTraffic { offers: 0.5, ..TenantTraffic::PLAIN },
        OverloadKind::Flood | OverloadKind::PacketIns => {
            TenantTraffic { offers: 10.0, size: SMALLEST, ..TenantTraffic::PLAIN }
        }
        OverloadKind::TupleSpace => {
            TenantTraffic { offers: 10.0, size: SMALLEST, is_varied: true, ..TenantTraffic::PLAIN }
        }
    };
    let mut tenants = vec![victim; TENANTS - 1];
    tenants.push(hostile);
    let bed = TenantTestbed::start(rate, "drr", &tenants)?;
    let (name, port) = (format!("t{}", TENANTS - 1), u32::try_from(TENANTS)?);
    match kind {
        OverloadKind::TupleSpace => masks(&bed, &name)?,
        OverloadKind::PacketIns => {
            let actions = vec![Instruction::ApplyActions(vec![Action::to_controller()])];
            let all = FlowMod::add(20, Match::any().with(Field::InPort, port), actions);
            bed.switch.virtual_flow_mod(&name, all).map_err(|error| anyhow!("{error}"))?;
        }
        _ => {}
    }
    let (is_over, messages) = (AtomicBool::new(false), AtomicU64::new(0));
    let sent = std::thread::scope(|scope| {
        let storm = scope.spawn(|| control(kind, &bed.listeners[TENANTS - 1], &is_over, &messages));
        pause(super::WARM_UP);
        let before = messages.load(Relaxed);
        let sent = bed.measure(time);
        let count = messages.load(Relaxed) - before;
        is_over.store(true, Relaxed);
        storm.join().map_err(|_| anyhow!("the storm failed"))??;
        anyhow::Ok((sent, count))
    })?;
    let offered = bed.promised[..TENANTS - 1].iter().map(|bps| bps.0 as f64 / 8.0 * victim.offers * time.as_secs_f64());
    let got: u64 = sent.0[..TENANTS - 1].iter().sum();
    let storm = OverloadResult::of(kind, got as f64 / offered.sum::<f64>(), sent.1 as f64 / time.as_secs_f64());
    bed.switch.stop();
    Ok(storm)
}

/// Line rate so high that the engine, not the line, limits the throughput.
const UNCONGESTED_RATE: Bps = Bps(10_000_000_000);

/// Measures the forwarded share of a tenant that offers 10 % of its promised rate (about a million packets per
/// second): on an engine with little other load, and on one overloaded by another tenant, each of whose packets is a
/// new flow over entries with many masks.
pub(super) fn engine_time_shares(time: Duration) -> anyhow::Result<Vec<EngineTimeShares>> {
    [false, true].into_iter().map(|is_hostile| measure_engine_shares(is_hostile, time)).collect()
}

fn measure_engine_shares(is_hostile: bool, time: Duration) -> anyhow::Result<EngineTimeShares> {
    let plain = TenantTraffic { offers: 0.1, size: SMALLEST, ..TenantTraffic::PLAIN };
    let other = if is_hostile { TenantTraffic { offers: 1.0, is_varied: true, ..plain } } else { plain };
    let bed = TenantTestbed::start(UNCONGESTED_RATE, "drr", &[plain, other])?;
    if is_hostile {
        masks(&bed, "t1")?;
    }
    pause(super::WARM_UP);
    let sent = bed.measure(time);
    let shown = bed.switch.snapshot().map_err(|error| anyhow!("{error}"))?.virtual_switches;
    let had = |at: usize| shown.get(at).map(|cut| cut.time).unwrap_or_default();
    let offered = bed.promised[0].0 as f64 / 8.0 * plain.offers * time.as_secs_f64();
    bed.switch.stop();
    Ok(EngineTimeShares {
        is_hostile,
        got: sent[0] as f64 / offered,
        other_per_second: sent[1] as f64 / SMALLEST as f64 / time.as_secs_f64(),
        parts: [had(0).part, had(1).part],
        dropped: had(1).dropped,
    })
}

/// Adds entries with many masks that no packet matches, with a higher priority than the entry that forwards.
fn masks(bed: &TenantTestbed, name: &str) -> anyhow::Result<()> {
    for (source, destination) in (1..=32).flat_map(|source| (1..=16).map(move |destination| (source, destination * 2)))
    {
        let prefix = |bits: u32| u32::MAX << (32 - bits);
        let matching = Match::any()
            .with(Field::EthType, eth_type::IPV4)
            .with_masked(Field::Ipv4Src, 0xe000_0000 & prefix(source), prefix(source))
            .with_masked(Field::Ipv4Dst, 0xe000_0001 & prefix(destination), prefix(destination))
            .with(Field::IpProto, 17_u8)
            .with(Field::UdpDst, 7_u16);
        let flow = FlowMod::add(u16::try_from(100 + source)?, matching, Vec::new());
        bed.switch.virtual_flow_mod(name, flow).map_err(|error| anyhow!("{error}"))?;
    }
    Ok(())
}

/// Runs the hostile tenant's controller until `is_over`; counts its messages in `messages`.
fn control(kind: OverloadKind, at: &ListenTarget, is_over: &AtomicBool, messages: &AtomicU64) -> anyhow::Result<()> {
    let ListenTarget::Tcp(address) = at else { return Ok(()) };
    match kind {
        OverloadKind::FlowMods => {
            let target = SwitchAddress::Tcp(address.to_string());
            let mut link = OpenFlowClient::open(&target, &[Version::V13], PATIENCE, SystemClock::start())?;
            let flows = (0..FLOW_MODS).map(|number| EntryKind::Udp.add(number, 0));
            let bytes = entries::encode(flows, Version::V13, None)?;
            let each = bytes.len() / FLOW_MODS as usize;
            // A barrier after each thousand flow-mods, so that no more are sent than the switch can process.
            for piece in bytes.chunks(each * 1000).cycle() {
                link.stream_and_ask(piece, Body::BarrierRequest)?;
                messages.fetch_add((piece.len() / each) as u64, Relaxed);
                if is_over.load(Relaxed) {
                    return Ok(());
                }
            }
            Ok(())
        }
        OverloadKind::PacketIns => read_all(address, is_over, messages),
        _ => Ok(()),
    }
}

/// Completes the handshake as a controller, then reads everything that the switch sends.
fn read_all(address: &std::net::SocketAddr, is_over: &AtomicBool, messages: &AtomicU64) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut stream = std::net::TcpStream::connect(address).context("connecting to the hostile tenant's switch")?;
    stream.set_read_timeout(Some(Duration::from_millis(50)))?;
    // A hello of OpenFlow 1.3 without elements, and a set-config for unbuffered packets. After it the switch sends
    // packet-ins.
    stream.write_all(&[4, 0, 0, 8, 0, 0, 0, 1])?;
    stream.write_all(&[4, 9, 0, 12, 0, 0, 0, 2, 0, 0, 0xff, 0xff])?;
    let mut piece = vec![0; 1 << 16];
    while !is_over.load(Relaxed) {
        if let Ok(bytes) = stream.read(&mut piece) {
            // Approximate length of a packet-in with a smallest frame.
            messages.fetch_add((bytes / 110) as u64, Relaxed);
        }
    }
    Ok(())
}

/// Measures the nanoseconds that a packet costs on the engine's thread, received on one of `count` ports, with
/// `is_cut` through a virtual switch for each port, otherwise without virtual switches.
pub(super) fn cost(count: u16, is_cut: bool, time: Duration) -> anyhow::Result<f64> {
    let clock = SystemClock::start();
    let out = u32::from(count) + 1;
    let mut ports: Vec<PortConfig> = Vec::new();
    for port in 1..out {
        let flows = GeneratedFlows::new(FlowHeaderKind::Udp, 1, None, SMALLEST).map_err(|error| anyhow!("{error}"))?;
        let source = NullPort::generating(&format!("n{port}"), flows, FlowSequence::cycle(1));
        ports.push(PortConfig::new(PortNo(port), Box::new(source)));
    }
    let nowhere =
        NullPort::open("out", &weir_port::spec::PortOptions::none("null:out")).map_err(|error| anyhow!("{error}"))?;
    ports.push(PortConfig::new(PortNo(out), Box::new(nowhere)));
    let text = virtual_switches_toml(if is_cut { count } else { 0 }, out)?;
    let known = (1..=out).map(|port| (port, None)).collect();
    let (fabric, virtual_switches) =
        weir_scenario::parse_slicing(&text, "cost", "bench", known).map_err(|error| anyhow!("{error}"))?;
    let names: Vec<String> = virtual_switches.iter().map(|cut| cut.name.clone()).collect();
    let config = SoftwareSwitchConfig {
        ports,
        virtual_switches,
        fabric: Some(fabric),
        spin: Spin::Auto,
        clock,
        ..SoftwareSwitchConfig::default()
    };
    let switch = SoftwareSwitch::start(config).map_err(|error| anyhow!("{error}"))?;
    let actions = || vec![Instruction::ApplyActions(vec![Action::output(PortNo(out))])];
    let flow = || FlowMod::add(10, Match::any(), actions());
    for name in &names {
        switch.virtual_flow_mod(name, flow()).map_err(|error| anyhow!("{error}"))?;
    }
    if names.is_empty() {
        switch.flow_mod(flow()).map_err(|error| anyhow!("{error}"))?;
    }
    pause(super::WARM_UP);
    let cost = VirtualSwitchCost::best_of(time, || Ok((sent(&switch, out)?, engine_time()?)))?;
    switch.stop();
    Ok(cost)
}

fn virtual_switches_toml(count: u16, out: u32) -> anyhow::Result<String> {
    use std::fmt::Write as _;
    // A line that is never busy, so that only the processing is measured.
    let mut text = "[fabric]\nrate = \"1000Gbit/s\"\ncrosspoint = \"1MB\"\n".to_owned();
    for number in 1..=u32::from(count) {
        write!(
            text,
            "[[virtual]]\nname = \"c{number}\"\ndpid = {dpid}\nports = [{{ port = {number}, rate = \"1Gbit/s\" }}, \
             {{ port = {out}, rate = \"1Gbit/s\" }}]\nselect = [{{ port = {number} }}]\npaths = [[{number}, {out}]]\nbuffer = \"96kB\"\n",
            dpid = 0x100 + number
        )?;
    }
    Ok(text)
}

/// Returns the packets sent by the output port.
fn sent(switch: &weir_switch::SwitchHandle, out: u32) -> anyhow::Result<u64> {
    let snapshot = switch.snapshot().map_err(|error| anyhow!("{error}"))?;
    let port = snapshot.ports.iter().find(|port| port.number == PortNo(out)).context("the output is there")?;
    Ok(port.counters.tx_packets)
}

/// Returns the processor time of the engine's thread, which is found by its name.
fn engine_time() -> anyhow::Result<Duration> {
    for task in std::fs::read_dir("/proc/self/task").context("listing this process's threads")? {
        let task = task?.path();
        let name = std::fs::read_to_string(task.join("comm")).unwrap_or_default();
        if name.trim().ends_with("-engine") {
            let used = std::fs::read_to_string(task.join("schedstat")).context("reading a thread's processor time")?;
            let ns = used
                .split_whitespace()
                .next()
                .and_then(|ns| ns.parse().ok())
                .context("reading a thread's processor time")?;
            return Ok(Duration::from_nanos(ns));
        }
    }
    Err(anyhow!("found no engine thread"))
}
