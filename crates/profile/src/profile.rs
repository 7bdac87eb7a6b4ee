//! A profile: what is known of a device.
use crate::evidence::{self, Evidence, Found};
use crate::{LevelForwarding, ProfileError, SHIPPED, ServiceTime, SwitchTiming, check, written};
use serde::{Deserialize as _, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue, ValueDeserializer};
use weir_model::switch::device::SwitchModel;

/// Levels of tables at most.
pub const MAX_LEVELS: usize = 8;
/// Longest text in a profile: names, sources, notes.
pub const MAX_TEXT: usize = 2000;
/// Longest file.
const MAX_FILE: u64 = 1 << 20;

/// Where a profile's numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A device was measured, and this was fitted.
    Measured,
    /// From what others published; not calibrated on a device.
    Literature,
    /// Made up.
    Assumed,
    /// The switch's own times: nothing is added.
    Native,
}

impl Origin {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Origin::Measured => "measured",
            Origin::Literature => "from the literature, not calibrated",
            Origin::Assumed => "assumed, not measured",
            Origin::Native => "the switch's own times, nothing is added",
        }
    }
}

/// How barriers are answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Barrier {
    /// Commands before it have been carried out; otherwise it overtakes them.
    pub waits: bool,
    /// How long the answer takes from then on; none: no time.
    pub lag: Option<ServiceTime>,
}

/// A device as it behaves in time.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// What the device is.
    pub device: String,
    /// Where the numbers come from.
    pub origin: Origin,
    /// Who published, or why it is as it is.
    pub source: String,
    /// What measured it.
    pub measured_with: Option<String>,
    /// When it was measured.
    pub date: Option<String>,
    /// Directory of the runs behind it.
    pub runs: Option<PathBuf>,
    /// What changes of tables take; none: no time.
    pub tables: Option<SwitchModel>,
    /// Names of the tables' levels.
    pub levels: Vec<String>,
    /// How packets take their way, level by level.
    pub forwarding: Vec<Option<LevelForwarding>>,
    /// How barriers are answered.
    pub barrier: Barrier,
    /// How long it takes from when commands were carried out until packets meet what they changed, for all together; none: no time.
    pub effect: Option<ServiceTime>,
    /// Service times, as formulas and stations read them; none: no time.
    pub timing: Option<SwitchTiming>,
    /// What parameters' values rest on, by key.
    pub evidence: BTreeMap<String, Evidence>,
}

impl Profile {
    /// A shipped profile of that name, or a file; relative names are taken from `directory`.
    ///
    /// # Errors
    /// There is neither, or it is wrong, with file and line.
    pub fn find(name: &str, directory: &Path) -> Result<Profile, ProfileError> {
        match SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
            Some((_, text)) => Profile::parse(text, &format!("{name}.toml")),
            None => Profile::read(&directory.join(name)),
        }
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    /// It cannot be read, or is wrong, with file and line.
    pub fn read(path: &Path) -> Result<Profile, ProfileError> {
        let file = path.display().to_string();
        let unknown = |problem: String| ProfileError::Unknown {
            name: file.clone(),
            known: SHIPPED.map(|(name, _)| name).join(", "),
            problem,
        };
        let unreadable = |problem: String| ProfileError::Unreadable { file: file.clone(), problem };
        let length = std::fs::metadata(path).map_err(|error| unknown(error.to_string()))?.len();
        if length > MAX_FILE {
            return Err(unreadable(format!("found {length} bytes, expected at most {MAX_FILE}")));
        }
        let text = weir_units::read_text(path).map_err(|error| unreadable(error.to_string()))?;
        let mut profile = Profile::parse(&text, &file)?;
        let directory = path.parent().unwrap_or(Path::new(""));
        profile.runs = profile.runs.map(|runs| directory.join(runs));
        Ok(profile)
    }

    /// Checks a profile's text; `file` names it in errors.
    ///
    /// # Errors
    /// What is wrong, with file and line.
    pub fn parse(text: &str, file: &str) -> Result<Profile, ProfileError> {
        let syntax = |error: toml::de::Error| ProfileError::syntax(file, text, &error);
        let wrong = |problem| ProfileError::at(file, text, problem);
        let mut table = DeTable::parse(text).map_err(syntax)?;
        let mut found = Found::new();
        evidence::take(table.get_mut(), "", 0, &mut found).map_err(wrong)?;
        let whole = toml::Spanned::new(table.span(), DeValue::Table(table.into_inner()));
        let document = written::Document::deserialize(ValueDeserializer::from(whole)).map_err(syntax)?;
        check::profile(document, found).map_err(wrong)
    }

    /// What is written of a device's times elsewhere, as a profile of that name.
    pub fn of_timing(name: &str, timing: SwitchTiming) -> Profile {
        Profile {
            name: name.to_owned(),
            device: format!("{name}, as it is described with the network"),
            origin: Origin::Assumed,
            source: "The network's description".to_owned(),
            measured_with: None,
            date: None,
            runs: None,
            tables: None,
            levels: Vec::new(),
            forwarding: Vec::new(),
            barrier: Barrier { waits: true, lag: None },
            effect: None,
            timing: Some(timing),
            evidence: BTreeMap::new(),
        }
    }

    /// Whether a switch with it takes longer than it would by itself.
    pub fn takes_time(&self) -> bool {
        self.origin != Origin::Native
    }
}
