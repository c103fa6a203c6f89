# uv: a project, a dependency, and a program that is fetched to be run once.
python3 -m venv tool
tool/bin/pip install --quiet uv
# The system's certificates, as pip uses them; uv has its own.
export SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
tool/bin/uv init --quiet sample
cd sample
../tool/bin/uv add --quiet requests
../tool/bin/uv run --quiet python -c 'import requests'
../tool/bin/uvx --quiet cowsay -t hello
