#!/bin/sh
# Install tritonpy into the environment of an image: build_environment.sh ENVIRONMENT PLUGINS-FILE
#
# Writes the bill of materials to /sbom.cdx.json, removes what serves only installation, and compiles
# to bytecode, since the root filesystem of a container may be read-only.
set -eu
environment=$1
export TRITONPY_PLAIN_DEPENDENCIES=1
xargs python3 /src/tools/install.py --environment "$environment" < "$2"
# Both builds of ONNX Runtime install the same files, and the last one wins.
if "$environment/bin/python" -m pip show --quiet onnxruntime-gpu 2>/dev/null; then
    "$environment/bin/python" -m pip install --force-reinstall --no-deps onnxruntime-gpu
fi
python3 -m venv /bill
/bill/bin/pip install --quiet "cyclonedx-bom>=7,<8"
/bill/bin/cyclonedx-py environment --output-reproducible --pyproject /src/core/pyproject.toml \
    --output-file /sbom.cdx.json "$environment/bin/python"
"$environment/bin/python" -m pip uninstall --quiet --yes pip setuptools
rm -rf "$environment/build-backend"
find "$environment"/lib/python*/site-packages/numpy -depth -type d -name tests -exec rm -r {} +
# Example data and highlighters, which nothing imports at run time, stay uncompiled.
"$environment/bin/python" -m compileall -q -j 0 -x '/(faker|pygments)/' "$environment/lib" || true
