# A project of poetry, with a dependency.
python3 -m venv tool
tool/bin/pip install --quiet poetry
tool/bin/poetry new --quiet sample
cd sample
../tool/bin/poetry config --local virtualenvs.in-project true
../tool/bin/poetry add --quiet requests
../tool/bin/poetry run python -c 'import requests'
