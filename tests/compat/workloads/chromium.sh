# A page, rendered without a screen. Chromium's own sandbox needs namespaces that are not to be had inside.
printf '<title>t</title><script>document.write("<p id=x>" + (40 + 2) + "</p>")</script>' > page.html
chromium --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" --dump-dom "file://$PWD/page.html" > dom 2> log
grep -q '<p id="x">42</p>' dom
chromium --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" --screenshot="$PWD/shot.png" \
    "file://$PWD/page.html" 2>> log
test -s shot.png
