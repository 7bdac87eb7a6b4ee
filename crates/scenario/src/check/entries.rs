//! Replaces names of ports in flow entries by numbers. A port has the name of what it leads to: a host, or
//! `SWITCH-OTHER` ([`crate::interface_name()`]).
use super::{ScenarioResult, SourceFile};
use crate::{
    ScenarioError, ScenarioHost, ScenarioLink, ScenarioSwitch, interface_name, interface_name::link_port_names,
};
use weir_openflow::text::PortNames;
use weir_packet::PortNo;

/// Replaces the names in the entries of all switches and virtual switches.
///
/// # Errors
/// No port has a name; the error lists the ports.
pub(super) fn number_ports(
    source: &SourceFile<'_>,
    switches: &mut [ScenarioSwitch],
    hosts: &[ScenarioHost],
    links: &[ScenarioLink],
) -> ScenarioResult<()> {
    let link_names = link_port_names(switches, links);
    for (at, switch) in switches.iter_mut().enumerate() {
        let to_hosts =
            hosts.iter().filter(|host| host.switch == at).map(|host| (host.port, interface_name(&host.name)));
        let ends = links.iter().zip(&link_names).flat_map(|(link, names)| link.ends.into_iter().zip(names));
        let to_switches = ends.filter(|(end, _)| end.switch == at).map(|(end, name)| (end.port, name.clone()));
        let mut ports: Vec<(u32, String)> = to_hosts.chain(to_switches).collect();
        ports.sort_unstable();
        let place = format!("switch {}", switch.name);
        numbered(source, &place, &mut switch.entries, &ports)?;
        for cut in &mut switch.virtual_switches {
            let name_of = |port: u32| ports.iter().find(|(number, _)| *number == port).map(|(_, name)| name.clone());
            let own = cut.ports.iter().filter_map(|port| Some((port.number, name_of(port.port)?)));
            let own: Vec<(u32, String)> = own.collect();
            numbered(source, &format!("{place}: virtual switch {}", cut.name), &mut cut.entries, &own)?;
        }
    }
    Ok(())
}

/// Replaces the names of these ports in entries.
fn numbered(
    source: &SourceFile<'_>,
    place: &str,
    entries: &mut [String],
    ports: &[(u32, String)],
) -> ScenarioResult<()> {
    for entry in entries {
        let number = |name: &str| {
            let found = ports.iter().find(|(_, known)| known == name);
            found.map(|(number, _)| PortNo(*number)).ok_or_else(|| {
                let list: Vec<String> = ports.iter().map(|(number, name)| format!("{number}={name}")).collect();
                let list = if list.is_empty() { "none".to_owned() } else { list.join(", ") };
                let problem = format!("{place}: entries: `{entry}`: no port `{name}`; there are: {list}");
                match source.text.find(entry.as_str()) {
                    Some(start) => source.error(start..start + entry.len(), problem),
                    None => ScenarioError::without_line(source.file, problem),
                }
            })
        };
        *entry = PortNames::find(entry).replaced(entry.clone(), number)?;
    }
    Ok(())
}
