# uv: a project, a dependency, and a program that is fetched to be run once.
python3 -m venv tool
tool/bin/pip install --quiet uv
# A machine whose registry has a certificate of its own says so to pip; uv has to be told.
cert=$(tool/bin/pip config get global.cert 2>/dev/null) && export SSL_CERT_FILE="$cert"
tool/bin/uv init --quiet sample
cd sample
../tool/bin/uv add --quiet requests
../tool/bin/uv run --quiet python -c 'import requests'
../tool/bin/uvx --quiet cowsay -t hello
