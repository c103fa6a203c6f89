# A project of poetry, with a dependency. From the index that pip uses: mirrors have no other interface.
python3 -m venv tool
tool/bin/pip install --quiet poetry
# The system's certificates, as pip uses them; poetry has its own.
export REQUESTS_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt
tool/bin/poetry new sample
cd sample
../tool/bin/poetry config --local virtualenvs.in-project true
index=$(../tool/bin/python -c 'from pip._internal.models.index import PyPI; print(PyPI.simple_url)')
../tool/bin/poetry source add --priority=primary index "$index"
../tool/bin/poetry add requests
../tool/bin/poetry run python -c 'import requests'
