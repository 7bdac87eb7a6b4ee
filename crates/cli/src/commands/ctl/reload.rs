//! `weir ctl reload`: reads a switch's configuration file again, and brings the switch from what the file had to what
//! it has. What is the same in both is not touched, and neither is what controllers and `weir ctl` changed. If a
//! change is refused, those before it are taken back.
use super::configuration::{ConfiguredPort, TableItem, by_id, read};
use super::port_numbers::{PortNumbers, ReloadPortNumbers};
use super::{flow_mod, group_mod, meter_mod};
use crate::commands::switch::document::{SettingsDocument, texts};
use crate::commands::switch::read_settings;
use anyhow::{Context, anyhow, bail};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use toml::Table;
use weir_datapath::FailMode;
use weir_switch::ctl::{CtlClient, CtlRequest, FlowVerb, GroupVerb, MeterVerb, RunningConfiguration, TableContents};
use weir_terminal::signals::StopSignalHandler;

/// Keys of a virtual switch whose values are lists that are compared item by item.
const TABLES: [&str; 3] = ["meters", "groups", "entries"];

/// Reads the switch's configuration file again. Returns what was done as text and as JSON.
///
/// # Errors
/// The switch has no configuration file, the file is wrong, the switch refuses a change, or a signal (Ctrl-C) ends the
/// command; nothing has changed then.
pub(super) fn run(client: &mut CtlClient) -> anyhow::Result<(String, Value)> {
    let running = read(client)?;
    let source = &running.source;
    let Some(file) = source.file.as_deref() else {
        bail!("the switch was started without --config: there is no file to read again");
    };
    let text = read_settings(file)?;
    let old = SettingsDocument::new(&source.text, file, source).context("what the switch read before")?;
    let new = SettingsDocument::new(&text, file, source)?;
    let plan = ReloadPlan::new(&old, &new, &running).with_context(|| file.display().to_string())?;
    let signals = StopSignalHandler::watch()?;
    let done = plan
        .carry_out(&mut |request| client.ask(request).map_err(anyhow::Error::from), &|| signals.cancel.is_cancelled())
        .with_context(|| file.display().to_string())?;
    client.ask(&CtlRequest::SetConfigurationText { text })?;
    let later = plan.later;
    let mut lines: String = done.iter().map(|line| format!("{line}\n")).collect();
    if lines.is_empty() && later.is_empty() {
        lines = format!("nothing differs from what the switch has of {}\n", file.display());
    }
    lines.extend(later.iter().map(|key| format!("{key}: differs; takes effect at the next start\n")));
    Ok((lines, json!({ "file": file, "changed": done, "at_the_next_start": later })))
}

/// Sends a request to the switch and returns its answer.
type AskSwitch<'a> = dyn FnMut(&CtlRequest) -> anyhow::Result<Value> + 'a;

/// A change of a running switch.
#[derive(Debug, Clone, PartialEq)]
struct ReloadStep {
    /// The change in words.
    what: String,
    request: CtlRequest,
    /// Takes the change back.
    undo: CtlRequest,
}

/// The changes that bring a switch from one configuration to another.
#[derive(Debug, Default)]
struct ReloadPlan {
    /// Changes in the order of phases. Within a phase a refused change is tried again after the others: a group may
    /// send to one that comes later.
    phases: [Vec<ReloadStep>; PHASES],
    /// Settings that differ and cannot change while the switch runs.
    later: Vec<String>,
}

/// Order of the phases: what is needed by others is added before them and removed after them.
#[derive(Debug, Clone, Copy)]
enum ReloadPhase {
    VirtualsRemoved,
    PortsRemoved,
    PortsAdded,
    VirtualsAdded,
    MetersAdded,
    GroupsAdded,
    EntriesAdded,
    EntriesRemoved,
    GroupsRemoved,
    MetersRemoved,
    Peers,
}

const PHASES: usize = ReloadPhase::Peers as usize + 1;

