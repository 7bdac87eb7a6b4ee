//! Runs a case on one bridge of an instance, over its channel and its ports' captures.
mod clear;

use super::instance::connect;
use super::pcap::PortCapturePipe;
use crate::case::{PORTS, bytes_of};
use crate::outcome::{self, CaseOutcome, StepAnswer};
use crate::{CaseStep, DifferentialCase};
use anyhow::{Context as _, bail};
use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use weir_openflow::model::{Action, Hello, Match, PacketOut, PortNo, SwitchConfig};
use weir_openflow::{Body, Version};

/// Number of the LOCAL port among the captures.
pub(super) const LOCAL: u32 = PORTS + 1;

/// Flag in the transaction ids of barriers that end steps; the lower bits are the step.
const STEP_ENDS: u32 = 0x4000_0000;
/// Transaction id of the barriers around a part of a case.
const PART_ENDS: u32 = 0x7fff_0001;
/// Transaction id of messages that neither belong to a case nor end its steps.
const ASIDE: u32 = 0x7fff_0002;

/// Iterations of Open vSwitch's main loop to wait for after a pause.
const TURNS: usize = 4;

/// EtherType of marker frames, which no frame of a case has (one for local experiments, IEEE 802).
pub(crate) const MARKER: u16 = 0x88b6;

pub(super) struct OvsBridge {
    version: Version,
    channel: UnixStream,
    input: Vec<u8>,
    /// Captures by port from 1 on, then LOCAL.
    captures: Vec<PortCapturePipe>,
    case: Option<DifferentialCase>,
    /// Index of the next step to send.
    next: usize,
    /// True if the case has run to its end.
    is_finished: bool,
    outcome: CaseOutcome,
}

/// Returns the path of the pipe for a port's capture.
pub(super) fn capture(folder: &Path, bridge: &str, port: u32) -> PathBuf {
    folder.join(format!("{bridge}-{port}.pcap"))
}

impl OvsBridge {
    /// Creates the pipes of a bridge's ports, before the bridge exists.
    pub(super) fn captures(folder: &Path, bridge: &str) -> anyhow::Result<Vec<PortCapturePipe>> {
        (1..=LOCAL).map(|port| PortCapturePipe::create(&capture(folder, bridge, port))).collect()
    }

