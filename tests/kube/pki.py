"""Certificates for tests: an authority, and what it signs."""

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PEM = serialization.Encoding.PEM


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs certificates for loopback and for clients."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        made = self._build(self.name, self.key).add_extension(x509.BasicConstraints(True, None), True)
        made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), False)
        usage = dict.fromkeys(["content_commitment", "key_encipherment", "data_encipherment", "key_agreement"], False)
        made = made.add_extension(
            x509.KeyUsage(
                digital_signature=True,
                key_cert_sign=True,
                crl_sign=True,
                encipher_only=False,
                decipher_only=False,
                **usage,
            ),
            True,
        )
        self.certificate = made.sign(self.key, hashes.SHA256()).public_bytes(PEM)

    def sign(self, name: str) -> Pair:
        """A certificate of that name, good for a server on loopback and for a client."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        made = (
            self._build(subject, key)
            .add_extension(x509.SubjectAlternativeName(names[: 1 if name.endswith(".test") else 2]), False)
            .add_extension(issuer, False)
            .sign(self.key, hashes.SHA256())
        )
        text = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return Pair(made.public_bytes(PEM), text)

    def _build(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
        )

    def server(self, folder: Path, name: str = "server", *, ask: bool = False) -> ssl.SSLContext:
        """Settings of a server, which may demand certificates of clients."""
        pair = self.sign(name)
        file = folder / f"{name}.pem"
        file.write_bytes(pair.certificate + pair.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        if ask:
            context.load_verify_locations(cadata=self.certificate.decode())
            context.verify_mode = ssl.CERT_REQUIRED
        return context
