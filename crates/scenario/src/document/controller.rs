//! The controller and intents as written.
use super::{LawToml, OneOrMore};
use crate::{EmbeddedApp, InstallScope, OpenFlowVersion};
use serde::Deserialize;
use toml::Spanned;
use weir_routing::forwarding::ForwardingMode;
use weir_routing::intents::IntentKind;
use weir_units::{Bps, TimeSpan};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ControllerToml {
    pub(crate) app: Option<EmbeddedApp>,
    pub(crate) connect: Option<Spanned<String>>,
    pub(crate) openflow: Option<OpenFlowVersion>,
    pub(crate) service: Option<Spanned<LawToml>>,
    pub(crate) buffer: Option<Spanned<u32>>,
    pub(crate) delay: Option<Spanned<TimeSpan>>,
    pub(crate) install: Option<Spanned<InstallScope>>,
    pub(crate) forward: Option<Spanned<ForwardingMode>>,
    pub(crate) ecmp: Option<Spanned<bool>>,
    pub(crate) arp_answers: Option<Spanned<bool>>,
    pub(crate) idle_timeout: Option<Spanned<String>>,
    pub(crate) probe_interval: Option<Spanned<String>>,
    pub(crate) port_buffer: Option<Spanned<String>>,
}

impl ControllerToml {
    /// Returns name and place of the first key that only the controller of a network has.
    pub(crate) fn first_of_network(&self) -> Option<(&'static str, std::ops::Range<usize>)> {
        let keys = [
            ("forward", self.forward.as_ref().map(Spanned::span)),
            ("ecmp", self.ecmp.as_ref().map(Spanned::span)),
            ("arp_answers", self.arp_answers.as_ref().map(Spanned::span)),
            ("idle_timeout", self.idle_timeout.as_ref().map(Spanned::span)),
            ("probe_interval", self.probe_interval.as_ref().map(Spanned::span)),
            ("port_buffer", self.port_buffer.as_ref().map(Spanned::span)),
        ];
        keys.into_iter().find_map(|(key, span)| Some((key, span?)))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IntentToml {
    pub(crate) key: Spanned<String>,
    pub(crate) kind: Spanned<IntentKind>,
    pub(crate) from: OneOrMore<Spanned<String>>,
    pub(crate) to: OneOrMore<Spanned<String>>,
    pub(crate) traffic: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) constraints: ConstraintsToml,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ConstraintsToml {
    pub(crate) bandwidth: Option<Spanned<Bps>>,
    pub(crate) delay: Option<Spanned<DelayBoundToml>>,
    pub(crate) waypoints: Vec<Spanned<String>>,
    pub(crate) avoid: Vec<Spanned<String>>,
    pub(crate) priority: Option<Spanned<u16>>,
    pub(crate) protected: Option<Spanned<bool>>,
}

/// Bound of a delay: either a percentile or the worst case.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct DelayBoundToml {
    pub(crate) most: TimeSpan,
    pub(crate) percentile: Option<f64>,
    #[serde(default)]
    pub(crate) worst_case: bool,
}
