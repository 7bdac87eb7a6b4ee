//! Limits the turns of channels on the control thread: each channel handles a bounded number of bytes before the
//! thread polls all sockets again.
//!
//! The runtime continues with a task as long as the task makes progress, up to a budget of operations. It polls
//! sockets when no task is left or after some dozens of tasks. An operation of a channel may decode 64 KiB of
//! messages. Without turns, an echo request of one controller would wait for megabytes of messages of another
//! controller that floods.

/// Bytes that a channel reads, or encodes for its controller, in a turn. The piece that exceeds the limit is the last
/// one, and is not longer than the limit.
pub(super) const TURN_BYTES: usize = 64 * 1024;

/// Bytes that a channel has used of its turn.
#[derive(Debug, Default)]
pub(super) struct ChannelByteBudget(usize);

impl ChannelByteBudget {
    /// Counts bytes that were read or encoded. At the end of the turn, yields to the other tasks; the runtime first
    /// polls their sockets.
    pub(super) async fn used(&mut self, bytes: usize) {
        self.0 += bytes;
        if self.0 >= TURN_BYTES {
            self.0 = 0;
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TURN_BYTES;
    use crate::clock::switch_clock;
    use crate::control::channel::{ByteStream, ChannelConnectionKind, run};
    use crate::control::{ChannelRegistry, ControlContext, STOPS};
    use crate::engine::inbox::{EngineClient, inbox};
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
    use tokio::sync::{mpsc, watch};
    use weir_datapath::LookupMethod;
    use weir_openflow::session::SessionConfig;
    use weir_units::SystemClock;

    /// A hello of OpenFlow 1.3, and an echo request.
    const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];
    const ECHO: [u8; 8] = [4, 2, 0, 8, 0, 0, 0, 2];
    /// Bytes of echo requests that the flooding controller sends.
    const FLOOD: usize = 8 << 20;

    fn control(engine: EngineClient, stopping: watch::Receiver<bool>) -> ControlContext {
        ControlContext {
            engine,
            registry: Arc::<ChannelRegistry>::default(),
            session: SessionConfig { max_output_bytes: 2 * FLOOD, ..SessionConfig::default() },
            controller_versions: Arc::default(),
            credentials: None,
            clock: switch_clock(SystemClock::start()),
            stamps: false,
            stopping,
            why_stopped: STOPS,
            virtuals: Arc::default(),
            virtual_switch_reader: None,
            lookup: LookupMethod::Adaptive,
            orders: mpsc::unbounded_channel().0,
        }
    }

    /// Starts a channel and returns the controller's end of its stream.
    fn channel(control: &ControlContext) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(2 * FLOOD);
        let info = control.registry.add("test".to_owned());
        let id = control.registry.next_id(false);
        tokio::spawn(run(control.clone(), ByteStream::new(ours), info, id, ChannelConnectionKind::main_only()));
        theirs
    }

    /// Runs on one thread without sockets or time, so the order of reads does not depend on the machine.
    #[test]
    fn an_echo_waits_for_one_turn_of_a_controller_that_floods() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (_stop, stopping) = watch::channel(false);
            // The engine takes no messages, but its inbox has room for the messages about channels.
            let (engine, _inbox, _messages) = inbox().unwrap();
            let control = control(engine, stopping);
            let (mut flooding, mut other) = (channel(&control), channel(&control));
            flooding.write_all(&[&HELLO[..], &ECHO.repeat(FLOOD / ECHO.len())].concat()).await.unwrap();
            other.write_all(&[HELLO, ECHO].concat()).await.unwrap();
            let mut answer = [0; 16];
            while answer[9] != 3 {
                other.read_exact(&mut answer[8..]).await.unwrap();
            }
            let mut answered = vec![0; FLOOD];
            let answered = flooding.read(&mut answered).await.unwrap();
            assert!(answered <= 4 * TURN_BYTES, "{answered} bytes of another's echo replies came first");
        });
    }
}
