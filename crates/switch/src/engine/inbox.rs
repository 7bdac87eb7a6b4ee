//! Passes work from other threads to the engine: calls from the switch's owner and messages from channels.
//!
//! There are two queues, so that a flooding controller fills only the channels' queue. In that queue each channel
//! waits for its turn (tokio's queues are fair). Calls of the owner pass by it.
use super::virtuals::VirtualId;
use super::wake::ThreadWaker;
use super::{Engine, EngineSnapshot, ServedSwitch};
use crate::control::backlog::Outbox;
use crate::handle::SwitchError;
use crossbeam_channel::{Receiver, Sender};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use weir_datapath::ChannelId;
use weir_openflow::{Message, Version};
use weir_units::Instant;

/// Maximum number of waiting calls. Each caller waits for its answer, so there are never more calls than callers.
const MAX_CALLS: usize = 64;
/// Maximum time that [`EngineClient::post`] waits for room in the queue. The engine empties the queue in each round.
const POST_PATIENCE: Duration = Duration::from_millis(100);
/// Maximum number of short messages that a channel passes to the engine at once, so that one wake-up serves many.
pub(crate) const BATCH: usize = 32;
/// Maximum number of waiting batches of all channels; the channels' streams are not read beyond it. The limit also
/// bounds how long one controller waits behind another that floods: some milliseconds of flow-mods.
pub(super) const MAX_BATCHES: usize = 8;

/// A closure to run on the engine's thread.
pub(crate) type EngineCall = Box<dyn FnOnce(&mut Engine) + Send>;

/// An event or messages from a channel.
pub(crate) enum FromChannel {
    /// The channel is up; the outbox takes its messages.
    Up(ChannelId, Version, Outbox),
    /// The channel is up as an auxiliary connection of the second channel, with this auxiliary number.
    AuxiliaryUp(ChannelId, ChannelId, u8, Outbox),
    /// At most [`BATCH`] messages from the controller, in order, with the time of their arrival.
    Messages(ChannelId, Instant, Vec<Message>),
    /// The channel ended.
    Down(ChannelId),
}

/// The engine's end of the queues.
pub(crate) struct EngineInbox {
    pub(crate) calls: Receiver<EngineCall>,
    pub(crate) waker: Arc<ThreadWaker>,
}

/// The end of the queues for other threads.
#[derive(Clone)]
pub(crate) struct EngineClient {
    calls: Sender<EngineCall>,
    messages: mpsc::Sender<FromChannel>,
    waker: Arc<ThreadWaker>,
    /// The virtual switch that served calls and messages are for; `None` for the physical switch.
    of: Option<VirtualId>,
}

/// Creates both ends of the queues. The third value receives the messages that channels send.
///
/// # Errors
/// Fails if the process has no descriptor left.
pub(crate) fn inbox() -> io::Result<(EngineClient, EngineInbox, mpsc::Receiver<FromChannel>)> {
    let waker = Arc::new(ThreadWaker::new()?);
    let (calls, calls_in) = crossbeam_channel::bounded(MAX_CALLS);
    let (messages, messages_in) = mpsc::channel(MAX_BATCHES);
    let client = EngineClient { calls, messages, waker: Arc::clone(&waker), of: None };
    Ok((client, EngineInbox { calls: calls_in, waker }, messages_in))
}

impl EngineClient {
    /// Returns a client for a virtual switch, and the receiver of the messages that its channels send.
    pub(crate) fn for_virtual(&self, id: VirtualId) -> (EngineClient, mpsc::Receiver<FromChannel>) {
        let (messages, messages_in) = mpsc::channel(MAX_BATCHES);
        (EngineClient { messages, of: Some(id), ..self.clone() }, messages_in)
    }

    /// Returns a call that runs `what` on the logical switch of this client; its result is `None` if that is gone.
    fn on_served<R>(
        &self,
        what: impl FnOnce(&mut ServedSwitch<'_>) -> R + Send + 'static,
    ) -> impl FnOnce(&mut Engine) -> Option<R> + Send + 'static {
        let of = self.of;
        move |engine| engine.served(of).map(|mut served| what(&mut served))
    }

