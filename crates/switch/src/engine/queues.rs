//! Configures the queues of ports and reports them to controllers.
use super::io::EngineIo;
use super::ports::PortSlot;
use crate::handle::SwitchError;
use weir_datapath::{PortQueue, PortQueues};
use weir_openflow::model::PortNo;
use weir_packet::FramePool;
use weir_port::Port;
use weir_port::queues::{PortQueueConfig, QueueState, QueuedPort, TransmitQueues};
use weir_units::Instant;

/// Maximum number of queues of all ports together. OpenFlow 1.3 lists all in one message of at most 64 KiB, with 48
/// bytes each.
const MAX_QUEUES: usize = 1024;

impl EngineIo {
    /// Adds a queue to a port, or changes an existing one.
    ///
    /// # Errors
    /// Fails if there is no such port, if its device is gone, if the configuration is invalid, or if there are too
    /// many queues.
    pub(super) fn set_queue(&mut self, number: PortNo, config: PortQueueConfig) -> Result<(), SwitchError> {
        let (now, total) = (self.now(), self.count_queues());
        let slot = self.slot_with_port(number)?;
        let wrong = |problem: String| SwitchError::PortNumber { number, problem };
        // The first queue of a port creates the port's default queue as well.
        let is_new = |queues: &TransmitQueues| !queues.iter().any(|queue| queue.config.id == config.id);
        let new = slot.queues(is_new).map_or(2, usize::from);
        if total + new > MAX_QUEUES {
            return Err(wrong(too_many()));
        }
        slot.set_queue(now, config).map_err(wrong)
    }

    /// Removes a queue of a port. Frames that wait in it move to the default queue.
    ///
    /// # Errors
    /// Fails if there is no such port or queue, or if the port's device is gone.
    pub(super) fn remove_queue(&mut self, number: PortNo, id: u32) -> Result<(), SwitchError> {
        let now = self.now();
        self.slot_with_port(number)?;
        let port = self.ports.open_port(number);
        let removed = port.and_then(|port| port.queues_mut(|queues| queues.remove(now, id, &mut self.pool)));
        if removed == Some(true) {
            Ok(())
        } else {
            Err(SwitchError::PortNumber { number, problem: format!("it has no queue {id}") })
        }
    }

    fn slot_with_port(&mut self, number: PortNo) -> Result<&mut PortSlot, SwitchError> {
        let Some(place) = self.ports.place(number) else { return Err(self.no_port(number)) };
        let slot = self.ports.at(place);
        match slot.port {
            Some(_) => Ok(slot),
            None => {
                let problem = "its device is gone; try again when it is back".to_owned();
                Err(SwitchError::PortNumber { number, problem })
            }
        }
    }

    /// Checks that the queues of a port to be added fit.
    ///
    /// # Errors
    /// Fails if the switch would have too many queues.
    pub(super) fn check_queues(&self, port: &dyn Port) -> Result<(), String> {
        let new = port.queues(|queues| queues.iter().count()).unwrap_or(0);
        if new > 0 && self.count_queues() + new > MAX_QUEUES { Err(too_many()) } else { Ok(()) }
    }

    fn count_queues(&self) -> usize {
        self.ports.iter().filter_map(|slot| slot.queues(|queues| queues.iter().count())).sum()
    }
}

fn too_many() -> String {
    format!("a switch has at most {MAX_QUEUES} queues, the default queues of ports with queues included")
}

/// Converts queues to the datapath's form.
pub(super) fn port_queues(queues: &TransmitQueues) -> PortQueues {
    let queue = |state: QueueState| PortQueue {
        id: state.config.id,
        min: state.config.min,
        max: state.config.max,
        tx_packets: state.counters.tx_packets,
        tx_bytes: state.counters.tx_bytes,
        tx_dropped: state.counters.tx_full,
        since: state.since,
    };
    PortQueues { rate: queues.rate(), queues: queues.iter().map(queue).collect() }
}

impl PortSlot {
    /// Applies `look` to the port's queues. Returns `None` if the port has no queues or is not open.
    pub(super) fn queues<R>(&self, look: impl FnOnce(&TransmitQueues) -> R) -> Option<R> {
        self.port.as_ref()?.queues(look)
    }

    fn set_queue(&mut self, now: Instant, config: PortQueueConfig) -> Result<(), String> {
        config.check()?;
        let Some(mut port) = self.port.take() else { return Ok(()) };
        if !port.has_queues() && !port.begin_queues() {
            port = Box::new(QueuedPort::new(port));
        }
        let set = port.queues_mut(|queues| queues.set(now, config));
        self.port = Some(port);
        set.unwrap_or(Ok(()))
    }

    /// Closes the port after its device has gone, and keeps the configuration of its queues.
    pub(super) fn lose(&mut self) {
        self.kept_queues = self.queues(|queues| queues.iter().map(|queue| queue.config).collect());
        self.port = None;
    }

    /// Restores the queues of a reopened port from the configuration kept when its device went.
    pub(super) fn restore_queues(&mut self, now: Instant, pool: &mut FramePool) {
        let Some(kept) = self.kept_queues.take() else { return };
        let is_extra = |id: &u32| !kept.iter().any(|config| config.id == *id);
        let extra = |queues: &TransmitQueues| -> Vec<u32> {
            queues.iter().map(|queue| queue.config.id).filter(is_extra).collect()
        };
        let extra = self.queues(extra).unwrap_or_default();
        if let Some(port) = &mut self.port {
            port.queues_mut(|queues| {
                extra.into_iter().for_each(|id| {
                    queues.remove(now, id, pool);
                });
            });
        }
        for config in kept {
            if let Err(problem) = self.set_queue(now, config) {
                tracing::warn!("port {}: {problem}; it is left out", self.number);
            }
        }
    }
}
