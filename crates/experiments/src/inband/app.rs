//! Application of the controller: it sets up the way of a flow through the chain, switch by switch or at all switches
//! at once, and asks switches again and again whether they answer.
use crate::live::sent_on;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use weir_controller::{ConnectionId, ControllerApp, ControllerOutbox};
use weir_openflow::model::{Action, FeaturesReply, FlowMod, Instruction, Match, PacketIn, PortNo};
use weir_openflow::{Body, Message, Version};
use weir_packet::{Field, MacAddr};
use weir_units::{Clock as _, Instant, SystemClock};

/// Priority of entries for flows, above that of the entry that asks the controller.
const FLOW_PRIORITY: u16 = 10;

/// How the entries of a flow are installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum FlowSetup {
    /// At each switch when it asks.
    #[default]
    Reactive,
    /// At all switches when the first one asks.
    Proactive,
}

/// State that the application shares with the experiment. Times are those of the experiment's clock.
#[derive(Debug, Default)]
pub(super) struct ControllerLog {
    pub(super) setup: FlowSetup,
    /// Port to the next switch or to the host, by the number of the switch.
    pub(super) onward: BTreeMap<u64, PortNo>,
    /// Switches with a session, and the time at which the session came up.
    pub(super) up: BTreeMap<u64, Instant>,
    /// Number of sessions that ended.
    pub(super) ended: u32,
    /// Number of packet-ins.
    pub(super) packet_ins: u32,
    /// Interval at which switches are asked whether they answer; `None`: they are not asked.
    pub(super) asking: Option<Duration>,
    /// Answers by the number of the switch: the times of question and answer.
    pub(super) answers: BTreeMap<u64, Vec<[Instant; 2]>>,
}

/// Log under its lock, for both sides.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedLog(Arc<Mutex<ControllerLog>>);

impl SharedLog {
    pub(super) fn lock(&self) -> MutexGuard<'_, ControllerLog> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The application.
pub(super) struct ChainApp {
    clock: SystemClock,
    log: SharedLog,
    numbers: BTreeMap<ConnectionId, u64>,
    /// Times of the questions without an answer, by connection.
    asked: BTreeMap<ConnectionId, VecDeque<Instant>>,
    wake: Option<Instant>,
}

/// Longest time after which the application looks whether it is to ask.
const LOOK: Duration = Duration::from_millis(20);

impl ChainApp {
    pub(super) fn new(clock: SystemClock, log: SharedLog) -> ChainApp {
        let (numbers, asked) = Default::default();
        ChainApp { clock, log, numbers, asked, wake: None }
    }

    /// Installs a flow and sends its packet on.
    fn set_up(&self, switch: ConnectionId, packet: PacketIn, out: &mut ControllerOutbox) {
        let mut log = self.log.lock();
        log.packet_ins += 1;
        let Some(port) = self.numbers.get(&switch).and_then(|number| log.onward.get(number)).copied() else { return };
        let addresses = packet.data.0.first_chunk::<12>().map(|addresses| {
            let [to @ .., _, _, _, _, _, _] = *addresses;
            let [_, _, _, _, _, _, from @ ..] = *addresses;
            [MacAddr(to), MacAddr(from)]
        });
        let Some([to, from]) = addresses else { return };
        let matching = Match::any().with(Field::EthDst, to.to_bits()).with(Field::EthSrc, from.to_bits());
        let flow = |port| entry(FLOW_PRIORITY, matching.clone(), Action::output(port));
        if log.setup == FlowSetup::Proactive {
            // The message for the last switch has the longest way.
            let mut others: Vec<_> = self.numbers.iter().filter(|(other, _)| **other != switch).collect();
            others.sort_unstable_by_key(|(_, number)| Reverse(**number));
            for (other, port) in others.into_iter().filter_map(|(other, number)| Some((other, log.onward.get(number)?)))
            {
                out.push((*other, flow(*port)));
            }
        }
        out.push((switch, flow(port)));
        out.push((switch, Message { xid: 0, body: Body::PacketOut(sent_on(packet.data.0, port)) }));
    }
}

fn entry(priority: u16, matching: Match, action: Action) -> Message {
    let flow = FlowMod::add(priority, matching, vec![Instruction::ApplyActions(vec![action])]);
    Message { xid: 0, body: Body::FlowMod(flow) }
}

impl ControllerApp for ChainApp {
    fn handle_switch_up(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        _version: Version,
        features: &FeaturesReply,
        out: &mut ControllerOutbox,
    ) {
        let number = features.datapath_id;
        self.numbers.insert(switch, number);
        self.log.lock().up.insert(number, self.clock.now());
        out.push((switch, entry(0, Match::any(), Action::to_controller())));
        self.wake.get_or_insert(now + LOOK);
    }

    fn handle_message(&mut self, _now: Instant, switch: ConnectionId, message: Message, out: &mut ControllerOutbox) {
        match message.body {
            Body::PacketIn(packet) => self.set_up(switch, packet, out),
            Body::BarrierReply => {
                let asked = self.asked.get_mut(&switch).and_then(VecDeque::pop_front);
                if let (Some(asked), Some(number)) = (asked, self.numbers.get(&switch)) {
                    let answered = self.clock.now();
                    self.log.lock().answers.entry(*number).or_default().push([asked, answered]);
                }
            }
            _ => {}
        }
    }

    fn handle_switch_down(&mut self, _now: Instant, switch: ConnectionId) {
        self.asked.remove(&switch);
        if let Some(number) = self.numbers.remove(&switch) {
            let mut log = self.log.lock();
            log.up.remove(&number);
            log.ended += 1;
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        self.wake
    }

    fn handle_wake(&mut self, now: Instant, out: &mut ControllerOutbox) {
        let asking = self.log.lock().asking;
        self.wake = Some(now + asking.unwrap_or(LOOK));
        if asking.is_some() {
            let asked = self.clock.now();
            for switch in self.numbers.keys() {
                self.asked.entry(*switch).or_default().push_back(asked);
                out.push((*switch, Message { xid: 0, body: Body::BarrierRequest }));
            }
        }
    }
}
