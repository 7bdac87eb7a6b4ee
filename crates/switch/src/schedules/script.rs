//! Draws the messages that the simulated controllers send to the switch.
use super::controller::{KEYS, ReplyExpectation, ScriptedController, SentMessage, UNDER_WAY, UnconfirmedChange};
use super::forwarding_oracle::{EntryTreatment, ForwardingOracle};
use super::frames;
use super::schedule_rng::ScheduleRng;
use weir_openflow::model::bundle::{BundleAdd, BundleCommand, BundleControl, BundleFlags, BundleId};
use weir_openflow::model::flow::{FlowCommand, FlowFlags, FlowMod};
use weir_openflow::model::group::{Bucket, GroupCommand, GroupKind, GroupMod};
use weir_openflow::model::meter::{Band, BandKind, MeterCommand, MeterMod, flags};
use weir_openflow::model::monitor::{FlowMonitor, MonitorCommand, MonitorFlags};
use weir_openflow::model::multipart::{FlowRequest, RequestBody};
use weir_openflow::model::{
    Action, BucketId, Bytes, GroupId, Instruction, Match, MeterId, MultipartRequest, PacketOut, PortNo, TableId,
};
use weir_openflow::{Body, Message, Version};

/// Dice and ports from which messages are drawn.
pub(super) struct ScriptInputs<'a> {
    pub(super) dice: &'a mut ScheduleRng,
    pub(super) ports: &'a [PortNo],
    /// True if flow entries may output a packet to several ports.
    pub(super) may_copy: bool,
}

impl ScriptedController {
    /// Sends 1 to 12 messages or bundles chosen by the dice. Sends nothing while the controller is not connected, or
    /// while too many of its messages are unconfirmed ([`UNDER_WAY`]).
    pub(super) fn act(&mut self, mut draws: ScriptInputs<'_>, ledger: &mut ForwardingOracle) {
        if !self.is_up || self.is_over || self.session.is_closed() || self.sent.len() - self.settled >= UNDER_WAY {
            return;
        }
        if !std::mem::replace(&mut self.is_prepared, true) {
            self.prepare(draws.ports);
        }
        for _ in 0..=draws.dice.below(12) {
            match draws.dice.below(24) {
                0..9 => {
                    let (change, flow) = self.change(&mut draws, ledger);
                    self.change_by(Body::FlowMod(flow), change);
                }
                9..13 => self.barrier(),
                13 => self.request(RequestBody::Flow(FlowRequest::all())),
                14 => self.request(RequestBody::Table),
                15 => _ = self.send(Body::EchoRequest(Bytes(vec![1, 2, 3])), ReplyExpectation::Order),
                16 => self.wrong(draws.dice),
                17 => self.request(RequestBody::Desc),
                18 => self.request(RequestBody::PortStats(PortNo::ANY)),
                19 => _ = self.send(Body::GetConfigRequest, ReplyExpectation::Request),
                20 | 21 => self.bundle(&mut draws, ledger),
                _ => self.packet_out(&draws.dice.pick(draws.ports), ledger),
            }
        }
    }

    /// Sends a barrier request.
    pub(super) fn barrier(&mut self) {
        if self.is_up && !self.is_over && !self.session.is_closed() {
            self.send(Body::BarrierRequest, ReplyExpectation::Barrier);
        }
    }

    fn is_at_least(&self, version: Version) -> bool {
        self.session.version().is_some_and(|spoken| spoken >= version)
    }

    /// Adds the controller's group, meter and flow monitor, as far as its OpenFlow version has them.
    fn prepare(&mut self, ports: &[PortNo]) {
        if self.is_at_least(Version::V13) {
            let bucket = |(id, port): (u32, &PortNo)| Bucket {
                weight: 1,
                ..Bucket::new(BucketId(id), vec![Action::output(*port)])
            };
            let buckets = (0..).zip(ports).map(bucket).collect();
            let group = GroupMod {
                command: GroupCommand::Add,
                kind: GroupKind::Select,
                group: GroupId(self.first_key.into()),
                command_bucket: BucketId::ALL,
                buckets,
                properties: Vec::new(),
            };
            self.send(Body::GroupMod(group), ReplyExpectation::Order);
            let bands = vec![Band { rate: 1000, burst_size: 4, kind: BandKind::Drop }];
            let meter = MeterId(self.first_key.into());
            let flags = flags::PKTPS | flags::BURST;
            self.send(
                Body::MeterMod(MeterMod { command: MeterCommand::Add, flags, meter, bands }),
                ReplyExpectation::Order,
            );
        }
        if self.is_at_least(Version::V14) {
            let monitor = FlowMonitor {
                id: 1,
                out_port: PortNo::ANY,
                out_group: GroupId::ANY,
                flags: MonitorFlags(0b1111),
                table: TableId::ALL,
                command: MonitorCommand::Add,
                matching: Match::any(),
            };
            self.request(RequestBody::FlowMonitor(vec![monitor]));
        }
    }

