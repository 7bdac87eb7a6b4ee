//! Runs a live switch that forwards without pause on one processor while a controller changes its table from another.
use super::poll_gaps::{PAUSED, PollGapHistogram, PollGapPort, PollGapRecorder};
use super::{ResidentMemory, UpdateBenchArgs};
use crate::PATIENCE;
use crate::entries::{self, EntryMatchKind};
use crate::machine;
use anyhow::{Context as _, anyhow, ensure};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use weir_client::{OpenFlowClient, SwitchAddress};
use weir_datapath::DatapathConfig;
use weir_openflow::model::bundle::{BundleCommand, BundleControl, BundleFlags, BundleId};
use weir_openflow::model::multipart::{FlowRequest, MultipartRequest, RequestBody};
use weir_openflow::model::{Action, FlowCommand, FlowMod, Instruction, Match, PortNo, TableId};
use weir_openflow::{Body, Version};
use weir_port::null::{FlowHeaderKind, FlowSequence, GeneratedFlows, NullPort};
use weir_port::{Port, PortSpec};
use weir_switch::threads::ThreadsConfig;
use weir_switch::{ListenTarget, PortConfig, SoftwareSwitch, SoftwareSwitchConfig, SwitchHandle};
use weir_units::{Clock as _, Instant, SystemClock};

/// Phase of the benchmark, by what the controller does to the switch meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum UpdatePhase {
    /// No action: the effect of the machine itself
    None,
    /// Single flow-mods at the requested rate
    Plain,
    /// Bundles of flow-mods at the requested rate
    Bundle,
    /// Atomic bundles of flow-mods at the requested rate
    Atomic,
    /// Flow-mods as fast as the switch processes them
    Flood,
    /// Requests for all entries
    Dump,
    /// Deletes that match no entry, which only a scan of all entries can tell
    Scan,
    /// A delete of all entries
    Delete,
    /// Adds as many entries again, all of which expire within a second
    Expire,
}

impl UpdatePhase {
    pub(super) const ALL: [UpdatePhase; 9] = [
        UpdatePhase::None,
        UpdatePhase::Plain,
        UpdatePhase::Bundle,
        UpdatePhase::Atomic,
        UpdatePhase::Flood,
        UpdatePhase::Dump,
        UpdatePhase::Scan,
        UpdatePhase::Delete,
        UpdatePhase::Expire,
    ];

    /// Returns the number of the set of gaps that is recorded in this phase ([`PollGapRecorder::measure`]).
    fn set(self) -> usize {
        self as usize + 1
    }
}

/// Results of the benchmark for one phase: forwarding rate, updates, and gaps in which the engine received no frames.
#[derive(Debug, Serialize)]
pub(super) struct UpdatePhaseFigures {
    /// Number of entries in the table at the start.
    pub(super) entries: u32,
    /// Phase that was measured.
    pub(super) phase: UpdatePhase,
    /// Duration of the phase, in seconds.
    pub(super) seconds: f64,
    /// Millions of packets forwarded per second of forwarding (`seconds` without those of [`SpinBaseline`]).
    pub(super) mpps: f64,
    /// Number of flow-mods, or of entries reported, deleted or expired.
    pub(super) updates: u64,
    /// Number of `updates` per second of the phase.
    pub(super) updates_per_second: f64,
    /// Distribution of the gaps.
    pub(super) gap_us: PollGapQuantiles,
    /// Number of gaps beyond 100 microseconds.
    pub(super) over: u64,
    /// Number of gaps beyond 100 microseconds after subtraction of the time that other programs had the processor.
    pub(super) own_over: u64,
    /// Number of the gaps in `own_over` during which page faults occurred.
    pub(super) own_over_with_faults: u64,
    /// Control measurement of the same thread in the same phase.
    pub(super) control: SpinBaseline,
    /// Number of gaps in `own_over` per second of forwarding, minus the control measurement's rate.
    pub(super) own_over_per_second: f64,
}

/// Control measurement: effect of the machine alone. From time to time the engine's thread spins for 35 microseconds; a
/// spin that takes longer was interrupted by the machine.
#[derive(Debug, Serialize)]
pub(super) struct SpinBaseline {
    /// Total duration of the spins, in seconds.
    pub(super) seconds: f64,
    /// Number of spins of more than 100 microseconds.
    pub(super) over: u64,
    /// Number of spins of more than 100 microseconds after subtraction of the time that other programs had the
    /// processor.
    pub(super) own_over: u64,
    /// Number of the spins in `own_over` per second of spinning.
    pub(super) own_over_per_second: f64,
}

impl SpinBaseline {
    fn of(gaps: &PollGapHistogram) -> SpinBaseline {
        let (span, over, own_over) = gaps.spun();
        let seconds = span.as_secs_f64();
        let own_over_per_second = if seconds > 0.0 { own_over as f64 / seconds } else { 0.0 };
        SpinBaseline { seconds, over, own_over, own_over_per_second }
    }
}

