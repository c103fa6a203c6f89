//! The files of a sandbox: read, written, listed, renamed, removed and watched by a process of the sandbox, so that the plan counts
//! which its commands obey (TOOL-3). The server itself opens none of them.

mod content;
mod model;
mod names;
mod serving;
mod watching;

pub(crate) use content::{
    __path_read_file, __path_write_file, read_content, read_file, write_file,
};
pub use content::{Content, NEW_FILE};
pub(crate) use names::{
    __path_list_directory, __path_make_directory, __path_remove_file, __path_rename_file,
    __path_stat_file, list_directory, make_directory, remove_file, rename_file, stat_file,
};
pub use serving::GivenUp;
pub(crate) use serving::{start, with_files};
pub(crate) use watching::{__path_watch_directory, watch_directory};
