//! Checks a document: turns the file as written into a scenario with resolved names, defaults and limits.
mod capture;
mod entries;
mod flows;
mod intents;
mod links;
mod network_control;
mod networks;
mod nodes;
mod queues;
mod stream;
mod timing;
mod topology;
mod traffic;
mod traffic_laws;
mod udp;
mod virtual_app;
mod virtual_switch;
mod virtual_switches;

pub(crate) use topology::{TopologyTiming, expand};
pub(crate) use virtual_app::refuse as refuse_app;
pub(crate) use virtual_switch::virtual_switch;
pub(crate) use virtual_switches::fabric_file;

use crate::document::{self, ScenarioToml};
use crate::interface_name;
use crate::{
    EmbeddedApp, MAX_ITEMS, OpenFlowVersion, Scenario, ScenarioController, ScenarioError, ScenarioSwitch, Tenant,
};
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;
use toml::Spanned;
use weir_routing::apps::ApplicationTables;
use weir_units::TimeSpan;

/// Default length of tcp and udp traffic.
const DEFAULT_DURATION: Duration = Duration::from_secs(3);
/// Longest traffic and latest start time.
const MAX_DURATION: Duration = Duration::from_secs(24 * 3600);
/// Longest name, as for the label of a host's name. Names are parts of the paths of Unix sockets, which the kernel
/// limits to 107 bytes; interfaces have names of their own ([`crate::interface_name()`]).
const MAX_NAME: usize = 63;

/// Text of a document and its file name, for errors.
pub(crate) struct SourceFile<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl SourceFile<'_> {
    fn error(&self, span: Range<usize>, problem: String) -> ScenarioError {
        ScenarioError::at(self.file, self.text, &span, problem)
    }

    fn problem(&self, problem: weir_profile::SpannedProblem) -> ScenarioError {
        self.error(problem.span, problem.text)
    }

    fn default_name(&self) -> String {
        let stem = Path::new(self.file).file_stem().and_then(|stem| stem.to_str());
        stem.unwrap_or("scenario").to_owned()
    }
}

type ScenarioResult<T> = Result<T, ScenarioError>;