    /// Runs `what` on the engine's thread and waits for its result.
    ///
    /// # Errors
    /// [`SwitchError::Stopped`] if the engine has ended.
    pub(crate) fn call<R: Send + 'static>(
        &self,
        what: impl FnOnce(&mut Engine) -> R + Send + 'static,
    ) -> Result<R, SwitchError> {
        let (answer, answered) = crossbeam_channel::bounded(1);
        let call: EngineCall = Box::new(move |engine| drop(answer.send(what(engine))));
        self.calls.send(call).map_err(|_| SwitchError::Stopped)?;
        self.waker.wake();
        answered.recv().map_err(|_| SwitchError::Stopped)
    }

    /// Runs `what` on the physical switch, or on the virtual switch that this client is for, and waits for its result.
    ///
    /// # Errors
    /// [`SwitchError::Stopped`] if the engine has ended; [`SwitchError::Ended`] if the virtual switch is gone.
    pub(crate) fn call_served<R: Send + 'static>(
        &self,
        what: impl FnOnce(&mut ServedSwitch<'_>) -> R + Send + 'static,
    ) -> Result<R, SwitchError> {
        self.call(self.on_served(what))?.ok_or(SwitchError::Ended)
    }

    /// Runs `what` on the engine's thread and awaits its result, without blocking the control thread.
    ///
    /// # Errors
    /// [`SwitchError::Stopped`] if the engine has ended; [`SwitchError::Busy`] if too many calls wait.
    pub(crate) async fn call_async<R: Send + 'static>(
        &self,
        what: impl FnOnce(&mut Engine) -> R + Send + 'static,
    ) -> Result<R, SwitchError> {
        let (answer, answered) = oneshot::channel();
        let call: EngineCall = Box::new(move |engine| drop(answer.send(what(engine))));
        self.calls.try_send(call).map_err(|error| match error {
            crossbeam_channel::TrySendError::Full(_) => SwitchError::Busy,
            crossbeam_channel::TrySendError::Disconnected(_) => SwitchError::Stopped,
        })?;
        self.waker.wake();
        answered.await.map_err(|_| SwitchError::Stopped)
    }

    /// Runs `what` on the physical switch, or on the virtual switch that this client is for, and awaits its result.
    ///
    /// # Errors
    /// As [`EngineClient::call_async`]; [`SwitchError::Ended`] if the virtual switch is gone.
    pub(crate) async fn call_served_async<R: Send + 'static>(
        &self,
        what: impl FnOnce(&mut ServedSwitch<'_>) -> R + Send + 'static,
    ) -> Result<R, SwitchError> {
        self.call_async(self.on_served(what)).await?.ok_or(SwitchError::Ended)
    }

    /// Returns the state of the physical switch, or of the virtual switch that this client is for.
    ///
    /// # Errors
    /// As [`EngineClient::call_served_async`].
    pub(crate) async fn snapshot(&self) -> Result<EngineSnapshot, SwitchError> {
        let of = self.of;
        self.call_async(move |engine| engine.snapshot(of)).await?.ok_or(SwitchError::Ended)
    }

    /// Does what [`EngineClient::snapshot`] does, and blocks the calling thread meanwhile.
    ///
    /// # Errors
    /// As [`EngineClient::call_served`].
    pub(crate) fn snapshot_blocking(&self) -> Result<EngineSnapshot, SwitchError> {
        let of = self.of;
        self.call(move |engine| engine.snapshot(of))?.ok_or(SwitchError::Ended)
    }

    /// Queues `what` for the engine's thread without waiting for it to run. The call is dropped if the switch has
    /// stopped, or if the queue stays full for [`POST_PATIENCE`].
    pub(crate) fn post(&self, what: impl FnOnce(&mut Engine) + Send + 'static) {
        if self.calls.send_timeout(Box::new(what), POST_PATIENCE).is_ok() {
            self.waker.wake();
        }
    }

    /// Wakes the engine after a condition that it waits for has become true.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    /// Waits for room in the queue, moves the first of `messages` into it, then as many as fit. The wait slows a
    /// controller down to the engine's pace.
    ///
    /// # Errors
    /// [`SwitchError::Stopped`] if the engine has ended.
    pub(crate) async fn send(&self, messages: &mut std::collections::VecDeque<FromChannel>) -> Result<(), SwitchError> {
        // The permit is awaited before a message is taken, so that a cancelled wait loses none.
        let permit = self.messages.reserve().await.map_err(|_| SwitchError::Stopped)?;
        if let Some(first) = messages.pop_front() {
            permit.send(first);
        }
        while let Ok(permit) = self.messages.try_reserve() {
            let Some(next) = messages.pop_front() else { break };
            permit.send(next);
        }
        self.waker.wake();
        Ok(())
    }
}
