# A project of poetry, with a dependency. From the index that pip uses: mirrors have no other interface.
python3 -m venv tool
tool/bin/pip install --quiet poetry
# A machine whose registry has a certificate of its own says so to pip; poetry has to be told.
cert=$(tool/bin/pip config get global.cert 2>/dev/null) && export REQUESTS_CA_BUNDLE="$cert"
tool/bin/poetry new --quiet sample
cd sample
../tool/bin/poetry config --local virtualenvs.in-project true
index=$(../tool/bin/python -c 'from pip._internal.models.index import PyPI; print(PyPI.simple_url)')
../tool/bin/poetry source add --quiet --priority=primary index "$index"
../tool/bin/poetry add --quiet requests
../tool/bin/poetry run python -c 'import requests'