/// Quantiles of the gaps in microseconds. A gap is the time between two requests of the engine for a port's frames.
#[derive(Debug, Serialize)]
pub(super) struct PollGapQuantiles {
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) p999: f64,
    pub(super) longest: f64,
    /// Longest gap without the time that other programs had the processor.
    pub(super) own_longest: f64,
}

impl PollGapQuantiles {
    fn of(gaps: &PollGapHistogram) -> PollGapQuantiles {
        let us = |ns: u64| ns as f64 / 1e3;
        PollGapQuantiles {
            p50: us(gaps.quantile_ns(0.5)),
            p99: us(gaps.quantile_ns(0.99)),
            p999: us(gaps.quantile_ns(0.999)),
            longest: us(gaps.longest_ns()),
            own_longest: us(gaps.own_longest_ns()),
        }
    }
}

const VERSION: Version = Version::V14;
const BUNDLE: BundleId = BundleId(1);
const IN: PortNo = PortNo(1);
const OUT: PortNo = PortNo(2);
/// Number of flows in the forwarded traffic. The first entries match them, one each.
const FLOWS: u32 = 1000;
/// Bytes per frame.
const SIZE: usize = 60;
/// Flow-mods per round of [`UpdatePhase::Plain`] and [`UpdatePhase::Flood`], half of them deletes.
const ROUND: u32 = 10_000;
/// Interval at which the controller checks its clock when it keeps a rate.
const PACING_INTERVAL: Duration = Duration::from_millis(1);

/// A running switch with `entries` entries, and the connection by which the benchmark controls it.
pub(super) struct UpdateTestbed<'a> {
    args: &'a UpdateBenchArgs,
    entries: u32,
    seen: Arc<PollGapRecorder>,
    link: OpenFlowClient,
    clock: SystemClock,
    // The switch stops when dropped, which must happen after the link.
    _switch: SwitchHandle,
}

