//! Runs the engine of a switch with a profile: messages and packets take the time of the profile's device
//! ([`DelayedDatapath`]).
use super::arrivals::FrameArrival;
use super::io::EngineIo;
use super::logical::LogicalSwitch;
use super::served::{ServedPorts, ServedSwitch};
use super::{CONTROL_TIME, Engine};
use crate::ctl::ProfileReply;
use crate::handle::SwitchError;
use weir_datapath::ChannelId;
use weir_datapath::perf::ThreadStage;
use weir_device::{CSV_HEAD, DelayedDatapath, ProfileConfig, SendDuration};
use weir_openflow::Message;
use weir_openflow::model::PortNo;
use weir_units::Instant;

/// Maximum number of items released before their frames and messages are handed out.
const RELEASED_AT_ONCE: usize = 32;

impl Engine {
    /// Starts the profile's timing. Such a switch has no workers. Virtual switches that are added later take the
    /// profile's times, too.
    ///
    /// # Errors
    /// Fails if the profile has parts that a switch cannot reproduce.
    pub(crate) fn start_profile(&mut self, config: &ProfileConfig) -> Result<(), SwitchError> {
        let timed = DelayedDatapath::new(&config.profile, config.seed, self.physical.datapath.get())?;
        self.physical.timed = timed.map(Box::new);
        if self.physical.timed.is_some() {
            self.profile = Some(config.clone());
            let clock = self.io.clock;
            self.io.ports.iter_mut().for_each(|slot| _ = slot.stamps_arrivals(clock));
        }
        Ok(())
    }

    /// Queues the frames of the batch with their arrival times, to be looked up in order.
    #[cold]
    #[inline(never)]
    pub(super) fn pass_to_stage(&mut self, now: Instant, port: PortNo) {
        let EngineIo { clock, ports, batch, burst, .. } = &mut self.io;
        // An engine that had to be woken reads late, so the time of packets counts from their arrival.
        let is_stamped = ports.place(port).is_some_and(|place| ports.at(place).stamps_arrivals(*clock));
        if batch.len() >= *burst {
            let last = batch.last().map_or(now, |frame| Instant::from_nanos(frame.arrived()));
            self.arrivals.may_have_more(if is_stamped { last } else { now });
        }
        for frame in batch.drain(..) {
            let came = if is_stamped { Instant::from_nanos(frame.arrived()) } else { now };
            self.stalls.iter_mut().for_each(|stopped| stopped.found(came));
            self.arrivals.put(FrameArrival { arrived_at: came, port, frame });
        }
    }

    /// Receives one burst from each port and runs the packets through the tables in arrival order, with due releases
    /// in between. Returns true if there was any work.
    #[cold]
    pub(super) fn forward_in_order(&mut self, now: Instant) -> bool {
        let mut worked = self.forward(now);
        if let LogicalSwitch { timed: Some(timed), channels: lines, .. } = &mut self.physical {
            lines.written().for_each(|(given, written)| timed.said(written, written.since(given)));
        }
        let seen = self.arrivals.sort(now);
        let (mut packets, mut keeps_up) = (0, true);
        while let Some(came) = self.arrivals.due(seen) {
            // A packet matches the flow entries that were in effect at its arrival.
            keeps_up = self.release_all(came, &mut worked);
            if !keeps_up {
                break;
            }
            let Some(FrameArrival { port, frame, .. }) = self.arrivals.next() else { break };
            let at = self.io.now();
            packets += 1;
            let frame = match &mut self.virtuals {
                Some(virtuals) => virtuals.pass_timed((at, came), port, frame, &mut self.io),
                None => Some(frame),
            };
            let Some(frame) = frame else { continue };
            let LogicalSwitch { timed, datapath, out, .. } = &mut self.physical;
            match timed {
                Some(timed) => timed.packet(at, came, (port, frame), datapath.get(), &mut self.io.pool, out),
                None => self.io.pool.give(frame),
            }
        }
        if packets > 0 {
            self.perf.watch.start();
            let now = self.io.now();
            self.physical().deliver(now);
            self.perf.lap(ThreadStage::Transmit, true, packets);
        }
        if let Some(virtuals) = &mut self.virtuals {
            virtuals.keep_timed(now, &mut self.io);
        }
        if keeps_up {
            self.release_all(seen, &mut worked);
        }
        self.settle(now);
        worked || packets > 0
    }

    /// Releases everything due by `until`, of the physical switch and of virtual switches. Returns false if that took
    /// so long that other work must have its turn first.
    fn release_all(&mut self, until: Instant, worked: &mut bool) -> bool {
        let is_all = self.physical().release(until, worked);
        let virtuals = self.virtuals.as_mut();
        virtuals.is_none_or(|virtuals| virtuals.release(until, &mut self.io, worked)) && is_all
    }

