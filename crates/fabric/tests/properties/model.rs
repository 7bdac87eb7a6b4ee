//! Model of a fabric: runs a fabric and a list of all its queued packets side by side, and compares them.
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use weir_fabric::*;
use weir_units::{Bps, Instant};

const INPUTS: u16 = 3;
const OUTPUTS: u16 = 2;
const RATE: Bps = Bps(1_000_000_000);
const MAX_PACKET: u32 = 1500;
const CROSSPOINT: u64 = 9000;

/// Operation on a fabric; numbers are taken modulo the existing ones.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Op {
    Enqueue { switch: u16, input: u16, output: u16, bytes: u32 },
    Dequeue { output: u16 },
    Advance { ns: u32 },
    Add { config: usize },
    Resize { switch: u16, config: usize },
    Remove { switch: u16 },
}

impl Arbitrary for Op {
    type Parameters = ();
    type Strategy = BoxedStrategy<Op>;

    fn arbitrary_with((): ()) -> BoxedStrategy<Op> {
        let bytes = prop_oneof![60u32..=100, 1350u32..=MAX_PACKET];
        prop_oneof![
            40 => (0..4u16, 0..INPUTS + 1, 0..OUTPUTS, bytes)
                .prop_map(|(switch, input, output, bytes)| Op::Enqueue { switch, input, output, bytes }),
            25 => (0..OUTPUTS).prop_map(|output| Op::Dequeue { output }),
            8 => (0..20_000u32).prop_map(|ns| Op::Advance { ns }),
            2 => (0..4usize).prop_map(|config| Op::Add { config }),
            3 => (0..4u16, 0..4usize).prop_map(|(switch, config)| Op::Resize { switch, config }),
            1 => (0..4u16).prop_map(|switch| Op::Remove { switch }),
        ]
        .boxed()
    }
}

pub(crate) fn fabric_configs() -> impl Strategy<Value = FabricConfig> {
    let sharing = prop_oneof![Just(BufferSharing::Strict), Just(BufferSharing::Flexible)];
    let discipline = prop_oneof![Just(InterDiscipline::Drr), Just(InterDiscipline::StrictPriority)];
    (sharing, vec(discipline, usize::from(OUTPUTS)), any::<u64>()).prop_map(|(sharing, disciplines, seed)| {
        FabricConfig {
            inputs: std::vec![InputConfig { rate: RATE }; usize::from(INPUTS)],
            outputs: disciplines
                .into_iter()
                .map(|discipline| OutputConfig { discipline, ..OutputConfig::new(RATE, CROSSPOINT) })
                .collect(),
            sharing,
            max_packet: MAX_PACKET,
            seed,
        }
    })
}

pub(crate) fn switch_configs() -> impl Strategy<Value = VirtualSwitchConfig> {
    let port = (0..200_000_000u64, option::of(200_000_000..400_000_000u64), 1..4000u32);
    let queue = prop_oneof![
        Just(DropPolicy::TailDrop),
        Just(DropPolicy::DropHead),
        any::<bool>().prop_map(|gentle| DropPolicy::Red(RedConfig { weight: 0.3, gentle, ..RedConfig::default() })),
    ];
    let intra = prop_oneof![
        Just(IntraDiscipline::RoundRobin),
        Just(IntraDiscipline::Drr),
        Just(IntraDiscipline::Fcfs),
        Just(IntraDiscipline::Lqf),
        (0..50_000u64).prop_map(|ns| IntraDiscipline::Merge { patience: Duration::from_nanos(ns) }),
    ];
    let certain = vec((0..INPUTS, 0..OUTPUTS, 1500..3000u64), 0..3);
    let intra = (intra, 1..3000u32);
    (vec(port, usize::from(INPUTS)), queue, intra, 1500..4000u64, certain, any::<bool>(), 0..3u8).prop_map(
        |(ports, queue, (intra, intra_quantum), default, certain, forwards_all, priority)| {
            let port = |(index, (rate, ceiling, quantum)): (u16, (u64, Option<u64>, u32))| VirtualPort {
                physical: PortIndex(index),
                rate_in: Bps(200_000_000),
                rate_out: Bps(if index < OUTPUTS { rate.max(1) } else { 0 }),
                ceiling: ceiling.map(Bps),
                ceiling_burst: 0,
                uncounted: 0,
                quantum,
            };
            let paths = [(0, 0), (1, 0), (2, 1), (0, 1)].map(|(from, to)| (PortIndex(from), PortIndex(to)));
            VirtualSwitchConfig {
                forwarding: if forwards_all { ForwardingMatrix::All } else { ForwardingMatrix::Paths(paths.to_vec()) },
                buffers: CrosspointBuffers {
                    default,
                    per_crosspoint: certain
                        .into_iter()
                        .map(|(from, to, bytes)| (PortIndex(from), PortIndex(to), bytes))
                        .collect(),
                },
                drop_policy: queue,
                intra,
                intra_quantum,
                priority,
                ..VirtualSwitchConfig::new("random", (0..).zip(ports).map(port).collect(), 0)
            }
        },
    )
}

