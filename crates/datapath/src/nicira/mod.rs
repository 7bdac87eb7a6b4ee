//! Runs Nicira's actions.
//!
//! Resubmit looks a packet up again while its actions run ([`crate::pipeline::resubmit`]). Operations that might go
//! on without end have a limit for each received packet: [`crate::packet_limits`]. A packet
//! that reaches a limit is dropped, but copies sent before stay sent.
mod hash;
mod learn;

pub(crate) use learn::learned_entry;

use crate::DropReason;
use crate::action_set::ActionSet;
use crate::effects::{Effects, NO_COOKIE, PuntOrigin};
use crate::execute;
use crate::packet::{PipelinePacket, port_of};
use std::ops::ControlFlow;
use weir_openflow::model::nicira::{BundleAction, ControllerAction, NxAction, RequestedReason};
use weir_openflow::model::{Action, PacketInReason, PortNo, Subfield};
use weir_packet::Field;
use weir_packet::edit::{self, EditError};
use weir_packet::frame::DEFAULT_QUEUE;

/// Runs actions of which some look packets up; `set` is the packet's action set.
#[cold]
pub(crate) fn run<'a>(
    actions: impl IntoIterator<Item = &'a Action>,
    packet: &mut PipelinePacket,
    origin: PuntOrigin,
    set: &mut ActionSet,
    fx: &mut impl Effects,
) -> ControlFlow<()> {
    for action in actions {
        if let Action::Nx(nx) = action {
            fx.acting(action);
            act(nx, packet, origin, set, fx)?;
        } else {
            execute::run([action], packet, origin, fx)?;
        }
    }
    ControlFlow::Continue(())
}

/// Runs one action outside an entry's list: an action of a packet-out, which has its own action set, or one that
/// needs no action set.
#[cold]
pub(crate) fn alone(
    nx: &NxAction,
    packet: &mut PipelinePacket,
    origin: PuntOrigin,
    fx: &mut impl Effects,
) -> ControlFlow<()> {
    let mut set = ActionSet::default();
    act(nx, packet, origin, &mut set, fx)?;
    if set.is_empty() {
        return ControlFlow::Continue(());
    }
    execute::run(set.actions(), packet, PuntOrigin { cookie: NO_COOKIE, ..origin }, fx)
}

fn act(
    nx: &NxAction,
    packet: &mut PipelinePacket,
    origin: PuntOrigin,
    set: &mut ActionSet,
    fx: &mut impl Effects,
) -> ControlFlow<()> {
    match nx {
        NxAction::Resubmit { port, table } => {
            let port = if *port == PortNo::IN_PORT { packet.in_port } else { *port };
            return fx.resubmit_to(table.map_or(origin.table, |table| table.0), port, packet, set);
        }
        NxAction::Clone(actions) => return clone(actions, packet, origin, set, fx),
        NxAction::Exit => return ControlFlow::Break(()),
        NxAction::DecTtl(ids) => return dec_ttl(ids, packet, origin, fx),
        NxAction::Load { dst, value } => write(packet, *dst, u128::from(*value), fx),
        NxAction::SetTunnel { id, .. } => packet.set(Field::TunnelId, u128::from(*id), fx),
        NxAction::WriteMetadata { metadata, mask } => packet.write_metadata(*metadata, *mask, fx),
        NxAction::PopQueue => {
            packet.set_queue(DEFAULT_QUEUE);
        }
        NxAction::Multipath(multipath) => {
            let link = hash::link(multipath, packet.key());
            write(packet, multipath.dst, link.into(), fx);
        }
        NxAction::Bundle(bundle) => self::bundle(bundle, packet, origin, fx),
        NxAction::OutputReg { src, max_len } => {
            let port = port_of(read(packet, *src));
            execute::output(port, *max_len, packet, origin, fx);
        }
        NxAction::Controller(controller) => tell(controller, packet, origin, fx),
        NxAction::Push(src) => {
            let value = read(packet, *src);
            if !packet.push(value, fx) {
                packet.dropped(DropReason::StackFull, fx);
                return ControlFlow::Break(());
            }
        }
        NxAction::Pop(dst) => {
            // Popping an empty stack writes nothing (as in Open vSwitch).
            if let Some(value) = packet.pop(fx) {
                write(packet, *dst, value, fx);
            }
        }
        NxAction::OutputTrunc { port, max_len } => {
            let port = if *port == PortNo::IN_PORT { packet.in_port } else { *port };
            match fx.ports().may_send(port) {
                Ok(()) => packet.send_start(port, usize::try_from(*max_len).unwrap_or(usize::MAX), fx),
                Err(reason) => packet.dropped(reason, fx),
            }
        }
        NxAction::CheckLarger { length, dst } => {
            let tags = 4 * usize::from(packet.layers().vlan_tags);
            let is_larger = packet.frame.len().saturating_sub(tags) > usize::from(*length);
            write(packet, *dst, is_larger.into(), fx);
        }
        NxAction::Learn(learn) => {
            let flow = learned_entry(learn, packet.key());
            fx.learn(flow);
        }
        // A note has no effect; the other action is refused by the check.
        NxAction::Note(_) | NxAction::FinTimeout { .. } => {}
    }
    ControlFlow::Continue(())
}

