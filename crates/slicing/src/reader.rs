//! Lets programs choose the text form of virtual switches that are described while a switch runs.
use crate::{FabricSpec, VirtualSwitch};

/// Reads virtual switches from text.
pub trait VirtualSwitchReader: Send + Sync {
    /// Reads a virtual switch of a switch with this fabric. `file` names the text in errors.
    ///
    /// # Errors
    /// A message with file and line: the text is not a virtual switch, or one that the fabric cannot have.
    fn read(&self, text: &str, file: &str, fabric: &FabricSpec) -> Result<VirtualSwitch, String>;

    /// Returns `old` after the changes in a text, which has only the values that change. A lifetime counts from the
    /// change that gives it, so that of `old` is dropped.
    ///
    /// # Errors
    /// A message as of [`VirtualSwitchReader::read`].
    fn change(
        &self,
        old: &VirtualSwitch,
        changes: &str,
        file: &str,
        fabric: &FabricSpec,
    ) -> Result<VirtualSwitch, String>;
}
