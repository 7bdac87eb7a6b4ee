//! Flow entries, groups and meters of all fields are written and read again in every form: text, JSON, and the messages
//! of every version. Nothing is lost: what a form cannot say is refused, or is named here.
mod action;
mod coverage;
mod entries;
mod found;
mod json;
mod matching;
mod text;
mod wire;
