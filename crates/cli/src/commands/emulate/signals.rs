//! Handles signals during `weir emulate`: Ctrl-C at a terminal cancels the running command, all other signals end the
//! lab.
use anyhow::Context as _;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use weir_emulator::Cancel;

/// Handler of signals on a separate thread, which runs until this is dropped.
pub(super) struct Signals {
    all: Cancel,
    current: Arc<Mutex<Cancel>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Signals {
    pub(super) fn watch() -> anyhow::Result<Signals> {
        let cannot = "cannot wait for signals";
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context(cannot)?;
        let listen = |kind| {
            let _context = runtime.enter();
            signal(kind).context(cannot)
        };
        let mut interrupts = listen(SignalKind::interrupt())?;
        let mut ends = [listen(SignalKind::terminate())?, listen(SignalKind::hangup())?];
        let (all, current) = (Cancel::new(), Arc::new(Mutex::new(Cancel::new())));
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
        Ok(Signals { all, current, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the token that ends the lab.
    pub(super) fn all(&self) -> &Cancel {
        &self.all
    }

    /// Returns a fresh token for a command that starts now; Ctrl-C cancels it.
    pub(super) fn begin(&self) -> Cancel {
        let fresh = Cancel::new();
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = fresh.clone();
        if self.all.is_cancelled() {
            fresh.cancel();
        }
        fresh
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
