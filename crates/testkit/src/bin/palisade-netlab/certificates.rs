//! An authority of the lab's own, and a certificate for whatever name is asked for.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::Result;

pub(crate) const AUTHORITY_FILE: &str = "authority.pem";
/// Whoever names no host gets a certificate for its address.
const NAMELESS: &str = "203.0.113.10";

pub(crate) struct Certificates {
    issuer: Issuer<'static, KeyPair>,
    made: Mutex<HashMap<String, Arc<CertifiedKey>>>,
}

/// A certificate and its key, for a server.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) key: PathBuf,
    pub(crate) certificate: PathBuf,
}

impl fmt::Debug for Certificates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl Certificates {
    /// Makes the authority and leaves its certificate in the directory.
    pub(crate) fn new(directory: &Path) -> Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, "Authority of a test");
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        fs::write(directory.join(AUTHORITY_FILE), certificate.pem())?;
        Ok(Self { issuer: Issuer::new(params, key), made: Mutex::default() })
    }

    /// One certificate for all of these names, in files for servers of other people's.
    pub(crate) fn write(&self, directory: &Path, names: &[&str]) -> Result<Files> {
        let key = KeyPair::generate()?;
        let first = names.first().ok_or("a certificate for nobody")?;
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names)?;
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let own = directory.join("served").join(first);
        fs::create_dir_all(&own)?;
        let files = Files { key: own.join("key.pem"), certificate: own.join("certificate.pem") };
        fs::write(&files.key, key.serialize_pem())?;
        fs::write(&files.certificate, certificate.pem())?;
        Ok(files)
    }

    fn for_name(&self, name: &str) -> Result<Arc<CertifiedKey>> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = made.get(name) {
            return Ok(Arc::clone(known));
        }
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new([name.to_owned()])?;
        // Java and Node refuse a leaf that names no issuer's key.
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = rustls::crypto::ring::default_provider();
        let signing = provider.key_provider.load_private_key(private)?;
        let certified = Arc::new(CertifiedKey::new(vec![certificate.der().clone()], signing));
        made.insert(name.to_owned(), Arc::clone(&certified));
        Ok(certified)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().unwrap_or(NAMELESS);
        self.for_name(name).inspect_err(|error| eprintln!("palisade-netlab: {name}: {error}")).ok()
    }
}
