//! Carries intents out: compiles them, lays their routes step by step, and takes them down.
use super::config::MOST_COMPILED;
use super::intent::{Intent, IntentNo, IntentSlot, Laid, Notes, Stage};
use super::lanes::{Demand, larger};
use super::layout::Layout;
use super::plan::{Plan, PlanInput};
use super::spec::IntentState;
use super::store::IntentStore;
use crate::map::NetworkMap;
use crate::tables::{Route, RouteId};
use weir_units::Instant;

impl IntentStore {
    /// Compiles intents that wait for it, at most [`MOST_COMPILED`] of them.
    pub(super) fn compile_queue(&mut self, now: Instant, map: &NetworkMap) {
        if self.queue.is_empty() {
            return;
        }
        self.graph.refresh(map, &self.config);
        for _ in 0..MOST_COMPILED {
            let Some((_, number)) = self.queue.pop_first() else { return };
            self.compile(now, number, map);
        }
    }

    /// Returns a plan of an intent in the network as it is, or why there is none.
    pub(super) fn plan(&mut self, number: IntentNo, map: &NetworkMap) -> Option<Result<Plan, String>> {
        self.counters.compiled += 1;
        let own = self.intents.get(&number)?.reserved.clone();
        self.reserved.release(&own);
        let plan = self.plan_beside_others(number, map);
        self.reserved.add(&own);
        plan
    }

    fn plan_beside_others(&self, number: IntentNo, map: &NetworkMap) -> Option<Result<Plan, String>> {
        let intent = self.intents.get(&number)?;
        let input = PlanInput {
            map,
            config: &self.config,
            reserved: &self.reserved,
            loads: &self.loads,
            claims: &self.claims,
            own: number,
            intents: &self.intents,
            bounded: &self.bounded,
            graph: &self.graph,
        };
        Some(input.plan(&intent.wanted, intent.laid.as_ref().map(|laid| &laid.plan.ends)))
    }

    /// Compiles an intent: lays a new way, keeps the one that it has, or fails.
    fn compile(&mut self, now: Instant, number: IntentNo, map: &NetworkMap) {
        let Some(plan) = self.plan(number, map) else { return };
        let Some(intent) = self.intents.get_mut(&number) else { return };
        if intent.state == IntentState::Withdrawn {
            return;
        }
        let keeps = |laid: &Laid| !intent.outdated && laid.plan.is_intact(map, &intent.wanted);
        let intact = intent.laid.as_ref().is_some_and(keeps);
        intent.outdated = false;
        match plan {
            Ok(plan) => {
                intent.notes.condition = None;
                self.adopt(now, number, plan, intact);
            }
            Err(reason) if intact => {
                intent.notes.condition = Some(reason);
                self.settle(number);
            }
            Err(reason) => {
                self.take_down(number);
                self.set_state(number, IntentState::Failed, reason);
                self.forget_if_gone(number);
            }
        }
    }

    /// Lays the routes of a plan. `keep` says that the present way works and is used again if switches refuse the new
    /// one.
    pub(super) fn adopt(&mut self, now: Instant, number: IntentNo, plan: Plan, keep: bool) {
        if self.is_laid(number, &plan) {
            self.take_over_plan(number, plan);
            return;
        }
        let Some(laid) = self.lay(number, plan) else {
            let reason = format!("labels: all {} are in use", self.labels.len());
            self.take_down(number);
            self.set_state(number, IntentState::Failed, reason);
            self.forget_if_gone(number);
            return;
        };
        self.drop_captures(number);
        let Some(intent) = self.intents.get_mut(&number) else { return };
        let before = intent.laid.replace(laid);
        if let Some(before) = &before {
            self.counters.rerouted += 1;
            intent.retiring.extend(before.carriers.iter().map(|id| (*id, before.label)));
        }
        // A way that was never confirmed is not one to go back to.
        let was_confirmed = !matches!(intent.stage, Stage::Carriers | Stage::Mains | Stage::Back);
        intent.former = before.filter(|_| keep && was_confirmed);
        intent.notes = Notes::default();
        (intent.better, intent.tries) = (false, 0);
        self.reserve(number);
        self.claim(number);
        self.set_state(number, IntentState::Compiling, String::new());
        self.start(now, number);
    }

    /// Returns true if an intent has the ways of a plan already.
    fn is_laid(&self, number: IntentNo, plan: &Plan) -> bool {
        let Some(intent) = self.intents.get(&number) else { return false };
        let same = |laid: &Laid| {
            let old = &laid.plan;
            (&old.ways, &old.spare, &old.classes) == (&plan.ways, &plan.spare, &plan.classes) && fits(laid, intent)
        };
        intent.laid.as_ref().is_some_and(same)
    }

    /// Takes over what is new in a plan with the same ways.
    fn take_over_plan(&mut self, number: IntentNo, plan: Plan) {
        let Some(intent) = self.intents.get_mut(&number) else { return };
        if let Some(laid) = &mut intent.laid {
            laid.plan = plan;
        }
        self.reserve(number);
        self.settle(number);
    }

    /// Returns a plan with numbers for its routes; `None` if no label is free.
    fn lay(&mut self, number: IntentNo, plan: Plan) -> Option<Laid> {
        let priority = self.intents.get(&number)?.wanted.priority();
        let label = if plan.classes.iter().any(|class| class.labelled) { Some(self.labels.take()?) } else { None };
        let layout = Layout::of(&plan, priority, label.unwrap_or_default());
        let mains = layout.mains.iter().map(|route| self.slot(number, route)).collect();
        let carriers = layout.carriers.iter().map(|_| self.new_route(number)).collect();
        let captures = layout.captures.iter().map(|_| self.new_route(number)).collect();
        Some(Laid { plan, layout, label, mains, carriers, captures })
    }

    /// Returns the number of the main route with this match: the same as before, so that switches change it in place.
    fn slot(&mut self, number: IntentNo, route: &Route) -> RouteId {
        let slots = self.intents.get(&number).into_iter().flat_map(|intent| &intent.slots);
        let same = |slot: &&IntentSlot| slot.matching == route.matching && slot.priority == route.priority;
        if let Some(id) = slots.into_iter().find(same).map(|slot| slot.id) {
            return id;
        }
        let id = self.new_route(number);
        if let Some(intent) = self.intents.get_mut(&number) {
            intent.slots.push(IntentSlot { matching: route.matching.clone(), priority: route.priority, id });
        }
        id
    }

    /// Reserves what the present way needs, and what the former one needed while it may be used again.
    pub(super) fn reserve(&mut self, number: IntentNo) {
        let Some(intent) = self.intents.get_mut(&number) else { return };
        let demand = |laid: &Option<Laid>| laid.as_ref().map_or_else(Demand::new, |laid| laid.plan.demand.clone());
        let demand = larger(&demand(&intent.laid), &demand(&intent.former));
        self.reserved.release(&intent.reserved);
        self.reserved.add(&demand);
        intent.reserved = demand;
        self.note_bound(number);
    }
}

/// Returns true if the routes have the priority that an intent asks for.
fn fits(laid: &Laid, intent: &Intent) -> bool {
    let priority = intent.wanted.priority();
    laid.layout.mains.iter().all(|route| route.priority == priority)
}
