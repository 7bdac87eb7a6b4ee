//! Reads and writes Nicira's actions (Open vSwitch's `NXAST_*`): those that no OpenFlow version has as a standard
//! action, and those that only 1.0 lacks.
//!
//! Actions that weir does not know stay uninterpreted experimenter actions, for the switch to refuse.
use super::{learn, nxm};
use crate::model::action::NO_BUFFER;
use crate::model::error::BadAction;
use crate::model::nicira::{
    BundleAction, ControllerAction, HashFields, MAX_CLONES, MultipathAction, MultipathAlgorithm, NICIRA, NxAction,
    RequestedReason,
};
use crate::model::{Action, Bytes, GroupId, MatchField, Subfield, TableId, Version};
use crate::v10::port;
use crate::v13::oxm;
use crate::wire::action::padded;
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, port::output};
use weir_packet::Field;

/// Action type of experimenter (1.0: vendor) actions.
const VENDOR: u16 = 0xffff;

const RESUBMIT: u16 = 1;
const SET_TUNNEL: u16 = 2;
const SET_QUEUE: u16 = 4;
const POP_QUEUE: u16 = 5;
const REG_MOVE: u16 = 6;
const REG_LOAD: u16 = 7;
const NOTE: u16 = 8;
const SET_TUNNEL64: u16 = 9;
const MULTIPATH: u16 = 10;
const BUNDLE: u16 = 12;
const BUNDLE_LOAD: u16 = 13;
const RESUBMIT_TABLE: u16 = 14;
const OUTPUT_REG: u16 = 15;
const LEARN: u16 = 16;
const EXIT: u16 = 17;
const DEC_TTL: u16 = 18;
const FIN_TIMEOUT: u16 = 19;
const CONTROLLER: u16 = 20;
const DEC_TTL_CNT_IDS: u16 = 21;
const WRITE_METADATA: u16 = 22;
const PUSH_MPLS: u16 = 23;
const POP_MPLS: u16 = 24;
const SET_MPLS_TTL: u16 = 25;
const DEC_MPLS_TTL: u16 = 26;
const STACK_PUSH: u16 = 27;
const STACK_POP: u16 = 28;
const SET_MPLS_LABEL: u16 = 30;
const SET_MPLS_TC: u16 = 31;
const OUTPUT_REG2: u16 = 32;
const REG_LOAD2: u16 = 33;
const CONTROLLER2: u16 = 37;
const OUTPUT_TRUNC: u16 = 39;
const GROUP: u16 = 40;
const CLONE: u16 = 42;
const CHECK_PKT_LARGER: u16 = 49;

/// Table number that stands for the current table.
const THIS_TABLE: u8 = 255;
/// Header of `NXM_NX_IP_TTL`, which is not a match field in weir. A load of the whole field is a set-nw-ttl.
const IP_TTL: [u8; 4] = [0x00, 0x01, 0x3a, 0x01];
/// Header of `NXM_OF_IN_PORT`, the type of a bundle's members.
const MEMBER_PORTS: u32 = 0x0000_0002;