impl ReloadPlan {
    /// Compares two configurations and what the switch is now.
    ///
    /// # Errors
    /// A text of a configuration cannot be parsed.
    fn new(
        old: &SettingsDocument,
        new: &SettingsDocument,
        running: &RunningConfiguration,
    ) -> anyhow::Result<ReloadPlan> {
        let mut plan = ReloadPlan::default();
        plan.ports(&old.list("port"), &new.list("port"), &running.ports)?;
        let names = ReloadPortNumbers::new(&old.list("port"), &new.list("port"), &running.ports)?;
        for (kind, key) in [(TableItem::Meter, "meter"), (TableItem::Group, "group"), (TableItem::Entry, "entry")] {
            plan.tables(kind, None, &old.list(key), &new.list(key), list(&running.tables, kind), &names)?;
        }
        match (old.virtual_switches(), new.virtual_switches()) {
            (Some(before), Some(after)) => plan.virtual_switches(&before, &after, running, &names)?,
            _ if old.all.get("virtual") != new.all.get("virtual") => plan.later.push("virtual".to_owned()),
            _ => {}
        }
        let add = |controller| CtlRequest::AddController { controller };
        let remove = |controller| CtlRequest::DelController { controller };
        plan.peers("controller", &old.list("controller"), &new.list("controller"), add, remove);
        let add = |listener| CtlRequest::AddListener { listener };
        let remove = |listener| CtlRequest::DelListener { listener };
        plan.peers("listener", &old.list("listen"), &new.list("listen"), add, remove);
        plan.fail_mode(old, new)?;
        let known = ["port", "meter", "group", "entry", "virtual", "controller", "listen", "fail-mode"];
        let keys = old.all.keys().chain(new.all.keys()).filter(|key| !known.contains(&key.as_str()));
        let mut differ: Vec<&String> = keys.filter(|key| old.all.get(*key) != new.all.get(*key)).collect();
        differ.sort_unstable();
        differ.dedup();
        plan.later.extend(differ.into_iter().cloned());
        Ok(plan)
    }

    fn add(&mut self, phase: ReloadPhase, what: String, request: CtlRequest, undo: CtlRequest) {
        self.phases[phase as usize].push(ReloadStep { what, request, undo });
    }

    fn ports(&mut self, old: &[String], new: &[String], running: &[String]) -> anyhow::Result<()> {
        let [old, new, running] = [old, new, running].map(ConfiguredPort::parse_all);
        let (mut old, mut new, running) = (old?, new?, running?);
        let same: Vec<String> = old.iter().map(ConfiguredPort::canonical).collect();
        let kept: Vec<String> = new.iter().map(ConfiguredPort::canonical).collect();
        old.retain(|port| !kept.contains(&port.canonical()));
        new.retain(|port| !same.contains(&port.canonical()));
        // A port without a number has the one that the switch gave it.
        let present = |port: &ConfiguredPort| {
            let number = |here: &&ConfiguredPort| port.number.is_none() || here.number == port.number;
            running.iter().filter(number).find(|here| here.spec == port.spec)
        };
        let mut stays = Vec::new();
        for port in &new {
            let Some(here) = present(port) else { continue };
            stays.push(here.text.clone());
            self.queues(here, port);
        }
        for here in old.iter().filter_map(present).filter(|here| !stays.contains(&here.text)) {
            let (port, text) = (number(here), here.text.clone());
            let undo = CtlRequest::AddPort { port: text.clone() };
            self.add(ReloadPhase::PortsRemoved, format!("port {text}: removed"), CtlRequest::DelPort { port }, undo);
        }
        for port in new.iter().filter(|port| present(port).is_none()) {
            let text = port.text.clone();
            // A port without a number is removed by its text.
            let named =
                port.text.split_once('=').filter(|_| port.number.is_some()).map_or(&*port.text, |(_, spec)| spec);
            let undo = CtlRequest::DelPort { port: port.number.map_or_else(|| named.to_owned(), |n| n.to_string()) };
            self.add(ReloadPhase::PortsAdded, format!("port {text}: added"), CtlRequest::AddPort { port: text }, undo);
        }
        Ok(())
    }

