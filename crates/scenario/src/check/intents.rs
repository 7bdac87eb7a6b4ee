//! Checks intents, and replaces the scenario's names by those that the controller knows.
use super::{ScenarioResult, SourceFile};
use crate::document::{ConstraintsToml, DelayBoundToml, IntentToml, OneOrMore};
use crate::{
    DelayBound, DelayKind, IntentConstraints, IntentSpec, ScenarioError, ScenarioHost, ScenarioIntent, ScenarioSwitch,
};
use std::collections::HashSet;
use std::net::IpAddr;
use std::ops::Range;
use toml::Spanned;
use weir_packet::MacAddr;
use weir_routing::intents::{IntentConfig, IntentError, IntentStore};
use weir_routing::map::parse_dpid;
use weir_routing::{NetworkMap, SwitchPort};
use weir_units::Instant;

/// Most names that an error lists.
const MOST_LISTED: usize = 20;

/// Switches and hosts by their names.
#[derive(Clone, Copy)]
struct KnownNames<'a> {
    switches: &'a [ScenarioSwitch],
    hosts: &'a [ScenarioHost],
}

/// Places of an intent's parts in the file.
struct IntentPlaces {
    whole: Range<usize>,
    parts: Vec<(&'static str, Option<Range<usize>>)>,
}

/// Checks all intents.
pub(super) fn check(
    source: &SourceFile<'_>,
    intents: Vec<Spanned<IntentToml>>,
    switches: &[ScenarioSwitch],
    hosts: &[ScenarioHost],
) -> ScenarioResult<Vec<ScenarioIntent>> {
    let names = KnownNames { switches, hosts };
    // The controller's own checks; in a network without switches nothing is carried out.
    let mut store = IntentStore::new(IntentConfig::default());
    let mut keys = HashSet::new();
    let mut checked = Vec::new();
    for intent in intents {
        let whole = intent.span();
        let intent = intent.into_inner();
        let places = IntentPlaces::of(whole, &intent);
        let key = intent.key.span();
        let made = names.intent(source, intent)?;
        if !keys.insert(made.spec.key.clone()) {
            let twice = format!("intent: found the key `{}` twice, expected each once", made.spec.key);
            return Err(source.error(key, twice));
        }
        let accepted = store.set(Instant::ZERO, made.spec.clone(), &NetworkMap::default());
        accepted.map_err(|error| places.error(source, &made.spec.key, &error))?;
        checked.push(made);
    }
    Ok(checked)
}

impl IntentPlaces {
    fn of(whole: Range<usize>, intent: &IntentToml) -> IntentPlaces {
        fn first<T>(list: &[Spanned<T>]) -> Option<Range<usize>> {
            list.first().map(Spanned::span)
        }
        let constraints = &intent.constraints;
        let parts = vec![
            ("key", Some(intent.key.span())),
            ("from", first(&intent.from.0)),
            ("to", first(&intent.to.0)),
            ("traffic", intent.traffic.as_ref().map(Spanned::span)),
            ("constraints.bandwidth", constraints.bandwidth.as_ref().map(Spanned::span)),
            ("constraints.delay", constraints.delay.as_ref().map(Spanned::span)),
            ("constraints.waypoints", first(&constraints.waypoints)),
            ("constraints.avoid", first(&constraints.avoid)),
            ("constraints.priority", constraints.priority.as_ref().map(Spanned::span)),
            ("constraints.protected", constraints.protected.as_ref().map(Spanned::span)),
        ];
        IntentPlaces { whole, parts }
    }

    /// Returns an error of the controller's checks at the part that it names.
    fn error(&self, source: &SourceFile<'_>, intent: &str, error: &IntentError) -> ScenarioError {
        let part = match error {
            IntentError::Invalid { key, .. } => self.parts.iter().find(|(name, _)| name == key),
            _ => None,
        };
        let span = part.and_then(|(_, span)| span.clone()).unwrap_or_else(|| self.whole.clone());
        source.error(span, format!("intent `{intent}`: {error}"))
    }
}

impl KnownNames<'_> {
    fn intent(&self, source: &SourceFile<'_>, intent: IntentToml) -> ScenarioResult<ScenarioIntent> {
        let key = intent.key.into_inner();
        let ends = [("from", &intent.from), ("to", &intent.to)];
        let read = |(part, ends): (&str, &OneOrMore<Spanned<String>>)| {
            ends.0.iter().map(|end| self.end(source, &key, part, end)).collect::<ScenarioResult<Vec<_>>>()
        };
        let [from, to] = ends.map(read);
        let written = ends.map(|(_, ends)| ends.0.iter().map(|end| end.as_ref().clone()).collect());
        let constraints = self.constraints(source, &key, intent.constraints)?;
        let traffic = intent.traffic.map(Spanned::into_inner).unwrap_or_default();
        let spec = IntentSpec { key, kind: intent.kind.into_inner(), from: from?, to: to?, traffic, constraints };
        Ok(ScenarioIntent { spec, ends: written })
    }

