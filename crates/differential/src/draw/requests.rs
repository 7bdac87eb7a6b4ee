//! Draws requests: statistics, descriptions, and the final delete of all entries.
use super::CaseGenerator;
use crate::CaseStep;
use weir_openflow::model::multipart::{FlowRequest, MultipartRequest, RequestBody};
use weir_openflow::model::{FlowMod, GroupId, Match, MeterId, PortNo, TableId};
use weir_openflow::{Body, Version};

impl CaseGenerator {
    /// Draws the requests at the end of a case: all entries, details of some of them, groups and meters; then a
    /// delete of all entries.
    pub(super) fn questions(&mut self) -> Vec<CaseStep> {
        let mut bodies = vec![RequestBody::Flow(FlowRequest::all())];
        for _ in 0..self.dice.between(0, 2) {
            let request = self.flow_request();
            let body = *self.dice.pick(&[RequestBody::Flow as fn(_) -> _, RequestBody::Aggregate]);
            bodies.push(body(request));
        }
        if self.version > Version::V10 {
            bodies.extend([RequestBody::Group(GroupId::ALL), RequestBody::GroupDesc(GroupId::ALL)]);
            if self.dice.one_in(3) {
                bodies.extend([RequestBody::Meter(MeterId::ALL), RequestBody::MeterConfig(MeterId::ALL)]);
            }
            if self.dice.one_in(8) {
                bodies.push(RequestBody::Group(GroupId(self.dice.between(1, 4))));
                bodies.push(RequestBody::Meter(MeterId(self.dice.between(1, 4))));
            }
        }
        if self.version >= Version::V15 && self.dice.one_in(40) {
            bodies.push(RequestBody::FlowCounters(self.flow_request()));
        }
        if self.dice.one_in(4) {
            bodies.push(RequestBody::Table);
        }
        let requests = bodies.into_iter().map(|body| Body::MultipartRequest(MultipartRequest { more: false, body }));
        requests.chain([Body::FlowMod(FlowMod::delete_all())]).map(CaseStep::Message).collect()
    }

    fn flow_request(&mut self) -> FlowRequest {
        let mut request = FlowRequest::all();
        if self.dice.one_in(2) {
            request.table = TableId(u8::try_from(self.dice.between(0, 3)).unwrap_or(0));
        }
        if self.dice.one_in(4) {
            request.out_port = PortNo(self.dice.between(1, 4));
        }
        if self.dice.one_in(6) && self.version > Version::V10 {
            request.out_group = GroupId(self.dice.between(1, 3));
        }
        if self.dice.one_in(3) && self.version > Version::V10 {
            (request.cookie, request.cookie_mask) =
                (self.dice.between(0, 3).into(), *self.dice.pick(&[1, 2, u64::MAX]));
        }
        request.matching = if self.dice.one_in(2) { self.matching() } else { Match::any() };
        request
    }
}
