//! Tests the tracker: what it learns, moves, attacks of the literature, and random histories.
mod ambiguous;
mod attacks;
mod bed;
mod histories;
mod learning;
