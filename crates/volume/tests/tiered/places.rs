//! The files of a new tiered volume.
use tantalum_base::ErrorKind;
use tantalum_base::fault_points::assert_noticed;
use tantalum_media::block_store::{FileStore, FileStoreOptions};
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::fault_points::Fault;
use tantalum_volume::{VolumeConfig, attach_volume};

const CONFIG: &str = r#"kind = "tiered"
[media]
type = "file"
path = "flash"
size = "7MiB"
zone = "128KiB"
[home]
path = "home"
[device]
capacity = "16MiB"
cache = "128KiB"
"#;

#[test]
fn a_home_in_use_leaves_the_flash_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let config = VolumeConfig::parse(CONFIG, &at("VOLUME.toml")).unwrap();
    let options = LiveOptions::default;
    let attach = || {
        let (live, config) = (Live::new(options()).unwrap(), config.clone());
        let handle = live.clone();
        live.run(async move { attach_volume(&handle, &config, true, |_| ()).await })
    };
    std::fs::write(at("home"), vec![0; 16 << 20]).unwrap();
    assert_noticed(Fault::StoresNotAskedFirst, || {
        std::fs::write(at("flash"), vec![9; 7 << 20]).unwrap();
        let live = Live::new(options()).unwrap();
        let held = FileStore::open(&live, &at("home"), FileStoreOptions::default()).unwrap();
        let error = attach().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.to_string().contains("home"), "{error}");
        drop(held);
        let is_as_before = std::fs::read(at("flash")).unwrap() == vec![9; 7 << 20];
        (!is_as_before || at("home.journal").exists()).then(|| "something was written".to_owned())
    });
    attach().unwrap();
}
