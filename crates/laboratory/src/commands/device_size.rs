//! The default size of a simulated device: just large enough for the trace, not that of its data sheet. Space that a
//! trace never touches takes long to fill and to age, and affects no figure.
use anyhow::bail;
use tantalum_base::size::human_bytes;
use tantalum_base::spec::is_same;
use tantalum_base::{PAGE_BYTES, Spec};
use tantalum_models::DeviceSpec;

/// Smallest default size: traces with fewer pages all get the same device.
const PAGES_MIN: u64 = 16 << 10;

/// The device named by `text`, which holds `pages` if `text` gives neither `capacity` nor `pages`.
pub fn device_for(text: &str, pages: u64) -> tantalum_base::Result<DeviceSpec> {
    if is_sized(text) {
        return DeviceSpec::parse(text);
    }
    let between = if text.contains(':') { "," } else { ":" };
    DeviceSpec::parse(&format!(
        "{}{between}pages={}",
        text.trim_end_matches(':'),
        pages.max(PAGES_MIN)
    ))
}

/// The device that `text` names, for an `option` that takes one.
///
/// # Errors
/// If it is no device, or several.
pub fn one_device(option: &str, text: &str) -> anyhow::Result<DeviceSpec> {
    let error = match DeviceSpec::parse(text) {
        Ok(device) => return Ok(device),
        Err(error) => error,
    };
    let names = Spec::list(text);
    if let Some(first) = names.iter().find(|name| DeviceSpec::parse(name).is_ok())
        && names.len() > 1
    {
        bail!(
            "{option} {text}: one device is accepted, and these are {}; name one, such as {first}",
            names.len()
        );
    }
    Err(error.into())
}

fn is_sized(text: &str) -> bool {
    let parameters = text.split_once(':').map_or("", |(_, parameters)| parameters);
    parameters.split(',').any(|parameter| {
        let key = parameter.split('=').next().unwrap_or_default().trim();
        is_same(key, "capacity") || is_same(key, "pages")
    })
}

/// A message about the devices among `texts` that get the default size of `pages`; `None` if there are none.
pub fn told(texts: &[String], pages: u64) -> Option<String> {
    let unsized_ones: Vec<&str> =
        texts.iter().filter(|text| !is_sized(text)).map(String::as_str).collect();
    let first = unsized_ones.first()?;
    let between = if first.contains(':') { "," } else { ":" };
    let pages = pages.max(PAGES_MIN);
    Some(format!(
        "{}: as large as the trace needs, {pages} pages ({}); {first}{between}capacity=SIZE sets another size",
        unsized_ones.join(", "),
        human_bytes(pages.saturating_mul(PAGE_BYTES as u64)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_as_large_as_the_trace_unless_it_says_so() {
        let pages = |text: &str, pages| device_for(text, pages).unwrap().pages();
        assert_eq!(pages("durassd", 50_000), 50_000);
        assert_eq!(pages("durassd:barrier=on", 50_000), 50_000);
        assert_eq!(pages("durassd", 3), PAGES_MIN);
        assert_eq!(pages("durassd:capacity=256MiB", 50_000), 65_536);
        assert_eq!(pages("durassd:barrier=on,pages=40k", 50_000), 40_960);
        assert_eq!(pages("DuraSSD:Capacity=256MiB", 50_000), 65_536);
        let one = |text| one_device("--flash", text);
        assert_eq!(one("durassd:barrier=on,pages=40k").unwrap().pages(), 40_960);
        let several = one("ssd-a:pages=40k,trim=x,ssd-b").unwrap_err().to_string();
        assert!(several.contains("--flash") && several.contains("such as ssd-b"), "{several}");
        let wrong = one("durasd").unwrap_err().to_string();
        assert!(wrong.contains("did you mean") && !wrong.contains("--flash"), "{wrong}");
        let told =
            |texts: &[&str]| told(&texts.iter().map(|&text| text.into()).collect::<Vec<_>>(), 9);
        assert_eq!(told(&["durassd:pages=40k"]), None);
        let told = told(&["bast:pages=40k", "ssd-a", "durassd:barrier=on"]).unwrap();
        assert!(
            told.starts_with("ssd-a, durassd:barrier=on: ") && told.contains("64.0 MiB"),
            "{told}"
        );
        assert!(told.contains("ssd-a:capacity=SIZE"), "{told}");
    }
}
