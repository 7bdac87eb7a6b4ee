//! Tests that flow entries, groups and meters with all fields can be written and read in every form: text, JSON, and
//! the messages of every version. Nothing is lost: what a form cannot express is refused, or is listed here.
mod action;
mod coverage;
mod entries;
mod found;
mod json;
mod matching;
mod text;
mod wire;
