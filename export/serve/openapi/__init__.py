"""What the routes take and answer, told to programs: `/openapi.json`.

`document.py` reads the paths off the application, `operations.py` says what
each does, `schemas.py` what the JSON looks like.
"""