    /// Draws a change of the flow entry for one of the controller's keys. Returns the change and the flow-mod that
    /// makes it. The index of the message in `sent` is not set yet.
    fn change(&mut self, draws: &mut ScriptInputs<'_>, ledger: &mut ForwardingOracle) -> (UnconfirmedChange, FlowMod) {
        let ScriptInputs { dice, ports, may_copy } = draws;
        let key = self.first_key + u16::try_from(dice.below(usize::from(KEYS))).unwrap_or(0);
        let port = dice.pick(ports);
        let has_groups = self.is_at_least(Version::V13);
        let has_meters = has_groups && !self.is_at_least(Version::V15);
        let apply = |actions| vec![Instruction::ApplyActions(actions)];
        let output = |ports: &[PortNo]| apply(ports.iter().map(|port| Action::output(*port)).collect());
        let (act, instructions) = match dice.below(12) {
            0 => (EntryTreatment::Absent, Vec::new()),
            1 => (EntryTreatment::Drop, Vec::new()),
            2 => (EntryTreatment::Controller, apply(vec![Action::to_controller()])),
            3 if *may_copy && ports.len() > 1 => (EntryTreatment::Out(ports[..2].to_vec()), output(&ports[..2])),
            4 if has_groups => {
                (EntryTreatment::Out(ports.to_vec()), apply(vec![Action::Group(GroupId(self.first_key.into()))]))
            }
            5 if has_meters => {
                let mut metered = vec![Instruction::Meter(MeterId(self.first_key.into()))];
                metered.extend(output(&[port]));
                (EntryTreatment::Out(vec![port]), metered)
            }
            _ => (EntryTreatment::Out(vec![port]), output(&[port])),
        };
        let mut flow = frames::entry(key, instructions);
        let mut cookie = None;
        if act == EntryTreatment::Absent {
            flow.command = FlowCommand::DeleteStrict;
        } else {
            flow.cookie = u64::from(key) << 32 | self.cookies.len() as u64;
            flow.flags = FlowFlags::SEND_FLOW_REM;
            cookie = Some(flow.cookie);
            self.cookies.insert(flow.cookie);
            match dice.below(8) {
                0 => flow.idle_timeout = 1,
                1 => flow.hard_timeout = 1 + u16::try_from(dice.below(2)).unwrap_or(0),
                _ => {}
            }
        }
        // An entry may disappear unasked if it has a timeout, or if its virtual switch may be removed.
        let expires = flow.idle_timeout + flow.hard_timeout > 0 || key >= frames::FIRST_VIRTUAL_KEY;
        (UnconfirmedChange { place: 0, key, state: ledger.ask(key, act, expires), cookie }, flow)
    }

    /// Sends the message that changes a flow entry, and records the change as unconfirmed.
    fn change_by(&mut self, body: Body, change: UnconfirmedChange) {
        let place = self.send(body, ReplyExpectation::Order);
        self.changes(UnconfirmedChange { place, ..change });
    }

    /// Sends one to four changes of flow entries in a bundle, or one by one in versions without bundles.
    fn bundle(&mut self, draws: &mut ScriptInputs<'_>, ledger: &mut ForwardingOracle) {
        let flags =
            draws.dice.pick(&[BundleFlags::ORDERED, BundleFlags(BundleFlags::ORDERED.0 | BundleFlags::ATOMIC.0)]);
        self.next_bundle += 1;
        let bundle = BundleId(self.next_bundle);
        let has_bundles = self.is_at_least(Version::V14);
        let control = |command| Body::BundleControl(BundleControl { bundle, command, flags, properties: Vec::new() });
        if has_bundles {
            self.send(control(BundleCommand::OpenRequest), ReplyExpectation::Request);
        }
        let mut changes = Vec::new();
        for _ in 0..=draws.dice.below(4) {
            let (change, flow) = self.change(draws, ledger);
            if !has_bundles {
                self.change_by(Body::FlowMod(flow), change);
                continue;
            }
            let xid = self.session.allocate_xid();
            let message = Box::new(Message { xid, body: Body::FlowMod(flow) });
            let add = BundleAdd { bundle, flags, message, properties: Vec::new() };
            self.send_as(xid, Body::BundleAdd(add), ReplyExpectation::Order);
            changes.push(change);
        }
        if has_bundles {
            let place = self.send(control(BundleCommand::CommitRequest), ReplyExpectation::Request);
            changes.into_iter().for_each(|change| self.changes(UnconfirmedChange { place, ..change }));
        }
    }

    /// Sends a flow-mod that must be refused: its group does not exist, or its output port is invalid.
    fn wrong(&mut self, dice: &mut ScheduleRng) {
        let (action, kind) = match self.is_at_least(Version::V13) && dice.hits(500) {
            true => (Action::Group(GroupId(77_777)), ReplyExpectation::Wrong),
            false => (Action::output(PortNo(0)), ReplyExpectation::Malformed),
        };
        self.send(Body::FlowMod(frames::entry(self.first_key, vec![Instruction::ApplyActions(vec![action])])), kind);
    }

    fn request(&mut self, body: RequestBody) {
        self.send(Body::MultipartRequest(MultipartRequest { more: false, body }), ReplyExpectation::Request);
    }

    fn packet_out(&mut self, port: &PortNo, ledger: &mut ForwardingOracle) {
        let number = ledger.send_out(*port);
        let packet = PacketOut {
            buffer_id: None,
            in_port: PortNo::CONTROLLER,
            matching: Match::any(),
            actions: vec![Action::output(*port)],
            data: Bytes(frames::frame(0, number)),
        };
        let place = self.send(Body::PacketOut(packet), ReplyExpectation::Order);
        self.packet_outs.push(place);
        self.packet_outs_sent += 1;
    }

    /// Sends a message and records it. Returns its index in `sent`.
    fn send(&mut self, body: Body, kind: ReplyExpectation) -> usize {
        let xid = self.session.allocate_xid();
        self.send_as(xid, body, kind)
    }

    fn send_as(&mut self, xid: u32, body: Body, kind: ReplyExpectation) -> usize {
        let place = self.sent.len();
        self.session.send(&Message { xid, body }).expect("its version can say that, and what waits is bounded");
        self.sent.push(SentMessage { xid, kind, is_answered: false });
        self.places.insert(xid, place);
        place
    }
}