    /// Time of the next release, of the physical switch or a virtual switch; [`Instant::FAR`] if none.
    fn release_due(&self) -> Instant {
        let virtuals = self.virtuals.as_ref().map_or(Instant::FAR, |virtuals| virtuals.release_due());
        self.physical.release_due().min(virtuals)
    }

    /// Returns the timing of a switch with a profile, with its command records as CSV lines if `commands` is set.
    pub(crate) fn profiled(&mut self, commands: bool) -> Option<ProfileReply> {
        let timed = self.physical.timed.as_mut()?;
        let commands = commands.then(|| {
            let heading = std::iter::once(CSV_HEAD.to_owned());
            heading.chain(timed.take_records()).collect()
        });
        Some(ProfileReply { timing: timed.snapshot(), commands })
    }

    /// Returns true if the next release is so near that the engine must wait for it awake.
    pub(super) fn awaits_release(&self, now: Instant) -> bool {
        self.physical.timed.is_some() && self.spinner.awaits(now, self.release_due())
    }

    /// Records how late the engine woke up for a release at `wanted`.
    pub(super) fn note_wake_up(&mut self, wanted: Instant) {
        let now = self.io.now();
        if now >= wanted {
            self.spinner.overslept(now.since(wanted));
        }
    }

    /// Time at which a sleeping engine must wake up for the next release.
    pub(super) fn wakes_for_release(&self) -> Instant {
        match self.release_due() {
            Instant::FAR => Instant::FAR,
            due => self.spinner.wakes_for(due),
        }
    }
}

impl LogicalSwitch {
    /// Time at which the switch's timing releases its next item; [`Instant::FAR`] if none.
    pub(super) fn release_due(&self) -> Instant {
        self.timed.as_ref().map_or(Instant::FAR, |timed| timed.due())
    }
}

