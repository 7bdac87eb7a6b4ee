//! States of networks from the request to the release, owners, quotas, stages and the clock.
use super::switches::Fuse;
use super::{Bench, OPERATOR, active, at, events, link, settle, state, written};
use std::time::Duration;
use weir_networks::manager::{Caller, LifecycleState, ManagerSettings, Quota, Quotas};
use weir_units::Bps;

fn user(name: &str) -> Caller {
    Caller::User(name.to_owned())
}

#[test]
fn a_network_is_active_once_it_was_read_back() {
    let bench = Bench::new();
    let mut service = bench.open();
    let gold = link("gold", ["a1", "a3"], "'20Mbit/s'");
    service.change(|manager| manager.request(&OPERATOR, &gold, at(0))).unwrap();
    settle(&mut service, at(1));
    assert_eq!(state(&service, "gold"), LifecycleState::Held);
    assert!(bench.switches.names().is_empty(), "no switch knows a network that is held");
    service.change(|manager| manager.commit(&OPERATOR, "gold", at(2))).unwrap();
    service.change(|manager| manager.commit(&OPERATOR, "gold", at(2))).unwrap();
    settle(&mut service, at(2));
    assert_eq!(state(&service, "gold"), LifecycleState::Active);
    assert_eq!(bench.switches.names(), ["s1/gold-a1-a3-1", "s2/gold-a1-a3-2", "s3/gold-a1-a3-3"]);
    let steps = bench.switches.take_steps();
    assert_eq!(steps[0], "add virtual switch gold-a1-a3-2 to s2", "what is in between comes first: {steps:?}");
    service.change(|manager| manager.release(&OPERATOR, "gold", at(3))).unwrap();
    assert_eq!(state(&service, "gold"), LifecycleState::Releasing);
    assert!(service.manager().book().network("gold").is_some(), "reserved until it is gone");
    settle(&mut service, at(3));
    assert_eq!(state(&service, "gold"), LifecycleState::Released);
    assert!(bench.switches.names().is_empty() && service.manager().book().network("gold").is_none());
    assert_eq!(bench.switches.take_steps().last().unwrap(), "remove virtual switch gold-a1-a3-2 from s2");
    let kinds: Vec<String> = events(service.manager(), "gold").iter().map(|text| text[..4].to_owned()).collect();
    assert_eq!(kinds, ["Held", "Comm", "Prov", "Acti", "Rele", "Rele"]);
}

#[test]
fn a_hold_ends_and_a_lifetime_ends() {
    let bench = Bench::new();
    let mut service = bench.open();
    let mut brief = link("brief", ["a1", "a2"], "'20Mbit/s'");
    brief.lifetime = Some(weir_units::TimeSpan(Duration::from_secs(100)));
    active(&mut service, &brief, at(0));
    let held = link("held", ["b1", "b2"], "'20Mbit/s'");
    service.change(|manager| manager.request(&OPERATOR, &held, at(0))).unwrap();
    settle(&mut service, at(99));
    assert_eq!(state(&service, "brief"), LifecycleState::Active);
    assert_eq!(service.manager().due(), Some(at(100)));
    settle(&mut service, at(100));
    assert_eq!(state(&service, "brief"), LifecycleState::Released);
    assert!(bench.switches.names().is_empty());
    settle(&mut service, at(599));
    assert_eq!(state(&service, "held"), LifecycleState::Held);
    settle(&mut service, at(600));
    assert_eq!(state(&service, "held"), LifecycleState::Released);
    let error = service.change(|manager| manager.commit(&OPERATOR, "held", at(601))).unwrap_err().to_string();
    assert_eq!(error, "network held is released: only a network that is held can be committed");
    service.change(|manager| manager.request(&OPERATOR, &held, at(602))).unwrap();
}

#[test]
fn stages_begin_at_their_times_and_late_ones_say_so() {
    let bench = Bench::new();
    let mut service = bench.open();
    let gold = written(
        "name = 'gold'\nlink = [{ ends = ['a1', 'a2'], bandwidth = '10Mbit/s' }]\n\
         stage = [{ start = '10s', link = [{ name = 'a1-a2', bandwidth = '20Mbit/s' }] },\n\
                  { start = '20s', link = [{ name = 'a1-a2', bandwidth = '30Mbit/s' }] },\n\
                  { start = '30s', link = [{ name = 'a1-a2', bandwidth = '5Mbit/s' }] }]\n",
    );
    active(&mut service, &gold, at(100));
    settle(&mut service, at(109));
    let rate = |service: &super::TestService| service.manager().book().rate("gold", "a1-a2", 0);
    assert_eq!(rate(&service), Some(Bps(10_000_000)));
    bench.switches.take_steps();
    settle(&mut service, at(110));
    assert_eq!(rate(&service), Some(Bps(20_000_000)));
    assert_eq!(bench.switches.take_steps().len(), 2, "both virtual switches are resized, once");
    service.change(|manager| manager.next_stage(&OPERATOR, "gold", at(111))).unwrap();
    settle(&mut service, at(125));
    assert_eq!(rate(&service), Some(Bps(30_000_000)), "it began before its time, and does not begin again");
    drop(service);
    let mut service = bench.open();
    settle(&mut service, at(200));
    assert_eq!(rate(&service), Some(Bps(5_000_000)));
    let events = events(service.manager(), "gold");
    assert!(events.iter().any(|text| text.contains("stage 3 begins, 70s after its time")), "{events:?}");
    assert!(events.last().unwrap().contains("new rates were read back"), "{events:?}");
    let error = service.change(|manager| manager.next_stage(&OPERATOR, "gold", at(201))).unwrap_err().to_string();
    assert_eq!(error, "network gold, stage 4: found 3 stages, all of which have begun");
}