/// Reads an experimenter action after its experimenter number `id`. `decode` reads an action of the message's
/// version, for nested actions.
pub(crate) fn decode(
    id: u32,
    action: &mut WireReader<'_>,
    decode: fn(&mut WireReader<'_>) -> Decoded<Action>,
) -> Decoded<Action> {
    if id != NICIRA || action.left() < 2 {
        return super::decode_action(id, action);
    }
    let subtype = action.clone().read_u16()?;
    // Open vSwitch, too, accepts the forms that only 1.0 needs in 1.0 only.
    let is_foreign = action.version() != Version::V10 && is_of_v10(subtype);
    if !is_known(subtype) || is_foreign {
        return super::decode_action(id, action);
    }
    action.rename("Nicira action");
    action.skip(2)?;
    if let Some(standard) = decode_standard(subtype, action)? {
        return Ok(standard);
    }
    let nx = match subtype {
        CLONE => {
            action.nest(MAX_CLONES, BadAction::TooMany)?;
            action.skip(6)?;
            NxAction::Clone(action.read_list(decode)?)
        }
        subtype => decode_own(subtype, action)?,
    };
    Ok(nx.into_action())
}

const fn is_known(subtype: u16) -> bool {
    // Not known: obsolete actions, sample, conjunction, connection tracking, and the NSH actions, which
    // `decode_known` of the parent module reads.
    matches!(
        subtype,
        RESUBMIT..=SET_TUNNEL
            | SET_QUEUE..=MULTIPATH
            | BUNDLE..=STACK_POP
            | SET_MPLS_LABEL..=REG_LOAD2
            | CONTROLLER2
            | OUTPUT_TRUNC
            | GROUP
            | CLONE
            | CHECK_PKT_LARGER
    )
}

/// Returns true if versions after 1.0 have a standard action instead of this one.
const fn is_of_v10(subtype: u16) -> bool {
    matches!(subtype, SET_QUEUE | GROUP | SET_MPLS_LABEL | SET_MPLS_TC | SET_MPLS_TTL)
        || matches!(subtype, PUSH_MPLS | POP_MPLS | DEC_MPLS_TTL | DEC_TTL)
}

/// Reads the actions that the model represents as standard actions; returns `None` for others.
fn decode_standard(subtype: u16, action: &mut WireReader<'_>) -> Decoded<Option<Action>> {
    let decoded = match subtype {
        SET_QUEUE => Action::SetQueue(long(action)?),
        GROUP => Action::Group(GroupId(long(action)?)),
        // Values that are too large lose their high bits, as in Open vSwitch.
        SET_MPLS_LABEL => Action::SetField { field: Field::MplsLabel, value: u128::from(long(action)? & 0xf_ffff) },
        SET_MPLS_TC => Action::SetField { field: Field::MplsTc, value: u128::from(byte(action)? & 7) },
        SET_MPLS_TTL => Action::SetMplsTtl(byte(action)?),
        PUSH_MPLS => Action::PushMpls(short(action)?),
        POP_MPLS => Action::PopMpls(short(action)?),
        DEC_MPLS_TTL => void(action, Action::DecMplsTtl)?,
        DEC_TTL => void(action, Action::DecNwTtl)?,
        REG_MOVE => decode_move(action)?,
        REG_LOAD2 => decode_load2(action)?,
        // These versions encode a set-field instead (see `v13::action`), so the model has one form.
        SET_TUNNEL if action.version() != Version::V10 => set_tunnel(long(action)?.into()),
        SET_TUNNEL64 if action.version() != Version::V10 => set_tunnel(long_long(action)?),
        REG_LOAD => {
            let mut ttl = action.clone();
            let bits = ttl.read_u16()?;
            if ttl.read_array::<4>()? != IP_TTL || bits != 7 {
                return Ok(None);
            }
            action.skip(6)?;
            let at = action.at();
            let value = action.read_u64()?;
            let ttl = u8::try_from(value).map_err(|_| {
                action.error_at(at, BadAction::BadArgument, format_args!("found TTL {value}, expected at most 255"))
            })?;
            Action::SetNwTtl(ttl)
        }
        _ => return Ok(None),
    };
    Ok(Some(decoded))
}

fn set_tunnel(id: u64) -> Action {
    Action::SetField { field: Field::TunnelId, value: id.into() }
}

fn decode_own(subtype: u16, action: &mut WireReader<'_>) -> Decoded<NxAction> {
    Ok(match subtype {
        RESUBMIT => {
            let port = port::decode_no(action)?;
            action.skip(4)?;
            NxAction::Resubmit { port, table: None }
        }
        RESUBMIT_TABLE => {
            let (port, table) = (port::decode_no(action)?, action.read_u8()?);
            action.skip(3)?;
            NxAction::Resubmit { port, table: (table != THIS_TABLE).then_some(TableId(table)) }
        }
        SET_TUNNEL => NxAction::SetTunnel { id: long(action)?.into(), wide: false },
        SET_TUNNEL64 => NxAction::SetTunnel { id: long_long(action)?, wide: true },
        POP_QUEUE => void(action, NxAction::PopQueue)?,
        EXIT => void(action, NxAction::Exit)?,
        REG_LOAD => decode_load(action)?,
        NOTE => NxAction::Note(action.read_rest()),
        MULTIPATH => NxAction::Multipath(decode_multipath(action)?),
        BUNDLE | BUNDLE_LOAD => NxAction::Bundle(decode_bundle(subtype == BUNDLE_LOAD, action)?),
        OUTPUT_REG | OUTPUT_REG2 => decode_output_reg(subtype == OUTPUT_REG2, action)?,
        LEARN => NxAction::Learn(learn::decode(action)?),
        FIN_TIMEOUT => {
            let (idle, hard) = (action.read_u16()?, action.read_u16()?);
            action.skip(2)?;
            NxAction::FinTimeout { idle, hard }
        }
        CONTROLLER => {
            let (max_len, id, reason) =
                (action.read_u16()?, action.read_u16()?, RequestedReason::from_number(action.read_u8()?));
            action.skip(1)?;
            NxAction::Controller(ControllerAction { max_len, id, reason, userdata: Bytes::default(), pause: false })
        }
        CONTROLLER2 => NxAction::Controller(decode_controller2(action)?),
        DEC_TTL_CNT_IDS => {
            let count = action.read_u16()?;
            action.skip(4)?;
            let ids = (0..count).map(|_| action.read_u16()).collect::<Decoded<_>>()?;
            action.read_rest();
            NxAction::DecTtl(ids)
        }
        WRITE_METADATA => {
            action.skip(6)?;
            NxAction::WriteMetadata { metadata: action.read_u64()?, mask: action.read_u64()? }
        }
        STACK_PUSH | STACK_POP => {
            let offset = action.read_u16()?;
            let mut header = action.clone();
            nxm::decode_header(&mut header)?;
            let bits = header.read_u16()?;
            let part = nxm::decode_subfield(action, offset, bits)?;
            action.read_rest();
            if subtype == STACK_PUSH { NxAction::Push(part) } else { NxAction::Pop(part) }
        }
        OUTPUT_TRUNC => {
            let port = output(action, port::decode_no)?;
            NxAction::OutputTrunc { port, max_len: action.read_u32()? }
        }
        CHECK_PKT_LARGER => {
            let (length, offset) = (action.read_u16()?, action.read_u16()?);
            let dst = nxm::decode_subfield(action, offset, 1)?;
            action.read_rest();
            NxAction::CheckLarger { length, dst }
        }
        other => {
            let reason = format!("found Nicira action {other}, which weir does not have");
            return Err(action.error(BadAction::BadExpType, reason));
        }
    })
}

/// Reads a four-byte argument after two bytes of padding.
fn long(action: &mut WireReader<'_>) -> Decoded<u32> {
    action.skip(2)?;
    action.read_u32()
}

/// Reads an eight-byte argument after six bytes of padding.
fn long_long(action: &mut WireReader<'_>) -> Decoded<u64> {
    action.skip(6)?;
    action.read_u64()
}

fn short(action: &mut WireReader<'_>) -> Decoded<u16> {
    let value = action.read_u16()?;
    action.skip(4)?;
    Ok(value)
}

fn byte(action: &mut WireReader<'_>) -> Decoded<u8> {
    let value = action.read_u8()?;
    action.skip(5)?;
    Ok(value)
}

fn void<T>(action: &mut WireReader<'_>, value: T) -> Decoded<T> {
    action.skip(6)?;
    Ok(value)
}

fn decode_move(action: &mut WireReader<'_>) -> Decoded<Action> {
    let (bits, src, dst) = (action.read_u16()?, action.read_u16()?, action.read_u16()?);
    let src = nxm::decode_subfield(action, src, bits)?;
    let dst = nxm::decode_subfield(action, dst, bits)?;
    action.read_rest();
    Ok(Action::Move { src, dst })
}

fn decode_load(action: &mut WireReader<'_>) -> Decoded<NxAction> {
    let (offset, bits) = nxm::split_bits(action.read_u16()?);
    let dst = nxm::decode_subfield(action, offset, bits)?;
    let at = action.at();
    let value = action.read_u64()?;
    if value & !(u64::MAX >> (64 - bits)) != 0 {
        let reason = format!("found {value:#x} for {bits} bits of {}", dst.field);
        return Err(action.error_at(at, BadAction::BadArgument, reason));
    }
    Ok(NxAction::Load { dst, value })
}

fn decode_load2(action: &mut WireReader<'_>) -> Decoded<Action> {
    action.skip(6)?;
    let at = action.at();
    let entry = oxm::decode_entry(action, BadAction::BadSetLen.into())?;
    action.read_rest();
    match entry {
        MatchField::Known { field, value, mask } => {
            let mask = mask.filter(|mask| *mask != field.all_ones());
            if (value | mask.unwrap_or(0)) & !field.all_ones() != 0 || value & !mask.unwrap_or(value) != 0 {
                let reason = format!("found {value:#x} under {mask:x?} for {field}");
                return Err(action.error_at(at, BadAction::BadSetArgument, reason));
            }
            Ok(match mask {
                None => Action::SetField { field, value },
                Some(mask) => Action::SetFieldMasked { field, value, mask },
            })
        }
        MatchField::Raw(raw) => Ok(Action::SetFieldRaw(raw)),
    }
}

fn decode_fields(action: &mut WireReader<'_>) -> Decoded<HashFields> {
    use HashFields::{EthSrc, NwDst, NwSrc, SymmetricL3, SymmetricL3L4, SymmetricL3L4Udp, SymmetricL4};
    let (at, number) = (action.at(), action.read_u16()?);
    let all = [EthSrc, SymmetricL4, SymmetricL3L4, SymmetricL3L4Udp, NwSrc, NwDst, SymmetricL3];
    all.get(usize::from(number)).copied().ok_or_else(|| {
        action.error_at(at, BadAction::BadArgument, format_args!("found hash fields {number}, expected 0 to 6"))
    })
}

fn decode_multipath(action: &mut WireReader<'_>) -> Decoded<MultipathAction> {
    use MultipathAlgorithm::{HashThreshold, Hrw, IterHash, ModuloN};
    let (fields, basis) = (decode_fields(action)?, action.read_u16()?);
    action.skip(2)?;
    let (at, number) = (action.at(), action.read_u16()?);
    let algorithm = [ModuloN, HashThreshold, Hrw, IterHash].get(usize::from(number)).copied().ok_or_else(|| {
        action.error_at(at, BadAction::BadArgument, format_args!("found algorithm {number}, expected 0 to 3"))
    })?;
    let (max_link, arg) = (action.read_u16()?, action.read_u32()?);
    action.skip(2)?;
    let (offset, bits) = nxm::split_bits(action.read_u16()?);
    let at = action.at();
    let dst = nxm::decode_subfield(action, offset, bits)?;
    // The number of the highest link must fit the destination, as in Open vSwitch.
    if bits < 16 && max_link >> bits != 0 {
        let reason = format!("found {bits} bits for links up to {max_link}");
        return Err(action.error_at(at, BadAction::BadArgument, reason));
    }
    Ok(MultipathAction { fields, basis, algorithm, max_link, arg, dst })
}

fn decode_bundle(loads: bool, action: &mut WireReader<'_>) -> Decoded<BundleAction> {
    let wrong = |action: &WireReader<'_>, at, what| Err(action.error_at(at, BadAction::BadArgument, what));
    let (at, algorithm) = (action.at(), action.read_u16()?);
    let (fields, basis) = (decode_fields(action)?, action.read_u16()?);
    let (kind, count) = (action.read_u32()?, action.read_u16()?);
    if algorithm > 1 || kind != MEMBER_PORTS {
        return wrong(action, at, format!("found algorithm {algorithm} over {kind:#x}, expected 0 or 1 over ports"));
    }
    let (offset, bits) = nxm::split_bits(action.read_u16()?);
    let dst = if loads { Some(nxm::decode_subfield(action, offset, bits)?) } else { None };
    action.skip(if loads { 4 } else { 8 })?;
    if dst.is_some_and(|dst| dst.bits < 16) {
        return wrong(action, at, format!("found {bits} bits for a port, expected at least 16"));
    }
    let members = (0..count).map(|_| port::decode_no(action)).collect::<Decoded<_>>()?;
    action.read_rest();
    Ok(BundleAction { is_hrw: algorithm == 1, fields, basis, members, dst })
}

fn decode_output_reg(has_long_header: bool, action: &mut WireReader<'_>) -> Decoded<NxAction> {
    let (offset, bits) = nxm::split_bits(action.read_u16()?);
    if has_long_header {
        let max_len = action.read_u16()?;
        let src = nxm::decode_subfield(action, offset, bits)?;
        action.read_rest();
        return Ok(NxAction::OutputReg { src, max_len });
    }
    let src = nxm::decode_subfield(action, offset, bits)?;
    let max_len = action.read_u16()?;
    action.skip(6)?;
    Ok(NxAction::OutputReg { src, max_len })
}

const PROPERTY_MAX_LEN: u16 = 0;
const PROPERTY_ID: u16 = 1;
const PROPERTY_REASON: u16 = 2;
const PROPERTY_USERDATA: u16 = 3;
const PROPERTY_PAUSE: u16 = 4;

fn decode_controller2(action: &mut WireReader<'_>) -> Decoded<ControllerAction> {
    action.skip(6)?;
    let mut controller = ControllerAction::new(NO_BUFFER);
    while !action.is_empty() {
        let mut property = action.take_element("property of controller", 2, 4, BadAction::BadLen)?;
        let padding = property.left().next_multiple_of(8) - property.left();
        action.skip(padding.min(action.left()))?;
        let kind = property.read_u16()?;
        property.skip(2)?;
        match kind {
            PROPERTY_MAX_LEN => controller.max_len = property.read_u16()?,
            PROPERTY_ID => controller.id = property.read_u16()?,
            PROPERTY_REASON => controller.reason = RequestedReason::from_number(property.read_u8()?),
            PROPERTY_USERDATA => controller.userdata = property.read_rest(),
            PROPERTY_PAUSE => controller.pause = true,
            other => {
                let reason = format!("found type {other}, expected 0 to 4");
                return Err(property.error(BadAction::BadArgument, reason));
            }
        }
        property.read_rest();
    }
    Ok(controller)
}

/// Writes an action. `list` writes actions of the message's version, for nested actions.
pub(crate) fn encode(
    action: &NxAction,
    writer: &mut WireWriter<'_>,
    list: &dyn Fn(&[Action], &mut WireWriter<'_>) -> Encoded,
) -> Encoded {
    let subtype = subtype(action);
    // A load has only four bytes for the field's header. For an eight-byte header, this sends a set-field, as Open
    // vSwitch does.
    if let NxAction::Load { dst, value } = action
        && nxm::header_bytes(*dst) > 4
    {
        let (value, mask) = (u128::from(*value) << dst.offset, dst.mask());
        return encode_load2(dst.field, value, Some(mask).filter(|mask| *mask != dst.field.all_ones()), writer);
    }
    nicira(subtype, writer, |writer| match action {
        NxAction::Resubmit { port, table } => {
            port::encode_no(*port, writer)?;
            writer.write_u8(table.map_or(THIS_TABLE, |table| table.0));
            Ok(())
        }
        NxAction::Load { dst, value } => {
            nxm::encode_bits(*dst, writer)?;
            nxm::encode_header(*dst, writer)?;
            writer.write_u64(*value);
            Ok(())
        }
        NxAction::SetTunnel { id, .. } => {
            if subtype == SET_TUNNEL {
                writer.write_zeros(2);
                writer.write_u32(u32::try_from(*id).unwrap_or(u32::MAX));
            } else {
                writer.write_zeros(6);
                writer.write_u64(*id);
            }
            Ok(())
        }
        NxAction::PopQueue | NxAction::Exit => Ok(()),
        NxAction::Note(note) => {
            writer.write_bytes(&note.0);
            Ok(())
        }
        NxAction::DecTtl(ids) => {
            let count = u16::try_from(ids.len()).map_err(|_| writer.cannot("more than 65535 controllers"))?;
            writer.write_u16(count);
            writer.write_zeros(4);
            ids.iter().for_each(|id| writer.write_u16(*id));
            Ok(())
        }
        NxAction::Multipath(multipath) => encode_multipath(multipath, writer),
        NxAction::Bundle(bundle) => encode_bundle(bundle, writer),
        NxAction::OutputReg { src, max_len } => encode_output_reg(*src, *max_len, subtype, writer),
        NxAction::Learn(learn) => learn::encode(learn, writer),
        NxAction::FinTimeout { idle, hard } => {
            writer.write_u16(*idle);
            writer.write_u16(*hard);
            Ok(())
        }
        NxAction::Controller(controller) => {
            encode_controller(controller, subtype, writer);
            Ok(())
        }
        NxAction::WriteMetadata { metadata, mask } => {
            writer.write_zeros(6);
            writer.write_u64(*metadata);
            writer.write_u64(*mask);
            Ok(())
        }
        NxAction::Push(part) | NxAction::Pop(part) => {
            writer.write_u16(part.offset);
            nxm::encode_header(*part, writer)?;
            writer.write_u16(part.bits);
            // The length is always that of a long header.
            writer.write_zeros(10 - nxm::header_bytes(*part));
            Ok(())
        }
        NxAction::OutputTrunc { port, max_len } => {
            port::encode_no(*port, writer)?;
            writer.write_u32(*max_len);
            Ok(())
        }
        NxAction::Clone(actions) => {
            writer.write_zeros(6);
            list(actions, writer)
        }
        NxAction::CheckLarger { length, dst } => {
            writer.write_u16(*length);
            writer.write_u16(dst.offset);
            nxm::encode_header(*dst, writer)?;
            writer.write_zeros(10 - nxm::header_bytes(*dst));
            Ok(())
        }
    })
}

/// Writes an action of a subtype, padded to a multiple of eight bytes.
fn nicira(subtype: u16, writer: &mut WireWriter<'_>, body: impl FnOnce(&mut WireWriter<'_>) -> Encoded) -> Encoded {
    padded(VENDOR, writer, |writer| {
        writer.write_u32(NICIRA);
        writer.write_u16(subtype);
        let start = writer.at();
        body(writer)?;
        // The whole action has at least sixteen bytes.
        writer.write_zeros(6_usize.saturating_sub(writer.at() - start));
        Ok(())
    })
}

fn subtype(action: &NxAction) -> u16 {
    match action {
        NxAction::Resubmit { .. } => RESUBMIT_TABLE,
        NxAction::Load { .. } => REG_LOAD,
        NxAction::SetTunnel { id, wide } if *wide || *id > u64::from(u32::MAX) => SET_TUNNEL64,
        NxAction::SetTunnel { .. } => SET_TUNNEL,
        NxAction::PopQueue => POP_QUEUE,
        NxAction::Note(_) => NOTE,
        NxAction::Exit => EXIT,
        NxAction::DecTtl(_) => DEC_TTL_CNT_IDS,
        NxAction::Multipath(_) => MULTIPATH,
        NxAction::Bundle(BundleAction { dst: None, .. }) => BUNDLE,
        NxAction::Bundle(_) => BUNDLE_LOAD,
        NxAction::OutputReg { src, .. } if nxm::header_bytes(*src) > 4 => OUTPUT_REG2,
        NxAction::OutputReg { .. } => OUTPUT_REG,
        NxAction::Learn(_) => LEARN,
        NxAction::FinTimeout { .. } => FIN_TIMEOUT,
        NxAction::Controller(controller) if controller.pause || !controller.userdata.0.is_empty() => CONTROLLER2,
        NxAction::Controller(_) => CONTROLLER,
        NxAction::WriteMetadata { .. } => WRITE_METADATA,
        NxAction::Push(_) => STACK_PUSH,
        NxAction::Pop(_) => STACK_POP,
        NxAction::OutputTrunc { .. } => OUTPUT_TRUNC,
        NxAction::Clone(_) => CLONE,
        NxAction::CheckLarger { .. } => CHECK_PKT_LARGER,
    }
}

fn encode_multipath(multipath: &MultipathAction, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u16(multipath.fields as u16);
    writer.write_u16(multipath.basis);
    writer.write_zeros(2);
    writer.write_u16(multipath.algorithm as u16);
    writer.write_u16(multipath.max_link);
    writer.write_u32(multipath.arg);
    writer.write_zeros(2);
    nxm::encode_bits(multipath.dst, writer)?;
    encode_short_header(multipath.dst, writer)
}

fn encode_bundle(bundle: &BundleAction, writer: &mut WireWriter<'_>) -> Encoded {
    let count = u16::try_from(bundle.members.len()).map_err(|_| writer.cannot("more than 65535 members"))?;
    writer.write_u16(bundle.is_hrw.into());
    writer.write_u16(bundle.fields as u16);
    writer.write_u16(bundle.basis);
    writer.write_u32(MEMBER_PORTS);
    writer.write_u16(count);
    match bundle.dst {
        None => writer.write_zeros(6),
        Some(dst) => {
            nxm::encode_bits(dst, writer)?;
            encode_short_header(dst, writer)?;
        }
    }
    writer.write_zeros(4);
    bundle.members.iter().try_for_each(|port| port::encode_no(*port, writer))
}

/// Writes a field's header where there are only four bytes for it; fails for an eight-byte header.
fn encode_short_header(part: Subfield, writer: &mut WireWriter<'_>) -> Encoded {
    if nxm::header_bytes(part) > 4 {
        return Err(writer.cannot(format!("a number written to {}, whose header is too long", part.field)));
    }
    nxm::encode_header(part, writer)
}

fn encode_output_reg(src: Subfield, max_len: u16, subtype: u16, writer: &mut WireWriter<'_>) -> Encoded {
    nxm::encode_bits(src, writer)?;
    if subtype == OUTPUT_REG2 {
        writer.write_u16(max_len);
        return nxm::encode_header(src, writer);
    }
    nxm::encode_header(src, writer)?;
    writer.write_u16(max_len);
    writer.write_zeros(6);
    Ok(())
}

fn encode_controller(controller: &ControllerAction, subtype: u16, writer: &mut WireWriter<'_>) {
    if subtype == CONTROLLER {
        writer.write_u16(controller.max_len);
        writer.write_u16(controller.id);
        writer.write_u8(controller.reason.number());
        return writer.write_zeros(1);
    }
    writer.write_zeros(6);
    let property = |kind: u16, value: &[u8], writer: &mut WireWriter<'_>| {
        let start = writer.at();
        writer.write_u16(kind);
        // The longest value is userdata from a message, which has at most 65535 bytes.
        writer.write_u16(u16::try_from(value.len() + 4).unwrap_or(u16::MAX));
        writer.write_bytes(value);
        writer.pad_from(start);
    };
    if controller.max_len != NO_BUFFER {
        property(PROPERTY_MAX_LEN, &(u32::from(controller.max_len) << 16).to_be_bytes(), writer);
    }
    if controller.id != 0 {
        property(PROPERTY_ID, &(u32::from(controller.id) << 16).to_be_bytes(), writer);
    }
    if controller.reason != RequestedReason::DEFAULT {
        property(PROPERTY_REASON, &[controller.reason.number()], writer);
    }
    if !controller.userdata.0.is_empty() {
        property(PROPERTY_USERDATA, &controller.userdata.0, writer);
    }
    if controller.pause {
        property(PROPERTY_PAUSE, &[], writer);
    }
}

