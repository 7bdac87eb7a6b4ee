//! Checks that the switch answers wrong requests with the errors that the specification defines. `docs/openflow.md`
//! names, for each error, the test that raises it, or the reason why no request does.
//!
//! Messages are passed as bytes, as on a channel. The error compared is the decoder's if the message cannot be
//! decoded, otherwise the datapath's.
use crate::bench::*;
use std::collections::BTreeMap;
use weir_datapath::{ChannelId, DatapathConfig};
use weir_openflow::model::config::TableMod;
use weir_openflow::model::error::*;
use weir_openflow::model::group::{Bucket, BucketId, GroupCommand, GroupKind, GroupMod};
use weir_openflow::model::matching::RawField;
use weir_openflow::model::meter::{Band, BandKind, MeterCommand, MeterId, MeterMod};
use weir_openflow::model::multipart::{FlowRequest, MultipartRequest, RequestBody};
use weir_openflow::model::port::{PortMod, bits};
use weir_openflow::model::role::{Role, RoleMessage};
use weir_openflow::model::{
    Action, BufferId, Experimenter, FlowCommand, FlowFlags, FlowMod, GroupId, Instruction, Match, MatchField,
    PacketOut, PortNo, SwitchConfig, TableId,
};
use weir_openflow::{Body, Message, Version, codec, text};
use weir_packet::Field;
use weir_packet::field::eth_type;

/// Errors that were raised so far, by name.
#[derive(Default)]
struct Raised(BTreeMap<String, ErrorType>);

impl Raised {
    /// Checks that the error `found` equals `expected`, and records it.
    fn note(&mut self, expected: impl Into<ErrorType>, found: Option<ErrorType>) {
        let expected = expected.into();
        assert_eq!(found, Some(expected), "expected {}", text::error_name(expected));
        self.0.insert(text::error_name(expected), expected);
    }
}

/// Channel that uses OpenFlow 1.5.
const NEWEST: ChannelId = ChannelId(15);

/// Sends a message in version 1.3 after `change` modified its bytes. Returns the error that answers it; see
/// [`told_in`].
fn damaged(bench: &mut Bench, body: Body, change: impl FnOnce(&mut Vec<u8>)) -> Option<ErrorType> {
    told_in(Version::V13, bench, body, change)
}

/// Sends a message after `change` modified its bytes; the length in the header is corrected afterwards. Returns the
/// error that answers the message, or `None` if it is accepted.
fn told_in(version: Version, bench: &mut Bench, body: Body, change: impl FnOnce(&mut Vec<u8>)) -> Option<ErrorType> {
    let channel = if version == Version::V13 { CONTROLLER } else { NEWEST };
    let mut bytes = Vec::new();
    codec::encode(&Message { xid: 1, body }, version, &mut bytes).unwrap();
    change(&mut bytes);
    let length = u16::try_from(bytes.len()).unwrap();
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    match codec::decode(&bytes) {
        Err(error) => Some(error.error),
        Ok(message) => bench.error_of(channel, message.body),
    }
}

fn told(bench: &mut Bench, body: Body) -> Option<ErrorType> {
    damaged(bench, body, |_| {})
}

fn flow_mod(bench: &mut Bench, flow: FlowMod) -> Option<ErrorType> {
    told(bench, Body::FlowMod(flow))
}

fn acting(action: Action) -> FlowMod {
    FlowMod::add(1, Match::any(), apply(vec![action]))
}

fn asked(body: RequestBody) -> Body {
    Body::MultipartRequest(MultipartRequest { more: false, body })
}

fn packet_out(data: &[u8], in_port: PortNo, buffer_id: Option<BufferId>) -> Body {
    Body::PacketOut(PacketOut {
        buffer_id,
        in_port,
        actions: output(2),
        data: data.to_vec().into(),
        matching: Match::any(),
    })
}

/// Offset of the body of a message.
const BODY: usize = 8;
/// Offset of the match of a 1.3 flow-mod.
const MATCH: usize = 48;
/// Offset of the instructions after an empty match.
const INSTRUCTIONS: usize = MATCH + 8;
/// Offset of the first action of an apply-actions instruction after an empty match.
const ACTION: usize = INSTRUCTIONS + 8;

