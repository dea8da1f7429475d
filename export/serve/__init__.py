"""The server: TensorFlow Serving's REST protocol, KServe's, and a page.

`rest/` reads requests and writes answers, `model/` loads versions and computes,
`page/` is what a browser shows, `openapi/` tells programs what there is;
`app.py` puts them together.
"""