    /// Plans the changes of a present port's queues.
    fn queues(&mut self, here: &ConfiguredPort, new: &ConfiguredPort) {
        let port = number(here);
        let set = |queue: &dyn std::fmt::Display| CtlRequest::SetQueue { port: port.clone(), queue: queue.to_string() };
        let remove = |queue: u32| CtlRequest::DelQueue { port: port.clone(), queue };
        for (id, queue) in here.queues.iter().filter(|(id, _)| !new.queues.contains_key(id)) {
            let what = format!("port {port}: queue {id}: removed");
            self.add(ReloadPhase::PortsRemoved, what, remove(*id), set(queue));
        }
        for (id, queue) in new.queues.iter().filter(|(id, queue)| here.queues.get(id) != Some(queue)) {
            let undo = here.queues.get(id).map_or_else(|| remove(*id), |before| set(before));
            self.add(ReloadPhase::PortsAdded, format!("port {port}: queue {queue}: set"), set(queue), undo);
        }
    }

    /// Plans the changes of meters, groups or entries of the switch, or of the virtual switch `of`.
    fn tables(
        &mut self,
        kind: TableItem,
        of: Option<&str>,
        old: &[String],
        new: &[String],
        running: &[String],
        ports: &ReloadPortNumbers,
    ) -> anyhow::Result<()> {
        // What names a port that is gone went with it.
        let known: Vec<String> = old.iter().filter(|text| ports.old.numbered(text).is_ok()).cloned().collect();
        let (old, new) = (by_id(kind, &known, &ports.old)?, by_id(kind, new, &ports.new)?);
        let running = by_id(kind, running, &PortNumbers::default())?;
        let (added, removed) = match kind {
            TableItem::Meter => (ReloadPhase::MetersAdded, ReloadPhase::MetersRemoved),
            TableItem::Group => (ReloadPhase::GroupsAdded, ReloadPhase::GroupsRemoved),
            TableItem::Entry => (ReloadPhase::EntriesAdded, ReloadPhase::EntriesRemoved),
        };
        let name = |text: &str| {
            let of = of.map(|name| format!("virtual switch {name}: ")).unwrap_or_default();
            format!("{of}{} {text}", kind.name())
        };
        for (id, text) in new.iter().filter(|(id, text)| old.get(*id) != Some(text)) {
            match running.get(id) {
                Some(here) if here == text => {}
                Some(here) => {
                    let (change, back) = (kind.change(text), kind.change(here));
                    self.add(added, format!("{}: changed", name(text)), to(of, change), to(of, back));
                }
                None => {
                    let (add, remove) = (kind.add(text), kind.remove(id));
                    self.add(added, format!("{}: added", name(text)), to(of, add), to(of, remove));
                }
            }
        }
        for (id, here) in old.keys().filter(|id| !new.contains_key(*id)).filter_map(|id| running.get_key_value(id)) {
            let (remove, add) = (kind.remove(id), kind.add(here));
            self.add(removed, format!("{}: removed", name(here)), to(of, remove), to(of, add));
        }
        Ok(())
    }

    fn virtual_switches(
        &mut self,
        old: &[Table],
        new: &[Table],
        running: &RunningConfiguration,
        ports: &ReloadPortNumbers,
    ) -> anyhow::Result<()> {
        let (old, new) = (by_name(old), by_name(new));
        let none = TableContents::default();
        for (name, before) in &old {
            if !new.contains_key(name) && here(running, name).is_some() {
                let remove = CtlRequest::RemoveVirtual { name: (*name).to_owned() };
                let what = format!("virtual switch {name}: removed");
                self.add(ReloadPhase::VirtualsRemoved, what, remove, add_virtual(before, true)?);
            }
        }
        for (name, after) in &new {
            let present = here(running, name);
            let before = old.get(name).copied();
            match (before, present) {
                (_, None) if before == Some(*after) => continue,
                (_, None) => {
                    let remove = CtlRequest::RemoveVirtual { name: (*name).to_owned() };
                    let what = format!("virtual switch {name}: added");
                    self.add(ReloadPhase::VirtualsAdded, what, add_virtual(after, false)?, remove);
                }
                (Some(before), Some(_)) => self.resize(name, before, after)?,
                (None, Some(_)) => bail!("virtual switch {name}: there is one of this name already; remove it first"),
            }
            let before = before.filter(|_| present.is_some());
            let tables = present.unwrap_or(&none);
            let ports = ports.of_virtual(before, after);
            for (kind, key) in [TableItem::Meter, TableItem::Group, TableItem::Entry].into_iter().zip(TABLES) {
                let before = before.map(|before| texts(before, key)).unwrap_or_default();
                self.tables(kind, Some(name), &before, &texts(after, key), list(tables, kind), &ports)?;
            }
        }
        Ok(())
    }

