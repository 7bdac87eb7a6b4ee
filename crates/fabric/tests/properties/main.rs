//! Property tests of the fabric: random switches, disciplines, arrivals and reconfigurations.
mod ceiling;
mod fairness;
mod model;
mod runs;

use model::{Model, Op, fabric_configs, switch_configs};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Arrived packets equal departed plus dropped plus queued ones, packet by packet and in every counter. Each
    /// queue keeps its order. An output with packets serves one or says when it will. Buffers hold their bytes, and
    /// no guarantee is broken.
    #[test]
    fn nothing_is_lost_or_made_up(
        fabric in fabric_configs(),
        configs in proptest::collection::vec(switch_configs(), 4),
        ops in proptest::collection::vec(any::<Op>(), 1..400),
    ) {
        let mut model = Model::new(fabric);
        for config in configs.iter().take(2) {
            model.add(config);
        }
        for op in ops {
            model.apply(op, &configs);
        }
        model.drain();
        model.check_counters();
    }
}
