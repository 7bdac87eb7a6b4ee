//! Defines a profile, the description of a device's timing, and reads it from a file.
use crate::evidence::{self, Evidence, EvidenceByKey};
use crate::{FlowCacheTiming, LevelForwarding, ProfileError, SHIPPED, ServiceTime, SwitchTiming, check, written};
use serde::{Deserialize as _, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use weir_model::Distribution;
use weir_model::switch::device::SwitchModel;

/// Maximum number of table levels.
pub const MAX_LEVELS: usize = 8;
/// Longest text in a profile (names, sources, notes), in bytes.
pub const MAX_TEXT: usize = 2000;
/// Longest file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Origin of a profile's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfileOrigin {
    /// Fitted to measurements of a device.
    Measured,
    /// Published by others, and not calibrated on a device.
    Literature,
    /// Assumed, without measurement or publication.
    Assumed,
    /// The switch's own times: nothing is added.
    Native,
}

impl ProfileOrigin {
    /// Returns the origin in words.
    pub fn words(self) -> &'static str {
        match self {
            ProfileOrigin::Measured => "measured",
            ProfileOrigin::Literature => "from the literature, not calibrated",
            ProfileOrigin::Assumed => "assumed, not measured",
            ProfileOrigin::Native => "the switch's own times, nothing is added",
        }
    }
}

/// Behaviour of barriers.
#[derive(Debug, Clone, PartialEq)]
pub struct BarrierTiming {
    /// True if a barrier waits for the commands before it; otherwise it overtakes them.
    pub waits: bool,
    /// Time from the end of that wait until the reply; `None` for no time.
    pub lag: Option<ServiceTime>,
}

/// Behaviour of a device in time.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Name of the profile.
    pub name: String,
    /// Description of the device.
    pub device: String,
    /// Origin of the numbers.
    pub origin: ProfileOrigin,
    /// Publication, or reason for the numbers.
    pub source: String,
    /// Program that measured the numbers, if they are measured.
    pub measured_with: Option<String>,
    /// Date of the measurement, if there was one.
    pub date: Option<String>,
    /// Directory with the measurement runs from which the numbers come, if there is one.
    pub runs: Option<PathBuf>,
    /// Costs of table changes; `None` if table changes take no time.
    pub tables: Option<SwitchModel>,
    /// Names of the table levels.
    pub levels: Vec<String>,
    /// Forwarding law of each level.
    pub forwarding: Vec<Option<LevelForwarding>>,
    /// Behaviour of barriers.
    pub barrier: BarrierTiming,
    /// Time from when commands were carried out until packets are treated accordingly, for all commands together;
    /// `None` for no time.
    pub effect: Option<ServiceTime>,
    /// Cache of decisions about flows; `None` if all packets of a level are alike.
    pub cache: Option<FlowCacheTiming>,
    /// Service times for formulas and stations; `None` if packets take no time.
    pub timing: Option<SwitchTiming>,
    /// Evidence for parameters' values, by key.
    pub evidence: BTreeMap<String, Evidence>,
}

impl Profile {
    /// Returns the shipped profile `name`, or reads the file `name`, which is resolved against `directory` if it is
    /// relative.
    ///
    /// # Errors
    /// Neither exists, or the profile is invalid; the error has file and line.
    pub fn find(name: &str, directory: &Path) -> Result<Profile, ProfileError> {
        match SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
            Some((_, text)) => Profile::parse(text, &format!("{name}.toml")),
            None => Profile::read(&directory.join(name)),
        }
    }

    /// Reads a profile from a file and checks it. The directory of its runs is resolved against the file's directory.
    ///
    /// # Errors
    /// The file cannot be read or is invalid; the error has file and line.
    pub fn read(path: &Path) -> Result<Profile, ProfileError> {
        let file = path.display().to_string();
        let unknown = |problem: String| ProfileError::Unknown {
            name: file.clone(),
            known: weir_units::known_names(
                path.file_name().and_then(|name| name.to_str()).unwrap_or_default(),
                &SHIPPED.map(|(name, _)| name),
            ),
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

    /// Parses and checks the text of a profile. `file` is the file name to show in errors.
    ///
    /// # Errors
    /// The text is invalid; the error has file and line.
    pub fn parse(text: &str, file: &str) -> Result<Profile, ProfileError> {
        let syntax = |error: toml::de::Error| ProfileError::syntax(file, text, &error);
        let wrong = |problem| ProfileError::at(file, text, problem);
        let mut table = DeTable::parse(text).map_err(syntax)?;
        let mut found = EvidenceByKey::new();
        evidence::take(table.get_mut(), "", 0, &mut found).map_err(wrong)?;
        let whole = toml::Spanned::new(table.span(), DeValue::Table(table.into_inner()));
        let document = written::ProfileToml::deserialize(ValueDeserializer::from(whole)).map_err(syntax)?;
        check::profile(document, found).map_err(wrong)
    }

    /// Returns a profile with this name and timing, for a device described elsewhere.
    pub fn of_timing(name: &str, timing: SwitchTiming) -> Profile {
        Profile {
            name: name.to_owned(),
            device: format!("{name}, as it is described with the network"),
            origin: ProfileOrigin::Assumed,
            source: "The network's description".to_owned(),
            measured_with: None,
            date: None,
            runs: None,
            tables: None,
            levels: Vec::new(),
            forwarding: Vec::new(),
            barrier: BarrierTiming { waits: true, lag: None },
            effect: None,
            cache: None,
            timing: Some(timing),
            evidence: BTreeMap::new(),
        }
    }

    /// Returns the time after commands were carried out in which a share of them, between 0 and 1, is in effect.
    pub fn time_until_effect(&self, share: f64) -> Duration {
        let Some(law) = self.effect.as_ref().and_then(|effect| effect.law.as_ref()) else { return Duration::ZERO };
        // No bound is found for a law that has hardly any spread.
        let seconds = Distribution::law(law).quantile(share).unwrap_or_else(|_| law.mean());
        Duration::from_secs_f64(seconds.max(0.0))
    }

    /// Returns true if emulating this profile delays anything: false only for [`ProfileOrigin::Native`].
    pub fn takes_time(&self) -> bool {
        self.origin != ProfileOrigin::Native
    }
}