fn bad_requests(bench: &mut Bench, raised: &mut Raised) {
    let barrier = || Body::BarrierRequest;
    raised.note(BadRequest::BadVersion, damaged(bench, barrier(), |bytes| bytes[0] = 9));
    raised.note(BadRequest::BadType, damaged(bench, barrier(), |bytes| bytes[1] = 99));
    raised.note(BadRequest::BadLen, damaged(bench, barrier(), |bytes| bytes.push(0)));
    raised.note(BadRequest::BadMultipart, damaged(bench, asked(RequestBody::Desc), |bytes| bytes[BODY] = 0x7f));
    let experimenter = Experimenter { id: 0x00ab_cdef, kind: Some(1), data: vec![].into() };
    raised.note(BadRequest::BadExperimenter, told(bench, Body::Experimenter(experimenter)));
    let wrong_table = FlowRequest { table: TableId(200), ..FlowRequest::all() };
    raised.note(BadRequest::BadTableId, told(bench, asked(RequestBody::Flow(wrong_table))));
    raised.note(BadRequest::BadPort, told(bench, asked(RequestBody::PortStats(PortNo(99)))));
    raised.note(BadRequest::BadPacket, told(bench, packet_out(&[1; 5], PortNo(1), None)));
    raised.note(BadRequest::BufferUnknown, told(bench, packet_out(&[], PortNo(1), Some(BufferId(12345)))));
    let kept = kept_packet(bench);
    assert_eq!(told(bench, packet_out(&[], PortNo(1), Some(kept))), None);
    raised.note(BadRequest::BufferEmpty, told(bench, packet_out(&[], PortNo(1), Some(kept))));
    let role = |role| Body::RoleRequest(RoleMessage { role, generation_id: 7, short_id: 0 });
    assert_eq!(told(bench, role(Role::Slave)), None);
    raised.note(BadRequest::IsSlave, flow_mod(bench, acting(Action::output(PortNo(1)))));
    assert_eq!(told(bench, role(Role::Equal)), None);
}

/// Sends a packet to the controller, and returns the id of the buffer in which the switch keeps it.
fn kept_packet(bench: &mut Bench) -> BufferId {
    let punt = Action::Output { port: PortNo::CONTROLLER, max_len: 20 };
    bench.add(9, from_port(4), vec![punt]);
    bench.receive(4, &frame());
    bench.packet_ins(CONTROLLER)[0].buffer_id.unwrap()
}

fn bad_actions(bench: &mut Bench, raised: &mut Raised) {
    let wide = |bytes: &mut Vec<u8>, at: usize, value: u16| bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
    let pop = || Body::FlowMod(acting(Action::PopVlan));
    raised.note(BadAction::BadType, damaged(bench, pop(), |bytes| wide(bytes, ACTION, 99)));
    raised.note(BadAction::BadLen, damaged(bench, pop(), |bytes| wide(bytes, ACTION + 2, 4)));
    let set = |field, value| acting(Action::SetField { field, value });
    let cases = [
        (acting(Action::Experimenter { id: 0x00ab_cdef, data: vec![0; 8].into() }), BadAction::BadExperimenter),
        (acting(Action::output(PortNo::TABLE)), BadAction::BadOutPort),
        (acting(Action::PushVlan(0x9100)), BadAction::BadArgument),
        (acting(Action::Group(GroupId(404))), BadAction::BadOutGroup),
        (acting(Action::PopVlan), BadAction::MatchInconsistent),
        (set(Field::InPort, 1), BadAction::BadSetType),
        (FlowMod::add(1, Match::any(), apply(vec![Action::output(PortNo(1)); 2000])), BadAction::TooMany),
    ];
    for (flow, code) in cases {
        raised.note(code, flow_mod(bench, flow));
    }
    // Changes the field's length, which follows type, length, class and number.
    let metadata = || Body::FlowMod(set(Field::EthDst, 1));
    raised.note(BadAction::BadSetLen, damaged(bench, metadata(), |bytes| bytes[ACTION + 7] = 5));
    let untagged = damaged(bench, Body::FlowMod(set(Field::VlanVid, 0x1001)), |bytes| bytes[ACTION + 8] = 0);
    raised.note(BadAction::BadSetArgument, untagged);
}