    /// Plans the changes of controllers or listeners.
    fn peers(
        &mut self,
        kind: &str,
        old: &[String],
        new: &[String],
        add: impl Fn(String) -> CtlRequest,
        remove: impl Fn(String) -> CtlRequest,
    ) {
        // What is removed goes first: another address can have the same port.
        for peer in old.iter().filter(|peer| !new.contains(peer)) {
            let (request, undo) = (remove(peer.clone()), add(peer.clone()));
            self.add(ReloadPhase::Peers, format!("{kind} {peer}: removed"), request, undo);
        }
        for peer in new.iter().filter(|peer| !old.contains(peer)) {
            let (request, undo) = (add(peer.clone()), remove(peer.clone()));
            self.add(ReloadPhase::Peers, format!("{kind} {peer}: added"), request, undo);
        }
    }

    /// Plans the change of the behaviour without a controller.
    ///
    /// # Errors
    /// A text is no such behaviour.
    fn fail_mode(&mut self, old: &SettingsDocument, new: &SettingsDocument) -> anyhow::Result<()> {
        let mode = |document: &SettingsDocument| -> anyhow::Result<FailMode> {
            let mode = document.all.get("fail-mode").cloned().map(toml::Value::try_into::<FailMode>).transpose();
            Ok(mode.context("fail-mode")?.unwrap_or(FailMode::Secure))
        };
        let (before, after) = (mode(old)?, mode(new)?);
        if before != after {
            let (request, undo) = (CtlRequest::SetFailMode { mode: after }, CtlRequest::SetFailMode { mode: before });
            let name = if after == FailMode::Secure { "secure" } else { "standalone" };
            self.add(ReloadPhase::Peers, format!("fail-mode {name}: set"), request, undo);
        }
        Ok(())
    }

