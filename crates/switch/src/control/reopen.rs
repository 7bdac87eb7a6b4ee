//! Reopens ports whose devices vanished.
use super::{ControlContext, stopped};
use crate::config::PortReopener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::Notify;
use weir_openflow::model::PortNo;

/// Interval of attempts to reopen absent ports without a hint.
const INTERVAL: Duration = Duration::from_secs(1);
/// Rest between attempts: opening a device changes it, and the kernel reports that change like the return of a
/// device.
const REST: Duration = Duration::from_millis(20);

/// Absent ports: the engine counts them, the control thread reopens them.
#[derive(Debug, Default)]
pub(crate) struct AbsentPorts {
    count: AtomicUsize,
    hint: Notify,
}

impl AbsentPorts {
    /// Counts one more absent port.
    pub(crate) fn add(&self) {
        self.count.fetch_add(1, Relaxed);
        // The device may be back already.
        self.hint.notify_one();
    }

    /// Counts one absent port less.
    pub(crate) fn remove(&self) {
        self.count.fetch_sub(1, Relaxed);
    }

    /// Triggers an attempt at once, because a device may be back.
    pub(crate) fn try_now(&self) {
        self.hint.notify_one();
    }
}

/// Tries to reopen absent ports on a hint that a device may be back, and once a second, until the switch stops.
pub(crate) async fn watch(control: ControlContext, absent: Arc<AbsentPorts>) {
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

async fn try_all(control: &ControlContext) {
    let Ok(absent) = control.engine.call_async(|engine| engine.absent_ports()).await else { return };
    for (number, reopen) in absent {
        try_one(control, number, reopen).await;
    }
}

async fn try_one(control: &ControlContext, number: PortNo, mut reopen: PortReopener) {
    // Opening a port may take the kernel a while.
    let opened = tokio::task::spawn_blocking(move || (reopen(), reopen)).await;
    let Ok((opened, reopen)) = opened else { return };
    if let Err(error) = &opened {
        tracing::debug!("port {number}: still gone: {error}");
    }
    // If the switch has stopped, the port is not needed.
    let _ = control.engine.call_async(move |engine| engine.put_back(number, opened.ok(), reopen)).await;
}