pub(crate) fn check(mut document: ScenarioToml, source: &SourceFile<'_>) -> ScenarioResult<Scenario> {
    let shared = topology::expand(&mut document, source)?;
    let default_duration = match &document.duration {
        Some(span) => duration(source, "duration", span)?,
        None => DEFAULT_DURATION,
    };
    check_counts(&document, source)?;
    let mut names = ClaimedNames::default();
    let tenants = check_each(document.tenant, |item| nodes::tenant(source, &mut names, item))?;
    reject_twice(source, tenants.iter().map(|(tenant, span)| (tenant.vlan, span)), |vlan| format!("vlan {vlan}"))?;
    let tenants: Vec<Tenant> = tenants.into_iter().map(|(tenant, _)| tenant).collect();
    let mut place = 0;
    let mut cuts = Vec::new();
    let switches = check_each(document.switch, |mut item| {
        place += 1;
        cuts.push((item.fabric.take(), std::mem::take(&mut item.r#virtual)));
        nodes::switch(source, &mut names, item, place).map(|switch| topology::with_topology_timing(switch, &shared))
    })?;
    reject_twice(source, switches.iter().map(|(s, span)| (s.dpid, span)), |dpid| format!("dpid {dpid:#x}"))?;
    let mut switches: Vec<ScenarioSwitch> = switches.into_iter().map(|(switch, _)| switch).collect();
    let (hosts, links) = nodes::attach(source, &mut names, document.host, document.link, &switches, &tenants)?;
    virtual_switches::cut(source, &mut names, cuts, &mut switches, &hosts, &links)?;
    let networks = networks::admit(source, &mut names, document.network, &mut switches, &hosts, &links)?;
    entries::number_ports(source, &mut switches, &hosts, &links)?;
    let controller = timing::controller(source, document.controller.as_ref(), &switches)?;
    let mut traffic = Vec::new();
    for item in document.traffic {
        timing::refuse_unknown_control(source, flows::new_flow_key(item.as_ref()), &switches, &controller)?;
        traffic.push(traffic::traffic(source, item, &hosts, &networks, default_duration)?);
    }
    traffic.sort_by_key(|item| item.start);
    let streams = document.stream.into_iter().map(|item| stream::stream(source, item, &switches));
    let applications = ApplicationTables {
        access_list: document.access_list,
        dhcp: document.dhcp,
        router: document.router,
        monitor: document.monitor,
    };
    let written = network_control::WrittenControl {
        controller: document.controller.as_ref().map(Spanned::as_ref),
        applications,
        intents: document.intent,
    };
    let network_control = network_control::check(source, written, &switches, &hosts)?;
    let mut scenario = Scenario {
        streams: streams.collect::<ScenarioResult<_>>()?,
        simulate: stream::simulate(source, document.simulate, default_duration)?,
        duration: default_duration,
        name: document.name.map_or_else(|| source.default_name(), Spanned::into_inner),
        seed: document.seed,
        control: control(source, document.controller, &tenants)?,
        controller,
        network_control,
        networks,
        tenants,
        switches,
        hosts,
        links,
        traffic,
    };
    network_control::fill_in(&mut scenario);
    interface_name::check(&scenario).map_err(|problem| source.error(0..0, problem))?;
    Ok(scenario)
}

/// Refuses empty scenarios, and lists longer than [`MAX_ITEMS`].
fn check_counts(document: &ScenarioToml, source: &SourceFile<'_>) -> ScenarioResult<()> {
    if document.switch.is_empty() {
        return Err(source.error(0..0, "found no [[switch]], expected at least one".into()));
    }
    let lists = [
        ("tenant", document.tenant.get(MAX_ITEMS).map(Spanned::span)),
        ("switch", document.switch.get(MAX_ITEMS).map(Spanned::span)),
        ("host", document.host.get(MAX_ITEMS).map(Spanned::span)),
        ("link", document.link.get(MAX_ITEMS).map(Spanned::span)),
        ("traffic", document.traffic.get(MAX_ITEMS).map(Spanned::span)),
        ("stream", document.stream.get(MAX_ITEMS).map(Spanned::span)),
        ("intent", document.intent.get(MAX_ITEMS).map(Spanned::span)),
    ];
    for (what, beyond) in lists {
        if let Some(span) = beyond {
            return Err(source.error(span, format!("[[{what}]]: expected at most {MAX_ITEMS}")));
        }
    }
    Ok(())
}

/// Checks each item. Returns the results with their places in the file.
fn check_each<T, U>(
    items: Vec<Spanned<T>>,
    mut check: impl FnMut(T) -> ScenarioResult<U>,
) -> ScenarioResult<Vec<(U, Range<usize>)>> {
    let with_span = |item: Spanned<T>| {
        let span = item.span();
        check(item.into_inner()).map(|checked| (checked, span))
    };
    items.into_iter().map(with_span).collect()
}

fn reject_twice<'a, T: Eq + std::hash::Hash + Copy>(
    source: &SourceFile<'_>,
    values: impl Iterator<Item = (T, &'a Range<usize>)>,
    describe: impl Fn(T) -> String,
) -> ScenarioResult<()> {
    let mut seen = HashSet::new();
    for (value, span) in values {
        if !seen.insert(value) {
            return Err(source.error(span.clone(), format!("found {} twice, expected each once", describe(value))));
        }
    }
    Ok(())
}

/// Names in use. Tenants, switches and hosts share one name space, so that a name in a report is unambiguous.
#[derive(Default)]
struct ClaimedNames(BTreeSet<String>);

impl ClaimedNames {
    fn claim(&mut self, source: &SourceFile<'_>, name: Spanned<String>) -> ScenarioResult<String> {
        let span = name.span();
        let name = name.into_inner();
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(allowed) || name.starts_with('-') {
            let expected = format!("1 to {MAX_NAME} characters of a-z, 0-9 and -");
            return Err(source.error(span, format!("name: found `{name}`, expected {expected}")));
        }
        if !self.0.insert(name.clone()) {
            return Err(source.error(span, format!("name: found `{name}` twice, expected each name once")));
        }
        Ok(name)
    }
}

/// Returns the index of a named item.
fn find(source: &SourceFile<'_>, what: &str, name: &Spanned<String>, mut known: Vec<&str>) -> ScenarioResult<usize> {
    if let Some(index) = known.iter().position(|known| *known == name.as_ref()) {
        return Ok(index);
    }
    known.truncate(20);
    let list =
        if known.is_empty() { "none is defined".to_owned() } else { format!("expected one of {}", known.join(", ")) };
    Err(source.error(name.span(), format!("{what}: found `{}`, {list}", name.as_ref())))
}

fn control(
    source: &SourceFile<'_>,
    controller: Option<Spanned<document::ControllerToml>>,
    tenants: &[Tenant],
) -> ScenarioResult<ScenarioController> {
    let Some(controller) = controller else {
        return Ok(ScenarioController::Embedded { app: EmbeddedApp::Learning, openflow: OpenFlowVersion::V13 });
    };
    let span = controller.span();
    match controller.into_inner() {
        document::ControllerToml { app: Some(app), connect: None, openflow, .. } => {
            if app == EmbeddedApp::Forwarding {
                let needs = |what: &str| format!("controller: app = \"forwarding\" {what}");
                if openflow == Some(OpenFlowVersion::V10) {
                    return Err(source.error(span, needs("needs OpenFlow 1.3, found openflow = \"1.0\"")));
                }
                if let Some(tenant) = tenants.first() {
                    let found = format!("keeps no tenants apart, found tenant `{}`; use app = \"learning\"", tenant.name);
                    return Err(source.error(span, needs(&found)));
                }
            }
            Ok(ScenarioController::Embedded { app, openflow: openflow.unwrap_or(OpenFlowVersion::V13) })
        }
        document::ControllerToml { app: None, connect: Some(target), openflow: None, .. } => connect(source, target),
        // A service time alone is enough: the controller is then the embedded one.
        document::ControllerToml { app: None, connect: None, openflow, service: Some(_), .. } => {
            Ok(ScenarioController::Embedded { app: EmbeddedApp::Learning, openflow: openflow.unwrap_or(OpenFlowVersion::V13) })
        }
        _ => Err(source.error(
            span,
            "controller: expected either `app` (with `openflow`, if wanted) or `connect`, for example app = \"learning\"".into(),
        )),
    }
}

fn connect(source: &SourceFile<'_>, target: Spanned<String>) -> ScenarioResult<ScenarioController> {
    let text = target.as_ref();
    if text == "none" {
        return Ok(ScenarioController::None);
    }
    let is_named = |host: &str, port: &str| weir_units::is_host_name(host) && port.parse::<u16>().is_ok();
    let tcp = text.strip_prefix("tcp:").is_some_and(|addr| {
        addr.parse::<std::net::SocketAddr>().is_ok()
            || addr.split_once(':').is_some_and(|(host, port)| is_named(host, port))
    });
    let unix = text.strip_prefix("unix:").is_some_and(|path| !path.is_empty());
    if !tcp && !unix {
        let expected = "expected tcp:HOST:PORT such as tcp:127.0.0.1:6653, unix:PATH, or none";
        return Err(source.error(target.span(), format!("connect: found `{text}`, {expected}")));
    }
    Ok(ScenarioController::Connect(target.into_inner()))
}

fn duration(source: &SourceFile<'_>, what: &str, span: &Spanned<TimeSpan>) -> ScenarioResult<Duration> {
    let found = span.as_ref().0;
    if found.is_zero() || found > MAX_DURATION {
        let problem = format!("{what}: found {}, expected more than 0 and at most 24h", span.as_ref());
        return Err(source.error(span.span(), problem));
    }
    Ok(found)
}