/// Writes a copy of bits from one field to another (`NXAST_REG_MOVE`).
pub(crate) fn encode_move(src: Subfield, dst: Subfield, writer: &mut WireWriter<'_>) -> Encoded {
    nicira(REG_MOVE, writer, |writer| {
        writer.write_u16(src.bits);
        writer.write_u16(src.offset);
        writer.write_u16(dst.offset);
        nxm::encode_header(src, writer)?;
        nxm::encode_header(dst, writer)
    })
}

/// Writes a set-field with an optional mask for versions that lack it (`NXAST_REG_LOAD2`).
pub(crate) fn encode_load2(field: Field, value: u128, mask: Option<u128>, writer: &mut WireWriter<'_>) -> Encoded {
    nicira(REG_LOAD2, writer, |writer| {
        writer.write_zeros(6);
        oxm::encode_field(field, value, mask, writer)
    })
}

/// Writes an action that 1.0 lacks as a Nicira action; returns `None` if there is none for it.
pub(crate) fn encode_for_v10(action: &Action, writer: &mut WireWriter<'_>) -> Option<Encoded> {
    let long = |subtype, argument: u32, writer: &mut WireWriter<'_>| {
        nicira(subtype, writer, |writer| {
            writer.write_zeros(2);
            writer.write_u32(argument);
            Ok(())
        })
    };
    let bytes = |subtype, bytes: &[u8], writer: &mut WireWriter<'_>| {
        nicira(subtype, writer, |writer| {
            writer.write_bytes(bytes);
            Ok(())
        })
    };
    Some(match *action {
        Action::SetQueue(queue) => long(SET_QUEUE, queue, writer),
        Action::Group(group) => long(GROUP, group.0, writer),
        Action::PushMpls(kind) => bytes(PUSH_MPLS, &kind.to_be_bytes(), writer),
        Action::PopMpls(kind) => bytes(POP_MPLS, &kind.to_be_bytes(), writer),
        Action::SetMplsTtl(ttl) => bytes(SET_MPLS_TTL, &[ttl], writer),
        Action::DecMplsTtl => bytes(DEC_MPLS_TTL, &[], writer),
        Action::DecNwTtl => bytes(DEC_TTL, &[], writer),
        Action::SetNwTtl(ttl) => nicira(REG_LOAD, writer, |writer| {
            writer.write_u16(7);
            writer.write_bytes(&IP_TTL);
            writer.write_u64(ttl.into());
            Ok(())
        }),
        Action::Move { src, dst } => encode_move(src, dst, writer),
        Action::SetField { field: Field::MplsLabel, value } => {
            long(SET_MPLS_LABEL, u32::try_from(value).unwrap_or(u32::MAX), writer)
        }
        Action::SetField { field: Field::MplsTc, value } => {
            bytes(SET_MPLS_TC, &[u8::try_from(value).unwrap_or(u8::MAX)], writer)
        }
        Action::SetField { field, value } => encode_load2(field, value, None, writer),
        Action::SetFieldMasked { field, value, mask } => encode_load2(field, value, Some(mask), writer),
        Action::Nx(ref nx) => encode(nx, writer, &crate::v10::action::encode_list),
        _ => return None,
    })
}
