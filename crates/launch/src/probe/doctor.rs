//! placeholder
#[derive(Debug)] pub struct Finding; #[derive(Debug)] pub struct Health; #[derive(Debug)] pub struct Report; pub fn doctor() -> Report { Report }
