//! Takes the frames of control traffic out of what arrives on a port, before the flow tables look it up, and sends them
//! on. So control traffic also leaves before the other frames of its burst.
use super::{ControlDecision, InBand, RecognisedFrame};
use crate::engine_effects::PipelineState;
use crate::ports::Ports;
use crate::{DatapathOutput, DropReason};
use weir_openflow::model::PortNo;
use weir_packet::{Frame, FramePool, MacAddr, PacketType};
use weir_units::Instant;

/// Returns true if a hidden entry takes one of the frames.
#[inline]
pub(crate) fn contains_control(in_band: &InBand, in_port: PortNo, frames: &[Frame]) -> bool {
    frames.iter().any(|frame| recognise(in_band, in_port, frame).is_some())
}

/// Removes the frames of control traffic that arrived on a port, and sends them on.
pub(crate) fn take(
    in_band: &mut InBand,
    plane: &mut PipelineState,
    now: Instant,
    in_port: PortNo,
    frames: &mut Vec<Frame>,
    pool: &mut FramePool,
    out: &mut DatapathOutput,
) {
    let mut recognised = Vec::new();
    let control = frames.extract_if(.., |frame| {
        let found = recognise(in_band, in_port, frame);
        recognised.extend(found);
        found.is_some()
    });
    for (frame, recognised) in control.collect::<Vec<_>>().into_iter().zip(recognised) {
        send(in_band, plane, now, in_port, (frame, recognised), pool, out);
    }
}

/// Sends a frame on if it is control traffic; otherwise returns it.
pub(crate) fn take_one(
    in_band: &mut InBand,
    plane: &mut PipelineState,
    now: Instant,
    in_port: PortNo,
    frame: Frame,
    pool: &mut FramePool,
    out: &mut DatapathOutput,
) -> Option<Frame> {
    let Some(recognised) = recognise(in_band, in_port, &frame) else { return Some(frame) };
    send(in_band, plane, now, in_port, (frame, recognised), pool, out);
    None
}

#[inline]
fn recognise(in_band: &InBand, in_port: PortNo, frame: &Frame) -> Option<RecognisedFrame> {
    if frame.packet_type() == PacketType::ETHERNET { in_band.recognise(in_port, frame.bytes()) } else { None }
}

/// Forgets the stations on a port that lost its link or was removed, and tells the neighbours on the other ports.
pub(crate) fn forget_port(in_band: &mut InBand, ports: &Ports, port: PortNo, out: &mut DatapathOutput) {
    let lost = in_band.forget_port(port);
    tell(in_band, ports, port, &lost, out);
}

/// Tells the neighbours on all ports but one which stations are not reached any more.
fn tell(in_band: &InBand, ports: &Ports, except: PortNo, lost: &[MacAddr], out: &mut DatapathOutput) {
    for notice in in_band.notices(lost) {
        for port in ports.live().filter(|port| *port != except && *port != PortNo::LOCAL) {
            let mut frame = Frame::from_bytes(&notice);
            frame.queue = in_band.queue().unwrap_or(frame.queue);
            out.add_frame(port, frame);
        }
    }
}

/// Sends a frame of control traffic where [`InBand::decide`] says. Only a port that is down stops it: what controllers
/// configure for single ports (no receiving, no forwarding, no flooding) is not for control traffic.
fn send(
    in_band: &mut InBand,
    plane: &mut PipelineState,
    now: Instant,
    in_port: PortNo,
    (mut frame, recognised): (Frame, RecognisedFrame),
    pool: &mut FramePool,
    out: &mut DatapathOutput,
) {
    let ports = &plane.ports;
    let decision = match ports.may_receive(in_port) {
        Err(reason @ (DropReason::UnknownPort | DropReason::PortDown)) => ControlDecision::Drop(reason),
        _ => in_band.decide(now, in_port, &recognised, frame.bytes(), |port| ports.is_live(port)),
    };
    if let Some(queue) = in_band.queue() {
        frame.queue = queue;
    }
    match decision {
        ControlDecision::To(port) if ports.is_live(port) => out.add_frame(port, frame),
        ControlDecision::Flood { with_local } => {
            let meant = |port: PortNo| port != in_port && (with_local || port != PortNo::LOCAL);
            for port in ports.live().filter(|port| meant(*port)) {
                let copy = pool.copy(&frame);
                out.add_frame(port, copy);
            }
            pool.give(frame);
        }
        ControlDecision::Tell(lost) => {
            tell(in_band, ports, in_port, &lost, out);
            pool.give(frame);
        }
        other => {
            let reason = match other {
                ControlDecision::Drop(reason) => reason,
                _ => DropReason::PortDown,
            };
            plane.drops.count(reason, 1);
            pool.give(frame);
        }
    }
}
