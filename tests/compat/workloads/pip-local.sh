# A virtual environment, and packages built and installed from local files.
python3 - <<'EOF'
import zipfile
for name in ("one", "two"):
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", f"value = '{name}'\n")
        for number in range(100):
            wheel.writestr(f"{name}/part{number}.py", f"number = {number}\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/entry_points.txt", f"[console_scripts]\n{name}-tool = {name}.part1:__name__.upper\n")
        wheel.writestr(f"{info}/RECORD", "")
EOF
/usr/bin/python3 -m pip --quiet --disable-pip-version-check install --no-index --find-links . --target site one two
test "$(PYTHONPATH=site /usr/bin/python3 -c 'import one, two; print(one.value + two.value)')" = onetwo
/usr/bin/python3 -m pip --quiet --disable-pip-version-check install --no-index --find-links . --target site --upgrade one
test -x site/bin/one-tool
/usr/bin/python3 -m compileall -q -j 2 site
