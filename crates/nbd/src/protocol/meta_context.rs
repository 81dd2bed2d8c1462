//! Metadata contexts: the kinds of block status that a client may query.
use super::be;

/// The only context: which bytes are allocated.
pub(crate) const ALLOCATION: &str = "base:allocation";
/// Its number in replies.
pub(crate) const ALLOCATION_ID: u32 = 1;
/// Its namespace; as a query, it requests all contexts of the namespace.
const NAMESPACE: &str = "base:";

/// The data of LIST_META_CONTEXT and SET_META_CONTEXT.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct MetaRequest<'a> {
    pub(crate) name: &'a [u8],
    queries: Vec<&'a [u8]>,
}

/// A string preceded by its length in 32 bits, and the rest of the data.
fn string(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_at_checked(4)?;
    rest.split_at_checked(be!(u32, length, 0) as usize)
}

impl<'a> MetaRequest<'a> {
    /// Parses the data; `None` if its lengths contradict each other.
    pub(crate) fn parse(data: &'a [u8]) -> Option<Self> {
        let (name, rest) = string(data)?;
        let (count, mut rest) = rest.split_at_checked(4)?;
        let mut queries = Vec::new();
        for _ in 0..be!(u32, count, 0) {
            let (query, behind) = string(rest)?;
            queries.push(query);
            rest = behind;
        }
        rest.is_empty().then_some(MetaRequest { name, queries })
    }

    /// Whether the list of contexts that the client requests includes [`ALLOCATION`].
    pub(crate) fn lists_allocation(&self) -> bool {
        let is_asked = |query: &&[u8]| *query == NAMESPACE.as_bytes();
        self.queries.is_empty() || self.selects_allocation() || self.queries.iter().any(is_asked)
    }

    /// Whether the client selects [`ALLOCATION`].
    pub(crate) fn selects_allocation(&self) -> bool {
        self.queries.contains(&ALLOCATION.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(queries: &[&str]) -> Vec<u8> {
        let mut data = b"\0\0\0\x03vol".to_vec();
        data.extend((queries.len() as u32).to_be_bytes());
        for query in queries {
            data.extend((query.len() as u32).to_be_bytes());
            data.extend(query.as_bytes());
        }
        data
    }

    #[test]
    fn queries_find_what_there_is() {
        let cases: [(&[&str], bool, bool); 8] = [
            (&[], true, false),
            (&["base:"], true, false),
            (&["base:allocation"], true, true),
            (&["x:y", "base:allocation", "base:allocation"], true, true),
            (&["base:allocatio"], false, false),
            (&["base:allocation2", "qemu:dirty-bitmap:"], false, false),
            (&[""], false, false),
            (&["BASE:allocation"], false, false),
        ];
        for (queries, lists, selects) in cases {
            let data = data(queries);
            let request = MetaRequest::parse(&data).unwrap();
            assert_eq!(request.name, b"vol");
            assert_eq!(request.lists_allocation(), lists, "{queries:?}");
            assert_eq!(request.selects_allocation(), selects, "{queries:?}");
        }
    }

    #[test]
    fn lengths_that_contradict_each_other_are_refused() {
        let good = data(&["base:allocation", "x:"]);
        for cut in 0..good.len() {
            assert_eq!(MetaRequest::parse(&good[..cut]), None, "cut at {cut}");
        }
        assert_eq!(MetaRequest::parse(&[&good[..], b"x"].concat()), None);
        assert_eq!(MetaRequest::parse(b"\xff\xff\xff\xffvol\0\0\0\0"), None);
        assert_eq!(MetaRequest::parse(b"\0\0\0\x03vol\xff\xff\xff\xff"), None);
        assert_eq!(MetaRequest::parse(b"\0\0\0\x03vol\0\0\0\x01\xff\xff\xff\xffbase:"), None);
    }
}
