//! What the engine is given by other threads: calls from the switch's owner, messages from control channels.
//!
//! Two queues, so that a controller that floods fills only the channels' queue: there, each channel waits for its turn
//! (tokio's queues are fair), and the owner's calls pass by.
use super::virtuals::VirtualId;
use super::{Engine, wake::Waker};
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

/// Calls waiting at most; who calls waits for its answer, so there are never more than callers.
const MAX_CALLS: usize = 64;
/// How long [`EngineClient::post`] waits for room in the queue, which the engine empties in each round.
const POST_PATIENCE: Duration = Duration::from_millis(100);
/// Messages of a channel that go to the engine at once, at most, if they are short ones: so that a wake-up is for many.
pub(crate) const BATCH: usize = 32;
/// Batches from channels waiting at most; the channels' streams are not read beyond. Also what one controller may have to
/// wait behind another that floods: some milliseconds of flow-mods.
pub(super) const MAX_BATCHES: usize = 8;

/// Something to be done on the engine's thread.
pub(crate) type Call = Box<dyn FnOnce(&mut Engine) + Send>;

/// What a control channel tells the engine.
pub(crate) enum FromChannel {
    /// It is up, and where its messages go.
    Up(ChannelId, Version, Outbox),
    /// It is up as an auxiliary connection of another, with this number.
    AuxiliaryUp(ChannelId, ChannelId, u8, Outbox),
    /// The controller says something: at most [`BATCH`] messages, in order, and when they were there.
    Messages(ChannelId, Instant, Vec<Message>),
    /// It ended.
    Down(ChannelId),
}

/// The engine's end.
pub(crate) struct Inbox {
    pub(crate) calls: Receiver<Call>,
    pub(crate) waker: Arc<Waker>,
}

/// The others' end.
#[derive(Clone)]
pub(crate) struct EngineClient {
    calls: Sender<Call>,
    messages: mpsc::Sender<FromChannel>,
    waker: Arc<Waker>,
    /// The virtual switch that calls and messages are for; none for the switch itself.
    of: Option<VirtualId>,
}

/// Makes both ends; the messages that channels send come out at the last of the three.
///
/// # Errors
/// The process has no descriptor left.
pub(crate) fn inbox() -> io::Result<(EngineClient, Inbox, mpsc::Receiver<FromChannel>)> {
    let waker = Arc::new(Waker::new()?);
    let (calls, calls_in) = crossbeam_channel::bounded(MAX_CALLS);
    let (messages, messages_in) = mpsc::channel(MAX_BATCHES);
    let client = EngineClient { calls, messages, waker: Arc::clone(&waker), of: None };
    Ok((client, Inbox { calls: calls_in, waker }, messages_in))
}

impl EngineClient {
    /// The same for a virtual switch, and where the messages come out that its channels send.
    pub(crate) fn for_virtual(&self, id: VirtualId) -> (EngineClient, mpsc::Receiver<FromChannel>) {
        let (messages, messages_in) = mpsc::channel(MAX_BATCHES);
        (EngineClient { messages, of: Some(id), ..self.clone() }, messages_in)
    }

    /// What the engine is given to do something and send the answer.
    fn prepare<R>(
        &self,
        what: impl FnOnce(&mut Engine) -> R + Send + 'static,
        answer: impl FnOnce(R) + Send + 'static,
    ) -> Call {
        let of = self.of;
        Box::new(move |engine| match of {
            None => answer(what(engine)),
            // Who waits for a virtual switch that is gone finds that there is no answer.
            Some(id) => _ = engine.serve(id, what).map(answer),
        })
    }

    /// Why there is no answer.
    fn no_answer(&self) -> SwitchError {
        if self.of.is_some() { SwitchError::Ended } else { SwitchError::Stopped }
    }

    /// Runs `what` on the engine's thread and waits for its result.
    ///
    /// # Errors
    /// [`SwitchError::Stopped`].
    pub(crate) fn call<R: Send + 'static>(
        &self,
        what: impl FnOnce(&mut Engine) -> R + Send + 'static,
    ) -> Result<R, SwitchError> {
        let (answer, answered) = crossbeam_channel::bounded(1);
        let call = self.prepare(what, move |result| drop(answer.send(result)));
        self.calls.send(call).map_err(|_| SwitchError::Stopped)?;
        self.waker.wake();
        answered.recv().map_err(|_| self.no_answer())
    }

    /// As [`EngineClient::call`], on the control thread.
    ///
    /// # Errors
    /// [`SwitchError::Stopped`]; [`SwitchError::Busy`] when too many wait.
    pub(crate) async fn call_async<R: Send + 'static>(
        &self,
        what: impl FnOnce(&mut Engine) -> R + Send + 'static,
    ) -> Result<R, SwitchError> {
        let (answer, answered) = oneshot::channel();
        let call = self.prepare(what, move |result| drop(answer.send(result)));
        self.calls.try_send(call).map_err(|error| match error {
            crossbeam_channel::TrySendError::Full(_) => SwitchError::Busy,
            crossbeam_channel::TrySendError::Disconnected(_) => SwitchError::Stopped,
        })?;
        self.waker.wake();
        answered.await.map_err(|_| self.no_answer())
    }

    /// Has the engine do something at some time; nobody waits for it. Not done if the switch has stopped, or is so busy with calls that the queue
    /// stays full.
    pub(crate) fn post(&self, what: impl FnOnce(&mut Engine) + Send + 'static) {
        let call = self.prepare(what, drop);
        if self.calls.send_timeout(call, POST_PATIENCE).is_ok() {
            self.waker.wake();
        }
    }

    /// Wakes the engine: something it waits for has come true.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    /// Waits for room in the queue and puts the first of `messages` there, then as many as fit. The wait is what slows a
    /// controller down to the engine's pace.
    ///
    /// # Errors
    /// [`SwitchError::Stopped`].
    pub(crate) async fn send(&self, messages: &mut std::collections::VecDeque<FromChannel>) -> Result<(), SwitchError> {
        // The permit is waited for before anything is taken, so that a cancelled wait loses nothing.
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
