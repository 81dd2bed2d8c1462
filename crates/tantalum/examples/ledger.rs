//! Accounts on a volume, one a page: `cargo run -p tantalum --example ledger FOLDER`.
use std::path::Path;
use tantalum::{PAGE_BYTES, Result, Transaction, Volume};

/// Accounts, of which the number of each is its page.
pub struct Ledger(Volume);

impl Ledger {
    /// The ledger in `folder`, which is made if there is none.
    pub fn open(folder: &Path) -> Result<Ledger> {
        Volume::create(folder).capacity_bytes(16 << 20).open_or_create().map(Ledger)
    }

    /// The money of an account. A page that was never written is zeros, and an account without money.
    pub fn balance(&self, account: u64) -> Result<i64> {
        let mut bytes = [0; 8];
        self.0.read_at(account * PAGE_BYTES as u64, &mut bytes)?;
        Ok(i64::from_le_bytes(bytes))
    }

    /// Both accounts change, or none does: also after a power cut at any moment.
    pub fn transfer(&mut self, from: u64, to: u64, amount: i64) -> Result<()> {
        let mut transaction = self.0.begin()?;
        add(&mut transaction, from, -amount)?;
        add(&mut transaction, to, amount)?;
        transaction.commit()
    }
}

fn add(transaction: &mut Transaction, account: u64, amount: i64) -> Result<()> {
    let (at, mut bytes) = (account * PAGE_BYTES as u64, [0; 8]);
    transaction.read_at(at, &mut bytes)?;
    transaction.write_at(at, &(i64::from_le_bytes(bytes) + amount).to_le_bytes())
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).expect("the folder of a volume");
    let mut ledger = Ledger::open(folder.as_ref())?;
    ledger.transfer(1, 2, 100)?;
    println!("{} and {}", ledger.balance(1)?, ledger.balance(2)?);
    Ok(())
}
