//! Places for open transactions, of which a device has a limited number. Half of them are reserved in equal shares for all
//! clients that may connect; the other half goes to the first clients that need more. So one client may have many places, but
//! never all.
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result};

/// The places of all clients.
pub(crate) struct Places {
    /// The number reserved for each client.
    own: u32,
    /// The number of shared places, and how many of them are taken.
    common: u32,
    taken: Cell<u32>,
}

/// The places of one client.
pub(crate) struct ClientPlaces {
    all: Rc<Places>,
    /// Number of its reserved places that are taken.
    taken: Cell<u32>,
}

/// The place of one open transaction, until dropped.
pub(crate) struct Place {
    of: Rc<ClientPlaces>,
    is_common: bool,
}

impl Places {
    /// `most` places for at most `clients_max` clients.
    pub(crate) fn new(most: u32, clients_max: usize) -> Rc<Self> {
        let clients = u32::try_from(clients_max).unwrap_or(u32::MAX).max(1);
        let own = most / 2 / clients;
        Rc::new(Places { own, common: most - own * clients, taken: Cell::new(0) })
    }

    /// Transactions that one client may have open if no other client has any.
    pub(crate) fn client_max(&self) -> u32 {
        self.own + self.common
    }

    /// The places of one more client.
    pub(crate) fn of_client(self: &Rc<Self>) -> Rc<ClientPlaces> {
        Rc::new(ClientPlaces { all: Rc::clone(self), taken: Cell::new(0) })
    }
}

impl ClientPlaces {
    /// A place for one more transaction: a reserved one as long as there is any, then a shared one.
    ///
    /// # Errors
    /// `TooManyTransactions`.
    pub(crate) fn take(self: &Rc<Self>) -> Result<Place> {
        let Places { own, common, taken } = &*self.all;
        let (is_common, count, most) = match self.taken.get() < *own {
            true => (false, &self.taken, own),
            false => (true, taken, common),
        };
        if count.get() >= *most {
            let context = format!(
                "this client has used its own {own} open transactions, and the {common} shared by \
                 all clients are taken: commit or abort some"
            );
            return Err(Error::new(ErrorKind::TooManyTransactions, context));
        }
        count.set(count.get() + 1);
        Ok(Place { of: Rc::clone(self), is_common })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let count = if self.is_common { &self.of.all.taken } else { &self.of.taken };
        count.set(count.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(client: &Rc<ClientPlaces>) -> Vec<Place> {
        std::iter::from_fn(|| client.take().ok()).collect()
    }

    #[test]
    fn one_client_cannot_take_all_places() {
        let places = Places::new(128, 16);
        let greedy = places.of_client();
        let mut taken = fill(&greedy);
        assert_eq!((taken.len(), places.client_max()), (68, 68));
        let others: Vec<_> = (1..16).map(|_| places.of_client()).collect();
        let all: Vec<usize> = others.iter().map(|other| fill(other).len()).collect();
        assert_eq!(all, [4; 15], "each has its own");
        taken.truncate(60);
        let more = fill(&others[0]);
        assert_eq!(more.len(), 4 + 8, "what is given back is for whoever comes");
        let refused = greedy.take().err().map(|error| error.kind());
        assert_eq!(refused, Some(ErrorKind::TooManyTransactions));
    }

    #[test]
    fn a_few_places_are_all_in_common() {
        let places = Places::new(3, 100);
        assert_eq!(fill(&places.of_client()).len(), 3);
        assert_eq!(Places::new(0, 4).client_max(), 0);
    }
}
