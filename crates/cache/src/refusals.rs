//! The refusals of a home, a journal or a mode: the fixed words of each.
tantalum_base::refusals! {
    /// The home shows another volume's claim.
    OTHERS_HOME = "the home belongs to volume",
    /// Some claimed sectors are zero. A cache leaves none of them zero.
    WRITTEN_OVER = "somebody wrote to the home without its cache",
    /// The home shows no claim, though its cache put one on it.
    CLAIM_MISSING = "the home does not show the claim",
    /// The home differs from the state that the journal records.
    CHANGED = "somebody changed the home without its cache",
    /// The journal belongs to another volume.
    OTHERS_JOURNAL = "the journal is of",
    /// The store has no journal head.
    NO_JOURNAL = "this is not a journal",
    /// The journal was written by a later program.
    JOURNAL_VERSION = "where this program reads versions",
    /// No mode has this name.
    NO_MODE = "is not a mode",
}