fn bad_instructions(bench: &mut Bench, raised: &mut Raised) {
    let add = |instructions| FlowMod::add(1, Match::any(), instructions);
    let clear = || Body::FlowMod(add(vec![Instruction::ClearActions]));
    raised.note(BadInstruction::UnknownInst, damaged(bench, clear(), |bytes| bytes[INSTRUCTIONS + 1] = 77));
    raised.note(BadInstruction::BadLen, damaged(bench, clear(), |bytes| bytes[INSTRUCTIONS + 3] = 12));
    let experimenter = Instruction::Experimenter { id: 0x00ab_cdef, data: vec![0; 8].into() };
    let cases = [
        (add(vec![Instruction::GotoTable(TableId(0))]), BadInstruction::BadTableId),
        (add(vec![experimenter]), BadInstruction::BadExperimenter),
        (add([apply(vec![]), apply(vec![])].concat()), BadInstruction::DupInst),
    ];
    for (flow, code) in cases {
        raised.note(code, flow_mod(bench, flow));
    }
}

/// Raises errors that only exist in versions later than 1.3, or for messages that only these versions have.
fn later_errors(bench: &mut Bench, raised: &mut Raised) {
    let trigger = Instruction::StatTrigger { flags: 1, thresholds: Default::default() };
    let triggered = Body::FlowMod(FlowMod::add(1, Match::any(), vec![trigger]));
    raised.note(BadInstruction::UnsupInst, told_in(Version::V15, bench, triggered, |_| {}));
    let metered = Body::FlowMod(acting(Action::Meter(MeterId(404))));
    raised.note(BadAction::BadMeter, told_in(Version::V15, bench, metered, |_| {}));
    let masked = Action::SetFieldMasked { field: Field::EthDst, value: 3, mask: 1 };
    let masked = told_in(Version::V15, bench, Body::FlowMod(acting(masked)), |_| {});
    raised.note(BadAction::BadSetMask, masked);
}

fn bad_matches(bench: &mut Bench, raised: &mut Raised) {
    let of = |matching| FlowMod::add(1, matching, vec![]);
    let empty = || Body::FlowMod(of(Match::any()));
    raised.note(BadMatch::BadType, damaged(bench, empty(), |bytes| bytes[MATCH + 1] = 0));
    raised.note(BadMatch::BadLen, damaged(bench, empty(), |bytes| bytes[MATCH + 3] = 200));
    let unknown = RawField { class: 0x8000, number: 120, has_mask: false, payload: vec![0].into() };
    let masked = |field, value: u128, mask: u128| of(Match::any().with_masked(field, value, mask));
    let ipv4 = Match::any().with(Field::EthType, eth_type::IPV4);
    let cases = [
        (of(Match { fields: vec![MatchField::Raw(unknown)] }), BadMatch::BadField),
        (of(Match::any().with(Field::TcpDst, 1_u8)), BadMatch::BadPrereq),
        (of(ipv4.clone().with(Field::EthType, eth_type::IPV6)), BadMatch::DupField),
        (masked(Field::EthDst, 3, 1), BadMatch::BadWildcards),
        (masked(Field::InPort, 1, 1), BadMatch::BadMask),
        (of(Match::any().with(Field::VlanVid, 5_u16)), BadMatch::BadValue),
    ];
    for (flow, code) in cases {
        raised.note(code, flow_mod(bench, flow));
    }
}

fn failed_flow_mods(bench: &mut Bench, raised: &mut Raised) {
    let any = || FlowMod::add(1, Match::any(), vec![]);
    let flags = |flags, flow| FlowMod { flags, ..flow };
    raised.note(FlowModFailed::BadTableId, flow_mod(bench, FlowMod { table: TableId(64), ..any() }));
    raised.note(FlowModFailed::BadFlags, flow_mod(bench, flags(FlowFlags(1 << 7), any())));
    // Changes the command, which follows cookie, mask and table.
    raised.note(FlowModFailed::BadCommand, damaged(bench, Body::FlowMod(any()), |bytes| bytes[BODY + 17] = 9));
    assert_eq!(flow_mod(bench, any()), None);
    let overlapping = FlowMod::add(1, from_port(3), vec![]);
    raised.note(FlowModFailed::Overlap, flow_mod(bench, flags(FlowFlags::CHECK_OVERLAP, overlapping)));
    let mut small = Bench::with(DatapathConfig { max_entries: 1, ..DatapathConfig::default() });
    small.datapath.channel_up(small.now, CONTROLLER, Version::V13);
    assert_eq!(flow_mod(&mut small, any()), None);
    raised.note(FlowModFailed::TableFull, flow_mod(&mut small, FlowMod { priority: 2, ..any() }));
    assert_eq!(flow_mod(bench, FlowMod { command: FlowCommand::Delete, ..any() }), None);
}