    fn constraints(
        &self,
        source: &SourceFile<'_>,
        key: &str,
        written: ConstraintsToml,
    ) -> ScenarioResult<IntentConstraints> {
        let switch = |part: &str, place: &Spanned<String>| {
            let found = self.switch_or_port(place.as_ref());
            found.ok_or_else(|| self.unknown_switch(source, &format!("intent `{key}`: {part}"), place))
        };
        let all = |part: &str, places: &[Spanned<String>]| {
            places.iter().map(|place| switch(part, place)).collect::<ScenarioResult<Vec<_>>>()
        };
        Ok(IntentConstraints {
            bandwidth: written.bandwidth.map(Spanned::into_inner),
            delay: written.delay.map(|delay| bound(source, key, delay)).transpose()?,
            waypoints: all("waypoints", &written.waypoints)?,
            avoid: all("avoid", &written.avoid)?,
            priority: written.priority.map_or(0, Spanned::into_inner),
            protected: written.protected.is_some_and(Spanned::into_inner),
        })
    }

    /// Returns an end as the controller knows it: the Ethernet address of a host, or a port.
    fn end(&self, source: &SourceFile<'_>, key: &str, part: &str, end: &Spanned<String>) -> ScenarioResult<String> {
        let text = end.as_ref();
        if let Some(host) = self.hosts.iter().find(|host| host.name == *text) {
            return Ok(host.mac.to_string());
        }
        let is_address = text.parse::<MacAddr>().is_ok() || text.parse::<IpAddr>().is_ok();
        if is_address {
            return Ok(text.clone());
        }
        if let Some(port) = self.port(text) {
            return Ok(port);
        }
        let what = format!("intent `{key}`: {part}");
        if text.contains(':') {
            return Err(self.unknown_switch(source, &what, end));
        }
        let list = listed(self.hosts.iter().map(|host| host.name.as_str()));
        let expected = format!("expected a host ({list}), its address, or a port such as s1:2");
        Err(source.error(end.span(), format!("{what}: found `{text}`, {expected}")))
    }

    /// Returns a switch by its datapath id, or a port.
    fn switch_or_port(&self, text: &str) -> Option<String> {
        self.switch(text).map(|dpid| format!("{dpid:x}")).or_else(|| self.port(text))
    }

    /// Returns the datapath id of a switch that is named, or written by its datapath id.
    fn switch(&self, text: &str) -> Option<u64> {
        let named = self.switches.iter().find(|switch| switch.name == text).map(|switch| switch.dpid);
        named.or_else(|| parse_dpid(text).filter(|dpid| self.switches.iter().any(|switch| switch.dpid == *dpid)))
    }

    fn port(&self, text: &str) -> Option<String> {
        let (switch, port) = text.split_once(':')?;
        let port = port.parse().ok()?;
        Some(SwitchPort::new(self.switch(switch)?, port).to_string())
    }

    fn unknown_switch(&self, source: &SourceFile<'_>, what: &str, place: &Spanned<String>) -> ScenarioError {
        let list = listed(self.switches.iter().map(|switch| switch.name.as_str()));
        let expected = format!("expected a switch ({list}) or one of its ports such as s1:2");
        source.error(place.span(), format!("{what}: found `{}`, {expected}", place.as_ref()))
    }
}

/// Returns the bound of a delay.
fn bound(source: &SourceFile<'_>, key: &str, delay: Spanned<DelayBoundToml>) -> ScenarioResult<DelayBound> {
    let span = delay.span();
    let DelayBoundToml { most, percentile, worst_case } = delay.into_inner();
    let kind = match (percentile, worst_case) {
        (Some(percentile), false) => DelayKind::Percentile(percentile),
        (None, true) => DelayKind::WorstCase,
        (given, _) => {
            let found = if given.is_some() { "both `percentile` and `worst-case`" } else { "no `percentile`" };
            let expected = "expected either percentile = 99 or worst-case = true";
            return Err(source.error(span, format!("intent `{key}`: delay: found {found}, {expected}")));
        }
    };
    Ok(DelayBound { most, kind })
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.take(MOST_LISTED + 1).collect();
    if names.len() > MOST_LISTED {
        names.truncate(MOST_LISTED);
        names.push("...");
    }
    if names.is_empty() { "there is none".to_owned() } else { names.join(", ") }
}
