//! Runs actions on a packet (OpenFlow 1.3.5, 5.12; OpenFlow 1.0.0, 3.3).
use crate::DropReason;
use crate::effects::MeterVerdict;
use crate::effects::{Effects, PuntOrigin};
use crate::meter;
use crate::nicira;
use crate::normal::NormalDestination;
use crate::packet::PipelinePacket;
use std::ops::ControlFlow;
use weir_openflow::model::action::NO_BUFFER;
use weir_openflow::model::{Action, EncapHeader, MeterId, PacketInReason, PortNo};
use weir_packet::edit::{self, EditError};
use weir_packet::field::{VLAN_PRESENT, eth_type};
use weir_packet::offload::WireSize;
use weir_packet::parse::{NetworkProtocol, TransportProtocol};
use weir_packet::{Field, Frame, Layers};

/// Reason why the rest of an action list is not run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ActionListStop {
    /// An edit of the frame failed.
    Edit(EditError),
    /// A meter dropped the packet and counted the drop.
    Metered,
}

impl From<EditError> for ActionListStop {
    fn from(error: EditError) -> ActionListStop {
        ActionListStop::Edit(error)
    }
}

/// Runs actions in order. Returns `Break` if the packet ends here, because it was dropped or punted to a controller.
#[inline]
pub(crate) fn run<'a>(
    actions: impl IntoIterator<Item = &'a Action>,
    packet: &mut PipelinePacket,
    origin: PuntOrigin,
    fx: &mut impl Effects,
) -> ControlFlow<()> {
    for action in actions {
        fx.acting(action);
        match *action {
            // Only output is inlined, because nearly every packet runs one. For the other actions a call costs
            // little.
            Action::Output { port, max_len } => output(port, max_len, packet, origin, fx),
            _ => run_other(action, packet, &origin, fx)?,
        }
    }
    ControlFlow::Continue(())
}

// `origin` is passed by reference here and in `output_reserved`. By value, the caller would copy a struct it has only
// just written field by field. That stalls, also on the path that does not call these functions.
#[inline(never)]
fn run_other(
    action: &Action,
    packet: &mut PipelinePacket,
    origin: &PuntOrigin,
    fx: &mut impl Effects,
) -> ControlFlow<()> {
    let origin = *origin;
    if let Action::Nx(nx) = action {
        return nicira::alone(nx, packet, origin, fx);
    }
    act(action, packet, origin, fx).map_or_else(
        |stop| {
            give_up(stop, packet, origin, fx);
            ControlFlow::Break(())
        },
        ControlFlow::Continue,
    )
}

#[inline]
fn act(
    action: &Action,
    packet: &mut PipelinePacket,
    origin: PuntOrigin,
    fx: &mut impl Effects,
) -> Result<(), ActionListStop> {
    match *action {
        Action::Output { port, max_len } => output(port, max_len, packet, origin, fx),
        // Only this output uses the queue (OpenFlow 1.0.0, 5.2.4); later outputs do not.
        Action::Enqueue { port, queue } => {
            let before = packet.set_queue(queue);
            output(port, 0, packet, origin, fx);
            packet.set_queue(before);
        }
        Action::SetQueue(queue) => {
            packet.set_queue(queue);
        }
        Action::SetField { field, value } => packet.set(field, value, fx),
        Action::SetFieldMasked { field, value, mask } => packet.set_masked(field, value, mask, fx),
        Action::Move { src, dst } => packet.copy_bits(src, dst, fx),
        Action::PushVlan(tpid) => {
            packet.try_edit(fx, |frame, layers| edit::push_vlan(frame, layers, tpid))?;
        }
        Action::PushMpls(kind) => {
            packet.try_edit(fx, |frame, layers| edit::push_mpls(frame, layers, kind))?;
        }
        Action::PushPbb(kind) => {
            packet.try_edit(fx, |frame, layers| edit::push_pbb(frame, layers, kind))?;
        }
        Action::DecMplsTtl => {
            packet.try_edit(fx, edit::dec_mpls_ttl)?;
        }
        Action::DecNwTtl => {
            packet.try_edit(fx, edit::dec_nw_ttl)?;
        }
        Action::PopVlan => drop(packet.edit(fx, edit::pop_vlan)),
        Action::PopPbb => drop(packet.edit(fx, edit::pop_pbb)),
        Action::PopMpls(kind) => drop(packet.edit(fx, |frame, layers| edit::pop_mpls(frame, layers, kind))),
        Action::SetMplsTtl(ttl) => drop(packet.edit(fx, |frame, layers| edit::set_mpls_ttl(frame, layers, ttl))),
        Action::SetNwTtl(ttl) => drop(packet.edit(fx, |frame, layers| edit::set_nw_ttl(frame, layers, ttl))),
        Action::CopyTtlOut => drop(packet.edit(fx, edit::copy_ttl_out)),
        Action::CopyTtlIn => drop(packet.edit(fx, edit::copy_ttl_in)),
        Action::DecNshTtl => drop(packet.try_edit(fx, edit::dec_nsh_ttl)?),
        Action::Encap(EncapHeader::Ethernet) => drop(packet.try_edit(fx, |frame, _| edit::encap_ethernet(frame))?),
        Action::Encap(EncapHeader::Nsh(ref header)) => {
            packet.try_edit(fx, |frame, _| edit::encap_nsh(frame, header.md_type(), header.values()))?;
        }
        Action::Decap(wanted) => drop(packet.try_edit(fx, |frame, layers| edit::decap(frame, layers, wanted))?),
        Action::SetVlanVid(_)
        | Action::SetVlanPcp(_)
        | Action::SetNwSrc(_)
        | Action::SetNwDst(_)
        | Action::SetNwTos(_)
        | Action::SetTpSrc(_)
        | Action::SetTpDst(_) => set_as_in_v10(action, packet, fx)?,
        Action::Group(group) => fx.group(group, packet, origin),
        Action::Meter(id) if meter(id, packet, fx) == ControlFlow::Break(()) => return Err(ActionListStop::Metered),
        Action::Meter(_) => {}
        // Validation refuses these, except Nicira's actions, which `run_other` has handled.
        Action::Nx(_) | Action::Experimenter { .. } | Action::SetFieldRaw(_) => {}
    }
    Ok(())
}

