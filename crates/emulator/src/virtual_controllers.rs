//! Runs the applications that control virtual switches, each in a controller with a thread of its own.
use crate::LabError;
use weir_controller::{Controller, ControllerConfig};
use weir_network::VirtualSwitchApps;
use weir_network::result::{ControllerResult, VirtualSwitchResult};
use weir_scenario::ScenarioSwitch;
use weir_switch::{SwitchError, SwitchHandle, SwitchSnapshot};

/// Controllers of the virtual switches that have an application.
#[derive(Default)]
pub(crate) struct VirtualControllers(Vec<VirtualController>);

struct VirtualController {
    /// Index of the switch in the scenario.
    switch: usize,
    /// Name of the virtual switch.
    name: String,
    controller: Controller,
}

impl VirtualControllers {
    /// Starts the controllers of a switch's virtual switches, and connects these to them.
    pub(crate) fn start(
        &mut self,
        number: usize,
        spec: &ScenarioSwitch,
        switch: &SwitchHandle,
        apps: &VirtualSwitchApps,
    ) -> Result<(), LabError> {
        for virtual_switch in &spec.virtual_switches {
            let Some((app, session)) = apps.make(virtual_switch)? else { continue };
            let config = ControllerConfig { session, ..ControllerConfig::default() };
            let name = virtual_switch.name.clone();
            let controller = Controller::start(app, config)
                .map_err(LabError::system(format!("start the controller of virtual switch {name}")))?;
            switch.connect_virtual_stream(&name, controller.connect())?;
            self.0.push(VirtualController { switch: number, name, controller });
        }
        Ok(())
    }

    /// Returns true if each of these virtual switches is under control. The first entries that its application has sent
    /// are in effect then: packets may reach the controller only by such an entry.
    pub(crate) fn are_ready(&self, switches: &[SwitchHandle]) -> Result<bool, LabError> {
        for one in &self.0 {
            let knows = one.controller.snapshot();
            let Some(state) = present(switches[one.switch].virtual_snapshot(&one.name))? else { continue };
            let awaits_entry = knows.counters.flow_mods > 0 && state.entries() == 0;
            if knows.switches.is_empty() || state.channels_up() == 0 || awaits_entry {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the state of the virtual switches of a switch that are there.
    pub(crate) fn results(&self, number: usize, switch: &SwitchHandle) -> Result<Vec<VirtualSwitchResult>, LabError> {
        let snapshot = switch.snapshot()?;
        let mut results = Vec::new();
        for virtual_switch in &snapshot.virtual_switches {
            let name = &virtual_switch.name;
            let Some(state) = present(switch.virtual_snapshot(name))? else { continue };
            let own = self.0.iter().find(|one| one.switch == number && one.name == *name);
            results.push(VirtualSwitchResult {
                switch: snapshot.name.clone(),
                name: name.clone(),
                dpid: virtual_switch.datapath_id,
                channels_up: state.channels_up(),
                entries: state.entries(),
                controller: own.map(|one| ControllerResult::from(&one.controller.snapshot())),
            });
        }
        Ok(results)
    }

    /// Stops all of them.
    pub(crate) fn stop(&mut self) {
        self.0.drain(..).for_each(|one| _ = one.controller.stop());
    }
}

/// Returns the state of a virtual switch; `None` if its lifetime has ended.
pub(crate) fn present(state: Result<SwitchSnapshot, SwitchError>) -> Result<Option<SwitchSnapshot>, LabError> {
    match state {
        Ok(state) => Ok(Some(state)),
        Err(SwitchError::Request(_) | SwitchError::Ended) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
