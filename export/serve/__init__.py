"""The server: TensorFlow Serving's REST protocol, and a page.

`rest/` reads requests and writes answers, `model/` loads versions and computes,
`page/` is what a browser shows; the routes are in `app.py`.
"""
