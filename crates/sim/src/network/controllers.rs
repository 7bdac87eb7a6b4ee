//! Simulates all controllers of a network: the scenario's own, and those of virtual switches, which are applications in
//! virtual time or programs outside of it.
use super::VirtualTimeSettings;
use super::control::{ControlDelay, SimulatedController};
use super::external::RealController;
use super::switch::SimulatedSwitch;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use weir_network::controller::{EmbeddedController, embedded};
use weir_network::result::{ControllerResult, ExternalController};
use weir_network::{NetworkError, VirtualSwitchApps};
use weir_openflow::session::SessionConfig;
use weir_scenario::{OpenFlowVersion, Scenario, ScenarioController};
use weir_slicing::VirtualSwitch;
use weir_units::Instant;

/// Controllers of a network, and the control channels to all of them.
pub(super) struct SimulatedControllers {
    controllers: Vec<SimulatedController>,
    channels: Vec<ControlChannel>,
    /// Numbers of the channels of each switch and its virtual switches.
    of_switch: Vec<Vec<usize>>,
    /// True if the first controller is the scenario's own.
    controls_switches: bool,
    /// True if the scenario's own controller adds an entry to each switch before packets can reach it.
    adds_entries: bool,
}

/// Control channel.
#[derive(Debug, Clone, Copy)]
struct ControlChannel {
    switch: usize,
    /// Index of the virtual switch in its switch; `None` for the channel of the switch itself.
    cut: Option<usize>,
    /// Index of the controller, and number of the channel there.
    controller: usize,
    number: usize,
}

/// Controller that is not made yet, with the ends of its channels: switch, and index of the virtual switch.
struct PlannedController<'a> {
    kind: PlannedKind<'a>,
    ends: Vec<(usize, Option<usize>)>,
}

enum PlannedKind<'a> {
    Embedded(EmbeddedController),
    /// Address of a controller outside of virtual time, and who has it, for errors.
    Address(&'a str, String),
}

impl SimulatedControllers {
    /// Makes the controllers of a scenario, with the applications of its virtual switches, and begins the channels of
    /// `switches`. All of them connect at time 0.
    ///
    /// # Errors
    /// A controller outside of virtual time cannot be reached, an application is not known, or a virtual switch has
    /// several controllers.
    pub(super) fn new(
        scenario: &Scenario,
        apps: &VirtualSwitchApps,
        settings: &VirtualTimeSettings,
        switches: &mut [SimulatedSwitch],
    ) -> Result<SimulatedControllers, NetworkError> {
        let mut all = SimulatedControllers {
            controllers: Vec::new(),
            channels: Vec::new(),
            of_switch: vec![Vec::new(); switches.len()],
            controls_switches: scenario.control != ScenarioController::None,
            adds_entries: matches!(
                scenario.control,
                ScenarioController::Embedded { openflow: OpenFlowVersion::V13, .. }
            ),
        };
        for planned in plan(scenario, apps)? {
            all.make(scenario, settings, planned, switches)?;
        }
        Ok(all)
    }

    fn make(
        &mut self,
        scenario: &Scenario,
        settings: &VirtualTimeSettings,
        planned: PlannedController<'_>,
        switches: &mut [SimulatedSwitch],
    ) -> Result<(), NetworkError> {
        let controller = self.controllers.len();
        let delay = ControlDelay::new(settings, scenario.seed, controller);
        let count = planned.ends.len();
        let (made, session) = match planned.kind {
            PlannedKind::Embedded((app, session)) => {
                (SimulatedController::new(app, session.clone(), delay, count), session)
            }
            PlannedKind::Address(address, owner) => {
                let names = planned.ends.iter().map(|end| name_of(scenario, *end)).collect();
                let real = RealController::connect(scenario, &owner, address, names, settings)?;
                (SimulatedController::external(real, delay, count), SessionConfig::default())
            }
        };
        self.controllers.push(made);
        for (number, (switch, cut)) in planned.ends.into_iter().enumerate() {
            switches[switch].agent_mut(cut).connect(session.clone());
            self.of_switch[switch].push(self.channels.len());
            self.channels.push(ControlChannel { switch, cut, controller, number });
        }
        Ok(())
    }

    /// Returns the number of control channels.
    pub(super) fn count(&self) -> usize {
        self.channels.len()
    }

    /// Returns the numbers of the channels of a switch and its virtual switches.
    pub(super) fn of_switch(&self, switch: usize) -> &[usize] {
        &self.of_switch[switch]
    }

    /// Returns the numbers of all channels of the controller that has this channel. They follow each other.
    pub(super) fn of_same_controller(&self, channel: usize) -> Range<usize> {
        let ControlChannel { controller, number, .. } = self.channels[channel];
        let first = channel - number;
        let others = self.channels[first..].iter().take_while(|other| other.controller == controller);
        first..first + others.count()
    }

    /// Returns the index of the switch whose channel this is, or that has the virtual switch.
    pub(super) fn switch(&self, channel: usize) -> usize {
        self.channels[channel].switch
    }

    /// Passes bytes of a channel that have arrived to its controller ([`SimulatedController::receive_from_switch`]).
    ///
    /// # Errors
    /// A controller outside of virtual time does not answer.
    pub(super) fn receive(&mut self, now: Instant, channel: usize, cancel: &AtomicBool) -> Result<(), NetworkError> {
        let ControlChannel { controller, number, .. } = self.channels[channel];
        self.controllers[controller].receive_from_switch(now, number, cancel)
    }

