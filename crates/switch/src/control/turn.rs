//! Turns of channels on the control thread: each looks at a bounded number of bytes before the thread looks at all
//! sockets again.
//!
//! The runtime goes on with a task for as long as it finds something to do, up to a budget of operations, and looks at
//! sockets when no task is left or some dozens have run. An operation here may be 64 KiB of messages to decode: beside
//! a controller that floods, an echo request of another one would wait for megabytes of them.

/// Bytes that a channel reads, or encodes for its controller, in a turn; the piece that goes beyond is the last, and
/// has no more than this either.
pub(super) const TURN_BYTES: usize = 64 * 1024;

/// How much of its turn a channel has used.
#[derive(Debug, Default)]
pub(super) struct Turn(usize);

impl Turn {
    /// So many bytes were read or encoded. At the end of the turn the other tasks go on, after the runtime has looked
    /// at their sockets.
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
    use crate::control::channel::{ByteStream, Part, run};
    use crate::control::{Control, Registry, STOPS};
    use crate::engine::inbox::{EngineClient, inbox};
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
    use tokio::sync::{mpsc, watch};
    use weir_datapath::Lookup;
    use weir_openflow::session::SessionConfig;
    use weir_units::SystemClock;

    /// A hello of 1.3, and an echo request.
    const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];
    const ECHO: [u8; 8] = [4, 2, 0, 8, 0, 0, 0, 2];
    /// Bytes of echo requests that a controller floods with.
    const FLOOD: usize = 8 << 20;

    fn control(engine: EngineClient, stopping: watch::Receiver<bool>) -> Control {
        Control {
            engine,
            registry: Arc::<Registry>::default(),
            session: SessionConfig { max_output_bytes: 2 * FLOOD, ..SessionConfig::default() },
            controller_versions: Arc::default(),
            credentials: None,
            clock: switch_clock(SystemClock::start()),
            stamps: false,
            stopping,
            why_stopped: STOPS,
            virtuals: Arc::default(),
            lookup: Lookup::Adaptive,
            orders: mpsc::unbounded_channel().0,
        }
    }

    /// Begins a channel; gives the controller's end.
    fn channel(control: &Control) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(2 * FLOOD);
        let info = control.registry.add("test".to_owned());
        let id = control.registry.next_id(false);
        tokio::spawn(run(control.clone(), ByteStream::new(ours), info, id, Part::alone()));
        theirs
    }

    /// On one thread, without sockets or time: what is read when does not depend on the machine.
    #[test]
    fn an_echo_waits_for_one_turn_of_a_controller_that_floods() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (_stop, stopping) = watch::channel(false);
            // An engine that takes nothing: there is room for what channels say of themselves.
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
