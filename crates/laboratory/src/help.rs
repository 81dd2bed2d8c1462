//! `help` in the place of a name, and `NAME:help`: the names that an option takes, and the parameters of one. They need
//! no trace and no other option.
use std::ffi::OsString;
use tantalum_base::Spec;
use tantalum_models::DeviceSpec;
use tantalum_models::profile::DEVICES;
use tantalum_policy::PolicySpec;
use tantalum_policy::tier::TierSpec;

/// Kinds of names.
#[derive(Clone, Copy)]
enum Kind {
    Policy,
    Device,
    Tier,
}

const HELP: &str = "help";

/// The help that the command line `words` asks for; `None` if it asks for none, or for that of a name that does not
/// exist.
pub fn asked(words: impl Iterator<Item = OsString>) -> Option<String> {
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let (mut kind, mut told) = (None, Vec::new());
    for word in &words {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value)),
            _ => (word.as_str(), None),
        };
        if option.starts_with("--") {
            kind = of_option(option);
        }
        let values = value.or_else(|| (!option.starts_with("--")).then_some(option));
        // An option has the one value that follows it.
        let taken = kind.filter(|_| values.is_some());
        if let Some((kind, values)) = taken.zip(values) {
            told.extend(Spec::list(values).iter().filter_map(|text| of_text(kind, text)));
        }
        if values.is_some() {
            kind = None;
        }
    }
    (!told.is_empty()).then(|| told.join("\n"))
}

fn of_option(option: &str) -> Option<Kind> {
    match option {
        "--policy" => Some(Kind::Policy),
        "--device" | "--flash" => Some(Kind::Device),
        "--tier" => Some(Kind::Tier),
        _ => None,
    }
}

/// The help that `text`, a name of `kind`, asks for.
fn of_text(kind: Kind, text: &str) -> Option<String> {
    if text == HELP {
        let (what, names) = match kind {
            Kind::Policy => ("policies", PolicySpec::NAMES.to_vec()),
            Kind::Device => ("devices", DEVICES.iter().map(|entry| entry.name).collect()),
            Kind::Tier => ("tiers", TierSpec::NAMES.to_vec()),
        };
        return Some(format!(
            "{what}: {} (NAME:help lists the parameters of one)",
            names.join(", ")
        ));
    }
    let (name, parameters) = text.split_once(':')?;
    if !parameters.split(',').any(|parameter| parameter.trim() == HELP) {
        return None;
    }
    // Without the other parameters, which may be wrong.
    let asked = format!("{name}:{HELP}");
    let error = match kind {
        Kind::Policy => PolicySpec::parse(&asked).err(),
        Kind::Device => DeviceSpec::parse(&asked).err(),
        Kind::Tier => TierSpec::parse(&asked).err(),
    };
    error.map(|error| error.to_string()).filter(|told| told.contains(" takes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_found_behind_its_option_and_nowhere_else() {
        let asked = |line: &str| asked(line.split(' ').map(OsString::from));
        let told = asked("replay --policy help").unwrap();
        assert!(told.starts_with("policies: lru, fifo") && told.contains("NAME:help"), "{told}");
        assert!(asked("replay t --device=help").unwrap().starts_with("devices: "));
        assert!(asked("replay t --policy lru --tier help").unwrap().starts_with("tiers: "));
        let told = asked("replay --policy lru_k:help,lru:help,clock:bits=9").unwrap();
        assert!(told.contains("lru_k takes: k (1 to 8") && told.contains("lru takes no param"));
        assert!(asked("advise --flash durassd:help").unwrap().contains("durassd takes: "));
        for none in ["replay help --size 9", "replay --policy lru t:help", "trace stat zipf:help"] {
            assert_eq!(asked(none), None, "{none}");
        }
        assert_eq!(asked("replay --policy lur:help"), None);
    }
}