    pub(super) fn open(
        folder: &Path,
        bridge: &str,
        captures: Vec<PortCapturePipe>,
        version: Version,
    ) -> anyhow::Result<OvsBridge> {
        let channel = connect(folder, bridge)?;
        let (input, outcome) = (Vec::new(), CaseOutcome::default());
        let mut lane = OvsBridge { version, channel, input, captures, case: None, next: 0, is_finished: true, outcome };
        let mut hello = lane.bytes(&Body::Hello(Hello { versions: Some(vec![version as u8]) }), ASIDE);
        // A bridge sends packet-ins on such a channel only after a set-config with the length of packet-ins.
        hello.extend(lane.bytes(&Body::SetConfig(SwitchConfig { flags: 0, miss_send_len: 0xffff }), ASIDE));
        hello.extend(lane.bytes(&Body::BarrierRequest, PART_ENDS));
        lane.channel.write_all(&hello)?;
        while !lane.read()?.iter().any(|(xid, _)| *xid == PART_ENDS) {}
        Ok(lane)
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// Starts a case.
    pub(super) fn begin(&mut self, case: Option<&DifferentialCase>) {
        let steps = case.map_or(0, |case| case.steps.len());
        (self.case, self.next, self.is_finished) = (case.cloned(), 0, case.is_none());
        self.outcome = CaseOutcome { answers: vec![StepAnswer::default(); steps], told: Vec::new() };
    }

    pub(super) fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Returns the outcome of the case.
    pub(super) fn end(&mut self) -> Option<CaseOutcome> {
        self.case.take()?;
        Some(std::mem::take(&mut self.outcome))
    }

    /// Sends the case's steps up to the next pause, or to its end with the messages that clear the bridge.
    pub(super) fn send(&mut self) -> anyhow::Result<()> {
        if self.is_finished {
            return Ok(());
        }
        let Some(case) = self.case.take() else { return Ok(()) };
        let mut bytes = Vec::new();
        for (number, step) in (0_u32..).zip(&case.steps).skip(self.next) {
            match step {
                CaseStep::Message(body) => bytes.extend(self.bytes(body, number + 1)),
                CaseStep::Frame { port, bytes: frame } => {
                    bytes.extend(self.packet_out(PortNo(*port), &[PortNo::TABLE], frame));
                    let everywhere: Vec<_> =
                        (1..=PORTS).map(PortNo).chain([PortNo::LOCAL, PortNo::CONTROLLER]).collect();
                    bytes.extend(self.packet_out(PortNo::CONTROLLER, &everywhere, &marker(number)));
                }
                CaseStep::Pause => break,
            }
            bytes.extend(self.bytes(&Body::BarrierRequest, STEP_ENDS | number));
        }
        bytes.extend(self.bytes(&Body::BarrierRequest, PART_ENDS));
        self.case = Some(case);
        self.channel.write_all(&bytes).context("sending to Open vSwitch")
    }

    /// Receives the bridge's answers to the steps sent.
    pub(super) fn receive(&mut self) -> anyhow::Result<()> {
        if self.is_finished {
            return Ok(());
        }
        let Some(case) = self.case.take() else { return Ok(()) };
        let first = self.next;
        let steps = case.steps[first..].iter().take_while(|step| **step != CaseStep::Pause).count();
        let end = first + steps;
        let frames = (first..end).filter(|step| matches!(case.steps[*step], CaseStep::Frame { .. }));
        let frames: VecDeque<usize> = frames.collect();
        self.receive_messages(first, frames.clone())?;
        self.receive_frames(&frames)?;
        self.next = end;
        if end < case.steps.len() {
            // Continue after the pause.
            self.next += 1;
        } else {
            self.is_finished = true;
        }
        self.case = Some(case);
        Ok(())
    }

    fn receive_messages(&mut self, first: usize, mut frames: VecDeque<usize>) -> anyhow::Result<()> {
        let (mut step, mut is_over) = (first, false);
        while !is_over || !frames.is_empty() {
            for (xid, bytes) in self.read()? {
                match outcome::told(&bytes) {
                    Ok(Body::PacketIn(packet)) => match frames.front() {
                        Some(_) if is_marker(&packet.data.0) => drop(frames.pop_front()),
                        Some(frame) => self.outcome.answers[*frame].packets_in.push(packet),
                        None => bail!("a packet-in without a frame: {packet:?}"),
                    },
                    Ok(Body::BarrierReply) if xid == PART_ENDS => is_over = true,
                    Ok(Body::BarrierReply) if xid & STEP_ENDS != 0 => step = (xid & !STEP_ENDS) as usize + 1,
                    told if xid as usize == step + 1 => self.outcome.answers[step].replies.push(told),
                    // If the bridge cannot pass a frame through its tables, it answers the frame's packet-out with an
                    // error.
                    told if xid == ASIDE => self.outcome.answers[step].replies.push(told),
                    // A notice may arrive long after the step that caused it.
                    told => self.outcome.told.push((None, told)),
                }
            }
        }
        Ok(())
    }

    fn receive_frames(&mut self, steps: &VecDeque<usize>) -> anyhow::Result<()> {
        for (port, capture) in (1..).zip(&mut self.captures) {
            let port = if port == LOCAL { PortNo::LOCAL.0 } else { port };
            let mut steps = steps.iter();
            let mut step = steps.next();
            for frame in capture.frames()? {
                match step {
                    Some(_) if is_marker(&frame) => step = steps.next(),
                    Some(step) => self.outcome.answers[*step].frames.push((port, frame)),
                    None => bail!("port {port} sent a frame behind the last marker: {frame:x?}; {:?}", self.case),
                }
            }
            if let Some(step) = step {
                bail!("port {port} did not send the marker of step {step}");
            }
        }
        Ok(())
    }
}

/// Methods that run between the parts of a case.
impl OvsBridge {
    /// Receives the notices after a pause. Open vSwitch checks timeouts once in each iteration of its main loop, and
    /// answers a barrier in each. Lanes without a case take part, because a silent channel would be closed.
    pub(super) fn settle(&mut self) -> anyhow::Result<()> {
        for _ in 0..TURNS {
            self.channel.write_all(&self.bytes(&Body::BarrierRequest, PART_ENDS))?;
            let mut is_over = false;
            while !is_over {
                for (xid, bytes) in self.read()? {
                    is_over |= xid == PART_ENDS;
                    if xid != PART_ENDS && xid != ASIDE && !self.is_finished {
                        self.outcome.told.push((None, outcome::told(&bytes)));
                    }
                }
            }
        }
        Ok(())
    }

    fn read(&mut self) -> anyhow::Result<Vec<(u32, Vec<u8>)>> {
        let mut piece = [0; 1 << 16];
        let count = self.channel.read(&mut piece).context("waiting for Open vSwitch")?;
        if count == 0 {
            bail!("Open vSwitch closed the channel");
        }
        self.input.extend_from_slice(&piece[..count]);
        Ok(outcome::messages(&mut self.input))
    }

    fn bytes(&self, body: &Body, xid: u32) -> Vec<u8> {
        bytes_of(body, xid, self.version).unwrap_or_else(|| panic!("{body:?} of {:?}", self.version))
    }

    fn packet_out(&self, in_port: PortNo, to: &[PortNo], frame: &[u8]) -> Vec<u8> {
        let actions = to.iter().map(|port| Action::Output { port: *port, max_len: 0xffff }).collect();
        let data = frame.to_vec().into();
        let out = PacketOut { buffer_id: None, in_port, matching: Match::any(), actions, data };
        self.bytes(&Body::PacketOut(out), ASIDE)
    }
}

/// Returns the marker frame that follows the frame of a step.
fn marker(step: u32) -> Vec<u8> {
    let mut frame = vec![0xff; 12];
    frame.extend(MARKER.to_be_bytes());
    frame.extend(step.to_be_bytes());
    frame.resize(60, 0);
    frame
}

fn is_marker(frame: &[u8]) -> bool {
    frame.starts_with(&[0xff; 12]) && frame.get(12..14) == Some(&MARKER.to_be_bytes())
}
