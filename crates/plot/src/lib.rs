//! Charts as SVG and reports as pages of HTML: readable on light and dark screens, without fonts, programs or a network that the reader
//! may not have. What stands for the same thing has the same colour on every chart ([`Pen::of`]).
//!
//! Charts are total: a value that cannot be drawn (none, infinite, not positive on a logarithmic axis) is left out, and the chart says
//! how many were.
mod bars;
mod chart;
mod distribution;
mod drawing;
mod figure;
mod frame;
mod heat;
mod page;
mod pen;
mod scale;
mod text;

pub use bars::{Bar, Bars};
pub use chart::{Axis, Chart, Look, Point, Series};
pub use figure::{Figure, Panels};
pub use heat::HeatMap;
pub use page::{Cell, Page, Table};
pub use pen::Pen;
pub use scale::Scale;
pub use text::{escape, leading_number, number, short};
