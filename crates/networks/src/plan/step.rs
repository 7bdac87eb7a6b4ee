//! Describes one step of a plan.
use super::SliceSpec;
use std::fmt;

/// Step on one switch. Carrying it out again changes nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanStep {
    /// Adds a virtual switch.
    AddSlice {
        /// Network that it belongs to.
        network: String,
        /// Physical switch.
        switch: String,
        /// Virtual switch.
        spec: SliceSpec,
    },
    /// Changes a virtual switch.
    ResizeSlice {
        /// Network that it belongs to.
        network: String,
        /// Physical switch.
        switch: String,
        /// Virtual switch as it was.
        from: SliceSpec,
        /// Virtual switch as it becomes.
        to: SliceSpec,
    },
    /// Removes a virtual switch.
    RemoveSlice {
        /// Network that it belongs to.
        network: String,
        /// Physical switch.
        switch: String,
        /// Virtual switch as it was.
        spec: SliceSpec,
    },
}

impl PlanStep {
    pub(super) fn add(network: &str, switch: &str, spec: &SliceSpec) -> PlanStep {
        PlanStep::AddSlice { network: network.to_owned(), switch: switch.to_owned(), spec: spec.clone() }
    }

    pub(super) fn resize(network: &str, switch: &str, from: &SliceSpec, to: &SliceSpec) -> PlanStep {
        let (network, switch) = (network.to_owned(), switch.to_owned());
        PlanStep::ResizeSlice { network, switch, from: from.clone(), to: to.clone() }
    }

    pub(super) fn remove(network: &str, switch: &str, spec: &SliceSpec) -> PlanStep {
        PlanStep::RemoveSlice { network: network.to_owned(), switch: switch.to_owned(), spec: spec.clone() }
    }

    /// Returns the network that the step is for.
    pub fn network(&self) -> &str {
        match self {
            Self::AddSlice { network, .. } | Self::ResizeSlice { network, .. } | Self::RemoveSlice { network, .. } => {
                network
            }
        }
    }

    /// Returns the switch that carries the step out.
    pub fn switch(&self) -> &str {
        match self {
            Self::AddSlice { switch, .. } | Self::ResizeSlice { switch, .. } | Self::RemoveSlice { switch, .. } => {
                switch
            }
        }
    }

    /// Returns the step that undoes this one.
    #[must_use]
    pub fn undo(&self) -> PlanStep {
        match self {
            Self::AddSlice { network, switch, spec } => PlanStep::remove(network, switch, spec),
            Self::ResizeSlice { network, switch, from, to } => PlanStep::resize(network, switch, to, from),
            Self::RemoveSlice { network, switch, spec } => PlanStep::add(network, switch, spec),
        }
    }
}

impl fmt::Display for PlanStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddSlice { switch, spec, .. } => write!(f, "add virtual switch {} to {switch}", spec.name()),
            Self::ResizeSlice { switch, to, .. } => write!(f, "resize virtual switch {} on {switch}", to.name()),
            Self::RemoveSlice { switch, spec, .. } => write!(f, "remove virtual switch {} from {switch}", spec.name()),
        }
    }
}
