//! Collects forwarded frames from the workers and transmits them in bursts.
//!
//! Each turn visits every ring and takes a burst from each. The first ring changes with every visit, so that with
//! many workers none waits for the others. (In Lagopus, four workers lost more frames than one, because the
//! transmitting thread did not keep up with their rings; Rahimi et al., HPSR 2016, IV-E.) Rings with more frames are
//! visited again, so that the cost of a turn is shared by as many frames as there are.
use super::RingFrame;
use super::batch::{BurstBuffer, FlushRule};
use super::ring_writer::read;
use rtrb::Consumer;
use weir_openflow::model::PortNo;
use weir_packet::Frame;
use weir_units::Instant;

/// Maximum number of visits to the rings in one turn, because the ports wait to be read.
const MAX_VISITS: usize = 4;

/// Transmitting stage of a pipeline.
#[derive(Debug)]
pub(crate) struct TxStage {
    rule: FlushRule,
    /// Maximum number of frames taken from a ring at once.
    read: usize,
    /// Rings by worker.
    rings: Vec<Consumer<RingFrame>>,
    /// Index of the first ring in the next visit.
    next: usize,
    /// Waiting frames of each port that was used so far.
    ports: Vec<(PortNo, BurstBuffer<Frame>)>,
    /// Index of the last frame's port: frames of a burst often leave by one port.
    last: usize,
    burst: Vec<Frame>,
}

impl TxStage {
    /// Returns a stage that takes at most `read` frames from a ring at once.
    pub(crate) fn new(rule: FlushRule, read: usize, rings: Vec<Consumer<RingFrame>>) -> TxStage {
        TxStage { rule, read, rings, next: 0, ports: Vec::new(), last: 0, burst: Vec::with_capacity(rule.burst) }
    }

    /// Takes frames from the workers and passes full bursts to `send`, which must empty the list. Returns true if
    /// there were any frames.
    pub(crate) fn gather(&mut self, now: Instant, send: &mut impl FnMut(PortNo, &mut Vec<Frame>)) -> bool {
        let mut taken = false;
        for _ in 0..MAX_VISITS {
            let (some, more) = self.visit(now, send);
            taken |= some;
            if !more {
                break;
            }
        }
        taken
    }

    /// Runs a turn of the loop: gathers frames like [`TxStage::gather`], and also sends bursts that are due.
    pub(crate) fn turn(&mut self, now: Instant, send: &mut impl FnMut(PortNo, &mut Vec<Frame>)) -> bool {
        let taken = self.gather(now, send);
        for (port, batch) in &mut self.ports {
            if batch.turn(now) {
                send_in_bursts(*port, batch.items(), self.rule.burst, &mut self.burst, send);
            }
        }
        taken
    }

    /// Takes and sends all frames, without waiting for bursts to fill.
    pub(crate) fn send_all(&mut self, now: Instant, send: &mut impl FnMut(PortNo, &mut Vec<Frame>)) {
        while self.gather(now, send) {}
        for (port, batch) in self.ports.iter_mut().filter(|(_, batch)| !batch.is_empty()) {
            send_in_bursts(*port, batch.items(), self.rule.burst, &mut self.burst, send);
        }
    }

    /// Takes a burst from each ring. Returns whether there were any frames, and whether a ring has more.
    fn visit(&mut self, now: Instant, send: &mut impl FnMut(PortNo, &mut Vec<Frame>)) -> (bool, bool) {
        let TxStage { rule, rings, ports, last, burst, .. } = self;
        let (mut some, mut more) = (false, false);
        let (behind, first) = rings.split_at_mut(self.next);
        for ring in first.iter_mut().chain(behind) {
            let count = read(ring, self.read, |RingFrame { port, frame }| {
                *last = place(ports, rule, port, *last);
                let (port, batch) = &mut ports[*last];
                if batch.push(now, rule, frame) {
                    send_in_bursts(*port, batch.items(), rule.burst, burst, send);
                }
            });
            some |= count > 0;
            more |= count == self.read;
        }
        self.next = (self.next + 1) % self.rings.len().max(1);
        (some, more)
    }

    /// Removes and returns the frames that wait for a removed port, in the order of their arrival.
    pub(crate) fn forget(&mut self, port: PortNo) -> Vec<Frame> {
        match self.ports.iter().position(|(listed, _)| *listed == port) {
            Some(place) => std::mem::take(self.ports.swap_remove(place).1.items()),
            None => Vec::new(),
        }
    }

    /// Returns true if no frame waits in a ring or for a burst to fill.
    pub(crate) fn is_empty(&self) -> bool {
        self.rings.iter().all(Consumer::is_empty) && self.is_flushed()
    }

    /// Returns true if no frame waits for a burst to fill.
    pub(crate) fn is_flushed(&self) -> bool {
        self.ports.iter().all(|(_, batch)| batch.is_empty())
    }

    /// Number of a worker's frames that wait in its ring.
    pub(crate) fn waiting(&self, worker: usize) -> usize {
        self.rings[worker].slots()
    }
}

/// Returns the index of a port's waiting frames, which is probably `hint`; adds the port if it is new.
#[inline]
fn place(ports: &mut Vec<(PortNo, BurstBuffer<Frame>)>, rule: &FlushRule, port: PortNo, hint: usize) -> usize {
    match ports.get(hint) {
        Some((hinted, _)) if *hinted == port => hint,
        _ => ports.iter().position(|(listed, _)| *listed == port).unwrap_or_else(|| {
            ports.push((port, BurstBuffer::new(rule)));
            ports.len() - 1
        }),
    }
}

/// Sends frames in bursts of at most `size`. `burst` is working memory.
#[inline]
fn send_in_bursts(
    port: PortNo,
    frames: &mut Vec<Frame>,
    size: usize,
    burst: &mut Vec<Frame>,
    send: &mut impl FnMut(PortNo, &mut Vec<Frame>),
) {
    while frames.len() > size {
        burst.extend(frames.drain(..size));
        send(port, burst);
        burst.clear();
    }
    send(port, frames);
    frames.clear();
}
