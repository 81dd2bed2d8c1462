//! The engine with rows on the live executor, over a volume on a real file, while power is cut.

use crate::live_cuts::survives_cuts;
use tantalum_hosts::double_write::Form;

#[test]
fn rows_survive_power_cuts_on_a_real_file() {
    for form in Form::ALL {
        let folder = tempfile::tempdir().unwrap();
        survives_cuts(folder.path(), form);
    }
}
