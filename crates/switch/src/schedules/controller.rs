//! A controller that follows a script drawn from a seed, and checks what the switch answers.
//!
//! Checked here: every reply or error to a message before a barrier comes before the barrier's reply, every one to a message behind it comes
//! after it; each request is answered once; a flow-removed comes once for an entry that asked for it, and not for one that is there.
use super::dice::Dice;
use super::frames;
use super::ledger::{Act, Ledger};
use super::wire::{ControllerEnd, End};
use std::collections::{HashMap, HashSet};
use weir_openflow::model::flow::{FlowCommand, FlowFlags};
use weir_openflow::model::multipart::{FlowRequest, RequestBody};
use weir_openflow::model::{Action, Bytes, GroupId, Instruction, MultipartRequest, PacketOut, PortNo};
use weir_openflow::session::{Event, Session, SessionConfig};
use weir_openflow::{Body, Message, Version};
use weir_units::Instant;

/// Keys of one connection.
const KEYS: u16 = 8;
/// Requests that are not answered or confirmed yet at most.
const UNDER_WAY: usize = 400;

/// A message that was sent.
#[derive(Debug)]
struct Sent {
    xid: u32,
    kind: Kind,
    is_answered: bool,
}

/// A message's kind, as far as its answer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Answered only if it is refused.
    Order,
    /// To be refused by the datapath.
    Wrong,
    /// To be refused as soon as it is read, since it cannot be decoded: its error may come before the reply to an earlier barrier.
    Malformed,
    /// Answered by one or more messages.
    Request,
    Barrier,
}

/// A change of a key that no barrier has confirmed.
#[derive(Debug)]
struct Change {
    place: usize,
    key: u16,
    state: usize,
}

/// See the module's page.
pub(super) struct Controller {
    pub(super) name: String,
    session: Session,
    wire: ControllerEnd,
    is_up: bool,
    /// The keys that only this connection uses, from here on.
    first_key: u16,
    sent: Vec<Sent>,
    /// By transaction id, the place in `sent`.
    places: HashMap<u32, usize>,
    /// Messages before this one have been settled by a barrier reply.
    settled: usize,
    changes: Vec<Change>,
    /// Packet-outs sent, and those of them that a barrier reply confirmed.
    packet_outs: Vec<usize>,
    pub(super) packet_outs_sent: u64,
    pub(super) packet_outs_confirmed: u64,
    cookies: HashSet<u64>,
    removed: HashSet<u64>,
    /// How many steps it reads nothing.
    stalls: u32,
    pub(super) is_over: bool,
    pub(super) packet_ins: u64,
}

impl Controller {
    /// A controller of `version` at the other end of a connection.
    pub(super) fn new(name: String, version: Version, wire: ControllerEnd, first_key: u16, now: Instant) -> Controller {
        let config = SessionConfig { versions: vec![version], ..SessionConfig::default() };
        Controller {
            name,
            session: Session::controller(config, now),
            wire,
            is_up: false,
            first_key,
            sent: Vec::new(),
            places: HashMap::new(),
            settled: 0,
            changes: Vec::new(),
            packet_outs: Vec::new(),
            packet_outs_sent: 0,
            packet_outs_confirmed: 0,
            cookies: HashSet::new(),
            removed: HashSet::new(),
            stalls: 0,
            is_over: false,
            packet_ins: 0,
        }
    }

    /// One step: writes some of what waits, reads some of what came.
    ///
    /// # Errors
    /// What the switch must not have answered.
    pub(super) fn step(&mut self, now: Instant, ledger: &mut Ledger) -> Result<(), String> {
        self.session.poll(now);
        let written = self.wire.write(self.session.output());
        self.session.output().drain(..written);
        if self.stalls > 0 {
            self.stalls -= 1;
            return Ok(());
        }
        let bytes = self.wire.read();
        if bytes.is_empty() {
            self.is_over |= self.wire.is_over();
        } else {
            self.session.receive(now, &bytes);
        }
        while let Some(event) = self.session.next_event() {
            match event {
                Event::Up { .. } => self.is_up = true,
                Event::Message(message) => self.take(&message, ledger).map_err(|problem| self.says(&problem))?,
                Event::Closed { .. } => self.is_over = true,
            }
        }
        Ok(())
    }

    fn says(&self, problem: &str) -> String {
        format!("{}: {problem}", self.name)
    }

    /// Reads nothing for so many steps.
    pub(super) fn stall(&mut self, steps: u32) {
        self.stalls = steps;
    }

