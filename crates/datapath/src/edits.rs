//! Compiles the actions of entries that edit packets and then output them to one ordinary port, which covers most
//! routing and VLAN handling. The compiled [`Recipe`] makes such packets nearly as fast as unedited ones: no output
//! is deferred, nothing is parsed again, and the flow key is not updated.
use weir_openflow::model::Action;
use weir_packet::edit::Recipe;
use weir_packet::{Frame, FrameBody, Layers};

/// Compiled edits of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Edits {
    recipe: Recipe,
    /// Queue in which the packets wait at the port.
    queue: Option<u32>,
}

impl Edits {
    /// Compiles actions that only edit packets. Returns `None` if an action cannot be compiled.
    pub(crate) fn compile(actions: &[Action]) -> Option<Edits> {
        let mut compiled = Edits::default();
        actions.iter().all(|action| compiled.add(action)).then_some(compiled)
    }

    /// Adds an action. Returns false if it cannot be compiled.
    fn add(&mut self, action: &Action) -> bool {
        match *action {
            Action::SetField { field, value } => self.recipe.set(field, value),
            Action::PushVlan(tpid) => self.recipe.push_vlan(tpid),
            Action::PopVlan => self.recipe.pop_vlan(),
            Action::DecNwTtl => self.recipe.dec_nw_ttl(),
            Action::SetQueue(queue) => {
                self.queue = Some(queue);
                true
            }
            _ => false,
        }
    }

    /// Returns true if the edits can be applied to a packet that begins with an Ethernet header. Otherwise the
    /// program must be run, which decides what happens to the packet.
    #[inline(always)]
    pub(crate) fn fit(&self, frame: &FrameBody, layers: &Layers) -> bool {
        self.recipe.fits(frame, layers)
    }

    /// Applies the edits to a packet that they [fit](Edits::fit).
    #[inline(always)]
    pub(crate) fn apply(&self, frame: &mut Frame, layers: &Layers) {
        self.recipe.apply(frame, layers);
        if let Some(queue) = self.queue {
            frame.queue = queue;
        }
    }
}
