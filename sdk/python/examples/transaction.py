"""A session whose changes are shown before they reach the project."""

from palisade import ConflictError, Sandbox

with Sandbox.create(transaction="overlay") as sandbox:
    sandbox.files.write("greeting.txt", "hello\n")
    before = sandbox.checkpoint("greeting written")
    sandbox.commands.run("tr a-z A-Z < greeting.txt > loud.txt && rm greeting.txt", check=True)
    sandbox.rollback(before.number)
    sandbox.commands.run("tr a-z A-Z < greeting.txt > loud.txt", check=True)
    print(sandbox.patch(), end="")
    try:
        print("applied:", ", ".join(sandbox.apply().applied))
    except ConflictError as error:
        print("not applied:", error.held)
