//! Injects faults and changes while a switch runs.
use super::memory_connection::DisconnectKind;
use super::run::ScheduleRun;
use super::tenant;
use crate::clock::virtual_time::ThreadVirtualTime;
use std::time::Duration;

/// Number of steps for which a stalled controller reads nothing.
const STALL: u32 = 50;

impl ScheduleRun {
    pub(super) fn count(&mut self, fault: &'static str) {
        *self.report.faults.entry(fault).or_default() += 1;
    }

    pub(super) fn fault(&mut self) {
        let kind = match self.dice.below(if self.plan.has_virtual { 10 } else { 7 }) {
            0 => self.stall(),
            1 => self.cut(),
            2 => self.vanish(),
            3 => self.flap(),
            4 => {
                ThreadVirtualTime::advance(Duration::from_millis(self.dice.next() % 20_000));
                "clock_step"
            }
            5 => {
                ThreadVirtualTime::set_today(self.dice.next() % 4_000_000_000);
                "time_of_day_step"
            }
            6 => self.return_controller(),
            7 => self.remove_virtual(),
            _ => self.join_virtual(),
        };
        self.count(kind);
        self.note(|| format!("fault: {kind}"));
    }

    /// Makes a controller read nothing for a while.
    fn stall(&mut self) -> &'static str {
        let place = self.dice.below(self.controllers.len());
        if let Some(controller) = self.controllers.get_mut(place) {
            controller.stall(STALL);
        }
        "peer_that_stops_reading"
    }

    fn cut(&mut self) -> &'static str {
        let end = self.dice.pick(&[DisconnectKind::Closed, DisconnectKind::Reset]);
        if self.controllers.is_empty() {
            return "nothing";
        }
        let place = self.dice.below(self.controllers.len());
        let mut over = self.controllers.remove(place);
        over.end(end);
        self.gone.push(over);
        if end == DisconnectKind::Closed { "connection_closed" } else { "connection_reset" }
    }

    fn return_controller(&mut self) -> &'static str {
        if self.controllers.len() >= self.plan.versions.len() {
            return "nothing";
        }
        let versions = self.plan.versions.clone();
        let version = self.dice.pick(&versions);
        self.connect(version);
        "controller_that_comes_back"
    }

    fn vanish(&mut self) -> &'static str {
        let place = self.dice.below(self.hosts.len());
        let host = &mut self.hosts[place];
        if !std::mem::replace(&mut host.is_gone, true) {
            host.end.vanish();
            self.ports_failed = true;
        }
        "port_that_vanishes"
    }

    fn flap(&mut self) -> &'static str {
        let place = self.dice.below(self.hosts.len());
        let host = &self.hosts[place];
        host.end.set_link(!host.end.is_up());
        self.ports_failed = true;
        "link_change"
    }

    /// Removes the virtual switch.
    fn remove_virtual(&mut self) -> &'static str {
        let control = &self.parts.control;
        control.engine.post(|engine| _ = engine.remove_virtual(tenant::NAME));
        "virtual_switch_removed"
    }

    /// Adds the virtual switch, or connects a controller to it if it exists.
    fn join_virtual(&mut self) -> &'static str {
        match self.parts.control.virtuals.find(tenant::NAME) {
            Ok(found) if self.controllers.len() <= self.plan.versions.len() => {
                let version = self.dice.pick(&self.plan.versions);
                self.connect_to(found.control, version, true);
                "controller_of_the_virtual_switch"
            }
            Ok(_) => "nothing",
            Err(_) => {
                let spec = tenant::spec(self.plan.ports);
                let _ = self.parts.control.add_virtual(spec, Box::new(drop));
                "virtual_switch_added"
            }
        }
    }
}
