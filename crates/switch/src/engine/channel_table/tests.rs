//! Tests what a channel's messages wait for, counted in messages of another channel.
use crate::Spin;
use crate::clock::switch_clock;
use crate::control::backlog::{Backlog, ChannelCounters, ToChannel, outbox};
use crate::engine::Engine;
use crate::engine::inbox::{BATCH, EngineClient, FromChannel, inbox};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedReceiver;
use weir_datapath::{ChannelId, Datapath, DatapathConfig, FailMode};
use weir_openflow::model::{FlowCommand, FlowMod, Match};
use weir_openflow::{Body, Message, Version};
use weir_packet::Field;
use weir_units::{Instant, SystemClock};

/// Number of flow entries: far more than one step of a change visits.
const ENTRIES: u32 = 5000;
const BUSY: ChannelId = ChannelId(1);
const OTHER: ChannelId = ChannelId(2);

/// An engine with many flow entries, its client, and the outputs of two channels.
struct Bench {
    engine: Engine,
    client: EngineClient,
    told: [UnboundedReceiver<ToChannel>; 2],
}

impl Bench {
    fn new() -> Bench {
        let (client, inbox, messages) = inbox().unwrap();
        let datapath = Datapath::new(DatapathConfig::default());
        let clock = switch_clock(SystemClock::start());
        let mut engine =
            Engine::new(datapath, FailMode::Secure, Spin::default(), clock, inbox, messages, Arc::default());
        for number in 0..ENTRIES {
            let flow = FlowMod::add(1, Match::any().with(Field::EthDst, number), Vec::new());
            engine.physical.datapath.get().flow_mod(Instant::ZERO, &flow).unwrap();
        }
        let told = [BUSY, OTHER].map(|channel| {
            let (outbox, told) = outbox(Arc::new(Backlog::new(Arc::<ChannelCounters>::default())));
            engine.physical().carry_out(Instant::ZERO, FromChannel::Up(channel, Version::V13, outbox));
            told
        });
        Bench { engine, client, told }
    }

    /// Queues messages as a channel does.
    fn send(&self, channel: ChannelId, bodies: Vec<Body>) {
        let messages = bodies.into_iter().map(|body| Message { xid: 0, body }).collect();
        let mut batches = VecDeque::from([FromChannel::Messages(channel, Instant::ZERO, messages)]);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.client.send(&mut batches)).unwrap();
        assert!(batches.is_empty());
    }

    /// Returns the number of barrier replies sent to `channel` since the last call.
    fn barriers(&mut self, channel: ChannelId) -> usize {
        let told = &mut self.told[channel.0 as usize - 1];
        let is_barrier =
            |told: &ToChannel| matches!(told, ToChannel::Message(Message { body: Body::BarrierReply, .. }));
        std::iter::from_fn(|| told.try_recv().ok()).filter(is_barrier).count()
    }

    fn round(&mut self) {
        let now = self.engine.io.now();
        self.engine.control(now, false);
    }
}

/// Returns a full batch of pairs: a change of all flow entries and a barrier.
fn changes() -> Vec<Body> {
    let modify = FlowMod { command: FlowCommand::Modify, ..FlowMod::add(1, Match::any(), Vec::new()) };
    (0..BATCH / 2).flat_map(|_| [Body::FlowMod(modify.clone()), Body::BarrierRequest]).collect()
}

#[test]
fn a_message_waits_for_one_large_change_of_another_channel() {
    let mut bench = Bench::new();
    (0..4).for_each(|_| bench.send(BUSY, changes()));
    bench.send(OTHER, vec![Body::BarrierRequest]);
    let mut changes_before = 0;
    while bench.barriers(OTHER) == 0 {
        changes_before += bench.barriers(BUSY);
        bench.round();
    }
    changes_before += bench.barriers(BUSY);
    assert!(changes_before <= 1, "{changes_before} changes of {ENTRIES} entries came first");
    // The bound also holds while the other channel's messages are in progress.
    for _ in 0..3 {
        while bench.barriers(BUSY) == 0 {
            bench.round();
        }
        bench.send(OTHER, vec![Body::BarrierRequest]);
        let mut changes_before = 0;
        while bench.barriers(OTHER) == 0 {
            bench.round();
            changes_before += bench.barriers(BUSY);
        }
        assert!(changes_before <= 2, "{changes_before} changes of {ENTRIES} entries came first");
    }
}

#[test]
fn nothing_of_what_waits_is_lost() {
    let mut bench = Bench::new();
    (0..4).for_each(|_| bench.send(BUSY, changes()));
    let mut answered = 0;
    while answered < 4 * BATCH / 2 {
        bench.send(OTHER, vec![Body::BarrierRequest]);
        while bench.barriers(OTHER) == 0 {
            bench.round();
        }
        answered += bench.barriers(BUSY);
    }
    assert_eq!(answered, 4 * BATCH / 2);
}