    /// Sends the pending output of both ends of a channel. Returns the time at which to call
    /// [`SimulatedControllers::receive`], and the time at which bytes reach the switch.
    pub(super) fn exchange(
        &mut self,
        now: Instant,
        channel: usize,
        switches: &mut [SimulatedSwitch],
    ) -> (Instant, Instant) {
        let ControlChannel { switch, cut, controller, number } = self.channels[channel];
        let agent = switches[switch].agent_mut(cut);
        let controller = &mut self.controllers[controller];
        if agent.has_channel() {
            controller.exchange_bytes(now, number, agent);
        } else {
            controller.disconnect(now, number);
        }
        (controller.next_wake(number), agent.next_control_arrival())
    }

    /// Returns true if every switch and every virtual switch with a controller is under control.
    pub(super) fn are_ready(&self, now: Instant, switches: &mut [SimulatedSwitch]) -> bool {
        self.channels.iter().all(|channel| {
            let controller = &self.controllers[channel.controller];
            // Applications of virtual switches, and controllers outside of virtual time, have installed their first
            // entries when nothing is on its way.
            let settles = channel.cut.is_some() || controller.is_external();
            let switch = &mut switches[channel.switch];
            let agent = switch.agent_mut(channel.cut);
            let is_silent =
                !settles || controller.is_idle() && agent.next_control_arrival() == Instant::FAR && agent.is_settled();
            let has_ended = channel.cut.is_some() && !agent.has_channel();
            let needs_entry = self.adds_entries && channel.cut.is_none();
            has_ended || agent.is_up() && is_silent && (!needs_entry || switch.entries(now) > 0)
        })
    }

    /// Waits in real time for what controllers outside of virtual time send when all switches are connected. Returns
    /// false if they send nothing more.
    ///
    /// # Errors
    /// A controller closes a connection.
    pub(super) fn listen(&mut self, now: Instant) -> Result<bool, NetworkError> {
        let mut some = false;
        for controller in &mut self.controllers {
            some |= controller.listen(now)?;
        }
        Ok(some)
    }

    /// Passes a request to the application of the scenario's own embedded controller. Returns its answer; `None` if
    /// there is none.
    pub(super) fn command(&mut self, now: Instant, request: &str) -> Option<String> {
        self.own()?.command(now, request)
    }

    fn own(&mut self) -> Option<&mut SimulatedController> {
        self.controllers.first_mut().filter(|_| self.controls_switches)
    }

    /// Returns the counters of the scenario's own controller: the embedded one, or the one outside of virtual time.
    pub(super) fn own_result(&mut self) -> (Option<ControllerResult>, Option<ExternalController>) {
        self.own().map_or((None, None), |own| own.result())
    }

    /// Returns the counters of the embedded controller of a virtual switch.
    pub(super) fn virtual_result(&mut self, switch: usize, cut: usize) -> Option<ControllerResult> {
        let channel = self.channels.iter().find(|channel| (channel.switch, channel.cut) == (switch, Some(cut)))?;
        self.controllers[channel.controller].result().0
    }

    /// Returns what is to be reported of controllers outside of virtual time that only virtual switches have.
    pub(super) fn virtual_externals(&mut self) -> Vec<ExternalController> {
        let others = self.controllers.iter_mut().skip(usize::from(self.controls_switches));
        others.filter_map(|controller| controller.result().1).collect()
    }
}

/// Returns the controllers of a scenario, its own first. One address is one controller, also for several switches.
fn plan<'a>(scenario: &'a Scenario, apps: &VirtualSwitchApps) -> Result<Vec<PlannedController<'a>>, NetworkError> {
    let mut planned: Vec<PlannedController<'_>> = Vec::new();
    let whole = || (0..scenario.switches.len()).map(|switch| (switch, None)).collect();
    if let Some(own) = embedded(scenario)? {
        planned.push(PlannedController { kind: PlannedKind::Embedded(own), ends: whole() });
    } else if let ScenarioController::Connect(address) = &scenario.control {
        planned.push(PlannedController { kind: PlannedKind::Address(address, "controller".to_owned()), ends: whole() });
    }
    for (switch, spec) in scenario.switches.iter().enumerate() {
        for (cut, virtual_switch) in spec.virtual_switches.iter().enumerate() {
            let end = (switch, Some(cut));
            if let Some(app) = apps.make(virtual_switch)? {
                planned.push(PlannedController { kind: PlannedKind::Embedded(app), ends: vec![end] });
            }
            let Some(address) = only_address(virtual_switch)? else { continue };
            let same = |other: &&mut PlannedController<'_>| matches!(other.kind, PlannedKind::Address(known, _) if known == address);
            match planned.iter_mut().find(same) {
                Some(other) => other.ends.push(end),
                None => {
                    let owner = format!("virtual switch {}", virtual_switch.name);
                    planned.push(PlannedController { kind: PlannedKind::Address(address, owner), ends: vec![end] });
                }
            }
        }
    }
    Ok(planned)
}

/// Returns the address of a virtual switch's controller outside of virtual time.
fn only_address(virtual_switch: &VirtualSwitch) -> Result<Option<&str>, NetworkError> {
    match &virtual_switch.connect[..] {
        [] => Ok(None),
        [address] => Ok(Some(address)),
        more => Err(NetworkError::Scenario(format!(
            "virtual switch {}: connect: found {} controllers, expected one: virtual time has one control channel for \
             each virtual switch",
            virtual_switch.name,
            more.len()
        ))),
    }
}

/// Returns what errors call the switch's end of a channel.
fn name_of(scenario: &Scenario, (switch, cut): (usize, Option<usize>)) -> String {
    let switch = &scenario.switches[switch];
    match cut {
        Some(cut) => format!("virtual switch {}", switch.virtual_switches[cut].name),
        None => format!("switch {}", switch.name),
    }
}
