//! Names the application that controls a virtual switch from within the program that runs the switch.
use serde::Serialize;
use weir_openflow::Version;
use weir_openflow::session::SessionConfig;

/// Application in the program that runs a switch, which controls one of the switch's virtual switches. The program
/// knows the applications by their names; this crate knows none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VirtualSwitchApp {
    /// Name of the application, such as `learning`.
    #[serde(rename = "app")]
    pub name: String,
    /// Highest OpenFlow version that the application offers. Version 1.0 is always offered, too.
    pub openflow: Version,
}

impl VirtualSwitchApp {
    /// Returns the settings of the application's sessions.
    pub fn session(&self) -> SessionConfig {
        let mut versions = vec![self.openflow, Version::V10];
        versions.dedup();
        SessionConfig { versions, ..SessionConfig::default() }
    }
}