#[test]
fn a_clock_that_goes_back_stops_nothing() {
    let bench = Bench::new();
    let mut service = bench.open();
    let mut brief = link("brief", ["a1", "a2"], "'20Mbit/s'");
    brief.lifetime = Some(weir_units::TimeSpan(Duration::from_secs(100)));
    active(&mut service, &brief, at(10_000));
    settle(&mut service, at(10_050));
    settle(&mut service, at(50));
    let back = service.manager().events(&OPERATOR, 0, 100).last().unwrap().text.clone();
    assert!(back.contains("went back by 10000s"), "{back}");
    assert!(service.manager().events(&super::lifecycle::user("eve"), 0, 100).is_empty());
    settle(&mut service, at(99));
    assert_eq!(state(&service, "brief"), LifecycleState::Active);
    assert_eq!(service.manager().due(), Some(at(100)), "by the machine's clock");
    settle(&mut service, at(100));
    assert_eq!(state(&service, "brief"), LifecycleState::Released);
}

#[test]
fn users_have_their_own_networks_within_their_quota() {
    let bench = Bench::new();
    let few = Quota { networks: Some(2), links: Some(3), guaranteed: Some(Bps(100_000_000)) };
    let quotas = Quotas { by_owner: [("ann".to_owned(), few)].into(), ..Quotas::default() };
    let mut service = bench.open_with(&Fuse::endless(), ManagerSettings { quotas, ..ManagerSettings::default() });
    let owned = |name: &str, ends, rate| {
        let mut request = link(name, ends, rate);
        request.owner = "ann".to_owned();
        request
    };
    let (ann, eve) = (user("ann"), user("eve"));
    let gold = owned("gold", ["a1", "a2"], "'20Mbit/s'");
    let mut ask = |caller: &Caller, request: &weir_vnet::service::NetworkServiceRequest| {
        service.change(|manager| manager.request(caller, request, at(0))).map_err(|error| error.to_string())
    };
    assert_eq!(ask(&eve, &gold).unwrap_err(), "owner: found `ann`, expected your own name `eve`");
    ask(&ann, &gold).unwrap();
    assert!(ask(&OPERATOR, &link("gold", ["b1", "b2"], "'1Mbit/s'")).unwrap_err().contains("found another network"));
    let error = ask(&ann, &owned("tin", ["b1", "b2"], "'31Mbit/s'")).unwrap_err();
    assert!(error.contains("guaranteed rate: with this network 102Mbit/s, expected at most 100Mbit/s"), "{error}");
    ask(&ann, &owned("tin", ["b1", "b2"], "'30Mbit/s'")).unwrap();
    let error = ask(&ann, &owned("lead", ["a3", "b3"], "{ maximum = '1Mbit/s' }")).unwrap_err();
    assert_eq!(
        error,
        "quota of ann: networks: with this network 3, expected at most 2; release a network, or ask the operator for \
         more"
    );
    assert_eq!(service.manager().list(&eve).len(), 0);
    assert_eq!(service.manager().list(&ann).len(), 2);
    assert!(service.manager().events(&eve, 0, 100).is_empty());
    assert_eq!(service.manager().events(&ann, 0, 100).len(), 2);
    let error = service.change(|manager| manager.release(&eve, "gold", at(1))).unwrap_err().to_string();
    assert_eq!(error, "found no network gold", "a user cannot tell whether it exists");
    service.change(|manager| manager.release(&ann, "gold", at(1))).unwrap();
}

#[test]
fn a_refused_request_is_kept_with_its_offers() {
    let bench = Bench::new();
    let mut service = bench.open();
    active(&mut service, &link("gold", ["a1", "a3"], "'60Mbit/s'"), at(0));
    let tin = link("tin", ["b1", "b3"], "'60Mbit/s'");
    let check = service.manager().check(&OPERATOR, &tin, at(1)).unwrap_err().to_string();
    let error = service.change(|manager| manager.request(&OPERATOR, &tin, at(1))).unwrap_err().to_string();
    assert_eq!(check, error);
    assert!(error.contains("possible: "), "{error}");
    drop(service);
    let mut service = bench.open();
    assert_eq!(state(&service, "tin"), LifecycleState::Offered);
    let error = service.change(|manager| manager.accept(&OPERATOR, "tin", 2, at(2))).unwrap_err().to_string();
    assert_eq!(error, "network tin, offer 2: expected 1 to 1");
    service.change(|manager| manager.accept(&OPERATOR, "tin", 1, at(2))).unwrap();
    assert_eq!(state(&service, "tin"), LifecycleState::Held);
    assert!(service.manager().check(&OPERATOR, &link("late", ["a2", "b2"], "'1Mbit/s'"), at(2)).is_ok());
    assert_eq!(service.manager().networks().count(), 2, "a check keeps nothing");
}