fn failed_settings(bench: &mut Bench, raised: &mut Raised) {
    let change = |port_no, hw_addr, mask| {
        Body::PortMod(PortMod { port_no, hw_addr, config: 0, mask, advertise: 0, properties: Vec::new() })
    };
    raised.note(PortModFailed::BadPort, told(bench, change(PortNo(99), mac(1), 0)));
    raised.note(PortModFailed::BadHwAddr, told(bench, change(PortNo(1), mac(1), 0)));
    let own = port(1).hw_addr;
    raised.note(PortModFailed::BadConfig, told(bench, change(PortNo(1), own, 1 << 20)));
    assert_eq!(told(bench, change(PortNo(1), own, bits::NO_FWD)), None);
    let advertises =
        PortMod { port_no: PortNo(1), hw_addr: own, config: 0, mask: 0, advertise: 1, properties: Vec::new() };
    raised.note(PortModFailed::BadAdvertise, told(bench, Body::PortMod(advertises)));
    let config = |flags| Body::SetConfig(SwitchConfig { flags, miss_send_len: 128 });
    raised.note(SwitchConfigFailed::BadFlags, told(bench, config(0xff)));
    let role = |role, generation_id| Body::RoleRequest(RoleMessage { role, generation_id, short_id: 0 });
    assert_eq!(told(bench, role(Role::Master, 9)), None);
    raised.note(RoleRequestFailed::Stale, told(bench, role(Role::Master, 8)));
    raised.note(RoleRequestFailed::BadRole, told(bench, role(Role::Unknown(9), 9)));
}

fn failed_group_mods(bench: &mut Bench, raised: &mut Raised) {
    use GroupKind::{All, FastFailover, Indirect, Select};
    let change = |command, kind, group, buckets| {
        let (group, command_bucket) = (GroupId(group), BucketId::ALL);
        GroupMod { command, kind, group, command_bucket, buckets, properties: Vec::new() }
    };
    let add = |kind, group, buckets| change(GroupCommand::Add, kind, group, buckets);
    let bucket = |action| Bucket::new(BucketId(0), vec![action]);
    let to = |port| bucket(Action::output(PortNo(port)));
    let chained = |group| bucket(Action::Group(GroupId(group)));
    assert_eq!(told(bench, Body::GroupMod(add(Indirect, 1, vec![to(2)]))), None);
    assert_eq!(told(bench, Body::GroupMod(add(Indirect, 2, vec![chained(1)]))), None);
    let weighted = Bucket { weight: 7, ..to(2) };
    let watching_none = Bucket { watch_port: PortNo(0xffff_ff01), ..to(2) };
    let cases = [
        (add(All, 1, vec![]), GroupModFailed::GroupExists),
        (add(All, 0xffff_ff01, vec![]), GroupModFailed::InvalidGroup),
        (add(All, 3, vec![weighted]), GroupModFailed::InvalidGroup),
        (change(GroupCommand::Modify, Indirect, 1, vec![chained(2)]), GroupModFailed::Loop),
        (change(GroupCommand::Modify, All, 404, vec![]), GroupModFailed::UnknownGroup),
        (change(GroupCommand::Delete, All, 1, vec![]), GroupModFailed::ChainedGroup),
        (add(GroupKind::Unknown(77), 3, vec![]), GroupModFailed::BadType),
        (change(GroupCommand::Unknown(9), All, 3, vec![]), GroupModFailed::BadCommand),
        (add(FastFailover, 3, vec![watching_none]), GroupModFailed::BadWatch),
    ];
    for (change, code) in cases {
        raised.note(code, told(bench, Body::GroupMod(change)));
    }
    // Changes the bucket's length, which follows command, type and group.
    let one = add(All, 3, vec![to(2)]);
    raised.note(GroupModFailed::BadBucket, damaged(bench, Body::GroupMod(one), |bytes| bytes[BODY + 9] = 4));
    let config = DatapathConfig { max_groups: 1, max_buckets: 1, ..DatapathConfig::default() };
    let mut small = Bench::with(config);
    small.datapath.channel_up(small.now, CONTROLLER, Version::V13);
    let two = add(Select, 1, vec![Bucket { weight: 1, ..to(2) }, Bucket { id: BucketId(1), weight: 1, ..to(3) }]);
    raised.note(GroupModFailed::OutOfBuckets, told(&mut small, Body::GroupMod(two)));
    assert_eq!(told(&mut small, Body::GroupMod(add(All, 1, vec![to(2)]))), None);
    raised.note(GroupModFailed::OutOfGroups, told(&mut small, Body::GroupMod(add(All, 2, vec![]))));
    let mut top = 2;
    let long = loop {
        let error = told(bench, Body::GroupMod(add(Indirect, top + 1, vec![chained(top)])));
        top += 1;
        if error.is_some() || top > 100 {
            break error;
        }
    };
    raised.note(GroupModFailed::ChainingUnsupported, long);
    // Version 1.5 has bucket ids.
    let insert = |bucket, named| {
        let named = BucketId(named);
        GroupMod { command_bucket: named, ..change(GroupCommand::InsertBucket, All, 400, vec![bucket]) }
    };
    let body = Body::GroupMod(add(All, 400, vec![to(2)]));
    assert_eq!(told_in(Version::V15, bench, body, |_| {}), None);
    let bodies = [(insert(to(3), 99), GroupModFailed::UnknownBucket), (insert(to(3), 0), GroupModFailed::BucketExists)];
    for (change, code) in bodies {
        raised.note(code, told_in(Version::V15, bench, Body::GroupMod(change), |_| {}));
    }
}

