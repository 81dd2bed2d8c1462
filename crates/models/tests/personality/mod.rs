//! The translation layers that were there before page mapping, and page mapping beside them, on every
//! legal geometry; what cuts and failing programs leave of the older ones.
mod cuts;
mod failures;
mod geometries;
mod loads;
mod page_map;
mod runs;
