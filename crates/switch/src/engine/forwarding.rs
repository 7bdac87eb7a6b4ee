//! Moves frames through the engine: receives a burst from each port, has it looked up by the tables, by workers or by
//! virtual switches, and transmits the result.
use super::Engine;
use super::workers::EngineThreads;
use weir_datapath::perf::ThreadStage;
use weir_openflow::model::PortNo;
use weir_packet::Frame;
use weir_units::Instant;

/// Selects the frames from workers that the engine transmits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TransmitSelection {
    /// Full bursts only; the round continues.
    Within,
    /// Full bursts and those that are due; the round ends.
    Ends,
    /// All frames: the engine takes forwarding back from the workers.
    Drains,
}

impl Engine {
    /// Receives and forwards one burst from each port. Returns true if any frame was received.
    pub(super) fn forward(&mut self, now: Instant) -> bool {
        if self.workers.are_draining() {
            return true;
        }
        let mut worked = false;
        self.io.idle.look(&mut self.io.ports);
        // A port whose device is gone is removed during this loop. The port that moves to its index is handled in the
        // next round.
        let mut place = 0;
        while place < self.io.ports.len() {
            if !self.io.idle.may_pass_over(self.io.ports.at(place), now) {
                worked |= self.forward_from(place, now);
            }
            place += 1;
        }
        worked
    }

    fn forward_from(&mut self, place: usize, now: Instant) -> bool {
        let number = self.io.ports.at(place).number;
        // A virtual switch with a full waiting queue gets no more packets.
        let is_held = self.virtuals.as_mut().is_some_and(|virtuals| virtuals.holds(number, self.io.burst));
        self.io.receive(now, place, is_held);
        let packets = self.io.batch.len();
        self.perf.lap(ThreadStage::Receive, packets > 0, packets);
        if packets > 0 {
            // Some frames arrived after the round began. The delay of a link must not count from before their
            // arrival.
            let now = self.io.now();
            self.dispatch_batch(now, number);
        }
        self.settle(now);
        packets > 0
    }

    /// Passes the received batch of a port on: to virtual switches, to the switch's own tables, or to the workers.
    #[inline]
    fn dispatch_batch(&mut self, now: Instant, port: PortNo) {
        if let Some(virtuals) = &mut self.virtuals {
            if self.physical.timed.is_some() {
                return self.pass_to_stage(now, port);
            }
            let packets = self.io.batch.len();
            virtuals.forward(now, port, &mut self.io);
            self.perf.lap(ThreadStage::Transmit, true, packets - self.io.batch.len());
            if self.io.batch.is_empty() {
                return;
            }
        }
        self.look_up_batch(now, port);
    }

    /// Has the received batch of a port looked up by the switch's own tables, or by the workers, and transmits what is
    /// ready.
    #[inline]
    fn look_up_batch(&mut self, now: Instant, port: PortNo) {
        if self.physical.timed.is_some() {
            return self.pass_to_stage(now, port);
        }
        let packets = self.io.batch.len();
        let (batch, pool, datapath) = (&mut self.io.batch, &mut self.io.pool, &mut self.physical.datapath);
        let out = &mut self.physical.out;
        match &mut self.workers.threads {
            EngineThreads::Single => datapath.get().process(now, port, batch, pool, out),
            EngineThreads::RunToCompletion(several) => several.forward(now, port, batch, (pool, out), datapath),
            EngineThreads::Pipeline(pipeline) => {
                pipeline.came(packets);
                if pipeline.is_with_workers() {
                    pipeline.rx.receive(now, port, batch, pool);
                    self.perf.lap(ThreadStage::Receive, true, 0);
                    // Transmitting comes before the next port is read, so that forwarded frames do not pile up behind
                    // many ports.
                    self.transmit_forwarded(now, TransmitSelection::Within);
                    return self.perf.lap(ThreadStage::Transmit, true, packets);
                }
                datapath.get().process(now, port, batch, pool, out);
            }
        }
        // The datapath measures its own time.
        self.perf.watch.start();
        self.physical().deliver(now);
        self.perf.lap(ThreadStage::Transmit, true, packets);
    }

    /// Does the workers' part of a round: moves due bursts, and passes the workers' messages to the controllers.
    /// Returns true if there was any work.
    pub(super) fn poll_workers(&mut self, now: Instant) -> bool {
        let (told, sent) = match &mut self.workers.threads {
            EngineThreads::Single => return false,
            EngineThreads::RunToCompletion(several) => {
                assert!(!several.has_failed(), "a thread of the switch panicked; its message is above");
                (several.take_notes(&mut self.physical.out), false)
            }
            EngineThreads::Pipeline(pipeline) => {
                assert!(!pipeline.has_failed(), "a worker panicked; its message is above");
                pipeline.end_round(now, &mut self.io.pool);
                let is_draining = pipeline.is_draining();
                if !is_draining {
                    pipeline.rx.turn(now, &mut self.io.pool);
                }
                let told = pipeline.take_notes(&mut self.physical.out);
                let how = if is_draining { TransmitSelection::Drains } else { TransmitSelection::Ends };
                (told, self.transmit_forwarded(now, how))
            }
        };
        if told {
            self.physical().deliver(now);
        }
        self.settle(now);
        told || sent
    }

    /// Transmits frames that workers have forwarded. Returns true if there were any, or while the pipeline drains.
    fn transmit_forwarded(&mut self, now: Instant, how: TransmitSelection) -> bool {
        let EngineThreads::Pipeline(pipeline) = &mut self.workers.threads else { return false };
        let (io, virtuals) = (&mut self.io, &mut self.virtuals);
        let mut send = |number: PortNo, frames: &mut Vec<Frame>| {
            let is_taken =
                virtuals.as_mut().is_some_and(|virtuals| virtuals.fabric.queue_own(now, number, frames, &mut io.pool));
            if !is_taken {
                io.transmit(now, number, frames);
            }
        };
        match how {
            TransmitSelection::Within => pipeline.tx.gather(now, &mut send),
            TransmitSelection::Ends => pipeline.tx.turn(now, &mut send),
            TransmitSelection::Drains => {
                pipeline.drain(now, &mut send);
                true
            }
        }
    }

    /// Drops the frames that wait for a removed port.
    pub(super) fn forget_frames(&mut self, number: PortNo) {
        let (removed, pool) = (&self.io.removed, &mut self.io.pool);
        for (_, mut frames) in self.physical.out.frames.extract_if(.., |(port, _)| *port == number) {
            removed.drop_frames(&mut frames, pool);
        }
        removed.drop_frames(&mut self.arrivals.forget(number), pool);
        if let EngineThreads::Pipeline(pipeline) = &mut self.workers.threads {
            removed.drop_frames(&mut pipeline.tx.forget(number), pool);
        }
    }
}
