//! The translation layers from before page mapping, and page mapping for comparison, on every legal
//! geometry; and the older layers with power cuts and failing programs.
mod cuts;
mod failures;
mod geometries;
mod loads;
mod page_map;
mod runs;
