//! Draws charts as SVG and writes reports as HTML pages, for light and dark screens, without external fonts, scripts
//! or network access. One subject has one colour on every chart ([`Pen::of`]).
//!
//! Drawing never fails: a value that cannot be drawn (missing, infinite, or not positive on a logarithmic axis) is
//! left out, and the chart states how many were.
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

pub use bars::{Bar, BarChart};
pub use chart::{Axis, Chart, ChartPoint, ChartSeries, LineStyle};
pub use figure::{Figure, Panels};
pub use heat::HeatMap;
pub use page::{HtmlCell, HtmlPage, HtmlTable};
pub use pen::Pen;
pub use scale::AxisScale;
pub use text::{escape, leading_number, number, short, swept_axis};