    /// Plans the change of a virtual switch from one specification to another.
    fn resize(&mut self, name: &str, before: &Table, after: &Table) -> anyhow::Result<()> {
        let own = |table: &Table| -> Table {
            let own = table.iter().filter(|(key, _)| !TABLES.contains(&key.as_str()));
            own.map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        let (mut before, mut after) = (own(before), own(after));
        let nobody = || toml::Value::Array(Vec::new());
        for (key, default) in [("connect", nobody()), ("listen", nobody()), ("fail_mode", "secure".into())] {
            if before.contains_key(key) || after.contains_key(key) {
                before.entry(key).or_insert(default.clone());
                after.entry(key).or_insert(default);
            }
        }
        for key in before.keys().filter(|key| !after.contains_key(*key)) {
            // A running virtual switch keeps what is not said.
            self.later.push(format!("virtual switch {name}: {key}"));
        }
        let differing = |one: &Table, other: &Table| -> Table {
            let differ = one.iter().filter(|(key, value)| other.get(*key) != Some(value));
            differ.map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        let (changes, back) = (differing(&after, &before), differing(&before, &after));
        if changes.is_empty() {
            return Ok(());
        }
        let request = |changes: &Table| {
            let (name, file) = (name.to_owned(), "configuration".to_owned());
            Ok::<_, toml::ser::Error>(CtlRequest::ResizeVirtual { name, text: toml::to_string(changes)?, file })
        };
        let keys: Vec<&str> = changes.keys().map(String::as_str).collect();
        let what = format!("virtual switch {name}: {}: changed", keys.join(", "));
        let (request, undo) = (request(&changes)?, request(&back)?);
        self.add(ReloadPhase::VirtualsAdded, what, request, undo);
        Ok(())
    }

    /// Makes the changes through `ask`, until `is_stopped`. Returns them in words.
    ///
    /// # Errors
    /// The switch refuses a change, or the command is stopped. Changes made until then are taken back.
    fn carry_out(&self, ask: &mut AskSwitch<'_>, is_stopped: &dyn Fn() -> bool) -> anyhow::Result<Vec<String>> {
        let mut done: Vec<&ReloadStep> = Vec::new();
        for phase in &self.phases {
            let mut waiting: Vec<&ReloadStep> = phase.iter().collect();
            while !waiting.is_empty() {
                let before = waiting.len();
                let mut refusal = None;
                let mut refused = Vec::new();
                for step in waiting {
                    if is_stopped() {
                        return Err(take_back(ask, &done, "stopped".to_owned()));
                    }
                    match ask(&step.request) {
                        Ok(_) => done.push(step),
                        Err(error) => {
                            refusal.get_or_insert_with(|| format!("{}: refused: {error}", step.what));
                            refused.push(step);
                        }
                    }
                }
                waiting = refused;
                if let Some(refusal) = refusal.filter(|_| waiting.len() == before) {
                    return Err(take_back(ask, &done, refusal));
                }
            }
        }
        Ok(done.into_iter().map(|step| step.what.clone()).collect())
    }
}

/// Takes changes back, the last one first. Returns the error to report.
fn take_back(ask: &mut AskSwitch<'_>, done: &[&ReloadStep], refusal: String) -> anyhow::Error {
    let failures = done.iter().rev().filter_map(|step| {
        let error = ask(&step.undo).err()?;
        Some(format!("{}: cannot be taken back: {error}", step.what))
    });
    let failures: Vec<String> = failures.collect();
    if failures.is_empty() {
        return anyhow!("{refusal}; the switch is as it was");
    }
    anyhow!("{refusal}\n{}", failures.join("\n"))
}

impl TableItem {
    fn add(self, text: &str) -> CtlRequest {
        match self {
            TableItem::Meter => meter_mod(MeterVerb::Add, text),
            TableItem::Group => group_mod(GroupVerb::Add, text),
            TableItem::Entry => flow_mod(FlowVerb::Add, text),
        }
    }

    /// Returns the request that gives what is there already its new text. An add replaces an entry.
    fn change(self, text: &str) -> CtlRequest {
        match self {
            TableItem::Meter => meter_mod(MeterVerb::Modify, text),
            TableItem::Group => group_mod(GroupVerb::Modify, text),
            TableItem::Entry => flow_mod(FlowVerb::Add, text),
        }
    }

    fn remove(self, id: &str) -> CtlRequest {
        match self {
            TableItem::Meter => meter_mod(MeterVerb::Delete, id),
            TableItem::Group => group_mod(GroupVerb::Delete, id),
            TableItem::Entry => flow_mod(FlowVerb::DeleteStrict, id),
        }
    }
}

/// Returns a request to the switch, or to its virtual switch `of`.
fn to(of: Option<&str>, request: CtlRequest) -> CtlRequest {
    match of {
        Some(name) => CtlRequest::Of { name: name.to_owned(), what: Box::new(request) },
        None => request,
    }
}

/// Returns the number of a running port as text.
fn number(port: &ConfiguredPort) -> String {
    port.number.map(|number| number.to_string()).unwrap_or_default()
}

fn list(tables: &TableContents, kind: TableItem) -> &[String] {
    match kind {
        TableItem::Meter => &tables.meters,
        TableItem::Group => &tables.groups,
        TableItem::Entry => &tables.entries,
    }
}

fn by_name(items: &[Table]) -> BTreeMap<&str, &Table> {
    items.iter().filter_map(|item| Some((item.get("name")?.as_str()?, item))).collect()
}

/// Returns the tables of a running virtual switch.
fn here<'a>(running: &'a RunningConfiguration, name: &str) -> Option<&'a TableContents> {
    running.virtual_switches.iter().find(|(spec, _)| spec["name"] == name).map(|(_, tables)| tables)
}