/// Runs the set actions of OpenFlow 1.0. They push a missing VLAN tag and ignore packets that lack the header they
/// set.
fn set_as_in_v10(action: &Action, packet: &mut PipelinePacket, fx: &mut impl Effects) -> Result<(), EditError> {
    match *action {
        Action::SetVlanVid(vid) => {
            push_missing_tag(packet, fx)?;
            packet.set(Field::VlanVid, u128::from(vid & 0xfff | VLAN_PRESENT), fx);
        }
        Action::SetVlanPcp(pcp) => {
            push_missing_tag(packet, fx)?;
            packet.set(Field::VlanPcp, u128::from(pcp & 7), fx);
        }
        Action::SetNwSrc(address) if is_ipv4(packet) => packet.set(Field::Ipv4Src, address.into(), fx),
        Action::SetNwDst(address) if is_ipv4(packet) => packet.set(Field::Ipv4Dst, address.into(), fx),
        Action::SetNwTos(tos) => packet.set(Field::IpDscp, u128::from(tos >> 2), fx),
        Action::SetTpSrc(port) => {
            if let Some((source, _)) = port_fields(packet) {
                packet.set(source, port.into(), fx);
            }
        }
        Action::SetTpDst(port) => {
            if let Some((_, destination)) = port_fields(packet) {
                packet.set(destination, port.into(), fx);
            }
        }
        _ => {}
    }
    Ok(())
}

fn push_missing_tag(packet: &mut PipelinePacket, fx: &mut impl Effects) -> Result<(), EditError> {
    if packet.layers().vlan_tags == 0 {
        packet.try_edit(fx, |frame: &mut Frame, layers: &Layers| edit::push_vlan(frame, layers, eth_type::VLAN))?;
    }
    Ok(())
}

fn is_ipv4(packet: &mut PipelinePacket) -> bool {
    matches!(packet.layers().network, Some((NetworkProtocol::Ipv4, _)))
}

/// Returns the fields of the packet's source and destination port, if its transport protocol has ports.
fn port_fields(packet: &mut PipelinePacket) -> Option<(Field, Field)> {
    match packet.layers().transport?.0 {
        TransportProtocol::Tcp => Some((Field::TcpSrc, Field::TcpDst)),
        TransportProtocol::Udp => Some((Field::UdpSrc, Field::UdpDst)),
        TransportProtocol::Sctp => Some((Field::SctpSrc, Field::SctpDst)),
        TransportProtocol::Icmpv4 | TransportProtocol::Icmpv6 => None,
    }
}

