//! File of a network: which applications run, and their settings.
//!
//! A TOML file with the tables `[[access-list]]` (one a rule, in their order), `[dhcp]`, `[router]` and `[monitor]`. An
//! application runs if its table is there.
use super::access_list::{AccessList, AccessRule};
use super::dhcp::{DhcpConfig, DhcpServer};
use super::monitor::{Monitor, MonitorConfig};
use super::router::{Router, RouterConfig};
use crate::app::NetworkApp;
use serde::Deserialize;
use std::ops::Range;
use toml::Spanned;

/// Longest file in bytes.
pub const MAX_FILE: usize = 1 << 22;

/// Values of keys that must be there, as examples in errors.
pub const KEY_EXAMPLES: [(&str, &str); 8] = [
    ("action", "\"deny\""),
    ("address", "\"10.0.0.1\""),
    ("pool", "[{ subnet = \"10.0.0.0/24\", range = \"10.0.0.100-10.0.0.199\" }]"),
    ("subnet", "\"10.0.0.0/24\""),
    ("range", "\"10.0.0.100-10.0.0.199\""),
    ("mac", "\"02:00:00:00:00:01\""),
    ("ip", "\"10.0.0.7\""),
    ("gateways", "[\"10.0.1.1/24\", \"10.0.2.1/24\"]"),
];

/// Settings of a network's applications. Those that are absent do not run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetworkFile {
    /// Rules of the access list, the first of which decides first.
    pub access_list: Vec<AccessRule>,
    /// Settings of the DHCP server.
    pub dhcp: Option<DhcpConfig>,
    /// Settings of the router.
    pub router: Option<RouterConfig>,
    /// Settings of the monitor.
    pub monitor: Option<MonitorConfig>,
}

/// Error of a network's file, with its line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct NetworkFileError {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Table or key that is wrong, what was found and what was expected.
    pub problem: String,
}

/// Tables of applications as written in a file, with their places in it.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ApplicationTables {
    /// Rules of the access list.
    #[serde(default)]
    pub access_list: Vec<Spanned<AccessRule>>,
    /// Settings of the DHCP server.
    pub dhcp: Option<Spanned<DhcpConfig>>,
    /// Settings of the router.
    pub router: Option<Spanned<RouterConfig>>,
    /// Settings of the monitor.
    pub monitor: Option<Spanned<MonitorConfig>>,
}

/// Problem in tables of applications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplicationTablesError {
    /// Bytes of the file that are wrong; `None` if the problem is about all rules together.
    pub span: Option<Range<usize>>,
    /// Table or key that is wrong, what was found and what was expected.
    pub problem: String,
}

impl ApplicationTables {
    /// Returns name and place of the first table that is there.
    pub fn first(&self) -> Option<(&'static str, Range<usize>)> {
        let list = self.access_list.first().map(|rule| ("access-list", rule.span()));
        let dhcp = || self.dhcp.as_ref().map(|table| ("dhcp", table.span()));
        let router = || self.router.as_ref().map(|table| ("router", table.span()));
        let monitor = || self.monitor.as_ref().map(|table| ("monitor", table.span()));
        list.or_else(dhcp).or_else(router).or_else(monitor)
    }

    /// Checks all tables.
    ///
    /// # Errors
    /// The place, and what is wrong there.
    pub fn check(self) -> Result<NetworkFile, ApplicationTablesError> {
        for rule in &self.access_list {
            located("access-list", rule, AccessRule::check)?;
        }
        self.dhcp.iter().try_for_each(|dhcp| located("dhcp", dhcp, DhcpConfig::check))?;
        self.router.iter().try_for_each(|router| located("router", router, RouterConfig::check))?;
        self.monitor.iter().try_for_each(|monitor| located("monitor", monitor, MonitorConfig::check))?;
        let config = NetworkFile {
            access_list: self.access_list.into_iter().map(Spanned::into_inner).collect(),
            dhcp: self.dhcp.map(Spanned::into_inner),
            router: self.router.map(Spanned::into_inner),
            monitor: self.monitor.map(Spanned::into_inner),
        };
        // Limits on all rules together have no line of their own.
        config.apps().map_err(|problem| ApplicationTablesError { span: None, problem })?;
        Ok(config)
    }
}

/// Runs a table's own check, and adds its name and place to the problem.
fn located<T>(
    name: &str,
    table: &Spanned<T>,
    check: impl FnOnce(&T) -> Result<(), String>,
) -> Result<(), ApplicationTablesError> {
    let at = |problem| ApplicationTablesError { span: Some(table.span()), problem: format!("{name}: {problem}") };
    check(table.get_ref()).map_err(at)
}

