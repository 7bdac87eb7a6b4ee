//! A port whose other end the scheduler holds. Its rings may be full, its link may go down, and its device may
//! vanish.
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_packet::{Frame, FramePool, MacAddr};
use weir_port::event::EventFd;
use weir_port::{FrameCounters, LinkState, Port, PortError, PortInfo, PortResult, ReceiveReadiness};
use weir_units::Instant;

/// State shared by both ends of a cable.
#[derive(Debug)]
struct Cable {
    to_switch: VecDeque<Vec<u8>>,
    from_switch: VecDeque<Vec<u8>>,
    /// Maximum number of frames waiting in each direction.
    capacity: usize,
    counters: FrameCounters,
    is_up: bool,
    is_gone: bool,
    /// True if the switch requested a wake-up.
    is_armed: bool,
}

/// The switch's end of a cable.
pub(super) struct CablePort {
    info: PortInfo,
    cable: Arc<Mutex<Cable>>,
    event: Arc<EventFd>,
}

/// The scheduler's end of a cable.
pub(super) struct CableFarEnd {
    cable: Arc<Mutex<Cable>>,
    event: Arc<EventFd>,
}

/// Makes a cable and returns both ends; `name` is the name of the switch's port.
pub(super) fn cable(name: &str, capacity: usize) -> (CablePort, CableFarEnd) {
    let info =
        PortInfo { spec: format!("memory:{name}"), name: name.to_owned(), mac: MacAddr([2, 0, 0, 0, 1, 0]), mtu: 1500 };
    let (to_switch, from_switch, counters) = (VecDeque::new(), VecDeque::new(), FrameCounters::default());
    let (is_up, is_gone, is_armed) = (true, false, false);
    let cable = Cable { to_switch, from_switch, capacity, counters, is_up, is_gone, is_armed };
    let (cable, event) = (Arc::new(Mutex::new(cable)), Arc::new(EventFd::new().expect("a descriptor is left")));
    (CablePort { info, cable: Arc::clone(&cable), event: Arc::clone(&event) }, CableFarEnd { cable, event })
}

fn locked(cable: &Mutex<Cable>) -> MutexGuard<'_, Cable> {
    cable.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CableFarEnd {
    /// Sends a frame to the switch. Returns false if the ring is full, the link is down or the device is gone.
    pub(super) fn send(&self, frame: Vec<u8>) -> bool {
        let mut cable = locked(&self.cable);
        if cable.is_gone || !cable.is_up || cable.to_switch.len() >= cable.capacity {
            return false;
        }
        cable.to_switch.push_back(frame);
        self.wake(cable);
        true
    }

    /// Returns the next frame that the switch sent.
    pub(super) fn receive(&self) -> Option<Vec<u8>> {
        locked(&self.cable).from_switch.pop_front()
    }

    /// Removes the device and the frames it holds for the switch.
    pub(super) fn vanish(&self) {
        let mut cable = locked(&self.cable);
        cable.is_gone = true;
        cable.to_switch.clear();
        self.wake(cable);
    }

    /// Sets the link up or down.
    pub(super) fn set_link(&self, is_up: bool) {
        locked(&self.cable).is_up = is_up;
    }

    pub(super) fn is_up(&self) -> bool {
        let cable = locked(&self.cable);
        cable.is_up && !cable.is_gone
    }

    /// Returns the number of frames that wait in either direction.
    pub(super) fn waiting(&self) -> usize {
        let cable = locked(&self.cable);
        cable.to_switch.len() + cable.from_switch.len()
    }

    /// Returns the counters of the switch's end, also after the device vanished.
    pub(super) fn counters(&self) -> FrameCounters {
        locked(&self.cable).counters
    }

    fn wake(&self, mut cable: MutexGuard<'_, Cable>) {
        if std::mem::take(&mut cable.is_armed) {
            self.event.signal();
        }
    }
}

impl CablePort {
    fn gone(&self) -> PortError {
        PortError::Gone { spec: self.info.spec.clone() }
    }
}

impl Port for CablePort {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn receive(&mut self, _now: Instant, pool: &mut FramePool, batch: &mut Vec<Frame>, max: usize) -> PortResult {
        let mut cable = locked(&self.cable);
        if cable.is_gone {
            return Err(self.gone());
        }
        let count = cable.to_switch.len().min(max);
        for bytes in cable.to_switch.drain(..count).collect::<Vec<_>>() {
            let mut frame = pool.take(bytes.len());
            frame.assign(&bytes);
            cable.counters.rx_packets += 1;
            cable.counters.rx_bytes += bytes.len() as u64;
            batch.push(frame);
        }
        Ok(())
    }

    fn transmit(&mut self, _now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult {
        let mut cable = locked(&self.cable);
        for frame in frames.drain(..) {
            if cable.is_gone || !cable.is_up {
                cable.counters.tx_errors += 1;
            } else if cable.from_switch.len() >= cable.capacity {
                cable.counters.tx_full += 1;
            } else {
                cable.counters.tx_packets += 1;
                cable.counters.tx_bytes += frame.len() as u64;
                cable.from_switch.push_back(frame.bytes().to_vec());
            }
            pool.give(frame);
        }
        if cable.is_gone { Err(self.gone()) } else { Ok(()) }
    }

    fn arm(&mut self) -> ReceiveReadiness {
        self.event.drain();
        let mut cable = locked(&self.cable);
        let has_something = cable.is_gone || !cable.to_switch.is_empty();
        cable.is_armed = !has_something;
        if has_something { ReceiveReadiness::Now } else { ReceiveReadiness::OnDescriptor }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.event.as_fd())
    }

    fn link(&mut self) -> LinkState {
        let cable = locked(&self.cable);
        LinkState { up: cable.is_up && !cable.is_gone, speed: None }
    }

    fn counters(&self) -> FrameCounters {
        locked(&self.cable).counters
    }
}