/// Measures the packet with a meter. Returns `Break` if the meter dropped the packet.
#[inline(never)]
pub(crate) fn meter(meter: MeterId, packet: &mut PipelinePacket, fx: &mut impl Effects) -> ControlFlow<()> {
    match fx.meter(meter, WireSize::of(packet.frame)) {
        MeterVerdict::Pass => {}
        MeterVerdict::Remark(steps) => meter::remark(packet, steps, fx),
        MeterVerdict::Drop => {
            packet.dropped(DropReason::Meter, fx);
            return ControlFlow::Break(());
        }
    }
    ControlFlow::Continue(())
}

/// Ends a packet after an action failed: drops it, or punts it to controllers if its TTL has expired.
#[cold]
pub(crate) fn give_up(stop: ActionListStop, packet: &mut PipelinePacket, origin: PuntOrigin, fx: &mut impl Effects) {
    let fate = match stop {
        ActionListStop::Metered => return,
        ActionListStop::Edit(EditError::TooLong) => Err(DropReason::TooLong),
        ActionListStop::Edit(EditError::PacketType) => Err(DropReason::PacketType),
        ActionListStop::Edit(EditError::TtlExpired) => {
            let origin = PuntOrigin { reason: PacketInReason::InvalidTtl, ..origin };
            fx.punt(packet, origin, NO_BUFFER).map_err(|_| DropReason::TtlExpired)
        }
    };
    match fate {
        Ok(()) => packet.punted(),
        Err(reason) => packet.dropped(reason, fx),
    }
}

/// Outputs the packet to a port, which may be a reserved one (OpenFlow 1.3.5, 4.5).
#[inline]
pub(crate) fn output(
    port: PortNo,
    max_len: u16,
    packet: &mut PipelinePacket,
    origin: PuntOrigin,
    fx: &mut impl Effects,
) {
    if port > PortNo::MAX {
        output_reserved(port, max_len, packet, &origin, fx);
    } else {
        send_on(port, packet, fx);
    }
}

#[inline(never)]
fn output_reserved(
    port: PortNo,
    max_len: u16,
    packet: &mut PipelinePacket,
    origin: &PuntOrigin,
    fx: &mut impl Effects,
) {
    match port {
        PortNo::CONTROLLER => {
            packet.flush_bucket(fx);
            match fx.punt(packet, *origin, max_len) {
                Ok(()) => packet.punted(),
                Err(reason) => packet.dropped(reason, fx),
            }
        }
        PortNo::ALL => spread(packet, fx, |fx| fx.ports().all()),
        PortNo::FLOOD => spread(packet, fx, |fx| fx.ports().flood()),
        PortNo::NORMAL => normal(packet, fx),
        PortNo::TABLE => {
            fx.resubmit(packet);
            packet.punted();
        }
        PortNo::IN_PORT => send_back(packet, fx),
        port => send_on(port, packet, fx),
    }
}

/// Outputs a packet to NORMAL. A switch in standalone mode does this with every packet.
pub(crate) fn normal(packet: &mut PipelinePacket, fx: &mut impl Effects) {
    match fx.normal(packet) {
        NormalDestination::To(port) => send_on(port, packet, fx),
        NormalDestination::Flood => spread(packet, fx, |fx| fx.ports().flood()),
        NormalDestination::Reserved => packet.dropped(DropReason::Reserved, fx),
        NormalDestination::Later => packet.punted(),
    }
}

/// Sends the packet to a port other than its input port.
#[inline]
fn send_on(port: PortNo, packet: &mut PipelinePacket, fx: &mut impl Effects) {
    match fx.ports().may_output(packet.in_port, port) {
        Ok(()) => packet.send_to(port, fx),
        Err(reason) => packet.dropped(reason, fx),
    }
}

/// Sends the packet back to its input port.
fn send_back(packet: &mut PipelinePacket, fx: &mut impl Effects) {
    match fx.ports().may_send(packet.in_port) {
        Ok(()) => packet.send_to(packet.in_port, fx),
        Err(reason) => packet.dropped(reason, fx),
    }
}

/// Sends the packet to every port of a list except its input port.
fn spread<E: Effects>(packet: &mut PipelinePacket, fx: &mut E, ports: fn(&E) -> &[PortNo]) {
    let mut sent = false;
    // The loop uses an index because sending needs all of `fx`. The list does not change meanwhile.
    for at in 0..ports(fx).len() {
        let port = ports(fx)[at];
        if port != packet.in_port {
            packet.send_to(port, fx);
            sent = true;
        }
    }
    if !sent {
        packet.dropped(DropReason::InPortOnly, fx);
    }
}
