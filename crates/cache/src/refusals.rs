//! Why a home or a journal is not taken, or a mode not set: the fixed words of each refusal.
tantalum_base::refusals! {
    /// The home shows another volume's claim.
    OTHERS_HOME = "the home belongs to volume",
    /// Sectors are zero that no cache leaves so.
    WRITTEN_OVER = "somebody wrote to the home without its cache",
    /// The home is not as the journal says.
    CHANGED = "somebody changed the home without its cache",
    /// The journal is another volume's.
    OTHERS_JOURNAL = "the journal is of",
    /// It has no head of a journal.
    NO_JOURNAL = "this is no journal",
    /// A journal of a later program.
    JOURNAL_VERSION = "where this program reads versions",
    /// A name of no mode.
    NO_MODE = "is no mode",
}
