"""A certificate authority of the cluster's own, and the certificates it signs."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID_FOR = timedelta(days=3650)
_CLOCK_SKEW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes

    def save(self, directory: Path, name: str) -> None:
        (directory / f"{name}.crt").write_bytes(self.certificate)
        secret = directory / f"{name}.key"
        secret.touch(mode=0o600)
        secret.write_bytes(self.key)


def load(directory: Path, name: str) -> Pair | None:
    certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
    if not (certificate.exists() and key.exists()):
        return None
    return Pair(certificate.read_bytes(), key.read_bytes())


def authority(directory: Path) -> Pair:
    """The authority kept in a directory, made on first use."""
    kept = load(directory, "ca")
    if kept is None:
        kept = _signed("muster-local-ca", None)
        kept.save(directory, "ca")
    return kept


def server(ca: Pair, hosts: Sequence[str]) -> Pair:
    """A certificate for the API server under these names and addresses."""
    return _signed("muster-apiserver", ca, hosts=hosts, usage=ExtendedKeyUsageOID.SERVER_AUTH)


def client(ca: Pair, user: str, groups: Sequence[str] = ()) -> Pair:
    """A certificate that makes its holder a user and a member of groups."""
    return _signed(user, ca, groups=groups, usage=ExtendedKeyUsageOID.CLIENT_AUTH)


def _signed(
    name: str,
    ca: Pair | None,
    *,
    hosts: Sequence[str] = (),
    groups: Sequence[str] = (),
    usage: x509.ObjectIdentifier | None = None,
) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, g) for g in groups]
    subject = x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    parent = x509.load_pem_x509_certificate(ca.certificate) if ca else None
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(parent.subject if parent else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _VALID_FOR)
        .add_extension(x509.BasicConstraints(ca=parent is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(h) for h in hosts]), False)
    if usage is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    if parent is None:
        builder = builder.add_extension(_CA_USAGE, critical=True)
    else:
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(parent.public_key())  # type: ignore[arg-type]
        builder = builder.add_extension(identifier, critical=False)
    signer = serialization.load_pem_private_key(ca.key, None) if ca else key
    certificate = builder.sign(signer, hashes.SHA256())  # type: ignore[arg-type]
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


_CA_USAGE = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
