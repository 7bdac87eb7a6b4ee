//! Denial-of-service attack of RFC 8456, section 5.3.2, on the southbound interface: connections that are opened and
//! closed, one TCP SYN each. They are complete connections, since SYNs alone need raw sockets.
use anyhow::Context as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_emulator::CancelHandle;
use weir_units::{Clock as _, SystemClock};

/// Longest wait for one connection.
const CONNECT: Duration = Duration::from_millis(100);
/// Longest pause, and time between two looks at the rate.
const NAP: Duration = Duration::from_millis(5);
/// Connections that are open at once.
const OPEN: usize = 64;

/// A running attack; it ends when dropped.
pub(super) struct ConnectionAttack {
    stop: CancelHandle,
    connections: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl ConnectionAttack {
    /// Starts to open connections to a controller, so many a second at most.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn start(controller: SocketAddr, per_second: f64) -> anyhow::Result<ConnectionAttack> {
        let (stop, connections) = (CancelHandle::new(), Arc::new(AtomicU64::new(0)));
        let (told, counted) = (stop.clone(), Arc::clone(&connections));
        let work = move || attack(controller, per_second, &told, &counted);
        let thread = std::thread::Builder::new().name("weir-attack".into()).spawn(work);
        Ok(ConnectionAttack { stop, connections, thread: Some(thread.context("cannot start the attack")?) })
    }

    /// Returns the number of connections that were opened.
    pub(super) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for ConnectionAttack {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn attack(controller: SocketAddr, per_second: f64, stop: &CancelHandle, connections: &AtomicU64) {
    let clock = SystemClock::start();
    let mut open = std::collections::VecDeque::new();
    let mut tried = 0_u64;
    while !stop.is_cancelled() {
        let due = clock.now().as_secs_f64() * per_second;
        if tried as f64 >= due {
            stop.wait(NAP);
            continue;
        }
        tried += 1;
        if let Ok(stream) = TcpStream::connect_timeout(&controller, CONNECT) {
            connections.fetch_add(1, Ordering::Relaxed);
            open.push_back(stream);
            if open.len() > OPEN {
                open.pop_front();
            }
        }
    }
}
