//! Runs cases on weir's datapath: in this process, through the switch's end of a session, in virtual time.
use crate::case::{PAUSE_MS, PORTS, TABLES, bytes_of};
use crate::outcome::{self, CaseOutcome, StepAnswer};
use crate::{CaseStep, DifferentialCase};
use std::time::Duration;
use weir_datapath::{ChannelId, Datapath, DatapathConfig, DatapathOutput};
use weir_openflow::model::{Hello, PortDesc, PortNo};
use weir_openflow::session::{SessionConfig, SessionEvent};
use weir_openflow::{Body, Session, Version};
use weir_packet::{Frame, FramePool, MacAddr};
use weir_units::Instant;

/// The only channel.
const CHANNEL: ChannelId = ChannelId(1);

/// A datapath and the switch's end of its channel.
struct WeirInstance {
    datapath: Datapath,
    session: Session,
    pool: FramePool,
    out: DatapathOutput,
    now: Instant,
    version: Version,
}

/// Runs a case on weir. Returns its outcome.
pub fn run(case: &DifferentialCase) -> CaseOutcome {
    let mut switch = WeirInstance::new(case.version);
    let mut outcome = CaseOutcome::default();
    for (xid, step) in (1..).zip(&case.steps) {
        let answer = switch.step(xid, step, &mut outcome);
        outcome.answers.push(answer);
    }
    outcome
}

impl WeirInstance {
    fn new(version: Version) -> WeirInstance {
        let now = Instant::from_nanos(1_000_000_000);
        let mut switch = WeirInstance {
            datapath: Datapath::new(DatapathConfig { n_tables: TABLES, n_buffers: 0, ..DatapathConfig::default() }),
            session: Session::switch(SessionConfig { versions: vec![version], ..SessionConfig::default() }, now),
            pool: FramePool::default(),
            out: DatapathOutput::default(),
            now,
            version,
        };
        let ports = (1..=PORTS).map(PortNo).chain([PortNo::LOCAL]);
        for port in ports {
            let mac = MacAddr::from_bits(0x0200_0000_0000 | u64::from(port.0 & 0xffff));
            let desc = PortDesc::new(port, mac, format!("p{}", port.0 & 0xffff));
            switch.datapath.add_port(now, desc, &mut switch.out).expect("ports of different numbers");
        }
        switch.send(&Body::Hello(Hello { versions: Some(vec![version as u8]) }), 0);
        switch.answer(0, &mut CaseOutcome::default());
        switch
    }

    fn step(&mut self, xid: u32, step: &CaseStep, outcome: &mut CaseOutcome) -> StepAnswer {
        match step {
            CaseStep::Message(body) => self.send(body, xid),
            CaseStep::Frame { port, bytes } => {
                let mut frames = vec![Frame::from_bytes(bytes)];
                self.datapath.process(self.now, PortNo(*port), &mut frames, &mut self.pool, &mut self.out);
            }
            CaseStep::Pause => self.pause(),
        }
        self.answer(xid, outcome)
    }

    fn send(&mut self, body: &Body, xid: u32) {
        let bytes = bytes_of(body, xid, self.version).expect("only messages that the version can carry are drawn");
        self.session.receive(self.now, &bytes);
        while let Some(event) = self.session.take_event() {
            match event {
                SessionEvent::Up { version, .. } => self.datapath.channel_up(self.now, CHANNEL, version),
                SessionEvent::Message(message) => {
                    self.datapath.handle(self.now, CHANNEL, message, &mut self.pool, &mut self.out);
                }
                SessionEvent::Closed { reason } => panic!("weir closed the channel: {reason}"),
            }
        }
    }

    fn pause(&mut self) {
        self.now += Duration::from_millis(PAUSE_MS);
        while self.datapath.expire(self.now, &mut self.out).is_some_and(|next| next <= self.now) {}
    }

    /// Collects the results of a step.
    fn answer(&mut self, xid: u32, outcome: &mut CaseOutcome) -> StepAnswer {
        let mut answer = StepAnswer::default();
        for (_, message) in std::mem::take(&mut self.out.messages) {
            self.session.send(&message).expect("weir's answers can be encoded");
        }
        for (answered, bytes) in outcome::messages(self.session.output()) {
            match outcome::told(&bytes) {
                Ok(Body::PacketIn(packet)) => answer.packets_in.push(packet),
                told if answered == xid => answer.replies.push(told),
                told => outcome.told.push((Some(outcome.answers.len()), told)),
            }
        }
        let lists = self.out.frames.drain(..);
        answer.frames =
            lists.flat_map(|(port, list)| list.into_iter().map(move |f| (port.0, f.bytes().to_vec()))).collect();
        answer.frames.sort_by_key(|(port, _)| *port);
        answer
    }
}
