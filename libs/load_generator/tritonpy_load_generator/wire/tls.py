"""TLS contexts of clients, from perf_analyzer's flags."""

from __future__ import annotations

import ssl

from tritonpy_load_generator.options import BadUsage, LoadOptions


def grpc_client_context(options: LoadOptions) -> ssl.SSLContext:
    """Return the context of gRPC connections. Raises BadUsage if a file cannot be used."""
    try:
        context = ssl.create_default_context(cafile=options.ssl_grpc_root_certifications_file)
        if options.ssl_grpc_certificate_chain_file:
            context.load_cert_chain(
                options.ssl_grpc_certificate_chain_file, options.ssl_grpc_private_key_file
            )
    except OSError as error:
        raise BadUsage(f"the files of --ssl-grpc-… cannot be used: {error}") from error
    context.set_alpn_protocols(["h2"])
    return context


def https_client_context(options: LoadOptions) -> ssl.SSLContext:
    """Return the context of HTTPS connections. Raises BadUsage if a file cannot be used."""
    try:
        return _context(options)
    except OSError as error:  # ssl.SSLError is an OSError
        raise BadUsage(f"the files of --ssl-https-… cannot be used: {error}") from error


def _context(options: LoadOptions) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=options.ssl_https_ca_certificates_file)
    context.check_hostname = bool(options.ssl_https_verify_peer and options.ssl_https_verify_host)
    context.verify_mode = ssl.CERT_REQUIRED if options.ssl_https_verify_peer else ssl.CERT_NONE
    if options.ssl_https_client_certificate_file:
        context.load_cert_chain(
            options.ssl_https_client_certificate_file, options.ssl_https_private_key_file
        )
    return context
