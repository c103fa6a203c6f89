//! The certificate authority of one run, the certificates it issues, and the roots that servers are checked
//! against.
//!
//! The authority exists for one run and is trusted inside only. It issues no certificates for names without a
//! credential.

use crate::config::{Authority, Config, Secret};
use crate::error::EgressError;
use palisade_hosts::{Host, HostPattern};
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    NameConstraints,
};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::io::{self};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const NAME: &str = "Palisade, for one sandbox";
/// The clock inside may be a little behind.
const BEFORE: Duration = Duration::from_hours(1);
/// Longer than any expected run.
const VALID: Duration = Duration::from_hours(7 * 24);
/// Limit for cached certificates. Each name under a wildcard costs a signature, and a program inside must not
/// make the cache grow without bound.
pub(crate) const MAX_CERTIFICATES: usize = 256;

/// A new authority for these hosts, created for each run.
pub fn authority(hosts: &[HostPattern]) -> Result<Authority, EgressError> {
    let key = KeyPair::generate().map_err(broken)?;
    let certificate = authority_parameters(hosts).self_signed(&key).map_err(broken)?;
    Ok(Authority { certificate: certificate.pem(), key: Secret::new(key.serialize_pem()) })
}

fn broken(error: impl fmt::Display) -> EgressError {
    EgressError::Authority(error.to_string())
}

fn named() -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, NAME);
    name
}

fn validity(parameters: &mut CertificateParams) {
    let now = SystemTime::now();
    parameters.not_before = now.checked_sub(BEFORE).unwrap_or(now).into();
    parameters.not_after = (now + VALID).into();
}

fn authority_parameters(hosts: &[HostPattern]) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = named();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    parameters.name_constraints = constraints(hosts);
    validity(&mut parameters);
    parameters
}

/// If the key ever leaks into a sandbox, it is valid for these names only.
fn constraints(hosts: &[HostPattern]) -> Option<NameConstraints> {
    let mut permitted = Vec::new();
    for pattern in hosts {
        let written = pattern.to_string();
        let subtree = match pattern.range() {
            Some(range) => {
                let subnet = CidrSubnet::from_addr_prefix(range.addr(), range.prefix_len());
                Some(GeneralSubtree::IpAddress(subnet))
            }
            None if written == "*" => return None,
            // A constraint on a name includes the names below it. What is no name permits none.
            None => name_in(&written).map(GeneralSubtree::DnsName),
        };
        permitted.extend(subtree);
    }
    // A type of name without any constraint would be unrestricted.
    let has_names = permitted.iter().any(|one| matches!(one, GeneralSubtree::DnsName(_)));
    let has_addresses = permitted.len()
        > permitted.iter().filter(|one| matches!(one, GeneralSubtree::DnsName(_))).count();
    let mut excluded = Vec::new();
    if !has_names {
        excluded.push(GeneralSubtree::DnsName(String::new()));
    }
    if !has_addresses {
        excluded.push(GeneralSubtree::IpAddress(CidrSubnet::from_v4_prefix([0; 4], 0)));
        excluded.push(GeneralSubtree::IpAddress(CidrSubnet::from_v6_prefix([0; 16], 0)));
    }
    Some(NameConstraints { permitted_subtrees: permitted, excluded_subtrees: excluded })
}

fn name_in(pattern: &str) -> Option<String> {
    let apex = pattern.trim_start_matches('*').trim_start_matches('.');
    Host::parse(apex).ok().map(|host| host.to_string())
}

/// Issued certificates, and the roots trusted outside. Part of the engine.
pub struct State {
    pub(crate) inside: Option<Inside>,
    pub(crate) outside: Option<Arc<ClientConfig>>,
}

pub(crate) struct Inside {
    issuer: Issuer<'static, KeyPair>,
    /// One key for all leaf certificates: only this run's own sandbox trusts them.
    key: KeyPair,
    pub(crate) made: RefCell<HashMap<Host, Arc<ServerConfig>>>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("opens", &self.inside.is_some()).finish_non_exhaustive()
    }
}

impl State {
    /// Reads all files that it needs, because none can be opened after confinement.
    pub fn new(config: &Config) -> Result<Self, EgressError> {
        let outside = if config.authority.is_some() || config.follow_redirects {
            Some(client(native_roots())?)
        } else {
            None
        };
        let inside = config.authority.as_ref().map(Inside::new).transpose()?;
        Ok(Self { inside, outside })
    }

    /// TLS to the host itself. Its certificate is checked against this name.
    pub(crate) async fn open(
        &self,
        stream: TcpStream,
        host: &Host,
    ) -> io::Result<TlsStream<TcpStream>> {
        let Some(config) = &self.outside else { return Err(io::ErrorKind::Unsupported.into()) };
        let name = match host {
            Host::Name(name) => {
                ServerName::try_from(name.as_str().to_owned()).map_err(io::Error::other)?
            }
            Host::Address(address) => ServerName::from(*address),
        };
        TlsConnector::from(Arc::clone(config)).connect(name, stream).await
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The roots of this machine, or of `SSL_CERT_FILE`. Unreadable ones are not trusted.
pub fn native_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// The library initialises its random source on first use, with system calls that the process may not make
/// after confinement.
fn seed(provider: &CryptoProvider) -> Result<(), EgressError> {
    let mut bytes = [0; 32];
    provider.secure_random.fill(&mut bytes).map_err(|_| broken("no randomness can be had"))
}

pub fn client(roots: RootCertStore) -> Result<Arc<ClientConfig>, EgressError> {
    let provider = provider();
    seed(&provider)?;
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(broken)?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

impl Inside {
    pub(crate) fn new(authority: &Authority) -> Result<Self, EgressError> {
        let key = KeyPair::from_pem(authority.key.reveal()).map_err(broken)?;
        // Only the authority's name and key go into the certificates it signs.
        let issuer = Issuer::new(authority_parameters(&[]), key);
        Ok(Self { issuer, key: KeyPair::generate().map_err(broken)?, made: RefCell::default() })
    }

    pub(crate) fn config_for(&self, host: &Host) -> Result<Arc<ServerConfig>, EgressError> {
        if let Some(made) = self.made.borrow().get(host) {
            return Ok(Arc::clone(made));
        }
        let config = Arc::new(self.make(host)?);
        let mut made = self.made.borrow_mut();
        if made.len() >= MAX_CERTIFICATES {
            made.clear();
        }
        made.insert(host.clone(), Arc::clone(&config));
        Ok(config)
    }

    fn make(&self, host: &Host) -> Result<ServerConfig, EgressError> {
        let mut parameters = CertificateParams::new([host.to_string()]).map_err(broken)?;
        parameters.distinguished_name = DistinguishedName::new();
        parameters.use_authority_key_identifier_extension = true;
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        validity(&mut parameters);
        let leaf = parameters.signed_by(&self.key, &self.issuer).map_err(broken)?;
        let chain = vec![CertificateDer::clone(leaf.der())];
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let builder = ServerConfig::builder_with_provider(provider());
        let builder = builder.with_safe_default_protocol_versions().map_err(broken)?;
        let mut config =
            builder.with_no_client_auth().with_single_cert(chain, key).map_err(broken)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}