/// Packets in a queue: number and bytes.
type Queued = VecDeque<(u64, u32)>;

pub(crate) struct Model {
    fabric: Fabric<u64>,
    now: Instant,
    next: u64,
    queues: BTreeMap<Crosspoint, Queued>,
    /// Departures of each queue since its switch was added.
    departed: BTreeMap<Crosspoint, PacketByteCount>,
    dropped: Vec<FabricDrop<u64>>,
}

impl Model {
    pub(crate) fn new(config: FabricConfig) -> Model {
        Model {
            fabric: Fabric::new(config).unwrap(),
            now: Instant::ZERO,
            next: 0,
            queues: BTreeMap::new(),
            departed: BTreeMap::new(),
            dropped: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, config: &VirtualSwitchConfig) {
        let allowed = self.fabric.check(self.now, config);
        assert_eq!(self.fabric.add(self.now, config.clone()).err(), allowed.err());
    }

    pub(crate) fn apply(&mut self, op: Op, configs: &[VirtualSwitchConfig]) {
        match op {
            Op::Enqueue { switch, input, output, bytes } => {
                let at = Crosspoint {
                    switch: VirtualSwitchIndex(switch),
                    input: PortIndex(input),
                    output: PortIndex(output),
                };
                self.enqueue(at, bytes);
            }
            Op::Dequeue { output } => _ = self.dequeue(output),
            Op::Advance { ns } => self.now += Duration::from_nanos(ns.into()),
            Op::Add { config } => self.add(&configs[config]),
            Op::Resize { switch, config } => self.resize(VirtualSwitchIndex(switch), &configs[config]),
            Op::Remove { switch } => self.remove(VirtualSwitchIndex(switch)),
        }
        self.check_buffers();
    }

    fn capacity(&self, at: Crosspoint) -> u64 {
        let Some(config) = self.fabric.switch(at.switch) else { return 0 };
        let path = (at.input, at.output);
        if at.input.0 >= INPUTS {
            return 0;
        }
        if matches!(&config.forwarding, ForwardingMatrix::Paths(paths) if !paths.contains(&path)) {
            return 0;
        }
        // If a crosspoint is listed twice, its last entry counts.
        let certain = config.buffers.per_crosspoint.iter().rfind(|certain| (certain.0, certain.1) == path);
        certain.map_or(config.buffers.default, |certain| certain.2)
    }

    fn held(&self, at: Crosspoint) -> u64 {
        self.queues.get(&at).into_iter().flatten().map(|(_, bytes)| u64::from(*bytes)).sum()
    }

    fn enqueue(&mut self, at: Crosspoint, bytes: u32) {
        let number = self.next;
        self.next += 1;
        let packet = FabricPacket { bytes, class: 3, number, item: number };
        if self.fabric.enqueue(self.now, at, packet, &mut self.dropped) {
            self.queues.entry(at).or_default().push_back((number, bytes));
        }
        for dropped in std::mem::take(&mut self.dropped) {
            let loser = dropped.at;
            let (before, its_own) = (self.held(loser), self.capacity(loser));
            let held = before + if dropped.packet.number == number { u64::from(bytes) } else { 0 };
            match dropped.reason {
                FabricDropReason::BufferFull => {
                    assert!(held > its_own, "{dropped:?} fits into {its_own} beside {before}")
                }
                FabricDropReason::Reclaimed => {
                    assert!(held > its_own, "{dropped:?} was guaranteed: {held} of {its_own}")
                }
                FabricDropReason::Head => {
                    let with_it = self.held(at) + if at == loser { u64::from(bytes) } else { 0 };
                    assert!(loser == at && with_it > its_own, "{dropped:?} had room: {with_it} of {its_own}");
                }
                FabricDropReason::NoPath => assert_eq!(its_own, 0, "{dropped:?}"),
                FabricDropReason::Late | FabricDropReason::RedEarly | FabricDropReason::RedForced => {
                    assert_eq!(dropped.packet.number, number)
                }
                FabricDropReason::Resized | FabricDropReason::Removed => panic!("{dropped:?} by an arrival"),
            }
            if dropped.packet.number != number {
                self.forget(&dropped);
            }
        }
    }

    /// Removes a dropped packet from the list.
    fn forget(&mut self, dropped: &FabricDrop<u64>) {
        let queue = self.queues.get_mut(&dropped.at).expect("only what is queued is dropped");
        let place = queue.iter().position(|(number, _)| *number == dropped.packet.item);
        let (_, bytes) = queue.remove(place.expect("only what is queued is dropped")).unwrap();
        assert_eq!(bytes, dropped.packet.bytes);
    }

    /// Dequeues from an output. Returns true if a packet left.
    fn dequeue(&mut self, output: u16) -> bool {
        let output = PortIndex(output);
        let some = self.queues.iter().any(|(at, queue)| at.output == output && !queue.is_empty());
        match self.fabric.dequeue(self.now, output) {
            DequeueResult::Packet(departure) => {
                let at = Crosspoint { switch: departure.switch, input: departure.input, output };
                let oldest = self.queues.get_mut(&at).and_then(VecDeque::pop_front);
                assert_eq!(oldest, Some((departure.item, departure.bytes)), "the oldest of its queue");
                assert!(departure.arrived <= self.now && departure.class == 3);
                let departed = self.departed.entry(at).or_default();
                departed.packets += 1;
                departed.bytes += u64::from(departure.bytes);
                return true;
            }
            DequeueResult::Wait(until) => {
                assert!(some && until > self.now, "waits until {until:?} at {:?}", self.now);
                let holds = |(_, config): (_, &VirtualSwitchConfig)| {
                    matches!(config.intra, IntraDiscipline::Merge { .. })
                        || config.ports.iter().any(|port| port.ceiling.is_some())
                };
                assert!(self.fabric.switches().any(holds), "nothing could hold packets");
            }
            DequeueResult::Empty => assert!(!some, "packets are queued"),
        }
        false
    }

    fn resize(&mut self, switch: VirtualSwitchIndex, config: &VirtualSwitchConfig) {
        let others = self.queues_of_others(switch);
        let before = self.fabric.switch(switch).cloned();
        let done = self.fabric.resize(self.now, switch, config.clone(), &mut self.dropped);
        if done.is_err() {
            assert!(
                self.dropped.is_empty() && self.fabric.switch(switch).cloned() == before,
                "refused, but something changed"
            );
        }
        for dropped in std::mem::take(&mut self.dropped) {
            assert_eq!((dropped.reason, dropped.at.switch), (FabricDropReason::Resized, switch));
            self.forget(&dropped);
        }
        assert_eq!(self.queues_of_others(switch), others);
        let outputs =
            self.fabric.switch(switch).map(|config| config.ports.iter().map(|port| port.rate_out.0 > 0).collect());
        let outputs: Vec<bool> = outputs.unwrap_or_default();
        self.departed.retain(|at, _| at.switch != switch || outputs.get(usize::from(at.output.0)) == Some(&true));
    }

    fn remove(&mut self, switch: VirtualSwitchIndex) {
        let others = self.queues_of_others(switch);
        self.fabric.remove(self.now, switch, &mut self.dropped);
        for dropped in std::mem::take(&mut self.dropped) {
            assert_eq!((dropped.reason, dropped.at.switch), (FabricDropReason::Removed, switch));
            self.forget(&dropped);
        }
        assert!(self.queues.iter().all(|(at, queue)| at.switch != switch || queue.is_empty()), "its packets are gone");
        assert_eq!(self.queues_of_others(switch), others);
        self.departed.retain(|at, _| at.switch != switch);
    }

    fn queues_of_others(&self, switch: VirtualSwitchIndex) -> BTreeMap<Crosspoint, Queued> {
        let others = self.queues.iter().filter(|(at, queue)| at.switch != switch && !queue.is_empty());
        others.map(|(at, queue)| (*at, queue.clone())).collect()
    }

    fn check_buffers(&self) {
        let mut crosspoints: BTreeMap<(PortIndex, PortIndex), u64> = BTreeMap::new();
        for at in self.queues.keys() {
            let held = self.held(*at);
            *crosspoints.entry((at.input, at.output)).or_default() += held;
            if self.fabric.config().sharing == BufferSharing::Strict {
                assert!(held <= self.capacity(*at), "{at:?} holds {held}");
            }
        }
        assert!(crosspoints.values().all(|held| *held <= CROSSPOINT), "{crosspoints:?}");
        let queued: usize = self.queues.values().map(VecDeque::len).sum();
        assert_eq!(self.fabric.queued() as usize, queued);
    }

    /// Serves all packets, advancing time as far as ceilings and merges require.
    pub(crate) fn drain(&mut self) {
        for output in 0..OUTPUTS {
            while self.queues.iter().any(|(at, queue)| at.output.0 == output && !queue.is_empty()) {
                if !self.dequeue(output) {
                    let DequeueResult::Wait(until) = self.fabric.dequeue(self.now, PortIndex(output)) else {
                        panic!("it waited")
                    };
                    self.now = until;
                }
            }
            assert_eq!(self.fabric.dequeue(self.now, PortIndex(output)), DequeueResult::Empty);
        }
        assert_eq!(self.fabric.queued(), 0);
    }

    pub(crate) fn check_counters(&self) {
        for switch in self.fabric.switches().map(|(index, _)| index) {
            for (input, output) in (0..INPUTS).flat_map(|input| (0..OUTPUTS).map(move |output| (input, output))) {
                let at = Crosspoint { switch, input: PortIndex(input), output: PortIndex(output) };
                let Some(counters) = self.fabric.counters(at) else { continue };
                assert_eq!(counters.departed, self.departed.get(&at).copied().unwrap_or_default(), "{at:?}");
                let mut sum = counters.departed;
                sum += counters.dropped();
                sum += counters.queued;
                assert_eq!(counters.arrived, sum, "{at:?}");
            }
        }
    }
}
