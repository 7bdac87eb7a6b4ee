//! Ends a run at a signal, so that the command can print the results so far.
use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use weir_emulator::CancelHandle;

/// Exit status of a run stopped by a signal; shells use the same value for Ctrl-C.
pub const STOPPED: u8 = 130;

/// Handler of the signals that end a run. It waits on a separate thread, until dropped.
pub struct StopSignalHandler {
    /// Handle that is cancelled by the first SIGINT, SIGTERM or SIGHUP.
    pub cancel: CancelHandle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl StopSignalHandler {
    /// Starts to wait for SIGINT (Ctrl-C), SIGTERM and SIGHUP, none of which ends the process from now on.
    ///
    /// # Errors
    /// The system gives no descriptor or no thread to wait with.
    pub fn watch() -> anyhow::Result<StopSignalHandler> {
        let cannot = "cannot wait for signals";
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context(cannot)?;
        let cancel = CancelHandle::new();
        let (stop, stopped) = oneshot::channel();
        let listen = |kind| {
            let _context = runtime.enter();
            signal(kind).context(cannot)
        };
        let mut ends =
            [listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?, listen(SignalKind::hangup())?];
        let told = cancel.clone();
        let thread = std::thread::Builder::new().name("weir-signals".into()).spawn(move || {
            runtime.block_on(async {
                let [interrupt, terminate, hangup] = &mut ends;
                tokio::select! {
                    _ = interrupt.recv() => told.cancel(),
                    _ = terminate.recv() => told.cancel(),
                    _ = hangup.recv() => told.cancel(),
                    _ = stopped => {}
                }
            });
        })?;
        Ok(StopSignalHandler { cancel, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for StopSignalHandler {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