impl ServedSwitch<'_> {
    /// Passes a message that arrived at `came` to the switch's timing. Returns the message if it must be carried out
    /// now.
    #[inline]
    pub(super) fn defer_message(&mut self, came: Instant, channel: ChannelId, message: Message) -> Option<Message> {
        if self.logical.timed.is_none() { Some(message) } else { self.delay_message(came, channel, message) }
    }

    #[cold]
    #[inline(never)]
    fn delay_message(&mut self, came: Instant, channel: ChannelId, message: Message) -> Option<Message> {
        let now = self.io.now();
        let LogicalSwitch { timed, datapath, out, channels: lines, .. } = &mut *self.logical;
        let Some(timed) = timed else { return Some(message) };
        let message = timed.message((now, came.min(now)), (channel, message), datapath.get(), &mut self.io.pool, out);
        if timed.awaits_answer(channel) {
            lines.wait(channel);
        }
        message
    }

    /// Releases everything due by `until`. Returns false if that took so long that other work must have its turn
    /// first.
    #[cold]
    pub(super) fn release(&mut self, until: Instant, worked: &mut bool) -> bool {
        let began = self.io.now();
        let mut now = began;
        let mut is_all = true;
        while self.logical.release_due() <= until {
            self.release_some(now, until);
            // Released messages may have added flow entries that expire earlier.
            self.logical.expire_at = self.logical.expire_at.min(now);
            *worked = true;
            now = self.io.now();
            if now.since(began) >= CONTROL_TIME {
                is_all = self.logical.release_due() > until;
                break;
            }
        }
        if let LogicalSwitch { timed: Some(timed), datapath, .. } = &mut *self.logical {
            timed.follow(datapath.get());
        }
        is_all
    }

    /// Releases and hands out a bounded number of items due by `until`. Each frame's departure time is its due time,
    /// which matters if a switch with a profile is connected to the port ([`weir_port::Port::keep_schedule`]). Items
    /// are therefore handed out together only if they are due at the same time.
    fn release_some(&mut self, now: Instant, until: Instant) {
        let (mut last, mut began) = (now, now);
        for _ in 0..RELEASED_AT_ONCE {
            let LogicalSwitch { timed, datapath, out, .. } = &mut *self.logical;
            let Some(timed) = timed else { break };
            let Some(due) = timed.release(now, until, datapath.get(), &mut self.io.pool, out) else { break };
            last = due;
            if timed.next() > due {
                began = self.hand_out(began, due);
            }
        }
        self.hand_out(began, last);
    }

    /// Hands out what was released since `began`, and reports to the timing how long that took. Returns the time at
    /// the end.
    fn hand_out(&mut self, began: Instant, due: Instant) -> Instant {
        let LogicalSwitch { out, channels: lines, .. } = &*self.logical;
        let outboxes = out.messages.iter().filter_map(|(channel, _)| lines.outbox(*channel));
        outboxes.for_each(|outbox| outbox.ask_when_written(began));
        if let ServedPorts::Virtual(..) = self.ports {
            // The frames wait in the fabric for their turn at the line, so the time of handing out does not matter.
            self.deliver(self.io.now());
            return self.io.now();
        }
        // On scheduled ports, frames carry their due time, so the small cost of handing them out does not matter.
        let ports = &mut self.io.ports;
        let mut is_told = |number: PortNo| ports.open_port(number).is_some_and(|port| !port.is_scheduled());
        let told = out.frames.iter().filter(|(number, frames)| !frames.is_empty() && is_told(*number));
        let (last, frames) = told.fold((None, 0), |(_, sum), (number, frames)| (Some(*number), sum + frames.len()));
        self.deliver(due);
        let ended = self.io.now();
        if let (Some(last), Ok(frames)) = (last, u32::try_from(frames)) {
            let port = self.io.ports.open_port(last);
            let left = port.and_then(|port| port.departed()).filter(|left| *left >= began);
            let each = |until: Instant| until.since(began) / frames;
            let took = left.map_or_else(|| SendDuration::AtMost(each(ended)), |left| SendDuration::Exactly(each(left)));
            if let Some(timed) = &mut self.logical.timed {
                timed.handed_out(left.unwrap_or(ended), took);
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::switch_clock;
    use crate::engine::inbox::inbox;
    use crate::{PortConfig, Spin};
    use std::sync::Arc;
    use std::time::Duration;
    use weir_datapath::{Datapath, DatapathConfig, FailMode};
    use weir_openflow::model::{Action, FlowMod, Instruction, Match};
    use weir_openflow::{Body, Version};
    use weir_packet::{Field, Frame, FramePool};
    use weir_port::{Port, memory};
    use weir_profile::Profile;
    use weir_units::SystemClock;

    const CHANNEL: ChannelId = ChannelId(1);
    /// A profile with 1 ms per command and 100 us per packet.
    const SLOW: &str = "name = \"slow\"\ndevice = \"A slow one\"\norigin = \"assumed\"\nsource = \"A test\"\n\
        [[level]]\nname = \"only\"\nsize = 30\nwrite = \"1ms\"\nforward = { base_l2 = \"100us\" }\n";

    /// Returns an engine that has not run for a while, and the far ends of its ports.
    fn stopped(ports: u32) -> (Engine, Vec<memory::MemoryPort>) {
        let (_, inbox, messages) = inbox().unwrap();
        let (datapath, clock) = (Datapath::new(DatapathConfig::default()), SystemClock::start());
        let (fail_mode, absent) = (FailMode::Secure, Arc::default());
        let mut engine =
            Engine::new(datapath, fail_mode, Spin::default(), switch_clock(clock), inbox, messages, absent);
        let mut hosts = Vec::new();
        for number in 1..=ports {
            let (port, host) = memory::pair(64).unwrap();
            engine.add_port(PortConfig::new(PortNo(number), Box::new(port))).unwrap();
            hosts.push(host);
        }
        let profile = Box::new(Profile::parse(SLOW, "test.toml").unwrap());
        engine.start_profile(&ProfileConfig { profile, seed: 1 }).unwrap();
        for host in &mut hosts {
            // Sent frames carry their send time, as the kernel reports it for interfaces.
            host.stamp_arrivals(clock);
            host.keep_schedule();
        }
        engine.physical.datapath.get().channel_up(Instant::ZERO, CHANNEL, Version::V13);
        while engine.io.now() < Instant::ZERO + Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        (engine, hosts)
    }

    fn frame(number: u8) -> Frame {
        let mut bytes = [0; 60];
        bytes[..6].copy_from_slice(&[2, 0, 0, 0, 0, number]);
        bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
        Frame::from_bytes(&bytes)
    }

    fn send(host: &mut memory::MemoryPort, at: Instant, number: u8) {
        host.transmit(at, &mut FramePool::default(), &mut vec![frame(number)]).unwrap();
    }

    fn received(host: &mut memory::MemoryPort) -> Vec<u8> {
        let mut batch = Vec::new();
        host.receive(Instant::ZERO, &mut FramePool::default(), &mut batch, 64).unwrap();
        batch.iter().map(|frame| frame.bytes()[5]).collect()
    }

    /// Returns a flow-mod that sends all test packets to port 3.
    fn to_the_third() -> FlowMod {
        let apply = vec![Instruction::ApplyActions(vec![Action::output(PortNo(3))])];
        FlowMod::add(1, Match::any().with(Field::EthType, 0x88b5_u16), apply)
    }

    #[test]
    fn packets_meet_what_had_come_to_be_when_they_came() {
        let (mut engine, mut hosts) = stopped(3);
        let ms = |count: u32| Duration::from_micros(100) * count;
        let from = engine.io.now() - Duration::from_millis(10);
        let add = Message { xid: 1, body: Body::FlowMod(to_the_third()) };
        assert_eq!(engine.physical().defer_message(from, CHANNEL, add), None);
        for (port, tenths) in [(0, 5_u32), (0, 11), (0, 30), (1, 2), (1, 9), (1, 12), (1, 31)] {
            send(&mut hosts[port], from + ms(tenths), u8::try_from(tenths).unwrap());
        }
        assert!(engine.forward_in_order(engine.io.now()));
        engine.forward_in_order(engine.io.now());
        let shown = received(&mut hosts[2]);
        assert_eq!(shown, [11, 12, 30, 31], "those that came after the entry, in their order, whoever was asked first");
        let delete = FlowMod { command: weir_openflow::model::FlowCommand::Delete, ..to_the_third() };
        let from = engine.io.now() - Duration::from_millis(5);
        assert_eq!(
            engine.physical().defer_message(from, CHANNEL, Message { xid: 2, body: Body::FlowMod(delete) }),
            None
        );
        [9_u32, 11].iter().for_each(|tenths| send(&mut hosts[1], from + ms(*tenths), u8::try_from(*tenths).unwrap()));
        engine.forward_in_order(engine.io.now());
        engine.forward_in_order(engine.io.now());
        assert_eq!(received(&mut hosts[2]), [9], "what is to go is met until it goes");
    }

    /// Returns how long before its due time a packet is released that arrives soon after others have left.
    fn lead(host_keeps_schedule: bool) -> Duration {
        let (mut engine, mut hosts) = stopped(3);
        if !host_keeps_schedule {
            // A port without schedule: its frames arrive when they are sent.
            let (port, host) = memory::pair(64).unwrap();
            engine.remove_port(PortNo(3)).unwrap();
            engine.add_port(PortConfig::new(PortNo(3), Box::new(port))).unwrap();
            hosts[2] = host;
        }
        let from = engine.io.now() - Duration::from_millis(10);
        let add = Message { xid: 1, body: Body::FlowMod(to_the_third()) };
        assert_eq!(engine.physical().defer_message(from, CHANNEL, add), None);
        [5, 6].iter().for_each(|ms| send(&mut hosts[0], from + Duration::from_millis(*ms), 1));
        engine.forward_in_order(engine.io.now());
        engine.forward_in_order(engine.io.now());
        assert_eq!(received(&mut hosts[2]), [1, 1]);
        let now = engine.io.now();
        send(&mut hosts[0], now, 2);
        engine.forward_in_order(now + Duration::from_nanos(1));
        let timed = engine.physical.timed.as_ref().unwrap();
        assert_eq!(timed.next(), now + Duration::from_micros(100));
        timed.next().since(timed.due())
    }

    #[test]
    fn what_sending_takes_counts_where_frames_come_when_they_were_sent() {
        assert_eq!(lead(true), Duration::ZERO, "they come when they were due");
        assert!(lead(false) > Duration::ZERO);
    }

    #[test]
    fn what_was_said_behind_an_answer_counts_from_the_answer() {
        let (mut engine, _hosts) = stopped(1);
        let from = engine.io.now() - Duration::from_millis(10);
        let say = |engine: &mut Engine, xid, body| {
            assert_eq!(engine.physical().defer_message(from, CHANNEL, Message { xid, body }), None);
            engine.forward_in_order(engine.io.now());
            engine.forward_in_order(engine.io.now());
        };
        say(&mut engine, 1, Body::FlowMod(to_the_third()));
        say(&mut engine, 2, Body::BarrierRequest);
        say(&mut engine, 3, Body::FlowMod(FlowMod { priority: 2, ..to_the_third() }));
        let timed = engine.physical.timed.as_mut().unwrap();
        let lines = timed.take_records();
        assert_eq!(lines.len(), 2, "{lines:?}");
        let starts: Vec<f64> = lines.iter().map(|line| line.split(',').nth(1).unwrap().parse().unwrap()).collect();
        assert!((starts[1] - starts[0] - 1e-3).abs() < 1e-6, "{lines:?}");
    }
}
