//! Valid and invalid configurations.
use super::*;

fn parse(text: &str) -> Result<VolumeConfig> {
    VolumeConfig::parse(text, Path::new("dir/volume.toml"))
}

#[test]
fn the_template_states_the_defaults() {
    let config = parse(&template("1GiB")).unwrap();
    let bare = "kind = \"flash\"\n[media]\ntype = \"file\"\npath = \"data.tantalum\"\n\
                [device]\ncapacity = \"1GiB\"\n";
    assert_eq!(config, parse(bare).unwrap());
    assert_eq!(config.data_path().unwrap(), Path::new("dir/data.tantalum"));
    assert_eq!(config.capacity_pages().unwrap(), 262_144);
}

#[test]
fn bad_settings_are_named() {
    let cases = [
        ("1GiB", "1GB5", "device.capacity"),
        ("# over_provisioning = \"12%\"", "over_provisioning = \"1%\"", "over_provisioning"),
        ("# cache = \"8MiB\"", "cache = \"8\"", "device.cache"),
        ("# cache = \"8MiB\"", "cache = \"8GiB\"", "4 GiB"),
        ("# share_entries_max = 500", "share_entries_max = -1", "line 56: invalid value"),
        ("# durability = \"on_ack\"\n", "durability = \"sometimes\"\n", "sometimes"),
        ("kind = \"flash\"", "kind = \"flash\"\ncolour = 3", "colour"),
        ("# cleaning = \"greedy\"", "cleaning = \"lifo\"", "device.cleaning"),
        ("# wear_spread = 128", "wear_spread = -1", "expected u32"),
        ("# [buffer]", "[buffer]\nsize = \"5\"", "buffer.size"),
        ("# [buffer]", "[buffer]\nsize = \"8TiB\"", "2 TiB"),
        ("# [buffer]", "[buffer]\nsize = \"1MiB\"\npolicy = \"lur\"", "buffer.policy"),
        ("# [buffer]", "[buffer]\nsize = \"1MiB\"\npolicy = \"opt\"", "buffer.policy"),
        ("# [buffer]", "[buffer]", "size"),
    ];
    for (from, to, named) in cases {
        let text = template("1GiB").replace(from, to);
        let message = parse(&text).unwrap_err().to_string();
        assert!(message.contains(named) && message.contains("volume.toml"), "{message}");
    }
}

#[test]
fn cleaning_and_the_wear_bound_are_those_of_the_text() {
    let options = |from: &str, to: &str| {
        parse(&template("1GiB").replace(from, to)).unwrap().ftl_options(9).unwrap()
    };
    // A host's write must not wait long.
    assert_eq!(options("", ""), FtlOptions { paces_cleaning: true, ..FtlOptions::new(9) });
    let drawn = options("# cleaning = \"greedy\"", "cleaning = \"d-choices:4\"").cleaning;
    assert_eq!(drawn, CleaningSpec::DChoices { choices: 4, seed: 0 });
    let bound = |to| options("# wear_spread = 128", to).wear_spread_max;
    assert_eq!(bound("wear_spread = 16"), 16);
    assert_eq!(bound("wear_spread = 0"), u32::MAX);
}

#[test]
fn what_is_not_said_of_durability_depends_on_who_asks() {
    let of = |said: &str| {
        let config = parse(&template("1GiB").replace("# durability = \"on_ack\"", said)).unwrap();
        [config.durability(), config.durability_over_nbd()]
    };
    let (on_ack, on_flush) = (DurabilityConfig::OnAck, DurabilityConfig::OnFlush);
    assert_eq!(of(""), [on_ack, on_flush]);
    assert_eq!(of("durability = \"on_ack\""), [on_ack; 2]);
    assert_eq!(of("durability = \"on_flush\""), [on_flush; 2]);
}

#[test]
fn the_buffer_is_off_or_as_large_as_it_says() {
    let pages = |text: &str| parse(text).unwrap().buffer_pages().unwrap();
    assert_eq!(pages(&template("1GiB")), 0);
    let text = template("1GiB").replace("# [buffer]", "[buffer]\nsize = \"64MiB\"");
    assert_eq!(pages(&text), 16_384);
    let policy = parse(&text).unwrap().buffer_policy().unwrap().unwrap();
    assert_eq!(policy.capacity_pages(), 16_384);
}

