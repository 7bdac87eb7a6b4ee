//! Waiting for ports whose devices vanished.
use super::{Control, stopped};
use crate::config::Reopen;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::Notify;
use weir_openflow::model::PortNo;

/// How often a port is tried to be opened again that nobody says is back.
const INTERVAL: Duration = Duration::from_secs(1);
/// Rest between attempts: opening a device changes it, which the kernel tells as it tells that one is back.
const REST: Duration = Duration::from_millis(20);

/// The ports waited for: the engine counts them, the control thread opens them.
#[derive(Debug, Default)]
pub(crate) struct Absent {
    count: AtomicUsize,
    hint: Notify,
}

impl Absent {
    /// One more is waited for.
    pub(crate) fn add(&self) {
        self.count.fetch_add(1, Relaxed);
        // Its device may be back already.
        self.hint.notify_one();
    }

    /// One less is waited for.
    pub(crate) fn remove(&self) {
        self.count.fetch_sub(1, Relaxed);
    }

    /// A device may be back: try now.
    pub(crate) fn try_now(&self) {
        self.hint.notify_one();
    }
}

/// Tries absent ports when one may be back, and once a second, until the switch stops.
pub(crate) async fn watch(control: Control, absent: Arc<Absent>) {
    let mut stopping = control.stopping.clone();
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stopping) => return,
            () = tokio::time::sleep(INTERVAL) => {}
            () = absent.hint.notified() => {}
        }
        if absent.count.load(Relaxed) > 0 {
            try_all(&control).await;
            tokio::select! {
                () = stopped(&mut stopping) => return,
                () = tokio::time::sleep(REST) => {}
            }
        }
    }
}

async fn try_all(control: &Control) {
    let Ok(absent) = control.engine.call_async(|engine| engine.absent_ports()).await else { return };
    for (number, reopen) in absent {
        try_one(control, number, reopen).await;
    }
}

async fn try_one(control: &Control, number: PortNo, mut reopen: Reopen) {
    // Opening a port may take the kernel a while.
    let opened = tokio::task::spawn_blocking(move || (reopen(), reopen)).await;
    let Ok((opened, reopen)) = opened else { return };
    if let Err(error) = &opened {
        tracing::debug!("port {number}: still gone: {error}");
    }
    // With the switch stopped there is nothing to give back.
    let _ = control.engine.call_async(move |engine| engine.put_back(number, opened.ok(), reopen)).await;
}