impl NetworkFile {
    /// Reads and checks the text of a file; `file` is its name, for errors.
    ///
    /// # Errors
    /// The line, and what is wrong in it.
    pub fn parse(file: &str, text: &str) -> Result<NetworkFile, NetworkFileError> {
        let error = |span: Option<Range<usize>>, problem: String| {
            let before = text.as_bytes().get(..span.map_or(0, |span| span.start)).unwrap_or_default();
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            NetworkFileError { file: file.to_owned(), line, problem }
        };
        if text.len() > MAX_FILE {
            return Err(error(None, format!("found {} bytes, expected at most {MAX_FILE}", text.len())));
        }
        let syntax = |found: toml::de::Error| error(found.span(), weir_units::reworded(found.message(), &KEY_EXAMPLES));
        let tables: ApplicationTables = toml::from_str(text).map_err(syntax)?;
        tables.check().map_err(|wrong| error(wrong.span, wrong.problem))
    }

    /// Returns the applications in the order in which they see packets: access lists before all that answer.
    ///
    /// # Errors
    /// The application and the setting that is wrong, what was found and what was expected.
    pub fn apps(&self) -> Result<Vec<Box<dyn NetworkApp>>, String> {
        let mut apps: Vec<Box<dyn NetworkApp>> = Vec::new();
        if !self.access_list.is_empty() {
            let list = AccessList::new(self.access_list.clone());
            apps.push(Box::new(list.map_err(|problem| format!("access-list: {problem}"))?));
        }
        if let Some(router) = &self.router {
            apps.push(Box::new(Router::new(router.clone()).map_err(|problem| format!("router: {problem}"))?));
        }
        if let Some(dhcp) = &self.dhcp {
            apps.push(Box::new(DhcpServer::new(dhcp.clone()).map_err(|problem| format!("dhcp: {problem}"))?));
        }
        if let Some(monitor) = &self.monitor {
            apps.push(Box::new(Monitor::new(monitor.clone()).map_err(|problem| format!("monitor: {problem}"))?));
        }
        Ok(apps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_file_runs_all_applications() {
        let file = weir_testing::workspace().join("examples/network/applications.toml");
        let text = weir_units::read_text(&file).unwrap();
        let config = NetworkFile::parse("network.toml", &text).unwrap();
        let names: Vec<&str> = config.apps().unwrap().iter().map(|app| app.name()).collect();
        assert_eq!(names, ["access-list", "router", "dhcp", "monitor"]);
        assert!(NetworkFile::parse("empty.toml", "").unwrap().apps().unwrap().is_empty());
    }

    #[test]
    fn errors_have_line_and_key() {
        let cases = [
            ("[[access-list]]\naction = \"deny\"\n\n[[access-list]]\naction = \"drop\"", "n.toml:5: ", "`drop`"),
            ("[[access-list]]\nprotocol = \"tcp\"", "n.toml:1: ", "found no `action`"),
            ("\n[[access-list]]\naction = \"deny\"\nsource-port = 5", "n.toml:2: ", "access-list: found `source-port`"),
            ("[dhcp]\naddress = 7", "n.toml:2: ", "found `7`"),
            ("[dhcp]\naddress = \"10.0.0.1\"\npool = []", "n.toml:1: ", "dhcp: found 0 pools"),
            ("[router]\ngateways = [\n  \"10.0.0.1/24\",\n  \"10.0.0.2\"\n]", "n.toml:2: ", "found `10.0.0.2`"),
            ("[router]\ngateways = [\"10.0.0.1/24\", \"10.0.0.2/16\"]", "n.toml:1: ", "router: `gateways`"),
            ("[monitor]\nintervall = \"1s\"", "n.toml:2: ", "unknown field `intervall`"),
            ("[monitor]\ninterval = \"1\"", "n.toml:2: ", "a time such as"),
            ("[monitor]\nweight = 0", "n.toml:1: ", "monitor: `weight`"),
            ("[firewall]", "n.toml:1: ", "unknown field `firewall`"),
            ("[monitor", "n.toml:1: ", ""),
        ];
        for (text, place, part) in cases {
            let said = NetworkFile::parse("n.toml", text).unwrap_err().to_string();
            assert!(said.starts_with(place) && said.contains(part), "{text}\n{said}");
        }
        let rules = "[[access-list]]\naction = \"deny\"\n".repeat(1001);
        let said = NetworkFile::parse("n.toml", &rules).unwrap_err().to_string();
        assert_eq!(said, "n.toml:1: access-list: found 1001 rules, expected at most 1000");
    }
}
