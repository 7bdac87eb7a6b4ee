//! Gives virtual switches the applications that control them.
use crate::NetworkError;
use crate::controller::EmbeddedController;
use std::sync::Arc;
use weir_controller::ControllerApp;
use weir_controller::apps::learning::{LearningConfig, LearningSwitch};
use weir_slicing::VirtualSwitch;

/// Chooses the application of a virtual switch by the virtual switch's name, datapath id or any other property.
type ChooseApp = dyn Fn(&VirtualSwitch) -> Result<Option<Box<dyn ControllerApp>>, NetworkError> + Send + Sync;

/// Applications that control virtual switches: a function from a virtual switch to its application. Networks in virtual
/// time and labs get their virtual switches' applications from here only. By default it is [`named_app`], so a
/// scenario's `app = "learning"` is one value of the function.
///
/// Each virtual switch has an application of its own, in a controller of its own. Applications that are to know of each
/// other share their state (behind a lock in labs, where each controller has its thread).
///
/// ```
/// use weir_controller::ControllerApp;
/// use weir_controller::apps::learning::{LearningConfig, LearningSwitch};
/// use weir_network::{VirtualSwitchApps, named_app};
///
/// let apps = VirtualSwitchApps::new(|virtual_switch| match virtual_switch.dpid {
///     0x101 => Ok(Some(Box::new(LearningSwitch::new(LearningConfig::default())) as Box<dyn ControllerApp>)),
///     _ => named_app(virtual_switch),
/// });
/// # let _ = apps;
/// ```
#[derive(Clone)]
pub struct VirtualSwitchApps(Arc<ChooseApp>);

impl VirtualSwitchApps {
    /// Returns the applications that `choose` makes, once for each virtual switch; `None` is for a virtual switch
    /// without an application.
    pub fn new(
        choose: impl Fn(&VirtualSwitch) -> Result<Option<Box<dyn ControllerApp>>, NetworkError> + Send + Sync + 'static,
    ) -> VirtualSwitchApps {
        VirtualSwitchApps(Arc::new(choose))
    }

    /// Makes the application of a virtual switch, and the settings of its sessions.
    ///
    /// # Errors
    /// The function has none of the name that the virtual switch gives, or the virtual switch has a controller
    /// elsewhere, too.
    pub fn make(&self, virtual_switch: &VirtualSwitch) -> Result<Option<EmbeddedController>, NetworkError> {
        let Some(app) = (self.0)(virtual_switch)? else { return Ok(None) };
        if let Some(address) = virtual_switch.connect.first() {
            let problem = format!("found an application and connect = \"{address}\", expected one of them");
            return Err(wrong(virtual_switch, &problem));
        }
        let session = virtual_switch.app.as_ref().map(|app| app.session()).unwrap_or_default();
        Ok(Some((app, session)))
    }
}

impl Default for VirtualSwitchApps {
    fn default() -> VirtualSwitchApps {
        VirtualSwitchApps::new(named_app)
    }
}

impl std::fmt::Debug for VirtualSwitchApps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("VirtualSwitchApps")
    }
}

/// Returns the application that a virtual switch names in its scenario; `None` if it names none.
///
/// # Errors
/// There is no application of that name.
pub fn named_app(virtual_switch: &VirtualSwitch) -> Result<Option<Box<dyn ControllerApp>>, NetworkError> {
    match virtual_switch.app.as_ref().map(|app| app.name.as_str()) {
        None => Ok(None),
        Some("learning") => Ok(Some(Box::new(LearningSwitch::new(LearningConfig::default())))),
        Some(other) => Err(wrong(virtual_switch, &format!("app: found \"{other}\", expected \"learning\""))),
    }
}

fn wrong(virtual_switch: &VirtualSwitch, problem: &str) -> NetworkError {
    NetworkError::Scenario(format!("virtual switch {}: {problem}", virtual_switch.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::Version;
    use weir_slicing::{FabricSpec, VirtualSwitchApp};
    use weir_units::ByteSize;

    fn virtual_switch(app: Option<&str>) -> VirtualSwitch {
        let app = app.map(|name| VirtualSwitchApp { name: name.to_owned(), openflow: Version::V10 });
        VirtualSwitch { app, ..VirtualSwitch::new("gold", 0x101, Vec::new(), ByteSize(9000), &FabricSpec::default()) }
    }

    #[test]
    fn a_named_application_is_made_and_an_unknown_name_is_told() {
        let apps = VirtualSwitchApps::default();
        let (_, session) = apps.make(&virtual_switch(Some("learning"))).unwrap().unwrap();
        assert_eq!(session.versions, [Version::V10]);
        assert!(apps.make(&virtual_switch(None)).unwrap().is_none());
        let error = apps.make(&virtual_switch(Some("router"))).err().unwrap().to_string();
        assert_eq!(error, "virtual switch gold: app: found \"router\", expected \"learning\"");
    }

    #[test]
    fn a_program_gives_applications_by_any_property_but_not_with_a_controller_elsewhere() {
        let apps = VirtualSwitchApps::new(|virtual_switch| {
            let app = (virtual_switch.dpid == 0x101).then(|| LearningSwitch::new(LearningConfig::default()));
            Ok(app.map(|app| Box::new(app) as Box<dyn ControllerApp>))
        });
        let gold = virtual_switch(None);
        assert!(apps.make(&gold).unwrap().is_some());
        assert!(apps.make(&VirtualSwitch { dpid: 7, ..gold.clone() }).unwrap().is_none());
        let both = VirtualSwitch { connect: vec!["tcp:127.0.0.1:6653".to_owned()], ..gold };
        let error = apps.make(&both).err().unwrap().to_string();
        assert!(error.contains("found an application and connect = \"tcp:127.0.0.1:6653\""), "{error}");
    }
}