    /// Ends the connection.
    pub(super) fn end(&mut self, end: End) {
        self.wire.end(end);
        self.is_over = true;
    }

    /// Reads on, and in pieces as large as they come.
    pub(super) fn hurry(&mut self) {
        self.stalls = 0;
        self.wire.hurry();
    }

    /// Whether nothing is under way on the connection.
    pub(super) fn is_at_rest(&mut self) -> bool {
        self.is_over || self.is_up && self.session.output().is_empty() && self.unanswered().is_none()
    }

    /// The first request that is not answered.
    pub(super) fn unanswered(&self) -> Option<String> {
        let open = |sent: &&Sent| !sent.is_answered && sent.kind != Kind::Order;
        self.sent
            .iter()
            .find(open)
            .map(|sent| self.says(&format!("{:?} with xid {} is not answered", sent.kind, sent.xid)))
    }

    /// Messages that it sent.
    pub(super) fn messages(&self) -> u64 {
        self.sent.len() as u64
    }

    /// Reads and writes that moved less than they could have.
    pub(super) fn partial(&self) -> u64 {
        self.wire.partial()
    }
}

/// Sending.
impl Controller {
    /// Sends what the dice say.
    pub(super) fn act(&mut self, dice: &mut Dice, ports: &[PortNo], ledger: &mut Ledger, may_copy: bool) {
        if !self.is_up || self.is_over || self.sent.len() - self.settled >= UNDER_WAY {
            return;
        }
        for _ in 0..=dice.below(12) {
            match dice.below(20) {
                0..9 => self.change(dice, ports, ledger, may_copy),
                9..13 => self.barrier(),
                13 => self.request(RequestBody::Flow(FlowRequest::all())),
                14 => self.request(RequestBody::Table),
                15 => _ = self.send(Body::EchoRequest(Bytes(vec![1, 2, 3])), Kind::Order),
                16 => self.wrong(dice),
                17 => self.request(RequestBody::Desc),
                _ => self.packet_out(dice, ports, ledger),
            }
        }
    }

    /// Sends a barrier request.
    pub(super) fn barrier(&mut self) {
        if self.is_up && !self.is_over {
            self.send(Body::BarrierRequest, Kind::Barrier);
        }
    }

    /// Its keys.
    pub(super) fn keys(&self) -> std::ops::Range<u16> {
        self.first_key..self.first_key + KEYS
    }

    fn change(&mut self, dice: &mut Dice, ports: &[PortNo], ledger: &mut Ledger, may_copy: bool) {
        let key = self.first_key + u16::try_from(dice.below(usize::from(KEYS))).unwrap_or(0);
        let port = dice.pick(ports);
        let act = match dice.below(10) {
            0 => Act::Absent,
            1 => Act::Drop,
            2 => Act::Controller,
            3 if may_copy && ports.len() > 1 => Act::Out(ports.iter().copied().take(2).collect()),
            _ => Act::Out(vec![port]),
        };
        let apply = |actions| vec![Instruction::ApplyActions(actions)];
        let instructions = match &act {
            Act::Absent | Act::Drop => Vec::new(),
            Act::Out(ports) => apply(ports.iter().map(|port| Action::output(*port)).collect()),
            Act::Controller => apply(vec![Action::to_controller()]),
        };
        let mut flow = frames::entry(key, instructions);
        let mut expires = false;
        if act == Act::Absent {
            flow.command = FlowCommand::DeleteStrict;
        } else {
            flow.cookie = u64::from(key) << 32 | self.sent.len() as u64;
            flow.flags = FlowFlags::SEND_FLOW_REM;
            self.cookies.insert(flow.cookie);
            match dice.below(8) {
                0 => flow.idle_timeout = 1,
                1 => flow.hard_timeout = 1 + u16::try_from(dice.below(2)).unwrap_or(0),
                _ => {}
            }
            expires = flow.idle_timeout + flow.hard_timeout > 0;
        }
        let state = ledger.ask(key, act, expires);
        let place = self.send(Body::FlowMod(flow), Kind::Order);
        self.changes.push(Change { place, key, state });
    }

    /// A flow-mod that must be refused: its group is none, or its port takes no packets.
    fn wrong(&mut self, dice: &mut Dice) {
        let has_groups = self.session.version().is_some_and(|version| version > Version::V10);
        let (action, kind) = match has_groups && dice.hits(500) {
            true => (Action::Group(GroupId(77)), Kind::Wrong),
            false => (Action::output(PortNo(0)), Kind::Malformed),
        };
        self.send(Body::FlowMod(frames::entry(self.first_key, vec![Instruction::ApplyActions(vec![action])])), kind);
    }

