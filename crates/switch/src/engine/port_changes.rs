//! Adds and removes ports, and tells the datapaths of changes of ports and their links.
use super::Engine;
use super::io::PortEvent;
use super::ports::{self, PortSlot};
use crate::config::{PortConfig, PortReopener};
use crate::handle::SwitchError;
use weir_datapath::MAX_PORTS;
use weir_openflow::model::PortNo;
use weir_port::queues::PortQueueConfig;
use weir_port::{Port, PortError};
use weir_units::Instant;

/// Requests of the switch's owner.
impl Engine {
    /// Adds a port and returns its number.
    ///
    /// # Errors
    /// Fails if the number is taken or is not an ordinary port's, if there are too many ports, or if there are too
    /// many queues.
    pub(crate) fn add_port(&mut self, config: PortConfig) -> Result<PortNo, SwitchError> {
        let number = config.number.unwrap_or_else(|| self.io.ports.free_number());
        let refused = |problem: String| SwitchError::PortNumber { number, problem };
        if let Some(place) = self.io.ports.place(number) {
            return Err(refused(format!("the number is taken by {}", self.io.ports.at(place).spec())));
        }
        // Ports with a missing device count, because the datapath must have room when they return.
        if self.io.ports.len() >= MAX_PORTS {
            return Err(refused(format!("there are {MAX_PORTS} ports already, the most a switch has")));
        }
        self.io.check_queues(&*config.port).map_err(refused)?;
        if ports::is_interface(config.port.info()) {
            // Listening starts before the port is asked for its link, so that no change in between is missed.
            self.io.links.listen();
        }
        let port = self.workers.share(number, config.port);
        let mut slot = PortSlot::new(number, port, config.reopen);
        if self.physical.timed.is_some() {
            slot.stamps_arrivals(self.io.clock);
        }
        let now = self.io.now();
        let datapath = self.physical.datapath.get();
        datapath.add_port(now, slot.desc(), &mut self.physical.out).map_err(refused)?;
        datapath.take_any_packet_type(number, slot.takes_any_packet_type());
        tracing::info!("port {number}: {}", slot.spec());
        self.io.ports.insert(slot);
        self.end_port_change(now);
        Ok(number)
    }

    /// Removes a port and returns its slot. The caller closes the device, because closing takes time.
    pub(crate) fn remove_port(&mut self, number: PortNo) -> Option<PortSlot> {
        let slot = self.io.ports.remove(number)?;
        if slot.port.is_none() {
            self.io.absent.remove();
        }
        let now = self.io.now();
        self.physical.datapath.get().remove_port(now, number, &mut self.physical.out);
        self.forget_frames(number);
        self.end_port_change(now);
        tracing::info!("port {number}: removed");
        Some(slot)
    }

    /// Returns the error for a number that no port has.
    pub(crate) fn no_port(&self, number: PortNo) -> SwitchError {
        self.io.no_port(number)
    }

    /// Returns how to open each port whose device is missing. The caller must return each with [`Engine::put_back`].
    pub(crate) fn absent_ports(&mut self) -> Vec<(PortNo, PortReopener)> {
        let absent = self.io.ports.iter_mut().filter(|slot| slot.port.is_none());
        absent.filter_map(|slot| Some((slot.number, slot.reopen.take()?))).collect()
    }

    /// Ends an attempt to reopen a port; `port` is the opened port, or `None` if the attempt failed.
    pub(crate) fn put_back(&mut self, number: PortNo, port: Option<Box<dyn Port>>, reopen: PortReopener) {
        let now = self.io.now();
        // The port was removed during the attempt: the reopened device is closed.
        let Some(place) = self.io.ports.place(number) else { return };
        let slot = self.io.ports.at(place);
        if slot.port.is_some() {
            return;
        }
        let Some(port) = port else {
            slot.reopen = Some(reopen);
            return;
        };
        slot.put_back(self.workers.share(number, port), reopen);
        slot.restore_queues(now, &mut self.io.pool);
        self.io.absent.remove();
        tracing::info!("port {number}: {} is back", slot.spec());
        let datapath = self.physical.datapath.get();
        if let Err(problem) = datapath.add_port(now, slot.desc(), &mut self.physical.out) {
            tracing::error!("port {number}: {problem}");
        }
        datapath.take_any_packet_type(number, slot.takes_any_packet_type());
        self.end_port_change(now);
    }

    /// Adds a queue to a port, or changes an existing one.
    ///
    /// # Errors
    /// Fails if there is no such port, if its device is gone, if virtual switches share the port, if the
    /// configuration is invalid, or if there are too many queues.
    pub(crate) fn set_queue(&mut self, number: PortNo, config: PortQueueConfig) -> Result<(), SwitchError> {
        if self.virtuals.as_ref().is_some_and(|virtuals| virtuals.share(number)) {
            let problem = "virtual switches share it; their queues are their crosspoints' buffers".to_owned();
            return Err(SwitchError::PortNumber { number, problem });
        }
        self.io.set_queue(number, config)
    }

    /// Removes a queue of a port. Frames that wait in it move to the default queue.
    ///
    /// # Errors
    /// Fails if there is no such port or queue, or if the port's device is gone.
    pub(crate) fn remove_queue(&mut self, number: PortNo, id: u32) -> Result<(), SwitchError> {
        self.io.remove_queue(number, id)
    }

    /// Polls the links of all ports now.
    pub(crate) fn look_at_links(&mut self) {
        self.io.poll_links(|_| true);
    }
}

/// Events of ports.
impl Engine {
    /// Handles the events of ports since the last call.
    #[inline]
    pub(super) fn settle(&mut self, now: Instant) {
        if self.io.has_events() {
            self.handle_events(now);
        }
    }

    #[cold]
    fn handle_events(&mut self, now: Instant) {
        // Handling an event may cause another one.
        while self.io.has_events() {
            for event in self.io.take_events() {
                match event {
                    PortEvent::Lost(number, error) => self.lose_port(now, number, &error),
                    PortEvent::Admin(number, up) => self.io.set_admin(number, up),
                    PortEvent::Link(number, up, kbps) => {
                        self.physical.datapath.get().set_link(now, number, up, kbps, &mut self.physical.out);
                    }
                }
            }
            self.end_port_change(now);
        }
    }

    /// Closes a port whose device is gone. The other ports continue.
    fn lose_port(&mut self, now: Instant, number: PortNo, error: &PortError) {
        let Some(place) = self.io.ports.place(number) else { return };
        let slot = self.io.ports.at(place);
        if slot.port.is_none() {
            return;
        }
        slot.lose();
        if slot.reopen.is_some() {
            tracing::warn!("{error}; port {number} is waited for");
            self.io.absent.add();
        } else {
            tracing::warn!("{error}; port {number} is removed");
            self.io.ports.remove(number);
        }
        self.physical.datapath.get().remove_port(now, number, &mut self.physical.out);
        self.forget_frames(number);
    }

    /// Hands out messages about changed ports, and sets the links of virtual switches' ports to those of the physical
    /// ports.
    fn end_port_change(&mut self, now: Instant) {
        self.physical().deliver(now);
        if let Some(virtuals) = &mut self.virtuals {
            virtuals.follow_links(now, &mut self.io);
        }
    }
}