/// Returns the request to add a virtual switch, with or without its entries. Those with groups and meters are added
/// without, since entries need them.
fn add_virtual(item: &Table, with_entries: bool) -> anyhow::Result<CtlRequest> {
    let mut item = item.clone();
    let with_entries = with_entries && !crate::commands::switch::document::has_groups_or_meters(&item);
    for key in TABLES.iter().filter(|key| **key != "entries" || !with_entries) {
        item.remove(*key);
    }
    Ok(CtlRequest::AddVirtual { text: toml::to_string(&item)?, file: "configuration".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use weir_switch::ctl::ConfigurationSource;

    fn plan(old: &str, new: &str, running: RunningConfiguration) -> anyhow::Result<ReloadPlan> {
        let read = |text| SettingsDocument::new(text, Path::new("x"), &ConfigurationSource::default()).unwrap();
        ReloadPlan::new(&read(old), &read(new), &running)
    }

    fn running(ports: &[&str], tables: [&[&str]; 3]) -> RunningConfiguration {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let [meters, groups, entries] = tables.map(texts);
        RunningConfiguration {
            source: ConfigurationSource::default(),
            datapath_id: 1,
            ports: texts(ports),
            tables: TableContents { meters, groups, entries, temporary_entries: 0 },
            virtual_switches: Vec::new(),
        }
    }

    fn words(plan: &ReloadPlan) -> Vec<&str> {
        plan.phases.iter().flatten().map(|step| step.what.as_str()).collect()
    }

    #[test]
    fn what_is_the_same_is_not_touched() {
        let old = "port = ['null:a', '2=null:b']\nentry = ['in_port=1,actions=output:2']\n";
        let new = "entry = ['priority=32768 in_port=1 actions=output:2']\nport = ['2=null:b', 'null:a']\n";
        let now = running(&["1=null:a", "2=null:b"], [&[], &[], &["in_port=1 actions=output:2"]]);
        let plan = plan(old, new, now).unwrap();
        assert!(words(&plan).is_empty() && plan.later.is_empty(), "{plan:?}");
    }

    #[test]
    fn what_others_added_stays_and_the_rest_follows_the_file() {
        let old = "tables = 8\nport = ['1=null:a', 'null:b']\nentry = ['in_port=1,actions=output:2', 'in_port=2,actions=drop']\n";
        let new = "tables = 9\nport = ['1=null:a,queue=1:priority=2', '3=null:c']\nmeter = ['meter=1,kbps,bands=type=drop,rate=9']\n\
                   entry = ['in_port=1,actions=meter:1,output:3']\n";
        let now = running(
            &["1=null:a", "2=null:b", "9=null:others"],
            [&[], &[], &["in_port=1 actions=output:2", "in_port=2 actions=drop", "in_port=9 actions=drop"]],
        );
        let plan = plan(old, new, now).unwrap();
        assert_eq!(
            words(&plan),
            [
                "port 2=null:b: removed",
                "port 1: queue 1:priority=2: set",
                "port 3=null:c: added",
                "meter meter=1 kbps bands=type=drop rate=9: added",
                "entry in_port=1 actions=meter:1,output:3: changed",
                "entry in_port=2 actions=drop: removed",
            ]
        );
        assert_eq!(plan.later, ["tables"]);
        let undone = &plan.phases[ReloadPhase::EntriesAdded as usize][0].undo;
        assert_eq!(*undone, flow_mod(FlowVerb::Add, "in_port=1 actions=output:2"));
    }

    /// Entries and groups call ports by name; a name has the number that its port has after the reload.
    #[test]
    fn names_of_ports_are_numbers_of_the_file_or_of_the_switch() {
        let old =
            "port = ['1=null:a', 'null:b']\nentry = ['in_port=a,actions=output:b', 'in_port=gone,actions=drop']\n";
        let new = "port = ['5=null:a', 'null:b']\nentry = ['in_port=a,actions=output:b']\n\
                   group = ['group_id=1,type=all,bucket=output:others']\n";
        let now = || running(&["1=null:a", "2=null:b", "9=null:others"], [&[], &[], &["in_port=1 actions=output:2"]]);
        let same = "port = ['1=null:a', 'null:b']\nentry = ['in_port=a,actions=output:b']\n";
        let planned = plan(old, new, now()).unwrap();
        let changes = words(&planned);
        let of_tables: Vec<&&str> = changes.iter().filter(|what| !what.starts_with("port ")).collect();
        assert_eq!(
            of_tables,
            [
                &"group group_id=1,type=all,bucket=actions=output:9: added",
                &"entry in_port=5 actions=output:2: added",
                &"entry in_port=1 actions=output:2: removed"
            ]
        );
        assert!(words(&plan(same, same, now()).unwrap()).is_empty(), "nothing differs");
        let error = plan(old, "port = ['7=null:c', 'null:a']\nentry = ['actions=output:b']", now()).unwrap_err();
        let expected = "entry `actions=output:b`: no port `b` with a number; there are: 1=a, 7=c, 9=others";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn controllers_listeners_and_fail_mode_follow_the_file() {
        let old = "listen = ['ptcp:6654', 'punix:/a']\ncontroller = ['tcp:10.0.0.1']\n";
        let new = "listen = ['ptcp:6654:127.0.0.1', 'punix:/a']\nfail-mode = 'standalone'\n";
        let now = || running(&[], [&[], &[], &[]]);
        let planned = plan(old, new, now()).unwrap();
        let expected = [
            "controller tcp:10.0.0.1: removed",
            "listener ptcp:6654: removed",
            "listener ptcp:6654:127.0.0.1: added",
            "fail-mode standalone: set",
        ];
        assert_eq!(words(&planned), expected);
        assert!(planned.later.is_empty());
        let mode = &planned.phases[ReloadPhase::Peers as usize][3];
        assert_eq!(mode.undo, CtlRequest::SetFailMode { mode: FailMode::Secure });
        assert!(words(&plan(new, &new.replace("fail-mode", "# fail-mode"), now()).unwrap())[0].contains("secure"));
    }

    #[test]
    fn a_virtual_switch_without_controllers_in_the_file_loses_them() {
        let with =
            "[[virtual_switch]]\nname = 'a'\nconnect = ['tcp:10.0.0.1']\nfail_mode = 'standalone'\nlifetime = '9s'\n";
        let without = "[[virtual_switch]]\nname = 'a'\nlisten = ['ptcp:6654']\n";
        let mut plan = ReloadPlan::default();
        let table = |text: &str| text.parse::<Table>().unwrap()["virtual_switch"][0].as_table().unwrap().clone();
        plan.resize("a", &table(with), &table(without)).unwrap();
        let step = &plan.phases[ReloadPhase::VirtualsAdded as usize][0];
        assert_eq!(step.what, "virtual switch a: connect, fail_mode, listen: changed");
        let request = |text: &str| {
            let (name, file) = ("a".to_owned(), "configuration".to_owned());
            CtlRequest::ResizeVirtual { name, text: text.to_owned(), file }
        };
        assert_eq!(step.request, request("connect = []\nfail_mode = \"secure\"\nlisten = [\"ptcp:6654\"]\n"));
        let back = "connect = [\"tcp:10.0.0.1\"]\nfail_mode = \"standalone\"\nlifetime = \"9s\"\nlisten = []\n";
        assert_eq!(step.undo, request(back));
        assert_eq!(plan.later, ["virtual switch a: lifetime"]);
    }

    #[test]
    fn a_stopped_reload_takes_back_what_it_has_changed() {
        let plan = plan("", "port = ['1=null:a', '2=null:b']", running(&[], [&[], &[], &[]])).unwrap();
        let mut asked = Vec::new();
        let seen = std::cell::Cell::new(0);
        let mut ask = |request: &CtlRequest| {
            asked.push(json!(request).to_string());
            seen.set(seen.get() + 1);
            Ok(Value::Null)
        };
        let error = plan.carry_out(&mut ask, &|| seen.get() == 1).unwrap_err().to_string();
        assert_eq!(error, "stopped; the switch is as it was");
        let (add, remove) =
            (&plan.phases[ReloadPhase::PortsAdded as usize][0].request, CtlRequest::DelPort { port: "1".into() });
        assert_eq!(asked, [json!(add).to_string(), json!(remove).to_string()]);
    }

    #[test]
    fn what_is_wrong_is_found_before_anything_changes() {
        let now = || running(&[], [&[], &[], &[]]);
        let error = plan("", "entry = ['in_prot=1,actions=drop']", now()).unwrap_err().to_string();
        assert!(error.starts_with("entry `in_prot=1,actions=drop`: "), "{error}");
        let error = plan("", "group = ['group_id=1,type=selct']", now()).unwrap_err().to_string();
        assert!(error.starts_with("group `group_id=1,type=selct`: "), "{error}");
    }
}
