//! Checks Nicira's actions, with the same error codes as Open vSwitch.
use super::{ActionListKind, KnownFields, is_writable};
use crate::nicira::learned_entry;
use weir_openflow::Version;
use weir_openflow::model::error::{BadAction, FlowModFailed};
use weir_openflow::model::nicira::{LearnAction, LearnDst, LearnSrc, MultipathAction, MultipathAlgorithm, NxAction};
use weir_openflow::model::{ErrorType, PortNo, Subfield, TableId};
use weir_packet::FlowKey;

/// Maximum number of links for `hrw`, because it examines every link for each packet.
const MAX_HRW_LINKS: u16 = 1024;
/// Maximum number of members of a bundle (as in Open vSwitch).
const MAX_MEMBERS: usize = 2048;
/// Minimum number of bytes sent: an Ethernet header.
const LEAST_BYTES: u32 = 14;
/// Supported flags of `learn`: flow-removed messages for learned entries.
const LEARN_FLAGS: u16 = 1;

/// Checks one action and updates `known` to the facts after it.
pub(crate) fn check(
    nx: &NxAction,
    known: &mut KnownFields,
    place: ActionListKind,
    version: Version,
) -> Result<(), ErrorType> {
    match nx {
        // Refused in buckets, because a bucket runs when its group is reached, on a packet whose resubmits are not
        // counted.
        nx if nx.looks_up() && place == ActionListKind::Bucket => Err(BadAction::BadArgument.into()),
        NxAction::Resubmit { port, .. } if !is_port(*port) => Err(BadAction::BadOutPort.into()),
        NxAction::Resubmit { .. } => {
            // The entries that the resubmit finds are not known.
            known.forget();
            Ok(())
        }
        NxAction::Load { dst, .. } | NxAction::Pop(dst) | NxAction::CheckLarger { dst, .. } => write(*dst, known),
        NxAction::Push(src) | NxAction::OutputReg { src, .. } => read(*src, known),
        NxAction::Multipath(multipath) => self::multipath(multipath, known),
        NxAction::Bundle(bundle) => {
            if bundle.members.len() > MAX_MEMBERS {
                return Err(BadAction::BadArgument.into());
            }
            if bundle.members.iter().any(|port| !is_port(*port)) {
                return Err(BadAction::BadOutPort.into());
            }
            bundle.dst.map_or(Ok(()), |dst| write(dst, known))
        }
        NxAction::OutputTrunc { port, .. } if !is_port(*port) => Err(BadAction::BadOutPort.into()),
        NxAction::OutputTrunc { max_len, .. } if *max_len < LEAST_BYTES => Err(BadAction::BadArgument.into()),
        NxAction::DecTtl(ids) if ids.is_empty() => Err(BadAction::BadLen.into()),
        NxAction::DecTtl(_) if !known.is_ip() && version != Version::V10 => Err(BadAction::MatchInconsistent.into()),
        NxAction::Clone(actions) => super::nested(actions, known, place, version),
        NxAction::Learn(learn) => self::learn(learn, known, place),
        // Packets do not wait for controllers, and they do not change their entry's time-outs.
        NxAction::Controller(controller) if controller.pause => Err(BadAction::BadArgument.into()),
        NxAction::FinTimeout { .. } => Err(BadAction::BadExpType.into()),
        _ => Ok(()),
    }
}

fn is_port(port: PortNo) -> bool {
    port.is_ordinary() || port == PortNo::IN_PORT || port == PortNo::LOCAL
}

fn read(src: Subfield, known: &KnownFields) -> Result<(), ErrorType> {
    if !src.is_valid() {
        return Err(BadAction::BadArgument.into());
    }
    let there = known.has(src.field.prerequisite());
    if there { Ok(()) } else { Err(BadAction::MatchInconsistent.into()) }
}

fn write(dst: Subfield, known: &mut KnownFields) -> Result<(), ErrorType> {
    if !is_writable(dst.field) {
        return Err(BadAction::BadSetArgument.into());
    }
    read(dst, known)?;
    known.blur(dst.field);
    Ok(())
}

fn multipath(multipath: &MultipathAction, known: &mut KnownFields) -> Result<(), ErrorType> {
    if multipath.algorithm == MultipathAlgorithm::Hrw && multipath.max_link >= MAX_HRW_LINKS {
        return Err(BadAction::BadArgument.into());
    }
    write(multipath.dst, known)
}

/// Checks the parts of a `learn` action that are equal for every packet.
fn learn(learn: &LearnAction, known: &KnownFields, place: ActionListKind) -> Result<(), ErrorType> {
    let has_fin = learn.fin_idle_timeout != 0 || learn.fin_hard_timeout != 0;
    if has_fin || learn.flags & !LEARN_FLAGS != 0 || place == ActionListKind::Bucket {
        return Err(BadAction::BadArgument.into());
    }
    if learn.table == TableId::ALL {
        return Err(FlowModFailed::BadTableId.into());
    }
    for spec in &learn.specs {
        if let LearnSrc::Field(src) = spec.src {
            read(src, known)?;
        }
        if let LearnDst::Load(dst) = spec.dst
            && !is_writable(dst.field)
        {
            return Err(BadAction::BadSetArgument.into());
        }
    }
    let flow = learned_entry(learn, &FlowKey::EMPTY);
    flow.matching.key_and_mask().map(|_| ())
}
