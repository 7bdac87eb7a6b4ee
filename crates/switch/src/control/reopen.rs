//! Waiting for ports whose devices vanished.
use super::{Control, stopped};
use crate::config::Reopen;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use weir_openflow::model::PortNo;

/// How often a port is tried to be opened again.
const INTERVAL: Duration = Duration::from_secs(1);

/// Tries absent ports once a second until the switch stops.
pub(crate) async fn watch(control: Control, absent: Arc<AtomicUsize>) {
    let mut stopping = control.stopping.clone();
    loop {
        tokio::select! {
            () = stopped(&mut stopping) => return,
            () = tokio::time::sleep(INTERVAL) => {}
        }
        if absent.load(Ordering::Relaxed) > 0 {
            try_all(&control).await;
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
