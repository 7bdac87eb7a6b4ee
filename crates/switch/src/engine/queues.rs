//! Queues of ports: changed by the switch's owner, told to controllers.
use super::Engine;
use super::ports::Slot;
use crate::handle::SwitchError;
use weir_datapath::{PortQueue, PortQueues};
use weir_openflow::Body;
use weir_openflow::model::PortNo;
use weir_openflow::model::multipart::RequestBody;
use weir_packet::FramePool;
use weir_port::Port;
use weir_port::queues::{QueueConfig, QueueState, Queued, Queues};
use weir_units::{Clock, Instant};

/// Queues of all ports together at most: OpenFlow 1.3 lists them all in one message of at most 64 KiB, 48 bytes each.
const MAX_QUEUES: usize = 1024;

impl Engine {
    /// Adds a queue to a port, or changes one.
    ///
    /// # Errors
    /// There is no such port, its device is gone, the configuration is wrong, or there are too many queues.
    pub(crate) fn set_queue(&mut self, number: PortNo, config: QueueConfig) -> Result<(), SwitchError> {
        let now = self.clock.now();
        let total = self.count_queues();
        self.has_no_share(number)?;
        self.workers.may_queue().map_err(|problem| SwitchError::PortNumber { number, problem })?;
        let slot = self.slot_with_port(number)?;
        let wrong = |problem: String| SwitchError::PortNumber { number, problem };
        // The port's first queue makes its default queue too.
        let new = match slot.queues() {
            None => 2,
            Some(queues) => usize::from(!queues.iter().any(|queue| queue.config.id == config.id)),
        };
        if total + new > MAX_QUEUES {
            return Err(wrong(too_many()));
        }
        slot.set_queue(now, config).map_err(wrong)
    }

    /// Removes a queue of a port; frames that wait in it go to the default one.
    ///
    /// # Errors
    /// There is no such port or queue, or the port's device is gone.
    pub(crate) fn remove_queue(&mut self, number: PortNo, id: u32) -> Result<(), SwitchError> {
        let now = self.clock.now();
        self.slot_with_port(number)?;
        let slot = self.ports.iter_mut().find(|slot| slot.number == number);
        let queues = slot.and_then(|slot| slot.port.as_mut()?.queues_mut());
        let removed = queues.is_some_and(|queues| queues.remove(now, id, &mut self.pool));
        if removed { Ok(()) } else { Err(SwitchError::PortNumber { number, problem: format!("it has no queue {id}") }) }
    }

    /// Refuses queues where virtual switches share the line.
    fn has_no_share(&self, number: PortNo) -> Result<(), SwitchError> {
        if self.serving.is_some() || self.is_shared(number) {
            let problem = "virtual switches share it; their queues are their crosspoints' buffers".to_owned();
            return Err(SwitchError::PortNumber { number, problem });
        }
        Ok(())
    }

    fn slot_with_port(&mut self, number: PortNo) -> Result<&mut Slot, SwitchError> {
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

    /// Whether the queues of a port that is to be added fit.
    ///
    /// # Errors
    /// There would be too many.
    pub(super) fn check_queues(&self, port: &dyn Port) -> Result<(), String> {
        let new = port.queues().map_or(0, |queues| queues.iter().count());
        if new > 0 && self.count_queues() + new > MAX_QUEUES { Err(too_many()) } else { Ok(()) }
    }

    fn count_queues(&self) -> usize {
        self.ports.iter().filter_map(Slot::queues).map(|queues| queues.iter().count()).sum()
    }

    /// Tells the datapath of the queues if a message asks for them.
    pub(super) fn tell_queues_for(&mut self, body: &Body) {
        let asks = match body {
            Body::QueueGetConfigRequest(_) => true,
            Body::MultipartRequest(request) => {
                matches!(request.body, RequestBody::Queue { .. } | RequestBody::QueueDesc { .. })
            }
            _ => false,
        };
        if !asks {
            return;
        }
        if self.serving.is_some() {
            return self.tell_virtual_queues();
        }
        for slot in self.ports.iter() {
            let queues = slot.queues().map(told).unwrap_or_default();
            self.logical.datapath.get().set_port_queues(slot.number, queues);
        }
    }
}

fn too_many() -> String {
    format!("a switch has at most {MAX_QUEUES} queues, the default queues of ports with queues included")
}

/// Queues as the datapath knows them.
fn told(queues: &Queues) -> PortQueues {
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

impl Slot {
    /// The port's queues, if it has any.
    pub(super) fn queues(&self) -> Option<&Queues> {
        self.port.as_ref()?.queues()
    }

    fn set_queue(&mut self, now: Instant, config: QueueConfig) -> Result<(), String> {
        config.check()?;
        let Some(port) = self.port.take() else { return Ok(()) };
        let mut port = if port.queues().is_some() { port } else { Box::new(Queued::new(port)) };
        let set = port.queues_mut().map_or(Ok(()), |queues| queues.set(now, config));
        self.port = Some(port);
        set
    }

    /// The device is gone: closes the port, and remembers its queues.
    pub(super) fn lose(&mut self) {
        self.kept_queues = self.queues().map(|queues| queues.iter().map(|queue| queue.config).collect());
        self.port = None;
    }

    /// Makes the queues of a port that was opened again what they were before its device went.
    pub(super) fn restore_queues(&mut self, now: Instant, pool: &mut FramePool) {
        let Some(kept) = self.kept_queues.take() else { return };
        let opened = self.queues().into_iter().flat_map(Queues::iter).map(|queue| queue.config.id);
        let extra: Vec<u32> = opened.filter(|id| !kept.iter().any(|config| config.id == *id)).collect();
        if let Some(queues) = self.port.as_mut().and_then(|port| port.queues_mut()) {
            for id in extra {
                queues.remove(now, id, pool);
            }
        }
        for config in kept {
            if let Err(problem) = self.set_queue(now, config) {
                tracing::warn!("port {}: {problem}; it is left out", self.number);
            }
        }
    }
}
