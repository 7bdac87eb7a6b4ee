//! Reaches weir's switches over their control sockets.
use super::{SwitchAccess, SwitchFailure};
use crate::plan::{PlanStep, SliceSpec};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use weir_switch::VirtualSwitchSnapshot;
use weir_switch::ctl::{CtlClient, CtlError, CtlRequest};

/// Name of requests' texts in switches' errors.
const FILE: &str = "networks";

/// Running switches by their names. Each request opens a connection of its own, so that a switch may be started again
/// at any time.
#[derive(Debug, Clone)]
pub struct LiveSwitches {
    sockets: BTreeMap<String, PathBuf>,
}

impl LiveSwitches {
    /// Returns the switches with these control sockets.
    pub fn new(sockets: BTreeMap<String, PathBuf>) -> LiveSwitches {
        LiveSwitches { sockets }
    }

    fn ask(&self, switch: &str, request: &CtlRequest) -> Result<Value, SwitchFailure> {
        let unreachable = |problem: String| SwitchFailure::Unreachable { switch: switch.to_owned(), problem };
        let socket = self.sockets.get(switch).ok_or_else(|| unreachable("it has no control socket".to_owned()))?;
        let answered = CtlClient::connect(socket).and_then(|mut client| client.ask(request));
        answered.map_err(|error| match error {
            CtlError::Refused(problem) => SwitchFailure::Refused { switch: switch.to_owned(), problem },
            other => unreachable(other.to_string()),
        })
    }

    /// Returns true if the switch has a virtual switch of this name and datapath id.
    fn has(&mut self, switch: &str, spec: &SliceSpec) -> Result<bool, SwitchFailure> {
        let found = self.read(switch)?;
        Ok(found.iter().any(|one| one.name() == spec.name() && one.dpid() == spec.dpid()))
    }
}

/// Returns the text of a virtual switch for the switch.
fn text(switch: &str, spec: &SliceSpec) -> Result<String, SwitchFailure> {
    spec.toml().map_err(|problem| SwitchFailure::Refused { switch: switch.to_owned(), problem })
}

impl SwitchAccess for LiveSwitches {
    fn read(&mut self, switch: &str) -> Result<Vec<SliceSpec>, SwitchFailure> {
        let answer = self.ask(switch, &CtlRequest::ShowVirtual { name: None })?;
        let wrong = |problem: String| SwitchFailure::Unreachable { switch: switch.to_owned(), problem };
        let shown: Vec<VirtualSwitchSnapshot> =
            serde_json::from_value(answer).map_err(|error| wrong(format!("its answer is not understood: {error}")))?;
        shown.into_iter().map(|one| SliceSpec::from_value(one.spec).map_err(wrong)).collect()
    }

    fn carry_out(&mut self, step: &PlanStep) -> Result<(), SwitchFailure> {
        let (switch, file) = (step.switch(), FILE.to_owned());
        let resize = |spec: &SliceSpec| -> Result<CtlRequest, SwitchFailure> {
            let (name, text) = (spec.name().to_owned(), text(switch, spec)?);
            Ok(CtlRequest::ResizeVirtual { name, text, file: file.clone() })
        };
        let request = match step {
            PlanStep::AddSlice { spec, .. } if self.has(switch, spec)? => resize(spec)?,
            PlanStep::AddSlice { spec, .. } => CtlRequest::AddVirtual { text: text(switch, spec)?, file: file.clone() },
            PlanStep::ResizeSlice { to, .. } => resize(to)?,
            PlanStep::RemoveSlice { spec, .. } if !self.has(switch, spec)? => return Ok(()),
            PlanStep::RemoveSlice { spec, .. } => CtlRequest::RemoveVirtual { name: spec.name().to_owned() },
        };
        self.ask(switch, &request).map(|_| ())
    }
}
