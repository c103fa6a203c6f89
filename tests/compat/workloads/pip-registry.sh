# A virtual environment with packages from the index, one of them with binaries.
python3 -m venv environment
environment/bin/pip install --quiet requests pyyaml
environment/bin/python -c 'import requests, yaml'