#[test]
fn a_policy_is_checked_without_memory_for_the_buffer() {
    // The tables of a policy with so many frames would take tens of GiB, and seconds.
    for policy in tantalum_policy::PolicySpec::NAMES.iter().filter(|name| **name != "opt") {
        let buffer = format!("[buffer]\nsize = \"2TiB\"\npolicy = \"{policy}\"");
        assert!(parse(&template("1GiB").replace("# [buffer]", &buffer)).is_ok(), "{policy}");
    }
    let refused = |buffer: &str| {
        let text = template("1GiB").replace("# [buffer]", &format!("[buffer]\n{buffer}"));
        parse(&text).unwrap_err().to_string()
    };
    let told = refused("size = \"3TiB\"");
    assert!(told.contains("buffer.size is over the limit of 2 TiB"), "{told}");
    let told = refused("size = \"2TiB\"\npolicy = \"cfdc:base=opt\"");
    assert!(told.contains("buffer.policy") && told.contains("must know all requests"), "{told}");
}

#[test]
fn what_is_no_toml_is_told_with_its_line() {
    for (text, told) in [
        ("kind = \"flash\"\n[media\n", "volume.toml, line 2: "),
        ("kind = \"flash\"\n\ncolour = 3\n", "volume.toml, line 3: unknown field `colour`"),
        ("kind = \"flash\"\n[media]\ntype = \"tape\"\n", "line 3: unknown variant `tape`"),
    ] {
        let message = parse(text).unwrap_err().to_string();
        assert!(message.contains(told) && message.lines().count() == 1, "{message}");
    }
}

#[test]
fn what_cannot_be_is_told_with_its_line() {
    let volume = |more: &str| format!("kind = \"flash\"\n[media]\ntype = \"memory\"\n{more}\n");
    for (text, told) in [
        (
            volume("[device]\n # cache = 1\ncapacity = \"8MB\"\n cache= \"8\""),
            "line 7: device.cache",
        ),
        (volume("[device]\ncapacity = \"9TiB\""), "volume.toml, line 5: device.capacity is over"),
        (volume("zone = \"1B\"\n[device]\ncapacity = \"8MB\""), "line 4: media.zone"),
        // It is not there.
        (
            volume("[device]\ncapacity = \"8MB\"").replace("memory", "file"),
            "volume.toml: media.path",
        ),
    ] {
        let message = parse(&text).unwrap_err().to_string();
        assert!(message.contains(told) && message.lines().count() == 1, "{message}\nlacks {told}");
    }
}

/// A tiered volume with this size of flash, and settings that differ from the template's.
fn tiered(flash_size: &str, from: &str, to: &str) -> Result<VolumeConfig> {
    let text = include_str!("../tiered.toml").replace("{capacity}", "1GiB");
    let text = text.replace("{flash_size}", flash_size);
    assert!(text.contains(from), "{from:?} is not in the template");
    parse(&text.replace(from, to))
}

#[test]
fn a_flash_that_is_too_small_is_told_the_least() {
    for (from, to) in [
        ("", ""),
        ("# cache = \"8MiB\"", "cache = \"1MiB\""),
        ("# cache = \"8MiB\"", "cache = \"64MiB\""),
        ("# zone = \"1MiB\"", "zone = \"32MiB\""),
        ("# dirty_max = \"75%\"", "dirty_max = \"10%\""),
    ] {
        let message = tiered("1MiB", from, to).unwrap_err().to_string();
        let (_, told) = message.split_once("at least ").expect(&message);
        let least: u64 = told.split_once("MiB").expect(&message).0.parse().expect(&message);
        tiered(&format!("{least}MiB"), from, to).expect(to);
        let again = tiered(&format!("{}MiB", least - 1), from, to).unwrap_err().to_string();
        assert!(again.contains(&format!("at least {least}MiB")), "{to}: {again}");
        let said = to.split(" = ").next().expect("a key");
        assert!(message.contains(said), "{to}: {message}");
    }
    let message = tiered("1MiB", "# cache = \"8MiB\"", "cache = \"4GiB\"").unwrap_err();
    assert!(message.to_string().contains("--flash-size"), "{message}");
}

#[test]
fn nobody_is_told_to_remove_a_device() {
    let error = VolumeConfig::read(Path::new("/dev/null")).unwrap_err().to_string();
    assert!(error.contains("is not a configuration") && !error.contains("remove"), "{error}");
}
