//! Switches in memory, and a fuse after which nothing more is done, as if the service was killed.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use weir_networks::manager::{KeptManager, ManagerChanges};
use weir_networks::plan::{PlanStep, SliceSpec};
use weir_networks::store::{NetworkStore, StateStore, StoreError};
use weir_networks::switches::{SwitchAccess, SwitchFailure};

/// Number of operations that are still carried out.
#[derive(Debug, Clone)]
pub(crate) struct Fuse(Arc<Mutex<usize>>);

impl Fuse {
    pub(crate) fn endless() -> Fuse {
        Fuse::new(usize::MAX)
    }

    pub(crate) fn new(operations: usize) -> Fuse {
        Fuse(Arc::new(Mutex::new(operations)))
    }

    /// Returns true if nothing more is carried out.
    pub(crate) fn is_burnt(&self) -> bool {
        *self.0.lock().unwrap() == 0
    }

    /// Returns true if one more operation is carried out.
    fn burn(&self) -> bool {
        let mut left = self.0.lock().unwrap();
        let is_left = *left > 0;
        *left = left.saturating_sub(1);
        is_left
    }
}

/// Store that does not write any more once its fuse has burnt down.
pub(crate) struct FusedStore {
    pub(crate) store: NetworkStore,
    pub(crate) fuse: Fuse,
}

impl StateStore for FusedStore {
    fn load(&self) -> Result<KeptManager, StoreError> {
        self.store.load()
    }

    fn write(&mut self, changes: &ManagerChanges) -> Result<(), StoreError> {
        if self.fuse.burn() {
            return self.store.write(changes);
        }
        Err(StoreError::Failed { file: "killed".into(), problem: "killed".to_owned() })
    }
}

#[derive(Debug, Default)]
struct MemoryState {
    switches: BTreeMap<String, BTreeMap<String, SliceSpec>>,
    /// Switches that do not answer.
    silent: BTreeSet<String>,
    /// Switches that refuse to add.
    full: BTreeSet<String>,
    /// Steps that were carried out.
    steps: Vec<String>,
}

/// Switches in memory. Clones are the same switches.
#[derive(Debug, Clone)]
pub(crate) struct MemorySwitches {
    state: Arc<Mutex<MemoryState>>,
    fuse: Fuse,
}

impl MemorySwitches {
    pub(crate) fn new(names: &[&str]) -> MemorySwitches {
        let switches = names.iter().map(|name| ((*name).to_owned(), BTreeMap::new())).collect();
        let state = Arc::new(Mutex::new(MemoryState { switches, ..MemoryState::default() }));
        MemorySwitches { state, fuse: Fuse::endless() }
    }

    pub(crate) fn with_fuse(&self, fuse: &Fuse) -> MemorySwitches {
        MemorySwitches { state: Arc::clone(&self.state), fuse: fuse.clone() }
    }

    /// Returns all virtual switches by switch and name.
    pub(crate) fn all(&self) -> BTreeMap<String, BTreeMap<String, SliceSpec>> {
        self.state.lock().unwrap().switches.clone()
    }

    /// Returns the names of all virtual switches as `switch/name`.
    pub(crate) fn names(&self) -> Vec<String> {
        let all = self.all();
        all.iter().flat_map(|(switch, found)| found.keys().map(move |name| format!("{switch}/{name}"))).collect()
    }

    /// Adds or replaces a virtual switch behind the service's back.
    pub(crate) fn put(&self, switch: &str, spec: SliceSpec) {
        let mut state = self.state.lock().unwrap();
        state.switches.get_mut(switch).unwrap().insert(spec.name().to_owned(), spec);
    }

    /// Removes all virtual switches of a switch, as if it was started again.
    pub(crate) fn clear(&self, switch: &str) {
        self.state.lock().unwrap().switches.get_mut(switch).unwrap().clear();
    }

    pub(crate) fn set_silent(&self, switch: &str, is_silent: bool) {
        let silent = &mut self.state.lock().unwrap().silent;
        if is_silent {
            silent.insert(switch.to_owned())
        } else {
            silent.remove(switch)
        };
    }

    pub(crate) fn set_full(&self, switch: &str) {
        self.state.lock().unwrap().full.insert(switch.to_owned());
    }

    pub(crate) fn take_steps(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().steps)
    }

    fn check(&self, switch: &str) -> Result<(), SwitchFailure> {
        let is_silent = self.state.lock().unwrap().silent.contains(switch);
        if is_silent || !self.fuse.burn() {
            return Err(SwitchFailure::Unreachable { switch: switch.to_owned(), problem: "no answer".to_owned() });
        }
        Ok(())
    }
}

impl SwitchAccess for MemorySwitches {
    fn read(&mut self, switch: &str) -> Result<Vec<SliceSpec>, SwitchFailure> {
        self.check(switch)?;
        Ok(self.state.lock().unwrap().switches[switch].values().cloned().collect())
    }

    fn carry_out(&mut self, step: &PlanStep) -> Result<(), SwitchFailure> {
        self.check(step.switch())?;
        let state = &mut *self.state.lock().unwrap();
        let refused = |problem: &str| {
            Err(SwitchFailure::Refused { switch: step.switch().to_owned(), problem: problem.to_owned() })
        };
        let found = state.switches.get_mut(step.switch()).unwrap();
        match step {
            PlanStep::AddSlice { .. } if state.full.contains(step.switch()) => return refused("no room"),
            PlanStep::AddSlice { spec, .. } => {
                if found.values().any(|one| one.dpid() == spec.dpid() && one.name() != spec.name()) {
                    return refused("the dpid is taken");
                }
                found.insert(spec.name().to_owned(), spec.clone());
            }
            PlanStep::ResizeSlice { to, .. } if !found.contains_key(to.name()) => return refused("there is none"),
            PlanStep::ResizeSlice { to, .. } => _ = found.insert(to.name().to_owned(), to.clone()),
            PlanStep::RemoveSlice { spec, .. } => _ = found.remove(spec.name()),
        }
        state.steps.push(step.to_string());
        Ok(())
    }
}
