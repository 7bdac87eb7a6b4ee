//! Handles signals during `weir emulate`: Ctrl-C at a terminal cancels the running command, all other signals end the
//! lab.
use anyhow::Context as _;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use weir_emulator::CancelHandle;

/// Handler of signals on a separate thread, which runs until this is dropped.
pub(super) struct PromptSignalHandler {
    all: CancelHandle,
    current: Arc<Mutex<CancelHandle>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl PromptSignalHandler {
    pub(super) fn watch() -> anyhow::Result<PromptSignalHandler> {
        let cannot = "cannot wait for signals";
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context(cannot)?;
        let listen = |kind| {
            let _context = runtime.enter();
            signal(kind).context(cannot)
        };
        let mut interrupts = listen(SignalKind::interrupt())?;
        let mut ends = [listen(SignalKind::terminate())?, listen(SignalKind::hangup())?];
        let (all, current) = (CancelHandle::new(), Arc::new(Mutex::new(CancelHandle::new())));
        let (stop, mut stopped) = oneshot::channel();
        let (end_all, end_current) = (all.clone(), Arc::clone(&current));
        let keeps_going = std::io::stdin().is_terminal();
        let watch = async move {
            let [terminate, hangup] = &mut ends;
            loop {
                let is_end = tokio::select! {
                    _ = interrupts.recv() => !keeps_going,
                    _ = terminate.recv() => true,
                    _ = hangup.recv() => true,
                    _ = &mut stopped => return,
                };
                if is_end {
                    end_all.cancel();
                }
                end_current.lock().unwrap_or_else(PoisonError::into_inner).cancel();
            }
        };
        let thread = std::thread::Builder::new().name("weir-signals".into());
        let thread = thread.spawn(move || runtime.block_on(watch)).context(cannot)?;
        Ok(PromptSignalHandler { all, current, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the token that ends the lab.
    pub(super) fn all(&self) -> &CancelHandle {
        &self.all
    }

    /// Returns a fresh token for a command that starts now; Ctrl-C cancels it.
    pub(super) fn begin(&self) -> CancelHandle {
        let fresh = CancelHandle::new();
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = fresh.clone();
        if self.all.is_cancelled() {
            fresh.cancel();
        }
        fresh
    }
}

impl Drop for PromptSignalHandler {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
