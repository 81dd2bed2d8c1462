//! `tantalum stat HOME`: the claim of a home that has a cache.
use anyhow::bail;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use tantalum_cache::claim::Claim;
use tantalum_console::Verdict;
use tantalum_console::output::OutputArgs;
use tantalum_report::html::Page;
use tantalum_report::{Report, Table, config_hash, schema};

/// Every configuration is shorter.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// The claim on the home at `path`; `None` if the file may be a configuration.
pub fn claim_at(path: &Path) -> anyhow::Result<Option<Claim>> {
    let Ok(metadata) = std::fs::metadata(path) else { return Ok(None) };
    let is_device = metadata.file_type().is_block_device();
    if !is_device && !metadata.is_file() {
        return Ok(None);
    }
    let claim = tantalum_volume::claim_of(path)?;
    if claim.is_none() && (is_device || metadata.len() > CONFIG_BYTES_MAX) {
        bail!(
            "{} shows no claim of a cache: it has none, or no sector at its ends holds zeros (for a volume name its VOLUME.toml)",
            path.display()
        );
    }
    Ok(claim)
}

/// Prints `claim`, which is on the home at `path`.
pub fn tell(path: &Path, claim: &Claim, output: &OutputArgs) -> anyhow::Result<Verdict> {
    let mut table = Table::new(schema::HOME_CLAIM);
    table.push(vec![
        path.display().to_string().into(),
        format!("{:032x}", claim.volume_id()).into(),
        claim.home_bytes().into(),
        claim.journal().into(),
        claim.home().into(),
        claim.sentence().into(),
    ]);
    let parts = [format!("{claim:?}")];
    let report = Report::new(0, config_hash(parts), table);
    let page = Page {
        title: format!("The home {}", path.display()),
        verdict: format!("It is the home of volume {:032x}", claim.volume_id()),
        ..Page::default()
    };
    output.print_page(&report, output.format()?, &page)?;
    Ok(Verdict::Good)
}