    fn request(&mut self, body: RequestBody) {
        self.send(Body::MultipartRequest(MultipartRequest { more: false, body }), Kind::Request);
    }

    fn packet_out(&mut self, dice: &mut Dice, ports: &[PortNo], ledger: &mut Ledger) {
        let port = dice.pick(ports);
        let number = ledger.send_out(port);
        let packet = PacketOut {
            buffer_id: None,
            in_port: PortNo::CONTROLLER,
            matching: weir_openflow::model::Match::any(),
            actions: vec![Action::output(port)],
            data: Bytes(frames::frame(0, number)),
        };
        let place = self.send(Body::PacketOut(packet), Kind::Order);
        self.packet_outs.push(place);
        self.packet_outs_sent += 1;
    }

    /// Sends a message; its place.
    fn send(&mut self, body: Body, kind: Kind) -> usize {
        let xid = self.session.next_xid();
        let place = self.sent.len();
        if self.session.send(&Message { xid, body }).is_ok() {
            self.sent.push(Sent { xid, kind, is_answered: false });
            self.places.insert(xid, place);
        }
        place
    }
}

/// Receiving.
impl Controller {
    fn take(&mut self, message: &Message, ledger: &mut Ledger) -> Result<(), String> {
        match &message.body {
            Body::PacketIn(packet) => {
                self.packet_ins += 1;
                let number = frames::number(&packet.data.0).ok_or("a packet-in without its frame's number")?;
                ledger.punted(number)
            }
            Body::FlowRemoved(removed) => self.removed(removed.cookie),
            Body::PortStatus(_) | Body::EchoReply(_) => Ok(()),
            Body::MultipartReply(reply) => self.answered(message.xid, !reply.more, ledger),
            _ => self.answered(message.xid, true, ledger),
        }
    }

    fn removed(&mut self, cookie: u64) -> Result<(), String> {
        let is_own = self.keys().contains(&u16::try_from(cookie >> 32).unwrap_or(u16::MAX));
        if is_own && (!self.cookies.contains(&cookie) || !self.removed.insert(cookie)) {
            return Err(format!("flow-removed of cookie {cookie:#x} once more, or of no entry"));
        }
        Ok(())
    }

    /// A reply or an error came; `is_last`: no other part follows.
    fn answered(&mut self, xid: u32, is_last: bool, ledger: &mut Ledger) -> Result<(), String> {
        let place = *self.places.get(&xid).ok_or_else(|| format!("an answer with xid {xid}, which was not sent"))?;
        let Sent { kind, is_answered, .. } = self.sent[place];
        if is_answered {
            return Err(format!("{kind:?} with xid {xid} is answered twice"));
        }
        if place < self.settled {
            return Err(format!("the answer to {kind:?} with xid {xid} comes behind the reply to a later barrier"));
        }
        let before = &self.sent[self.settled..place];
        let open_barrier = before.iter().find(|sent| sent.kind == Kind::Barrier && !sent.is_answered);
        if let Some(barrier) = open_barrier.filter(|_| kind != Kind::Malformed) {
            return Err(format!("the answer to {kind:?} with xid {xid} overtakes barrier {}", barrier.xid));
        }
        if kind == Kind::Order {
            return Err(format!("an order with xid {xid} is refused or answered"));
        }
        self.sent[place].is_answered = is_last;
        if kind == Kind::Barrier { self.settle(place, ledger) } else { Ok(()) }
    }

    /// A barrier reply came: all before it has been carried out, and answered.
    fn settle(&mut self, place: usize, ledger: &mut Ledger) -> Result<(), String> {
        let open = |sent: &&Sent| !sent.is_answered && sent.kind != Kind::Order;
        if let Some(open) = self.sent[self.settled..place].iter().find(open) {
            return Err(format!("a barrier reply overtakes the answer to {:?} with xid {}", open.kind, open.xid));
        }
        self.settled = place;
        let (done, open): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.changes).into_iter().partition(|c| c.place < place);
        self.changes = open;
        done.iter().for_each(|change| ledger.confirm(change.key, change.state));
        let before = self.packet_outs.len();
        self.packet_outs.retain(|sent| *sent > place);
        self.packet_outs_confirmed += (before - self.packet_outs.len()) as u64;
        Ok(())
    }
}
