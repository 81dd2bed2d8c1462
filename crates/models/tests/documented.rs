//! `docs/devices/` has a page for every named device, with its correct parameters.
use std::collections::BTreeMap;
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};
use tantalum_models::DeviceSpec;
use tantalum_models::profile::DEVICES;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/devices")
}

fn overview() -> String {
    read_to_string(folder().join("README.md")).unwrap()
}

/// The text between backticks, word by word.
fn spans(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The pages to which the overview's first table links each name.
fn pages_of_devices() -> BTreeMap<String, Vec<String>> {
    let overview = overview();
    let table = overview.split("\n## ").next().unwrap();
    let mut pages: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let links = cells[2].split("](").skip(1).map(|link| link.split(')').next().unwrap());
        for name in spans(cells[0]) {
            pages.entry(name.to_owned()).or_default().extend(links.clone().map(str::to_owned));
        }
    }
    pages
}

/// The parameters of a device, as listed in its refusal of an unknown one.
fn parameters(name: &str) -> Vec<String> {
    let error = DeviceSpec::parse(&format!("{name}:colour=1")).unwrap_err().to_string();
    let (_, listed) = error.split_once("accepted: ").unwrap_or_else(|| panic!("{error}"));
    let words = listed.split("; ").filter_map(|part| part.split_once(" ("));
    let keys = words.map(|(key, _)| key.to_owned());
    keys.filter(|key| key.bytes().all(|byte| byte.is_ascii_lowercase() || b"-_".contains(&byte)))
        .collect()
}

#[test]
fn every_device_has_a_page_with_its_promises_costs_and_parameters() {
    let pages = pages_of_devices();
    for device in DEVICES {
        let listed =
            pages.get(device.name).unwrap_or_else(|| panic!("{} is in no row", device.name));
        let text: String =
            listed.iter().map(|page| read_to_string(folder().join(page)).unwrap()).collect();
        let headings: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        for wanted in ["promise", "cost", "arameters"] {
            let found = headings.iter().any(|heading| {
                heading.contains(wanted) || (wanted == "promise" && heading.contains("rely on"))
            });
            assert!(found, "{listed:?}, of {}, have no heading with {wanted}", device.name);
        }
        assert!(text.contains(&format!("`{}`", device.name)), "{} is not named", device.name);
    }
    assert_eq!(pages.len(), DEVICES.len(), "a device that there is not: {:?}", pages.keys());
}

#[test]
fn every_parameter_is_explained_and_every_explained_one_is_there() {
    let (overview, pages) = (overview(), pages_of_devices());
    let rows = overview.lines().skip_while(|line| !line.starts_with("| parameter |")).skip(2);
    let rows: Vec<&str> = rows.take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 10, "the table of parameters is not found any more");
    let in_overview: Vec<&str> =
        rows.iter().flat_map(|row| spans(row.split(" | ").next().unwrap())).collect();
    let mut taken: Vec<String> = Vec::new();
    for device in DEVICES {
        let listed = &pages[device.name];
        let text: String =
            listed.iter().map(|page| read_to_string(folder().join(page)).unwrap()).collect();
        let own = parameters(device.name);
        assert!(own.contains(&"capacity".to_owned()), "{}: {own:?}", device.name);
        for key in &own {
            let explained =
                in_overview.contains(&key.as_str()) || spans(&text).contains(&key.as_str());
            assert!(explained, "{key} of {} is not explained", device.name);
        }
        taken.extend(own);
    }
    for key in in_overview {
        assert!(taken.iter().any(|taken| taken == key), "no device takes {key}");
    }
}

#[test]
fn every_device_in_an_example_can_be_made() {
    let mut made = 0;
    for entry in read_dir(folder()).unwrap() {
        let page = entry.unwrap().path();
        let text = read_to_string(&page).unwrap();
        for line in text.lines().filter_map(|line| line.strip_prefix("    ")) {
            let Some(word) = line.split_whitespace().next() else { continue };
            let name = word.split(':').next().unwrap();
            if !DEVICES.iter().any(|device| device.name == name) {
                continue;
            }
            let parsed = DeviceSpec::parse(word);
            parsed.unwrap_or_else(|error| panic!("{}: {word}: {error}", page.display()));
            made += 1;
        }
    }
    assert!(made > 20, "{made} examples: they are not found any more");
}
