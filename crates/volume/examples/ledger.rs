//! Accounts on a volume, one a page: `cargo run -p tantalum-volume --example ledger vol/VOLUME.toml`.
use std::path::Path;
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf, PageNo, Result, TxId};
use tantalum_volume::{Client, open_client};

/// Accounts, of which the number of each is its page.
pub struct Ledger {
    volume: Client,
}

impl Ledger {
    /// The ledger on the volume of a VOLUME.toml.
    pub fn open(config: &Path) -> Result<Ledger> {
        Ok(Ledger { volume: open_client(config)? })
    }

    /// The money of an account.
    pub fn balance(&self, account: u64) -> Result<i64> {
        Ok(balance_in(&self.volume.read(PageNo(account), 1)?[0]))
    }

    /// Both accounts change, or none does: also after a power cut at any moment.
    pub fn transfer(&mut self, from: u64, to: u64, amount: i64) -> Result<()> {
        let tx = self.volume.begin()?;
        let moved = self.add(tx, from, -amount).and_then(|()| self.add(tx, to, amount));
        match moved {
            Ok(()) => self.volume.commit(tx),
            Err(error) => self.volume.abort(tx).and(Err(error)),
        }
    }

    fn add(&self, tx: TxId, account: u64, amount: i64) -> Result<()> {
        let page = &self.volume.read_tx(tx, PageNo(account), 1)?[0];
        let balance = balance_in(page) + amount;
        let mut bytes = [0; PAGE_BYTES];
        bytes[..8].copy_from_slice(&balance.to_le_bytes());
        self.volume.write_tx(tx, PageNo(account), vec![PageBuf::copy_from(&bytes)])
    }
}

/// A page that was never written is zeros, and an account without money.
fn balance_in(page: &PageBuf) -> i64 {
    i64::from_le_bytes(page[..8].try_into().expect("a page is longer"))
}

fn main() -> Result<()> {
    let config = std::env::args_os().nth(1).expect("the path of a VOLUME.toml");
    let mut ledger = Ledger::open(Path::new(&config))?;
    match ledger.transfer(1, 2, 100) {
        Err(error) if error.kind() == ErrorKind::Conflict => println!("busy: {error}"),
        moved => moved?,
    }
    println!("{} and {}", ledger.balance(1)?, ledger.balance(2)?);
    Ok(())
}