fn read(packet: &mut PipelinePacket, part: Subfield) -> u128 {
    (packet.key().get(part.field) & part.mask()) >> part.offset
}

fn write(packet: &mut PipelinePacket, part: Subfield, value: u128, fx: &mut impl Effects) {
    packet.set_masked(part.field, value << part.offset & part.mask(), part.mask(), fx);
}

/// Decrements the TTL. If it has expired, punts the packet to the controllers `ids` and returns `Break`.
fn dec_ttl(ids: &[u16], packet: &mut PipelinePacket, origin: PuntOrigin, fx: &mut impl Effects) -> ControlFlow<()> {
    let Err(problem) = packet.try_edit(fx, edit::dec_nw_ttl) else { return ControlFlow::Continue(()) };
    if problem != EditError::TtlExpired {
        execute::give_up(problem.into(), packet, origin, fx);
        return ControlFlow::Break(());
    }
    let origin = PuntOrigin { reason: PacketInReason::InvalidTtl, ..origin };
    let told = ids.iter().filter(|id| fx.punt_to(packet, origin, &controller(**id)).is_ok()).count();
    if told > 0 {
        packet.punted()
    } else {
        packet.dropped(DropReason::TtlExpired, fx)
    }
    ControlFlow::Break(())
}

fn controller(id: u16) -> ControllerAction {
    ControllerAction { id, ..ControllerAction::new(weir_openflow::model::action::NO_BUFFER) }
}

fn tell(action: &ControllerAction, packet: &mut PipelinePacket, origin: PuntOrigin, fx: &mut impl Effects) {
    let reason = match action.reason {
        RequestedReason::Known(reason) => reason,
        RequestedReason::Unknown(_) => PacketInReason::Action,
    };
    match fx.punt_to(packet, PuntOrigin { reason, ..origin }, action) {
        Ok(()) => packet.punted(),
        Err(reason) => packet.dropped(reason, fx),
    }
}

fn bundle(bundle: &BundleAction, packet: &mut PipelinePacket, origin: PuntOrigin, fx: &mut impl Effects) {
    let port = hash::member(bundle, packet.key(), |port| fx.ports().may_send(port).is_ok());
    match (bundle.dst, port) {
        // Open vSwitch's number for no port is 0xffff.
        (Some(dst), port) => write(packet, dst, port.map_or(0xffff, |port| u128::from(port.0)), fx),
        (None, Some(port)) => execute::output(port, 0, packet, origin, fx),
        (None, None) => packet.dropped(DropReason::PortDown, fx),
    }
}

/// Runs actions on a copy of the packet. Their changes and their end affect only the copy.
fn clone(
    actions: &[Action],
    packet: &mut PipelinePacket,
    origin: PuntOrigin,
    set: &mut ActionSet,
    fx: &mut impl Effects,
) -> ControlFlow<()> {
    packet.on_copy(fx, |copy, fx| {
        // The copy ends with these actions, so it is not counted as dropped for lack of an output.
        copy.punted();
        let _ = run(actions, copy, origin, set, fx);
    });
    ControlFlow::Continue(())
}