impl UpdateTestbed<'_> {
    /// Starts a switch without entries.
    ///
    /// # Errors
    /// A thread cannot be started, or there is no address to listen on.
    pub(super) fn start(args: &UpdateBenchArgs, entries: u32) -> anyhow::Result<UpdateTestbed<'_>> {
        let seen = PollGapRecorder::new(UpdatePhase::ALL.len());
        let flows =
            GeneratedFlows::new(FlowHeaderKind::Udp, FLOWS, None, SIZE).map_err(|problem| anyhow!("{problem}"))?;
        let source =
            PollGapPort::new(NullPort::generating("source", flows, FlowSequence::cycle(FLOWS)), Arc::clone(&seen));
        let spec: PortSpec = "null:sink".parse()?;
        let sink: Box<dyn Port> = weir_port::open(&spec)?;
        let core = args.core.map(|core| core.to_string());
        let cpus = core.map(|core| core.parse()).transpose().map_err(|problem| anyhow!("--core: {problem}"))?;
        let config = SoftwareSwitchConfig {
            datapath: DatapathConfig { max_entries: u32::MAX, ..DatapathConfig::default() },
            threads: ThreadsConfig { cpus: cpus.unwrap_or_default(), ..ThreadsConfig::default() },
            ports: vec![PortConfig::new(IN, Box::new(source)), PortConfig::new(OUT, sink)],
            listeners: vec!["ptcp:0:127.0.0.1".parse().map_err(|problem| anyhow!("{problem}"))?],
            ..SoftwareSwitchConfig::default()
        };
        let switch = SoftwareSwitch::start(config)?;
        let Some(ListenTarget::Tcp(address)) = switch.listeners().first() else {
            anyhow::bail!("the switch does not listen");
        };
        let clock = SystemClock::start();
        let link = OpenFlowClient::open(&SwitchAddress::Tcp(address.to_string()), &[VERSION], PATIENCE, clock)?;
        Ok(UpdateTestbed { args, entries, seen, link, clock, _switch: switch })
    }

    /// Adds all entries. Returns the time taken. `timeout` returns the hard timeout in seconds of the entry with a
    /// number, 0 for none.
    ///
    /// # Errors
    /// The switch rejects an entry.
    pub(super) fn load(&mut self, timeout: impl Fn(u32) -> u16) -> anyhow::Result<Duration> {
        let began = self.clock.now();
        for first in (0..self.entries).step_by(ROUND as usize) {
            let numbers = first..self.entries.min(first + ROUND);
            let bytes =
                entries::encode(numbers.map(|number| EntryMatchKind::Udp.add(number, timeout(number))), VERSION, None)?;
            self.link.stream_and_ask(&bytes, Body::BarrierRequest)?;
        }
        // Packets that match none of the entries are forwarded, too.
        let output = vec![Instruction::ApplyActions(vec![Action::output(OUT)])];
        self.link.tell(Body::FlowMod(FlowMod::add(0, Match::any(), output)))?;
        self.link.ask(Body::BarrierRequest)?;
        Ok(self.clock.now().since(began))
    }

    /// Adds the entries, runs the requested phases and passes the results of each to `told`. Returns the memory used
    /// before, between and after the phases. The entries are deleted in any case, to measure the memory without them.
    ///
    /// # Errors
    /// The switch rejects a message.
    pub(super) fn run(
        &mut self,
        told: &mut dyn FnMut(UpdatePhaseFigures) -> anyhow::Result<()>,
    ) -> anyhow::Result<ResidentMemory> {
        let before = machine::resident_bytes();
        let took = self.load(|_| 0)?;
        let loaded = machine::resident_bytes();
        let phases = UpdatePhase::ALL
            .into_iter()
            .filter(|phase| self.args.phases.is_empty() || self.args.phases.contains(phase));
        let (early, late): (Vec<UpdatePhase>, Vec<UpdatePhase>) =
            phases.partition(|phase| (*phase as usize) < UpdatePhase::Delete as usize);
        for phase in early {
            let figures = self.measure(phase, took)?;
            told(figures)?;
        }
        let deletes = self.measure(UpdatePhase::Delete, took)?;
        let deleted = machine::resident_bytes();
        if late.contains(&UpdatePhase::Delete) {
            told(deletes)?;
        }
        if late.contains(&UpdatePhase::Expire) {
            let figures = self.measure(UpdatePhase::Expire, took)?;
            told(figures)?;
        }
        let ended = machine::resident_bytes();
        Ok(ResidentMemory { entries: self.entries, before, loaded, deleted, ended })
    }

    fn measure(&mut self, phase: UpdatePhase, load: Duration) -> anyhow::Result<UpdatePhaseFigures> {
        let until = if phase == UpdatePhase::Expire { Some(self.load_with_timeouts(load)?) } else { None };
        self.seen.measure(phase.set());
        let began = self.clock.now();
        let updates = match phase {
            UpdatePhase::None => self.idle(),
            UpdatePhase::Plain => self.plain(),
            UpdatePhase::Bundle => self.bundles(BundleFlags::ORDERED, self.args.bundle),
            UpdatePhase::Atomic => {
                self.bundles(BundleFlags(BundleFlags::ORDERED.0 | BundleFlags::ATOMIC.0), self.args.atomic)
            }
            UpdatePhase::Flood => self.flood(),
            UpdatePhase::Dump => self.dump(),
            UpdatePhase::Scan => self.scan(),
            UpdatePhase::Delete => self.delete(),
            UpdatePhase::Expire => Ok(self.expire(until.unwrap_or(began))),
        };
        let seconds = self.clock.now().since(began).as_secs_f64();
        self.seen.measure(PAUSED);
        let updates = updates?;
        let gaps = self.seen.gaps(phase.set());
        let ((over, own_over), control) = (gaps.over(), SpinBaseline::of(gaps));
        let forwarding = seconds - control.seconds;
        Ok(UpdatePhaseFigures {
            entries: self.entries,
            phase,
            seconds,
            mpps: gaps.packets() as f64 / forwarding / 1e6,
            updates,
            updates_per_second: updates as f64 / seconds,
            gap_us: PollGapQuantiles::of(gaps),
            over,
            own_over,
            own_over_with_faults: gaps.faulty(),
            own_over_per_second: own_over as f64 / forwarding - control.own_over_per_second,
            control,
        })
    }

    fn is_over(&self, began: Instant) -> bool {
        self.clock.now().since(began) >= self.args.time.0
    }

    fn idle(&self) -> anyhow::Result<u64> {
        self.wait_until(self.clock.now() + self.args.time.0);
        Ok(0)
    }

    /// Waits until a time.
    fn wait_until(&self, until: Instant) {
        while self.clock.now() < until {
            std::thread::park_timeout(until.since(self.clock.now()));
        }
    }

    /// Returns the encoded messages that add `each` further entries, and those that delete them again.
    fn round(&self, each: u32, bundle: Option<(BundleId, BundleFlags)>) -> anyhow::Result<[Vec<u8>; 2]> {
        let numbers = self.entries..self.entries + each;
        let adds = entries::encode(numbers.clone().map(|number| EntryMatchKind::Udp.add(number, 0)), VERSION, bundle)?;
        let deletes = entries::encode(numbers.map(|number| EntryMatchKind::Udp.delete(number)), VERSION, bundle)?;
        Ok([adds, deletes])
    }

    /// Returns the number of flow-mods to be sent by now, by the requested rate.
    fn due(&self, began: Instant) -> u64 {
        let due = self.clock.now().since(began).as_nanos() * u128::from(self.args.rate) / 1_000_000_000;
        u64::try_from(due).unwrap_or(u64::MAX)
    }

    fn plain(&mut self) -> anyhow::Result<u64> {
        let bytes = self.round(ROUND / 2, None)?.concat();
        let each = bytes.len() / ROUND as usize;
        let (began, mut sent) = (self.clock.now(), 0_u64);
        while !self.is_over(began) {
            let due = self.due(began);
            while sent < due {
                let from = sent % u64::from(ROUND);
                let n = (due - sent).min(u64::from(ROUND) - from);
                let at = |number: u64| usize::try_from(number).unwrap_or(0) * each;
                self.link.write(&bytes[at(from)..at(from + n)])?;
                sent += n;
            }
            std::thread::park_timeout(PACING_INTERVAL);
        }
        self.link.ask(Body::BarrierRequest)?;
        Ok(sent)
    }

    fn bundles(&mut self, flags: BundleFlags, each: u32) -> anyhow::Result<u64> {
        let halves = self.round(each, Some((BUNDLE, flags)))?;
        let control =
            |command| Body::BundleControl(BundleControl { bundle: BUNDLE, command, flags, properties: Vec::new() });
        let (began, mut sent) = (self.clock.now(), 0);
        // Only whole rounds, so that everything added is deleted again.
        while !self.is_over(began) {
            for bytes in &halves {
                self.link.ask(control(BundleCommand::OpenRequest))?;
                self.link.stream_and_ask(bytes, control(BundleCommand::CommitRequest))?;
                sent += u64::from(each);
                while self.due(began) < sent {
                    std::thread::park_timeout(PACING_INTERVAL);
                }
            }
        }
        Ok(sent)
    }

    fn flood(&mut self) -> anyhow::Result<u64> {
        let bytes = self.round(ROUND / 2, None)?.concat();
        let (began, mut sent) = (self.clock.now(), 0);
        while !self.is_over(began) {
            self.link.stream_and_ask(&bytes, Body::BarrierRequest)?;
            sent += u64::from(ROUND);
        }
        Ok(sent)
    }

    fn dump(&mut self) -> anyhow::Result<u64> {
        let (began, mut found) = (self.clock.now(), 0);
        loop {
            let body = RequestBody::Flow(FlowRequest::all());
            let entries = self.link.ask_flows(MultipartRequest { more: false, body })?;
            ensure!(entries >= u64::from(self.entries), "the switch told of {entries} entries of {}", self.entries);
            found += entries;
            if self.is_over(began) {
                return Ok(found);
            }
        }
    }

    fn scan(&mut self) -> anyhow::Result<u64> {
        let nobody = FlowMod { table: TableId::ALL, cookie: 1, cookie_mask: u64::MAX, ..FlowMod::delete_all() };
        let (began, mut sent) = (self.clock.now(), 0);
        while !self.is_over(began) {
            self.link.tell(Body::FlowMod(nobody.clone()))?;
            self.link.ask(Body::BarrierRequest)?;
            sent += 1;
        }
        Ok(sent)
    }

    fn delete(&mut self) -> anyhow::Result<u64> {
        let entries = Match::any().with(weir_packet::Field::EthType, weir_packet::field::eth_type::IPV4);
        let delete = FlowMod { command: FlowCommand::Delete, matching: entries, ..FlowMod::delete_all() };
        self.link.tell(Body::FlowMod(delete))?;
        self.link.ask(Body::BarrierRequest)?;
        Ok(u64::from(self.entries))
    }

    /// Adds the entries with such hard timeouts that all expire within about a second; adding them took `before` the
    /// first time. Returns the latest time at which the last entry expires.
    fn load_with_timeouts(&mut self, before: Duration) -> anyhow::Result<Instant> {
        // More than twice the time of the first loading, so that the first entries still exist when the last one is
        // added.
        let longest = 2 * before.as_secs() + 3;
        let share = |number: u32| before.as_secs_f64() * f64::from(number) / f64::from(self.entries.max(1));
        let seconds: Vec<u16> = (0..self.entries)
            .map(|number| u16::try_from(longest.saturating_sub(Duration::from_secs_f64(share(number)).as_secs())))
            .collect::<Result<_, _>>()
            .context("loading the entries took too long")?;
        let began = self.clock.now();
        self.load(|number| seconds.get(number as usize).copied().unwrap_or(1))?;
        Ok(began + Duration::from_secs(longest + 1))
    }

    /// Waits until the last entry has expired and was removed.
    fn expire(&self, until: Instant) -> u64 {
        self.wait_until(until + self.args.time.0 + Duration::from_micros(2 * u64::from(self.entries)));
        u64::from(self.entries)
    }
}
