//! Requests of users: check, request, accept, commit, release, next stage.
use super::{Caller, EventKind, KeptOffer, LifecycleState, ManagerError, NetworkManager, NetworkRecord};
use weir_units::{Instant, counted};
use weir_vnet::service::{NetworkDesign, NetworkServiceRequest, OfferedChange, Refusal, ServiceError};

impl NetworkManager {
    /// Returns what a network would become. Nothing is reserved.
    ///
    /// # Errors
    /// Fails for the reasons of [`NetworkManager::request`].
    pub fn check(
        &self,
        caller: &Caller,
        request: &NetworkServiceRequest,
        wall: Instant,
    ) -> Result<NetworkDesign, ManagerError> {
        let mut trial = self.clone();
        trial.request(caller, request, wall)?;
        let held = trial.book.network(&request.name);
        held.map(|held| held.design.clone()).ok_or_else(|| ManagerError::NoNetwork { name: request.name.clone() })
    }

    /// Reserves a network, and holds it for a limited time. Its lifetime begins.
    ///
    /// # Errors
    /// The request is malformed, names another owner, has the name of another network, exceeds a quota, or is refused.
    /// If a refusal has offers, the request is kept with them for a limited time.
    pub fn request(
        &mut self,
        caller: &Caller,
        request: &NetworkServiceRequest,
        wall: Instant,
    ) -> Result<(), ManagerError> {
        let now = self.time(wall);
        self.check_owner(caller, request)?;
        self.check_quota(request)?;
        match self.book.request(request, now) {
            Ok(change) => {
                self.admitted += 1;
                let mut record = NetworkRecord::new(request, LifecycleState::Held, now);
                (record.order, record.until) = (self.admitted, Some(now + self.settings.hold_time));
                self.networks.insert(request.name.clone(), record);
                let text = format!("reserved, and held for {:?}", self.settings.hold_time);
                self.note(now, &request.name, EventKind::Held, text);
                self.note_resized(change);
                Ok(())
            }
            Err(ServiceError::Refused(refusal)) => {
                self.keep_offers(now, request, &refusal);
                Err(ServiceError::Refused(refusal).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn check_owner(&self, caller: &Caller, request: &NetworkServiceRequest) -> Result<(), ManagerError> {
        if let Caller::User(name) = caller
            && *name != request.owner
        {
            return Err(ManagerError::Owner { found: request.owner.clone(), expected: name.clone() });
        }
        let is_free = self.networks.get(&request.name).is_none_or(|record| {
            let is_own_offer = record.state == LifecycleState::Offered && record.request.owner == request.owner;
            record.state.has_ended() || is_own_offer
        });
        if is_free { Ok(()) } else { Err(ManagerError::NameTaken { name: request.name.clone() }) }
    }

    fn keep_offers(&mut self, now: Instant, request: &NetworkServiceRequest, refusal: &Refusal) {
        let own =
            |record: &&NetworkRecord| record.state == LifecycleState::Offered && record.request.owner == request.owner;
        // Refusals reserve nothing, but are kept in memory and in the store.
        let has_room = self.networks.values().filter(own).count() < self.settings.most_networks;
        if refusal.offers.is_empty() || !has_room {
            return;
        }
        let offers = refusal.offers.iter().map(|offer| KeptOffer {
            text: offer.change.to_string(),
            request: offer.request.clone(),
            from: match offer.change {
                OfferedChange::Later(from) => Some(from),
                _ => None,
            },
        });
        let mut record = NetworkRecord::new(request, LifecycleState::Offered, now);
        (record.offers, record.until) = (offers.collect(), Some(now + self.settings.hold_time));
        record.problem = Some(refusal.to_string());
        let text = format!("refused, with {}", counted(record.offers.len(), "offer", "offers"));
        self.networks.insert(request.name.clone(), record);
        self.note(now, &request.name, EventKind::Offered, text);
    }

    /// Requests the network as the offer with this number has it, from 1 on, in place of the refused request.
    ///
    /// # Errors
    /// There is no such offer, its time has not come, or it is not possible any more because of other networks.
    pub fn accept(&mut self, caller: &Caller, name: &str, number: usize, wall: Instant) -> Result<(), ManagerError> {
        let now = self.time(wall);
        let record = self.show(caller, name)?;
        record.expect(name, &[LifecycleState::Offered], "offers are of a refused request; there is none")?;
        let wrong = |problem: String| ManagerError::Offer { name: name.to_owned(), number, problem };
        let count = record.offers.len();
        let offer = number.checked_sub(1).and_then(|at| record.offers.get(at));
        let offer = offer.ok_or_else(|| wrong(format!("expected 1 to {count}")))?.clone();
        if let Some(wait) = offer.from.filter(|from| *from > now).map(|from| from - now) {
            return Err(wrong(format!("it is possible in {wait:?}, when other networks have ended")));
        }
        self.request(caller, &offer.request, wall)
    }

    /// Commits a network that is held: it is carried out, and stays until its lifetime is over or it is released.
    ///
    /// # Errors
    /// There is no such network, or it is not held. Committing a committed network again is no error.
    pub fn commit(&mut self, caller: &Caller, name: &str, wall: Instant) -> Result<(), ManagerError> {
        let now = self.time(wall);
        let record = self.show(caller, name)?;
        if record.state == LifecycleState::Committed || record.state.is_wanted() {
            return Ok(());
        }
        record.expect(name, &[LifecycleState::Held], "only a network that is held can be committed")?;
        if let Some(record) = self.networks.get_mut(name) {
            record.until = None;
        }
        self.enter(now, name, LifecycleState::Committed, EventKind::Committed, "committed".to_owned());
        Ok(())
    }

    /// Releases a network. Its reservation ends once no switch has anything of it.
    ///
    /// # Errors
    /// There is no such network, or it has ended. Releasing a network again is no error.
    pub fn release(&mut self, caller: &Caller, name: &str, wall: Instant) -> Result<(), ManagerError> {
        let now = self.time(wall);
        let record = self.show(caller, name)?;
        if record.state.has_ended() {
            let (name, state) = (name.to_owned(), record.state);
            return Err(ManagerError::State { name, state, expected: "nothing of it is left to be released" });
        }
        self.begin_release(now, name, "released by request", None);
        Ok(())
    }

    /// Begins the next stage of an active network before its time.
    ///
    /// # Errors
    /// There is no such network, it is not active, or all its stages have begun.
    pub fn next_stage(&mut self, caller: &Caller, name: &str, wall: Instant) -> Result<(), ManagerError> {
        let now = self.time(wall);
        let record = self.show(caller, name)?;
        let allowed = [LifecycleState::Active, LifecycleState::Degraded];
        record.expect(name, &allowed, "stages begin when it is active")?;
        let stage = self.book.network(name).map_or(0, |held| held.stage) + 1;
        let count = record.request.stages.len();
        if stage > count {
            let problem = format!("found {}, all of which have begun", counted(count, "stage", "stages"));
            return Err(ManagerError::Stage { name: name.to_owned(), stage, problem });
        }
        self.begin_stage(now, name, stage, "by request")
    }
}

impl NetworkRecord {
    pub(super) fn new(request: &NetworkServiceRequest, state: LifecycleState, now: Instant) -> NetworkRecord {
        NetworkRecord {
            request: request.clone(),
            state,
            since: now,
            order: 0,
            until: None,
            activated: None,
            is_settled: true,
            problem: None,
            fails: false,
            offers: Vec::new(),
        }
    }

    fn expect(&self, name: &str, allowed: &[LifecycleState], expected: &'static str) -> Result<(), ManagerError> {
        if allowed.contains(&self.state) {
            return Ok(());
        }
        Err(ManagerError::State { name: name.to_owned(), state: self.state, expected })
    }
}
