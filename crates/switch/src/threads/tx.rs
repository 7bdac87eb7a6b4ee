//! The transmitting stage: takes what workers forwarded, and sends it in bursts.
//!
//! Every ring is visited in each turn, a burst from each, beginning behind the one that was first last time: with many workers none
//! waits for the others (in Lagopus, four workers lost more frames than one, since the transmitting thread did not keep up with
//! their rings; Rahimi et al., HPSR 2016, IV-E). Rings that have more are visited again, so that a turn's cost is shared by
//! as many frames as there are.
use super::Carried;
use super::batch::{Batch, Rule};
use super::outlet::read;
use rtrb::Consumer;
use weir_openflow::model::PortNo;
use weir_packet::Frame;
use weir_units::Instant;

/// Times that rings are visited in one turn at most: the ports wait to be received from.
const MAX_VISITS: usize = 4;

/// See the module's page.
#[derive(Debug)]
pub(crate) struct Tx {
    rule: Rule,
    /// Frames taken from a ring at once.
    read: usize,
    /// By worker.
    rings: Vec<Consumer<Carried>>,
    /// The ring that is first in the next visit.
    next: usize,
    /// What waits for each port that was sent to.
    ports: Vec<(PortNo, Batch<Frame>)>,
    /// Where the last frame's port is: frames of a burst often leave together.
    last: usize,
    burst: Vec<Frame>,
}

impl Tx {
    /// A stage that takes at most `read` frames from a ring at once.
    pub(crate) fn new(rule: Rule, read: usize, rings: Vec<Consumer<Carried>>) -> Tx {
        Tx { rule, read, rings, next: 0, ports: Vec::new(), last: 0, burst: Vec::with_capacity(rule.burst) }
    }

    /// Takes frames from the workers, and gives bursts that are full to `send`, which empties the list. Whether there were any
    /// frames.
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

    /// A turn of the loop: as [`Tx::gather`], and bursts that are due go.
    pub(crate) fn turn(&mut self, now: Instant, send: &mut impl FnMut(PortNo, &mut Vec<Frame>)) -> bool {
        let taken = self.gather(now, send);
        for (port, batch) in &mut self.ports {
            if batch.turn(now) {
                send_in_bursts(*port, batch.items(), self.rule.burst, &mut self.burst, send);
            }
        }
        taken
    }

    /// Takes all there is, and sends it: no burst is waited for.
    pub(crate) fn send_all(&mut self, now: Instant, send: &mut impl FnMut(PortNo, &mut Vec<Frame>)) {
        while self.gather(now, send) {}
        for (port, batch) in self.ports.iter_mut().filter(|(_, batch)| !batch.is_empty()) {
            send_in_bursts(*port, batch.items(), self.rule.burst, &mut self.burst, send);
        }
    }

    /// Takes a burst from each ring: whether there was anything, and whether a ring has more.
    fn visit(&mut self, now: Instant, send: &mut impl FnMut(PortNo, &mut Vec<Frame>)) -> (bool, bool) {
        let Tx { rule, rings, ports, last, burst, .. } = self;
        let (mut some, mut more) = (false, false);
        let (behind, first) = rings.split_at_mut(self.next);
        for ring in first.iter_mut().chain(behind) {
            let count = read(ring, self.read, |Carried { port, frame }| {
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

    /// Takes out what waits for a port that is gone, in the order it came.
    pub(crate) fn forget(&mut self, port: PortNo) -> Vec<Frame> {
        match self.ports.iter().position(|(listed, _)| *listed == port) {
            Some(place) => std::mem::take(self.ports.swap_remove(place).1.items()),
            None => Vec::new(),
        }
    }

    /// Whether no frame waits, neither in a ring nor for a burst to fill.
    pub(crate) fn is_empty(&self) -> bool {
        self.rings.iter().all(Consumer::is_empty) && self.is_flushed()
    }

    /// Whether no frame waits for a burst to fill.
    pub(crate) fn is_flushed(&self) -> bool {
        self.ports.iter().all(|(_, batch)| batch.is_empty())
    }

    /// Frames of a worker that wait to be transmitted.
    pub(crate) fn waiting(&self, worker: usize) -> usize {
        self.rings[worker].slots()
    }
}

/// Where a port's frames wait; probably at `hint`.
#[inline]
fn place(ports: &mut Vec<(PortNo, Batch<Frame>)>, rule: &Rule, port: PortNo, hint: usize) -> usize {
    match ports.get(hint) {
        Some((hinted, _)) if *hinted == port => hint,
        _ => ports.iter().position(|(listed, _)| *listed == port).unwrap_or_else(|| {
            ports.push((port, Batch::new(rule)));
            ports.len() - 1
        }),
    }
}

/// Sends frames, at most `size` at once. `burst` is memory to work with.
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