fn failed_meter_mods(bench: &mut Bench, raised: &mut Raised) {
    use weir_openflow::model::meter::flags;
    let band = |kind| Band { rate: 1000, burst_size: 0, kind };
    let change = |command, meter, flags, bands| {
        let meter = MeterId(meter);
        Body::MeterMod(MeterMod { command, flags, meter, bands })
    };
    let add = |meter, flags, kind| change(MeterCommand::Add, meter, flags, vec![band(kind)]);
    let both = flags::KBPS | flags::PKTPS;
    let unknown = BandKind::Unknown { kind: 9, data: vec![0; 4].into() };
    assert_eq!(told(bench, add(1, flags::KBPS, BandKind::Drop)), None);
    let cases = [
        (add(1, flags::KBPS, BandKind::Drop), MeterModFailed::MeterExists),
        (add(0, flags::KBPS, BandKind::Drop), MeterModFailed::InvalidMeter),
        (change(MeterCommand::Modify, 404, flags::KBPS, vec![]), MeterModFailed::UnknownMeter),
        (change(MeterCommand::Unknown(9), 2, flags::KBPS, vec![]), MeterModFailed::BadCommand),
        (add(2, both, BandKind::Drop), MeterModFailed::BadFlags),
        (add(2, flags::KBPS, unknown), MeterModFailed::BadBand),
        (add(2, flags::KBPS, BandKind::DscpRemark { prec_level: 0 }), MeterModFailed::BadBandValue),
        (change(MeterCommand::Add, 2, flags::KBPS, vec![band(BandKind::Drop); 2000]), MeterModFailed::OutOfBands),
    ];
    for (body, code) in cases {
        raised.note(code, told(bench, body));
    }
    // Adds one meter more than the maximum.
    let full = (2..100_000).find_map(|number| told(bench, add(number, flags::KBPS, BandKind::Drop)));
    raised.note(MeterModFailed::OutOfMeters, full);
    assert_eq!(told(bench, change(MeterCommand::Delete, MeterId::ALL.0, 0, vec![])), None);
}

fn failed_tables_and_queues(bench: &mut Bench, raised: &mut Raised) {
    let change = |table, config| {
        let (eviction, vacancy, properties) = (None, None, Vec::new());
        Body::TableMod(TableMod { table: TableId(table), config, eviction, vacancy, properties })
    };
    raised.note(TableModFailed::BadTable, told(bench, change(200, 0)));
    raised.note(TableModFailed::BadConfig, told(bench, change(0, 1 << 9)));
    raised.note(QueueOpFailed::BadPort, told(bench, asked(RequestBody::Queue { port: PortNo(99), queue: 1 })));
    raised.note(QueueOpFailed::BadQueue, told(bench, asked(RequestBody::Queue { port: PortNo(1), queue: 77 })));
}

#[test]
fn every_error_is_raised_where_it_belongs() {
    let (mut bench, mut raised) = (Bench::controlled(), Raised::default());
    bench.datapath.channel_up(bench.now, NEWEST, Version::V15);
    let all = [
        bad_requests,
        bad_actions,
        bad_instructions,
        bad_matches,
        failed_flow_mods,
        failed_settings,
        failed_group_mods,
        failed_meter_mods,
        failed_tables_and_queues,
        later_errors,
    ];
    all.into_iter().for_each(|raise| raise(&mut bench, &mut raised));
}
